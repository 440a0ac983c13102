"""Exceptions, handlers, managers."""

from __future__ import annotations

from collections.abc import Callable

from tests.semantics.making.control import _carry, reassign
from tests.semantics.making.expressions import (
    boolean,
    integer,
    known_boolean,
    known_integer,
    real,
)
from tests.semantics.making.writer import Writer

# What raises, and what
RAISING = (
    ("{}['zz']", "KeyError"),
    ("{'a': 1.0}[K]", "KeyError"),
    ("[1.0, 2.0][9]", "IndexError"),
    ("(1.0, 2.0)[K + 2]", "IndexError"),
    ("'a' + 1", "TypeError"),
    ("len(3)", "TypeError"),
    ("int('no')", "ValueError"),
    ("[1.0].index(7)", "ValueError"),
    ("object().missing", "AttributeError"),
    ("1 / (K - K)", "ZeroDivisionError"),
    ("K // 0", "ZeroDivisionError"),
    ("next(iter([]))", "StopIteration"),
    ("sum(v for v in [K, 'a'])", "TypeError"),
    ("math.sqrt(-1 - abs(K))", "ValueError"),
    ("{}.popitem()", "KeyError"),
    ("float('a')", "ValueError"),
    ("np.zeros(3)[5]", "IndexError"),
)
PARENTS = {
    "KeyError": "LookupError",
    "IndexError": "(KeyError, IndexError)",
    "TypeError": "(TypeError, ValueError)",
    "ValueError": "Exception",
    "AttributeError": "Exception",
    "ZeroDivisionError": "ArithmeticError",
    "StopIteration": "StopIteration",
}


def _raising(w: Writer) -> tuple[str, str]:
    text, error = w.choose(*RAISING)
    return text.replace("K", known_integer(w)) if "KeyError" not in text else text, error


def trying(w: Writer, body: Callable[[Writer, int], None], depth: int) -> None:
    name = w.name("v")
    text, error = _raising(w)
    handler = w.choose(error, error, PARENTS[error], "Exception")
    w.write(f"{name} = 0.5")
    with w.block("try:"):
        form = w.number(0, 3)
        if form == 0:
            w.write(f"{name} = {real(w, 1)} + 0.0")
        elif form == 1:
            with w.block(f"if {known_boolean(w)}:"):
                w.write(f"{name} = {text}")
        else:
            if w.chance(0.5):
                w.write(f"{name} = {real(w, 1)} + 0.0")
            w.write(f"{text}")
        if form < 2 and w.chance(0.5):
            body(w, depth - 1)
    bound = w.chance(0.4)
    with w.block(f"except {handler}{' as error' if bound else ''}:"):
        w.write(f"{name} = {real(w, 1)} + 0.0")
        if bound:
            w.write(
                w.choose("print(type(error).__name__)", "print(len(error.args))", "print(error)")
            )
    if w.chance(0.3):
        with w.block("else:"):
            w.write(f"{name} += 1")
    if w.chance(0.3):
        with w.block("finally:"):
            w.write(w.choose(f"{name} *= 0.5", f"{name} -= 1"))
    if form in (0, 2, 3):
        w.add(name, "float", assigned=True)


def raising(w: Writer) -> None:
    name = w.name("v")
    error = w.choose("ValueError('a')", "KeyError('k')", "Own(2)", "RuntimeError", "TypeError('t')")
    if "Own" in error and "Own" not in w.facts:
        w.facts["Own"] = True
        w.outside(OWN)
    w.write(f"{name} = 0.0")
    with w.block("try:"):
        with w.block(f"if {known_boolean(w)}:"):
            w.write(f"raise {error}")
        w.write(f"{name} = {real(w, 1)} + 0.0")
    with w.block(f"except {error.partition('(')[0]}{w.choose('', ' as e')}:"):
        w.write(f"{name} = {real(w, 1)} + 0.5")
    w.add(name, "float", assigned=True)


def uncaught(w: Writer) -> None:
    with w.block(f"if {known_boolean(w)} and {known_boolean(w)} and {known_boolean(w)}:"):
        w.write(w.choose(_raising(w)[0], "raise ValueError('uncaught')"))
        w.staged = True


def asserting(w: Writer) -> None:
    w.write(f"assert {boolean(w, 1)} or {boolean(w, 1)} or True, 'message'")
    initializes = any("cached_property" in line for line in w.head)  # before the run fails
    if w.chance(0.2) and not initializes:
        w.write(f"assert {real(w, 1)} < {w.number(3, 9)}, 'too large'")


RAISED = (
    ("ValueError('small')", "ValueError"),
    ('ValueError(f"""value {VALUE}""")', "(KeyError, ValueError)"),
    ("KeyError('k', VALUE)", "LookupError"),
    ("IndexError", "Exception"),
    ("Own(VALUE)", "Own"),
    ("Own(2)", "ValueError"),
    ("ZeroDivisionError('zero') from None", "ArithmeticError"),
    ("RuntimeError('again') from KeyError(VALUE)", "RuntimeError"),
)
OWN = """
class Own(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code
"""


def _raised(w: Writer) -> tuple[str, str]:
    """Return what a statement raises, with a value of the run, and a class that catches it."""
    text, caught = w.choose(*RAISED)
    if "Own" in text and "Own" not in w.facts:
        w.facts["Own"] = True
        w.outside(OWN)
    with w.restricted(scalar=False):
        return f"raise {text.replace('VALUE', real(w, 0))}", caught


def staged_raise(w: Writer) -> None:
    """A raise that a traced value decides, which nothing catches."""
    with w.block(f"if {real(w, 0)} > {w.number(4, 7)}:", staged=True):
        w.write(_raised(w)[0])


def handled_raise(w: Writer) -> None:
    """Raises that a traced value decides, in a branch, a loop or a helper, and their handlers."""
    name, helper = w.name("v"), w.name("check")
    statement, caught = _raised(w)
    other = _raised(w)[0]
    with w.block(f"def {helper}(u):"):
        w.write(f"if u > {w.number(0, 3)}:", f"    {statement}")
        w.write(f"if u < {w.number(-3, -1)}:", f"    {other}", "return u * 0.5")
    outer = w.chance(0.6)
    w.write(f"{name} = {real(w, 1)} + 0.0")
    if outer:
        w.write("try:")
        w.indent += 1
    with w.block("try:"):
        i = w.name("i")
        w.write(
            w.choose(
                f"{name} = {helper}({real(w, 1)} + 0.0)",
                f"for {i} in range({integer(w, 0)} % 4): {name} = {name} + {helper}({i} + {name})",
                f"{name} = {helper}({name}); {name} = {helper}({name} + 1)",
                f"{name} = {name} + 1; {name} = sum([{helper}({name}), {helper}(-{name})])",
            )
        )
    with w.block(f"except {caught} as e:"):
        w.write(w.choose(f"{name} = {name} * 0.5 - 1", "print(type(e).__name__, e)"))
        if "Own" in statement and caught == "Own":
            w.write(f"{name} = {name} + e.code")
        elif w.chance(0.2):
            w.write(w.choose("raise", "raise TypeError('worse') from e"))
    if w.chance(0.3):
        w.write("else:", f"    {name} += 1")
    if w.chance(0.4):
        w.write("finally:", w.choose(f"    {name} *= 0.5", "    print('done')"))
    if outer:
        w.indent -= 1
        w.write("except Exception as e:", f"    {name} = -1.0")
        if w.chance(0.5):
            w.write("    print(type(e).__name__, str(e))")
    w.add(name, "float", assigned=True, scalar=True)


def handler_at_run(w: Writer) -> None:
    """A handler around what the run may raise; one that catches it is what wend refuses."""
    name, x, error = w.name("v"), real(w, 1), w.choose("KeyError", "LookupError", "NameError")
    with w.block("try:"):
        if w.risky:
            w.write(f"{name} = {x} / {w.number(1, 3)} + {{1.0: 2.0}}.get({real(w, 0)}, 0.5)")
            error = w.choose("TypeError", "ZeroDivisionError", "Exception")
        else:
            w.write(w.choose(f"{name} = {x} / 4", f"{name} = float(int({x}))"))
    with w.block(f"except {error}:"):
        w.write(f"{name} = 7.0")
    w.add(name, "float", assigned=True)


def suppressed(w: Writer) -> None:
    name = w.name("v")
    text, error = _raising(w)
    w.write(f"{name} = {real(w, 1)} + 0.0")
    with w.block(f"with contextlib.suppress({w.choose(error, PARENTS[error])}):"):
        if w.chance(0.5):
            w.write(f"{name} = {real(w, 1)} - 0.5")
        w.write(text)
    w.add(name, "float", assigned=True)


def manager(w: Writer) -> None:
    name = w.name("Manager")
    swallow = w.choose("True", "kind is not None and issubclass(kind, KeyError)", "False")
    if w.chance(0.5):
        w.outside(
            f"class {name}:\n    gain = {w.number(1, 3)}\n    def __enter__(self):\n"
            f"        self.k = self.gain\n        return self\n"
            f"    def __exit__(self, kind, value, trace):\n        self.k = 0\n"
            f"        return {swallow}",
            f"{name}.gain = {w.number(-1, 5)}",
        )
        opened, read = f"{name}() as m", "m.k"
    else:
        swallow = "False"
        w.outside(
            f"g{name} = {w.number(1, 3)}\n@contextlib.contextmanager\ndef {name}(v):\n"
            f"    yield v * g{name}",
            f"g{name} = {w.number(-2, 5)}",
        )
        opened, read = f"{name}(2) as m", "m"
    v = w.name("v")
    w.write(f"{v} = 0.0")
    with w.block(f"with {opened}:"):
        w.write(f"{v} = {real(w, 1)} * {read}")
        if swallow != "False" and w.chance(0.6):
            w.write("{}['zz']")
        elif w.chance(0.5):
            _carry(w)
            reassign(w)
    w.add(v, "float", assigned=True)


STATEMENTS = {
    "a raise that is caught": (1.5, raising, False),
    "an uncaught raise": (0.6, uncaught, False),
    "assert": (0.8, asserting, True),
    "a staged raise": (0.6, staged_raise, True),
    "a handled raise": (1.5, handled_raise, True),
    "a handler of the run's errors": (1, handler_at_run, False),
    "suppress": (1, suppressed, False),
    "a manager": (1.5, manager, False),
}
COMPOUND = {"try": (3, trying)}
