"""Instances of dataclasses and attrs classes of the caller: what they hold is traced.

Each program equals plain Python: its result, its arguments afterwards, and what is one object.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import wend

attrs = pytest.importorskip("attrs")


@dataclass
class Body:
    pos: np.ndarray
    vel: np.ndarray
    mass: float
    count: int = 3
    name: str = "sun"


@dataclass(frozen=True)
class Params:
    a: float
    b: float
    w: np.ndarray
    kind: str = "tanh"


@dataclass(slots=True)
class Slotted:
    x: float
    y: np.ndarray


@dataclass(frozen=True, slots=True)
class FrozenSlotted:
    x: float
    y: np.ndarray


@dataclass
class Base:
    body: Body
    scale: float


@dataclass
class Derived(Base):
    params: Params | None = None


@dataclass
class Range:
    low: float
    high: float
    width: float = field(init=False)

    def __post_init__(self) -> None:
        self.width = self.high - self.low

    @property
    def mid(self) -> float:
        return 0.5 * (self.low + self.high)

    def clip(self, x: Any) -> Any:
        return np.minimum(np.maximum(x, self.low), self.high)


@dataclass
class History:
    x: float
    log: list = field(default_factory=list)
    tag: str = field(default="t", compare=False)
    cache: float = field(default=0.0, compare=False, repr=False)


@dataclass
class Adam:
    rate: float
    m: np.ndarray | None = None
    v: np.ndarray | None = None
    t: int = 0

    def step(self, p: Any, g: Any) -> Any:
        if self.m is None:
            self.m, self.v = np.zeros_like(p), np.zeros_like(p)
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g * g
        m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        return p - self.rate * m / (np.sqrt(v) + 1e-8)


@dataclass
class Activated:
    w: np.ndarray
    act: Any = np.tanh
    inner: Any = None


@attrs.define
class Module:
    w: np.ndarray
    b: float
    name: str = "m"


@attrs.frozen
class FrozenModule:
    w: np.ndarray
    b: float


class State(NamedTuple):
    body: Body
    t: float


def body(k: float, name: str = "sun") -> Body:
    return Body(np.array([1.0, 2.0 + k]), np.array([0.5, -0.2 * k]), 1.0 + k, 3, name)


def energy(b):
    return 0.5 * b.mass * b.vel @ b.vel + b.mass * 9.81 * b.pos[1]


def step_in_place(b, dt):
    b.vel[1] -= 9.81 * dt
    b.pos += dt * b.vel
    b.mass = b.mass * 1.5


def step_by_replace(b, dt):
    for _ in range(3):
        b = replace(b, pos=b.pos + dt * b.vel, mass=b.mass * 1.1)
    return b


def choose_by_text(p, x):
    return np.tanh(p.a * x + p.b) @ p.w if p.kind == "tanh" else x.sum()


def change_slots(s):
    s.x = s.x + s.y.sum()
    s.y[0] = 7.0
    return s.x * s.y


def replace_and_return(s):
    return replace(s, x=s.x * 2), s


def change_inside(o):
    o.body.pos = o.body.pos * o.scale + o.params.w
    o.scale *= 2
    return o.body


def use_methods(p, x):
    return p.clip(x) * p.width + p.mid


def grow_a_field(h):
    for _ in range(3):
        h.log.append(h.x)
        h.x = h.x * 2
    h.cache = h.x
    return h


def in_a_named_tuple(s):
    t = s.t
    while t < 1.0:
        s.body.mass = s.body.mass * 1.5
        t = t + 0.25
    return State(s.body, t), s.body


def one_or_two(a, b):
    a.mass = 10.0
    return b.mass + a.mass, a is b


def change_on_a_path(b, t):
    if t > 0:
        b.mass = b.mass + 1
        b.pos = b.pos * 2
    else:
        b.vel = b.vel * 0.0
    return b.mass


def change_in_a_loop(b):
    while b.mass < 50.0:
        b.mass = b.mass * 1.7
        b.count += 1
    return b


def among_bodies(bodies):
    total = 0.0
    for one in bodies:
        for other in bodies:
            if other is not one:
                d = other.pos - one.pos
                total += one.mass * other.mass / np.sqrt(d @ d + 1e-3)
        one.vel = one.vel * 0.5
    return total


def in_a_dict(bodies):
    for b in bodies.values():
        b.mass += 1.0
    heaviest = max(bodies.values(), key=lambda b: b.count)
    return sum(b.mass for b in bodies.values()), heaviest.name


def optimize(optimizer, p):
    for _ in range(5):
        p = optimizer.step(p, 2 * p)
    return p


def make_another(p):
    return Range(p.low - 1, p.high * 2)


def show(b):
    return b.mass if b.name == "sun" else -b.mass, f"{b.name}:{b.count}"


def ask(b):
    c = replace(b, mass=2.0)
    is_body = isinstance(b, Body) and dataclasses.is_dataclass(b)
    return is_body, c.mass, len(dataclasses.fields(b)), dataclasses.asdict(b)["mass"]


def swap(b):
    b.pos, b.vel = b.vel, b.pos
    return b.pos[0]


def use_static_parts(a, x):
    scale = 2.0 if a.inner is None else 3.0
    return a.act(a.w * x) * scale


def give_and_delete(h):
    h.extra = h.x * 3
    del h.cache
    return h.extra


def change_module(m, x):
    m.b += 1
    return m.w @ x + m.b


def evolve(m, x):
    return attrs.evolve(m, b=m.b * x[1])


def twice(k):
    b = body(k)
    return b, b


PROGRAMS = [
    (energy, lambda k: (body(k),)),
    (step_in_place, lambda k: (body(k), 0.1 * (k + 1))),
    (step_by_replace, lambda k: (body(k), 0.1)),
    (choose_by_text, lambda k: (Params(1.0 + k, 2.0, np.arange(3.0) + k), np.ones(3) * k)),
    (choose_by_text, lambda k: (Params(1.0, 2.0, np.arange(3.0), "sum"), np.ones(3) * k)),
    (change_slots, lambda k: (Slotted(1.0 + k, np.arange(3.0)),)),
    (replace_and_return, lambda k: (FrozenSlotted(1.0 + k, np.arange(3.0)),)),
    (change_inside, lambda k: (Derived(body(k), 2.0, Params(1.0, 2.0 + k, np.ones(2))),)),
    (use_methods, lambda k: (Range(0.0, 1.0 + k), np.linspace(-2, 5, 4))),
    (grow_a_field, lambda k: (History(1.0 + k),)),
    (in_a_named_tuple, lambda k: (State(body(k), 0.0),)),
    (one_or_two, twice),
    (one_or_two, lambda k: (body(k), body(k + 1))),
    (change_on_a_path, lambda k: (body(k), k - 1.5)),
    (change_in_a_loop, lambda k: (body(k),)),
    (among_bodies, lambda k: ([body(k), body(k + 1), body(k + 2)],)),
    (in_a_dict, lambda k: ({"a": body(k), "b": body(k + 1)},)),
    (optimize, lambda k: (Adam(0.1 * (k + 1)), np.arange(3.0))),
    (make_another, lambda k: (Range(0.0, 1.0 + k),)),
    (show, lambda k: (body(k, "sun" if k % 2 else "moon"),)),
    (ask, lambda k: (body(k),)),
    (swap, lambda k: (body(k),)),
    (use_static_parts, lambda k: (Activated(np.ones(2) * k), 0.5)),
    (use_static_parts, lambda k: (Activated(np.ones(2) * k, np.sin, "not None"), 0.5)),
    (give_and_delete, lambda k: (History(1.0 + k),)),
    (change_module, lambda k: (Module(np.ones(2), 1.0 + k), np.arange(2.0))),
    (evolve, lambda k: (FrozenModule(np.ones(2), 1.0 + k), np.arange(2.0))),
]


def described(value: Any) -> Any:
    """Return classes, structure and rounded numbers of a value."""
    if dataclasses.is_dataclass(value) or attrs.has(type(value)):
        names = [*getattr(value, "__dict__", {})] or [*type(value).__slots__]
        fields = {k: described(getattr(value, k)) for k in names if hasattr(value, k)}
        return type(value).__name__, fields
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [*map(described, value)]
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.dtype.str, [float(f"{x:.10g}") for x in value.ravel()]
    if isinstance(value, (int, float, np.generic)):
        return float(f"{value:.10g}")
    return value


def objects(arguments: tuple, result: Any) -> list[bool]:
    """Return which arguments are the result, or a part of it."""
    parts = result if isinstance(result, tuple) else (result,)
    return [part is argument for part in parts for argument in arguments]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("fun", "make"), PROGRAMS)
def test_programs_equal_plain_python(fun, make, backend):
    traced = wend.function(fun, backend=backend)
    for k in range(4):
        expected_args, traced_args = make(float(k)), make(float(k))
        expected, result = fun(*expected_args), traced(*traced_args)
        assert described(result) == described(expected)
        assert described(traced_args) == described(expected_args)
        assert objects(traced_args, result) == objects(expected_args, expected)
    assert traced.trace_count == (2 if fun is show else 1)


def test_a_change_of_a_registered_dataclass_is_seen_by_the_caller():
    @wend.tree.register(static=["unit"])
    @dataclass
    class Length:
        value: float
        unit: str = "m"

    @wend.function
    def double(length):
        length.value = length.value * 2
        return length

    for _ in range(3):
        length = Length(3.0)
        assert double(length) is length
        assert length == Length(6.0, "m")
    assert double.trace_count == 1


def test_the_first_trace_serves_other_numbers_and_equal_static_fields():
    calls = wend.function(lambda p: p.a * 2)
    for k in range(3):
        calls(Params(float(k), 1.0, np.ones(2), f"{'ta'}nh"))
    assert calls.trace_count == 1
    calls(Params(1.0, 1.0, np.ones(2), "other"))
    assert calls.trace_count == 2


def test_no_code_of_the_class_runs_where_it_is_taken_apart_or_made():
    made = []

    @dataclass
    class Noisy:
        x: float

        def __post_init__(self):
            made.append("post_init")

        def __setattr__(self, name, value):
            made.append(name)
            object.__setattr__(self, name, value)

    def through(n):
        return n.x, n

    noisy = Noisy(2.0)
    del made[:]
    square = wend.function(through)
    for _ in range(3):
        assert square(noisy) == (2.0, noisy)
    assert wend.vmap(through)(Noisy(np.ones(2)))[1].x.shape == (2,)
    assert made == ["x", "post_init"]


def test_an_instance_that_holds_itself_is_known_by_identity():
    linked = Activated(np.ones(2))
    linked.inner = linked
    assert wend.function(lambda a, x: x * 2)(linked, 3.0) == 6.0


def _calls(fun: Any, argument: Any) -> int:
    """Return how many calls Python makes for a call of a traced function, at the end."""
    traced, count = wend.function(fun), 0
    for _ in range(8):
        traced(argument)

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        traced(argument)
    finally:
        sys.setprofile(None)
    return count


@dataclass(eq=False)
class Three:
    a: float
    b: float
    c: float
    name: str = "three"
    none: Any = None


def test_a_repeated_call_makes_as_many_calls_as_that_with_a_tuple():
    of_instance = _calls(lambda p: p.a * p.b + p.c, Three(1.0, 2.0, 3.0))
    of_tuple = _calls(lambda p: p[0] * p[1], (1.0, 2.0))
    assert of_instance <= of_tuple + 6
    assert _calls(lambda p: replace(p, a=p.a * 2), Three(1.0, 2.0, 3.0)) <= of_tuple + 8
