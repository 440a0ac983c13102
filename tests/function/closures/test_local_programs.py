"""Functions made anew at each call, from random parts, beside plain Python (D44)."""

import functools
import itertools
import linecache
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import wend

pytestmark = pytest.mark.filterwarnings("ignore::wend.RetraceWarning")

CALLS = 7
NUMBERS = itertools.count()
x = np.asarray([0.3, -0.7, 1.1])


def scaled(y, by=1.0):
    return y * by


def shifted(y, by=1.0):
    return y + by


@pytest.fixture(autouse=True, scope="module")
def _backend() -> Iterator[None]:
    with wend.config(backend="numpy"):
        yield


class Affine:
    def __init__(self, slope):
        self.slope = slope

    def __call__(self, y):
        return y * self.slope

    def method(self, y):
        return y + self.slope


def drawn_float(rng):
    return rng.choice([0.5, -1.5, 2.0, 0.0, -0.0, rng.uniform(-2, 2)])


def drawn_array(rng):
    return np.asarray([rng.uniform(-2, 2) for _ in x])


def drawn_function(rng):
    """A function: a plain one, a builtin of NumPy, a partial, a lambda, a method, an object."""
    slope = drawn_float(rng)
    array = drawn_array(rng)
    kinds = [
        lambda: scaled,
        lambda: shifted,
        lambda: np.sin,
        lambda: functools.partial(scaled, by=slope),
        lambda: functools.partial(shifted, by=array),
        lambda: lambda y: y * slope,
        lambda: lambda y: y + array,
        lambda: lambda y, by=slope: y - by,
        lambda: wend.function(lambda y: y * slope + array),
        lambda: Affine(slope),
        lambda: Affine(slope).method,
        lambda: lambda y: functools.partial(scaled, by=slope)(y) + (lambda z: z * array)(y),
    ]
    return rng.choice(kinds)()


# By name: what draws the value of a part, and how the body uses it, `p` being the part.
PARTS = {
    "array": (drawn_array, ["y = y * {p}", "y = y + {p}.sum()", "y = y - {p}[1]"]),
    "element": (drawn_array, ["y = y * (2.0 if {p}[0] > 0 else 3.0)"]),
    "number": (drawn_float, ["y = y * {p}", "y = np.sin(y + {p})"]),
    "tested": (drawn_float, ["y = y * ({p} if {p} > 0.25 else 1.0)"]),
    "int": (lambda rng: rng.randrange(4), ["for _ in range({p}):\n  y = y * 0.5", "y = y + {p}"]),
    "bool": (lambda rng: rng.random() < 0.5, ["y = -y if {p} else y"]),
    "text": (lambda rng: rng.choice("ab"), ["y = y * 2 if {p} == 'a' else y + 2"]),
    "function": (drawn_function, ["y = {p}(y)", "y = {p}({p}(y))"]),
    "scalar": (lambda rng: np.float64(drawn_float(rng)), ["y = y * {p}"]),
    "list": (
        lambda rng: [drawn_float(rng), drawn_array(rng)],
        ["y = y * {p}[0] + {p}[1]", "for q in {p}:\n  y = y + q"],
    ),
    "tuple": (
        lambda rng: (drawn_float(rng), drawn_function(rng)),
        ["y = {p}[1](y) * {p}[0]"],
    ),
    "dict": (
        lambda rng: {"slope": drawn_float(rng), "shift": drawn_array(rng)},
        ["y = y * {p}['slope'] + {p}['shift']"],
    ),
}
FORMS = ["cell", "default", "keyword", "global", "attribute", "inner"]


class Program:
    """Code that makes functions: of each call anew, with other values of the parts."""

    def __init__(self, rng):
        self.rng = rng
        self.kinds = [rng.choice([*PARTS]) for _ in range(rng.randint(1, 3))]
        self.forms = [rng.choice(FORMS) for _ in self.kinds]
        names = [f"p{k}" for k in range(len(self.kinds))]
        body, before, defaults, keywords = [], [], [], []
        for name, kind, form in zip(names, self.kinds, self.forms, strict=True):
            part = name
            if form == "default":
                defaults.append(f"d{name}={name}")
                part = f"d{name}"
            elif form == "keyword":
                keywords.append(f"k{name}={name}")
                part = f"k{name}"
            elif form == "global":
                before.append(f"global g{name}\n g{name} = {name}")
                part = f"g{name}"
            elif form == "attribute":
                part = f"f.{name}"
            use = rng.choice(PARTS[kind][1]).format(p=part)
            if form == "inner":
                inner = use.replace("\n", "\n  ")
                use = f"def inner(y):\n  {inner}\n  return y\ny = inner(y)"
            body += use.split("\n")
        static = [*defaults, *(["*", *keywords] if keywords else [])]
        lines = [
            f"def make({', '.join(names)}):",
            *(f" {line}" for line in before),
            f" def f({', '.join(['y', *static])}):",
            *(f"  {line}" for line in body),
            "  return np.sum(y * y)",
            *(
                f" f.{n} = {n}"
                for n, form in zip(names, self.forms, strict=True)
                if form == "attribute"
            ),
            " return f",
        ]
        self.text = "\n".join(lines)
        self.namespace = {"np": np}
        file = f"<local {next(NUMBERS)}>"
        if rng.random() < 0.9:  # others have no source, and run as plain Python
            linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        exec(compile(self.text, file, "exec"), self.namespace)
        self.values = [PARTS[kind][0](rng) for kind in self.kinds]

    def function(self):
        """A new function; some of its parts are those of the last one."""
        rng = self.rng
        self.values = [
            value if rng.random() < 0.3 else PARTS[kind][0](rng)
            for value, kind in zip(self.values, self.kinds, strict=True)
        ]
        for k, kind in enumerate(self.kinds):  # the same object in two places
            if kind == self.kinds[0] and rng.random() < 0.2:
                self.values[k] = self.values[0]
        return self.namespace["make"](*self.values)


def slope_of(f, y):
    """The gradient by central differences."""
    step = 1e-5
    units = np.eye(len(y)) * step
    return np.asarray([(f(y + unit) - f(y - unit)) / (2 * step) for unit in units])


@wend.function
def squared(f, y):
    return f(y) ** 2


@wend.function
def slope_within(f, y):
    return wend.grad(f)(y)


def check(f, form):
    expected, slope = f(x), slope_of(f, x)
    if form == "function":
        np.testing.assert_allclose(wend.function(f)(x), expected, rtol=1e-12)
    elif form == "grad":
        np.testing.assert_allclose(wend.grad(f)(x), slope, rtol=1e-6, atol=1e-6)
    elif form == "value_and_grad":
        value, gradient = wend.value_and_grad(f)(x)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6)
    elif form == "vjp":
        value, pullback = wend.vjp(f, x)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(pullback(2.0)[0], 2 * slope, rtol=1e-6, atol=1e-6)
    elif form == "jvp":
        value, tangent = wend.jvp(f, (x,), (np.ones(3),))
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(tangent, slope.sum(), rtol=1e-6, atol=1e-6)
    elif form == "vmap":
        mapped = wend.vmap(f)(np.stack([x, 2 * x]))
        np.testing.assert_allclose(mapped, [expected, f(2 * x)], rtol=1e-12)
    elif form == "argument":
        np.testing.assert_allclose(squared(f, x), expected**2, rtol=1e-12)
    else:
        np.testing.assert_allclose(slope_within(f, x), slope, rtol=1e-6, atol=1e-6)


CALLERS = [
    *("function", "grad", "value_and_grad", "vjp", "jvp", "vmap", "argument", "grad within"),
]


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=4 * hypothesis.settings.default.max_examples)
def test_each_function_has_its_own_values(rng):
    program = Program(rng)
    hypothesis.note(program.text)
    form = rng.choice(CALLERS)
    hypothesis.note(form)
    kept = []
    for _ in range(CALLS):
        f = program.function()
        hypothesis.note(repr(program.values))
        check(f, form)
        if rng.random() < 0.3:
            kept.append(f)  # others are gone before the next is made
        if kept and rng.random() < 0.3:
            check(rng.choice(kept), form)
