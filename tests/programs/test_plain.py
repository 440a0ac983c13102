"""Every functional program again in plain Python: the same graph up to names, the same derivatives.

Compared is what a user sees, `ConcreteFunction.graph`: recorded, then tidied (the `CANONICALIZE`
passes drop dead code and make unchanged carries invariants). Where a graph differs, a reason
stands in `DIFFERENT`, and the numbers must agree all the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import traced
from tests.helpers.plain_programs import PLAIN, skipping_by_break
from tests.helpers.programs import PROGRAMS, Program
from tests.programs.test_cases import grow
from tests.programs.test_programs import close, every, of_gradient
from wend.base import trees
from wend.ir import equal

# Python knows that there is no trip, and records nothing. `fori_loop` records its body all the
# same, which says what type its result has.
NO_TRIP = "a `for` that is known to make no trip"
# What Python computes from plain numbers is a constant of the trace (D9): the loop has run by then.
CONSTANT = "a loop over plain numbers only"
# A `break` sets a flag, which the test of the loop reads.
BREAK = "a `break`"
# Sizes that change from trip to trip are stated by `shape_invariants`. A plain loop that is known
# to be short runs in Python, one copy of its body for each trip, so that sizes are known.
GROWS = "an array that grows"

DIFFERENT = {
    "T19 power 0": NO_TRIP,
    "K10 0": NO_TRIP,
    "T45 loop in cond": CONSTANT,
    "T48 sum while": CONSTANT,
    "T40 skipping, by break": BREAK,
    "T25 growth": GROWS,
    "K37 append one": GROWS,
    "K11 no trip": NO_TRIP,
}

SKIPPING = next(program for program in PROGRAMS if program.name == "T40 skipping")
BY_BREAK = dataclasses.replace(SKIPPING, name="T40 skipping, by break")


class Pair(NamedTuple):
    program: Program
    plain: Callable[..., Any]

    def __str__(self) -> str:
        return str(self.program)


PAIRS = [Pair(program, PLAIN[program.name]) for program in PROGRAMS]
PAIRS.append(Pair(BY_BREAK, skipping_by_break))


@pytest.fixture(params=PAIRS, ids=str)
def pair(request: pytest.FixtureRequest) -> Pair:
    return request.param


def check_same(name: str, fun: Callable[..., Any], plain: Callable[..., Any], *args: Any) -> None:
    """One graph; or two, if there is a reason."""
    mine, theirs = traced(plain, *args), traced(fun, *args)
    assert equal(mine, theirs) == (name not in DIFFERENT), f"{theirs}\n{mine}"


def test_graph(pair: Pair) -> None:
    check_same(pair.program.name, pair.program.fun, pair.plain, *pair.program.args)


def test_graph_of_the_gradient(pair: Pair) -> None:
    wrt = every(pair.program)
    forms = (wend.value_and_grad(fun, wrt) for fun in (pair.program.fun, pair.plain))
    check_same(pair.program.name, *forms, *pair.program.args)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_numbers(pair: Pair, backend: str) -> None:
    """Value, gradient, gradient of the gradient; native where the graph is not one that it ran."""
    program, plain = pair
    if backend == "native" and program.name not in DIFFERENT:
        assert equal(traced(program.fun, *program.args), traced(plain, *program.args))
        return
    wrt, args = every(program), program.args
    with wend.config(backend=backend):
        value, gradient = wend.value_and_grad(plain, wrt)(*args)
        second = wend.grad(of_gradient(plain, len(args)), wrt)(*args)
    expected_value, expected_gradient = wend.value_and_grad(program.fun, wrt)(*args)
    close([value], [expected_value], 1e-12)
    close(gradient, expected_gradient, 1e-12)
    expected = wend.grad(of_gradient(program.fun, len(args)), wrt)(*args)
    close(second, expected, 1e-12)
    if program.value is not None:
        close([value], [program.value], program.digits)


def test_every_program_is_here() -> None:
    assert sorted(PLAIN) == sorted(program.name for program in PROGRAMS)


# The cases of `test_cases.py`, whose results are no scalars


class Row(NamedTuple):
    name: str
    fun: Callable[..., Any]
    plain: Callable[..., Any]
    args: tuple[Any, ...]

    def __str__(self) -> str:
        return self.name


def two_outputs(x, y):
    for _ in range(2):
        x, y = 2.0 * x, 3.0 * y
    return x, y


def integer_bound(n, x):
    i = 0
    while i < n:
        i, x = i + 1, x * 2.0
    return i, x


def limited(limit, x):
    trips = 0
    while trips < limit:
        x, trips = x + 1.0, trips + 1
    return x, trips


def power(x, n):
    p = 1.0
    for _ in range(n):
        p = p * x
    return p


def growth(x):
    for _ in range(10):
        x = np.concatenate([x, x])
    return x


def append_one(x):
    for _ in range(4):
        x = np.concatenate([x, x[-1:] * 2.0])
    return x


def append_one_stated(x):
    return wend.while_loop(
        lambda s: s[0] < 4,
        lambda s: (s[0] + 1, wnp.concatenate([s[1], s[1][-1:] * 2.0])),
        (0, x),
        shape_invariants=((), (None,)),
    )[1]


def doubled_rows(xs):
    out = []
    for x in xs:
        out.append(x * 2.0)
    return np.array(out)


class JK(NamedTuple):
    j: Any
    k: Any


def named_pair(p):
    for _ in range(10):
        p = JK(p.j + p.k, p.j - p.k)
    return p


def integers_and_bools(x):
    i, flag, v = 0, True, 0.0
    while i < 3:
        i, flag, v, x = i + 1, ~flag, np.float64(1.0) * i, x * 2.0
    return i, flag, v, x


def integers_and_bools_stated(x):
    def body(c):
        i, flag, _, v = c
        return i + 1, ~flag, wnp.float64(1.0) * i, v * 2.0

    return wend.while_loop(lambda c: c[0] < 3, body, (0, True, 0.0, x))


def many_carries(*xs):
    for _ in range(3):
        xs = (xs[-1] * 1.01, *xs[:-1])
    return xs


def triangular_count(n):
    trips, count = 0, 0
    for i in range(n):
        trips = trips + 1
        for _ in range(i + 1):
            count = count + 1
    return trips, count


def triangular_count_stated(n):
    def body(i, c):
        return c[0] + 1, wend.fori_loop(0, i + 1, lambda j, k: k + 1, c[1])

    return wend.fori_loop(0, n, body, (0, 0))


def guarded_roots(xs):
    out = []
    for x in xs:
        out.append(0.0 if x < 1e-3 else np.sqrt(x))
    return np.array(out)


def guarded_roots_stated(xs):
    return wend.map(lambda x: wend.cond(x < 1e-3, lambda x: 0.0, wnp.sqrt, x), xs)


def recurrence(xs, h, a):
    for x in xs:
        h = a * h + x
    return h


def polynomial(c, x):
    total, power = 0.0, 1.0
    for ck in c:
        total, power = total + ck * power, power * x
    return total


def chosen_rows(w, v):
    out = []
    for i in v:
        out.append(w[i])
    return np.array(out)


def repeated_rows(x):
    out = []
    for _ in range(2):
        out.append(x)
    return np.array(out)


def sum_a_hundred_times(a, b):
    s = 0.0
    for _ in range(100):
        s = s + (a + b)
    return s


def no_trip(x):
    for _ in range(5, 3):
        x = x * x
    return x


def nothing_carried(x):
    while x < 0.0:
        pass
    return ()


ROWS = [
    Row(
        "T8 two outputs",
        lambda x, y: wend.fori_loop(0, 2, lambda i, c: (2.0 * c[0], 3.0 * c[1]), (x, y)),
        two_outputs,
        (1.0, 1.0),
    ),
    Row(
        "T9 integer bound",
        lambda n, x: wend.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2.0), (0, x)),
        integer_bound,
        (10, 1.0),
    ),
    Row(
        "T18 maximum as a value",
        lambda limit, x: wend.while_loop(
            lambda v: True, lambda v: v + 1.0, x, maximum_iterations=limit, return_trips=True
        ),
        limited,
        (5, 0.0),
    ),
    Row(
        "T19 trip count is data",
        lambda x, n: wend.fori_loop(0, n, lambda i, p: p * x, 1.0),
        power,
        (2.0, 5),
    ),
    Row("T25 growth", grow, growth, (np.arange(4.0).reshape(2, 2),)),
    Row("K37 append one", append_one_stated, append_one, (np.ones(1),)),
    Row(
        "T38 map", lambda xs: wend.map(lambda e: e * 2.0, xs), doubled_rows, (np.arange(1.0, 7.0),)
    ),
    Row(
        "T39 named tuples",
        lambda p: wend.fori_loop(0, 10, lambda i, p: JK(p.j + p.k, p.j - p.k), p),
        named_pair,
        (JK(1.0, 2.0),),
    ),
    Row("K14 integers and bools", integers_and_bools_stated, integers_and_bools, (1.5,)),
    Row(
        "K15 many carries",
        lambda *xs: wend.fori_loop(0, 3, lambda i, c: (c[-1] * 1.01, *c[:-1]), xs),
        many_carries,
        tuple(float(k) for k in range(20)),
    ),
    Row("K15 triangular count", triangular_count_stated, triangular_count, (4,)),
    Row("K39 mapped", guarded_roots_stated, guarded_roots, (np.array([0.0, 0.25, 0.0, 4.0]),)),
    Row(
        "K25 recurrence",
        lambda xs, h, a: wend.scan(lambda h, x: (a * h + x, None), h, xs)[0],
        recurrence,
        (np.arange(1.0, 6.0), 1.0, 0.5),
    ),
    Row(
        "K19 polynomial",
        lambda c, x: wend.scan(lambda s, ck: ((s[0] + ck * s[1], s[1] * x), None), (0.0, 1.0), c)[
            0
        ][0],
        polynomial,
        (np.array([1.0, 2.0, -3.0, 4.0]), 2.0),
    ),
    Row(
        "K56 reads by position",
        lambda w, v: wend.map(lambda i: w[i], v),
        chosen_rows,
        (np.arange(6.0).reshape(3, 2), np.array([1, 2])),
    ),
    Row(
        "K56 one value again and again",
        lambda x: wend.scan(lambda c, _: (c, x), (), None, length=2)[1],
        repeated_rows,
        (np.ones(3),),
    ),
    Row(
        "K42 sum",
        lambda a, b: wend.fori_loop(0, 100, lambda i, s: s + (a + b), 0.0),
        sum_a_hundred_times,
        (0.1, 0.2),
    ),
    Row(
        "K11 no trip",
        lambda x: wend.fori_loop(5, 3, lambda i, x: x * x, x),
        no_trip,
        (7.0,),
    ),
    Row(
        "K12 nothing carried",
        lambda x: wend.while_loop(lambda c: x < 0.0, lambda c: c, ()),
        nothing_carried,
        (1.0,),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_other_graphs(row: Row) -> None:
    check_same(row.name, row.fun, row.plain, *row.args)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_other_numbers(row: Row) -> None:
    value, pullback = wend.vjp(row.plain, *row.args)
    expected, expected_pullback = wend.vjp(row.fun, *row.args)
    leaves, tree = trees.flatten(value)
    expected_leaves, expected_tree = trees.flatten(expected)
    assert tree == expected_tree
    close(leaves, expected_leaves, 1e-12)
    found = trees.flatten(pullback(value))[0]
    close(found, trees.flatten(expected_pullback(value))[0], 1e-12)


def test_reasons_are_of_cases_that_there_are() -> None:
    assert set(DIFFERENT) <= {*(pair.program.name for pair in PAIRS), *(row.name for row in ROWS)}
