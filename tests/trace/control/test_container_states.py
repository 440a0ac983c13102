"""A failing call leaves lists, dicts and instances as the statements before it, as in Python."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import wend

BACKENDS = ("numpy", "native")


@dataclass
class Body:
    x: float
    v: Any
    n: int = 0
    name: str = "sun"
    child: Any = None
    items: list[Any] = field(default_factory=list)

    def grow(self, k: Any) -> None:
        self.x = self.x + self.v[k]
        if self.x > 3.0:
            self.n += 1
            raise ValueError("grown")
        self.n += 10


@dataclass(slots=True)
class Slotted:
    x: float
    y: Any = None


class Pair(NamedTuple):
    a: Any
    b: Any


@wend.tree.register
@dataclass
class Registered:
    x: float
    v: Any


def straight(b, l, d, k):
    b.x = b.x * 2
    l[0] = b.x + 1
    b.n, d["a"] = l[k], b.v[k + 1]
    b.x = -1.0
    b.v = b.v + 1.0
    b.v[k] = 7.0
    l[k] = math.sqrt(b.v[1] - 2.0 - l[1])


def in_branches(b, l, d, k):
    if b.x > 1.5:
        b.x = 0.0
        if k > 1:
            d["a"] = l[1]
            raise KeyError("deep")
        l[1] = b.v[k]
    else:
        l[0] = 4.0
        assert k < 2, "few"
        d["b"] = 2
    b.x += l[1]
    if k == 1:
        raise RuntimeError(f"{b.x}")


def in_for(b, l, d, k):
    for i in range(k + 1):
        b.x += 1.0
        b.n = i
        b.v[i] = b.x
        l[1] += b.v[i + 1]
        d["a"] = l[1]


def in_while(b, l, d, k):
    while b.x < 40.0:
        b.x = b.x * 2
        b.n += 1
        for j in range(2):
            l[j] = l[j] + b.x
            if b.n > k and j == 1:
                d["a"] = b.n
                raise RuntimeError(f"{b.x}")


def in_helpers(b, l, d, k):
    l[2] = 5.0
    b.grow(k)
    d["b"] = l[2]
    b.grow(k + 1)


def new_objects(b, l, d, k):
    b.child = Slotted(b.x, [l[0], Pair(l[1], b.v)])
    b.name = "moon"
    b.items.append(b.child.y[0])
    d["new"] = {"k": (b.x, None, "text", np.zeros(2))}
    d["new"]["k"][3][1] = 4.0
    l.append(b.v[k + 1])
    del l[0]
    del d["a"]
    b.child.x = b.v[k + 2]


def identities(b, l, d, k):
    d["b"] = l
    b.items.append(b.v)
    b.v[0] = 9.0
    d["a"] = [b.items, b.v[k + 1]]
    b.v = b.items[0] * 2.0
    b.x = b.v[k + 2]


def handled(b, l, d, k):
    try:
        b.x = 5.0
        if k > 0:
            l[0] = 6.0
            raise ValueError("inside")
        b.x = 7.0
    except ValueError:
        b.n += 1
        if k > 1:
            raise
    finally:
        d["b"] = b.x
    l[1] = b.v[k + 2]


def restored(b, l, d, k):
    x = b.x
    b.x = -1.0
    first = l[1]
    l[1] = y = l[1] * b.v[k + 1]
    l[1] = first
    b.x = x
    return y


def ended(b, l, d, k):
    b.x = 3.0 * l[0]
    b.items.extend([b.x, 1])
    l.clear()
    d["k"] = (b.x, b)
    raise TypeError("ended")


def ended_with_values(b, l, d, k):
    l[1] = b.x
    b.v[1] = 8.0
    raise ValueError(l[1], d["a"])


@wend.function
def callee(c, m, k):
    c.x += 1.0
    m[1] = c.x
    for i in range(2):
        c.v[i] += m[0]
        c.n += 1
        m[0] = m[0] + c.v[k + i]
    m[0] = 5.0
    return c.x


def calls(b, l, d, k):
    b.items.append(b.x)
    callee(b, l, k)
    for i in range(2):
        d["a"] = callee(b, l, k + i)
        l[0] += 1.0


@wend.function
def callee_without_arrays(b, m, d, k):
    m[0], m[1] = m[1], m[0]
    d["text"] = "a"
    y = b.v[k]
    m.clear()
    return y + b.v[k + 1]


def calls_that_leave_no_arrays(b, l, d, k):
    b.x = 7.0
    b.x = callee_without_arrays(b, l, d, k)
    b.x = callee_without_arrays(b, [1.0, 2.0], {}, k + 1)


def calls_with_new(b, l, d, k):
    c = Body(b.x, b.v, 4)
    b.child = c
    m = [l[0], l[1]]
    callee(c, m, k)
    d["b"] = m
    c.x = 0.25
    callee(c, m, k + 1)
    callee(Body(1.0, b.v), [1.0, 2.0], k + 2)


PROGRAMS = (
    *(straight, in_branches, in_for, in_while, in_helpers, new_objects, identities, handled),
    *(restored, ended, ended_with_values, calls, calls_with_new),
    calls_that_leave_no_arrays,
)


def arguments(x: float, k: int) -> tuple[Any, ...]:
    return Body(x, np.arange(3.0)), [1.0, 2.0, x], {"a": 0.5, "b": 1}, k


def shown(value: Any, known: dict[int, int] | None = None) -> Any:
    """Return values, structure, and which containers are one."""
    known = {} if known is None else known
    if isinstance(value, (list, dict, deque)) or hasattr(value, "__dataclass_fields__"):
        if id(value) in known:
            return "known", known[id(value)]
        known[id(value)] = len(known)
        if hasattr(value, "__dataclass_fields__"):
            items = {name: getattr(value, name) for name in value.__dataclass_fields__}
            return type(value).__name__, shown(items, known)
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [(key, shown(item, known)) for key, item in pairs]
    if isinstance(value, tuple):
        return type(value).__name__, [shown(item, known) for item in value]
    if value is None or isinstance(value, str):
        return value
    return np.asarray(value).dtype.kind, np.round(value, 9).tolist()


def outcome(call: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    try:
        call(*given)
    except Exception as error:  # of any class: it is compared
        return type(error), shown(given)
    return None, shown(given)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_failing_call_leaves_containers_as_python_does(
    program: Callable[..., Any], backend: str
) -> None:
    compiled = wend.function(program, backend=backend)
    errors = set()
    for _ in range(2):
        for x in 1.0, 2.0, 60.0:
            for k in range(4):
                expected = outcome(program, arguments(x, k))
                assert outcome(compiled, arguments(x, k)) == expected
                errors.add(expected[0])
    assert errors - {None}


@pytest.mark.parametrize("backend", BACKENDS)
def test_registered_slots_deque_and_kwargs(backend: str) -> None:
    def program(r, s, *rest, q):
        r.x = r.x + 1.0
        s.y = r.v * 2.0
        q.append(r.x)
        rest[0]["n"] = r.x
        q.rotate(1)
        r.x = s.y[rest[1]]

    compiled = wend.function(program, backend=backend)
    for _ in range(3):
        for k in 0, 5:
            outcomes = []
            for fun in program, compiled:
                given = Registered(1.0, np.ones(2)), Slotted(2.0), {"n": 1.0}, k, deque([1.0, 2.0])
                outcomes.append(outcome(lambda *a, fun=fun: fun(*a[:-1], q=a[-1]), given))
            assert outcomes[0] == outcomes[1]


class LastWordError(BaseException):
    """No `Exception`, as `SystemExit` is none."""


@pytest.mark.parametrize("error", [OSError, LastWordError])
@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_of_host_calls(backend: str, error: type[BaseException]) -> None:
    def stop(x):
        if x > 2.0:
            raise error("host")
        return x

    @wend.function(backend=backend)
    def program(b, l):
        for _ in range(4):
            b.x = b.x + 0.5
            l[0] = wend.numpy_function(stop, wend.TensorSpec([]), b.x)
            b.n += 1
        return b.x

    b, l = Body(1.0, np.zeros(1)), [0.0]
    with pytest.raises(error, match="host"):
        program(b, l)
    assert (b.x, b.n, l) == (2.5, 2, [2.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_between_changes_that_cancel(backend: str) -> None:
    @wend.function(backend=backend)
    def program(b, k):
        x = b.x
        b.x = x + 1.0
        y = b.v[k]
        b.x = x
        return y

    for _ in range(4):  # the later calls enter compiled code directly
        b = Body(1.0, np.arange(3.0))
        assert program(b, 2) == 2.0
        with pytest.raises(IndexError):
            program(b, 3)
        assert b.x == 2.0


def test_what_cannot_be_told_stays_as_it_was() -> None:
    @wend.function
    def program(l, m, k):
        m[0] = l[0] * 2.0
        l.append(math)
        y = np.sqrt(m)[k]
        l.pop()
        return y

    l, m = [3.0], [0.0]
    with pytest.raises(IndexError):
        program(l, m, 4)
    assert l == [3.0]
    assert m == [6.0]
