"""Whole programs in functional form, each beside the same program in plain Python.

`plain` takes `decide` first and asks it at every turn, by a function so that the answer can be
replayed: then the same Python code, run inside a trace, gives the unrolled graph.
"""

# ruff: noqa: B023 - a question is asked at once, before its variables change

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import wend
import wend.numpy as wnp

Decide = Callable[[Callable[[], Any]], bool]


@dataclass(frozen=True)
class Program:
    """One program at one point.

    Attributes:
        fun: the program by wend's functional forms; gives a scalar.
        plain: the same in Python, `decide` first.
        value, grads, second: what is printed in the issue and in CASES.md, where it is;
            `second` is the second derivative in the first argument.
        digits: the relative precision of what is printed.
    """

    name: str
    fun: Callable[..., Any]
    plain: Callable[..., Any]
    args: tuple[Any, ...]
    value: float | None = None
    grads: tuple[Any, ...] | None = None
    second: float | None = None
    digits: float = 1e-9

    def __str__(self) -> str:
        return self.name


def decisions(program: Program) -> tuple[Any, list[bool]]:
    """The value by plain Python, and what was decided on the way."""
    taken: list[bool] = []

    def decide(question: Callable[[], Any]) -> bool:
        taken.append(bool(question()))
        return taken[-1]

    return program.plain(decide, *program.args), taken


def unrolled(program: Program) -> Callable[..., Any]:
    """The program with its decisions replayed: straight-line code, also under a trace."""
    _, taken = decisions(program)

    def fun(*args: Any) -> Any:
        answers = iter(taken)
        return program.plain(lambda question: next(answers), *args)

    return wend.do_not_capture(fun)


def repeat(n: int, fun: Callable[[Any], Any], x: Any) -> Any:
    for _ in range(n):
        x = fun(x)
    return x


# The programs
def square_until(x: Any) -> Any:
    return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)


def square_until_plain(d: Decide, x: Any) -> Any:
    while d(lambda: x < 8.0):
        x = x * x
    return x


def newton(a: Any) -> Any:
    return wend.while_loop(lambda x: wnp.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0)


def newton_plain(d: Decide, a: Any) -> Any:
    x: Any = 1.0
    while d(lambda: abs(x * x - a) > 1e-12):
        x = 0.5 * (x + a / x)
    return x


def newton_by_step(a: Any) -> Any:
    return wend.while_loop(
        lambda c: wnp.abs(c[0] - c[1]) > 1e-6, lambda c: (0.5 * (c[0] + a / c[0]), c[0]), (2.0, 0.0)
    )[0]


def newton_by_step_plain(d: Decide, a: Any) -> Any:
    x, last = 2.0, 0.0
    while d(lambda: abs(x - last) > 1e-6):
        x, last = 0.5 * (x + a / x), x
    return x


def squares_times(n: int) -> Callable[..., Any]:
    return lambda x, a: wend.fori_loop(0, n, lambda i, c: c * c * a, x)


def squares_times_plain(n: int) -> Callable[..., Any]:
    return lambda d, x, a: repeat(n, lambda c: c * c * a, x)


def fibonacci(a: Any, b: Any) -> Any:
    return wend.fori_loop(0, 10, lambda i, c: (c[1], c[0] + c[1]), (a, b))[1]


def fibonacci_plain(d: Decide, a: Any, b: Any) -> Any:
    return repeat(10, lambda c: (c[1], c[0] + c[1]), (a, b))[1]


def grow_until(x: Any, a: Any) -> Any:
    return wend.while_loop(lambda x: x <= 100.0, lambda x: x * a, x)


def grow_until_plain(d: Decide, x: Any, a: Any) -> Any:
    while d(lambda: x <= 100.0):
        x = x * a
    return x


def branching(x: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        return wend.cond(x > 1.0, lambda x: 0.5 * x, lambda x: x + 0.3, x)

    return wend.fori_loop(0, 4, body, x)


def branching_plain(d: Decide, x: Any) -> Any:
    return repeat(4, lambda x: 0.5 * x if d(lambda: x > 1.0) else x + 0.3, x)


def nest(x: Any, w: Any, b: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        return x + wend.fori_loop(0, 5, lambda j, v: w * v + b, x)

    return wend.fori_loop(0, 5, body, x)


def nest_plain(d: Decide, x: Any, w: Any, b: Any) -> Any:
    return repeat(5, lambda x: x + repeat(5, lambda v: w * v + b, x), x)


def triangular(n: int) -> Callable[..., Any]:
    def body(i: Any, x: Any) -> Any:
        return wend.fori_loop(0, i + 1, lambda j, x: 1.1 * x + 0.1, x)

    return lambda x: wend.fori_loop(0, n, body, x)


def triangular_plain(n: int) -> Callable[..., Any]:
    return lambda d, x: repeat(n * (n + 1) // 2, lambda x: 1.1 * x + 0.1, x)


def power(a: Any, v: Any) -> Any:
    return wnp.sum(wend.fori_loop(0, 4, lambda i, v: a @ v, v))


def power_plain(d: Decide, a: Any, v: Any) -> Any:
    return wnp.sum(repeat(4, lambda v: a @ v, v))


def cube_of_squares(c: Any) -> Any:
    return wend.fori_loop(0, 3, lambda i, c: c * c, c)


def cube_of_squares_plain(d: Decide, c: Any) -> Any:
    return repeat(3, lambda c: c * c, c)


def guarded_sqrt(x: Any) -> Any:
    return wend.cond(x < 1e-3, lambda x: 7.0, wnp.sqrt, x)


def guarded_sqrt_plain(d: Decide, x: Any) -> Any:
    return 7.0 if d(lambda: x < 1e-3) else wnp.sqrt(x)


def zero_trips_capturing(x: Any, c: Any) -> Any:
    return wend.while_loop(lambda v: v < 8.0, lambda v: v * c, x)


def zero_trips_capturing_plain(d: Decide, x: Any, c: Any) -> Any:
    while d(lambda: x < 8.0):
        x = x * c
    return x


def times_captured(x: Any, c: Any) -> Any:
    return wend.while_loop(lambda v: v < 100.0, lambda v: v * c, x, parallel_iterations=10)


def times_captured_plain(d: Decide, x: Any, c: Any) -> Any:
    while d(lambda: x < 100.0):
        x = x * c
    return x


def captured_by_both(x: Any, c: Any) -> Any:
    return wend.while_loop(lambda v: v < 10.0 * c, lambda v: v * c, x)


def captured_by_both_plain(d: Decide, x: Any, c: Any) -> Any:
    while d(lambda: x < 10.0 * c):
        x = x * c
    return x


def captured_by_cond(x: Any, y: Any) -> Any:
    return wend.while_loop(lambda v: v + y < 9.0, lambda v: 3.0 * v, x)


def captured_by_cond_plain(d: Decide, x: Any, y: Any) -> Any:
    while d(lambda: x + y < 9.0):
        x = 3.0 * x
    return x


def forgetful(x: Any) -> Any:
    return wend.fori_loop(0, 3, lambda i, v: 5.0, x)


def forgetful_plain(d: Decide, x: Any) -> Any:
    return repeat(3, lambda v: 5.0, x)


def two_outputs(x: Any, y: Any) -> Any:
    return wend.fori_loop(0, 2, lambda i, c: (2.0 * c[0], 3.0 * c[1]), (x, y))[0]


def two_outputs_plain(d: Decide, x: Any, y: Any) -> Any:
    return repeat(2, lambda c: (2.0 * c[0], 3.0 * c[1]), (x, y))[0]


def counted_doubling(x: Any) -> Any:
    return wend.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 2.0), (0, x))[1]


def counted_doubling_plain(d: Decide, x: Any) -> Any:
    return repeat(10, lambda v: v * 2.0, x)


def sum_of_counts(x: Any) -> Any:
    return wend.fori_loop(0, 4, lambda i, s: s + x * i, 0)


def sum_of_counts_plain(d: Decide, x: Any) -> Any:
    return sum(x * i for i in range(4))


def bool_flag(x: Any) -> Any:
    def body(s: Any) -> Any:
        square = s[1] * s[1]
        return square < 50.0, square

    return wend.while_loop(lambda s: s[0], body, (True, x))[1]


def bool_flag_plain(d: Decide, x: Any) -> Any:
    go = True
    while d(lambda: go):
        x = x * x
        go = d(lambda: x < 50.0)
    return x


def swap(a: Any, b: Any) -> Any:
    return wend.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (a, b))[0]


def swap_plain(d: Decide, a: Any, b: Any) -> Any:
    return repeat(3, lambda c: (c[1], c[0]), (a, b))[0]


def limited(x: Any) -> Any:
    return wend.while_loop(lambda v: True, lambda v: v * v, x, maximum_iterations=3)


def limited_plain(d: Decide, x: Any) -> Any:
    return repeat(3, lambda v: v * v, x)


def integer_power(n: int) -> Callable[..., Any]:
    return lambda x: wend.fori_loop(0, np.int64(n), lambda i, p: p * x, 1.0)


def integer_power_plain(n: int) -> Callable[..., Any]:
    return lambda d, x: repeat(n, lambda p: p * x, 1.0)


def doubled_vector(v: Any) -> Any:
    return wnp.sum(wend.fori_loop(0, 3, lambda i, v: v * 2.0, v))


def doubled_vector_plain(d: Decide, v: Any) -> Any:
    return wnp.sum(repeat(3, lambda v: v * 2.0, v))


def squared_vector(v: Any) -> Any:
    return wnp.sum(wend.while_loop(lambda v: wnp.sum(v) < 100.0, lambda v: v * v, v))


def squared_vector_plain(d: Decide, v: Any) -> Any:
    while d(lambda: wnp.sum(v) < 100.0):
        v = v * v
    return wnp.sum(v)


def tanh_rnn(h: Any, w: Any, b: Any) -> Any:
    return wend.fori_loop(0, 5, lambda i, h: wnp.tanh(w * h + b), h)


def tanh_rnn_plain(d: Decide, h: Any, w: Any, b: Any) -> Any:
    return repeat(5, lambda h: wnp.tanh(w * h + b), h)


def cos_cos(x: Any) -> Any:
    return wend.fori_loop(0, 2, lambda i, v: wnp.cos(v), x)


def cos_cos_plain(d: Decide, x: Any) -> Any:
    return repeat(2, wnp.cos, x)


def distance(x: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        return wend.cond(v < 3.0, lambda: 3.0 - v, lambda: v - 3.0)

    return wend.fori_loop(0, 4, body, x)


def distance_plain(d: Decide, x: Any) -> Any:
    return repeat(4, lambda v: 3.0 - v if d(lambda: v < 3.0) else v - 3.0, x)


def in_series(x: Any) -> Any:
    x = wend.while_loop(lambda v: v < 4.0, lambda v: v * v, x)
    return wend.while_loop(lambda v: v < 16.0, lambda v: v * v, x)


def in_series_plain(d: Decide, x: Any) -> Any:
    for bound in (4.0, 16.0):
        while d(lambda bound=bound: x < bound):
            x = x * x
    return x


def composed(x: Any) -> Any:
    return square_until(square_until(x))


def composed_plain(d: Decide, x: Any) -> Any:
    return square_until_plain(d, square_until_plain(d, x))


def in_parallel(x: Any) -> Any:
    def doubled(x: Any) -> Any:
        return wend.fori_loop(0, 5, lambda i, v: v * 2.0, x)

    return doubled(x) + doubled(x)


def in_parallel_plain(d: Decide, x: Any) -> Any:
    return repeat(5, lambda v: v * 2.0, x) + repeat(5, lambda v: v * 2.0, x)


def collatz(x: Any) -> Any:
    """Steps from 27; x rides along."""

    def body(s: Any) -> Any:
        n, steps, x = s
        return wend.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), steps + 1, x * 1.01

    _, steps, x = wend.while_loop(lambda s: s[0] != 1, body, (np.int64(27), 0, x))
    return x + steps


def collatz_plain(d: Decide, x: Any) -> Any:
    n, steps = 27, 0
    while n != 1:
        n, steps, x = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1, x * 1.01
    return x + steps


def stacked_powers(x: Any) -> Any:
    _, ys = wend.scan(lambda p, _: (p * x, p), 1.0, None, length=5)
    return wnp.sum(ys)


def stacked_powers_plain(d: Decide, x: Any) -> Any:
    return sum(x**k if k else 1.0 for k in range(5))


def running_sum(theta: Any) -> Any:
    e = np.array([1.0, 2.0, 3.0])
    _, ys = wend.scan(lambda s, e: (s + e * theta,) * 2, e[0], e[1:])
    return e[0] + wnp.sum(ys)


def running_sum_plain(d: Decide, theta: Any) -> Any:
    s: Any = 1.0
    total: Any = s
    for e in (2.0, 3.0):
        s = s + e * theta
        total = total + s
    return total


def mapped(x: Any) -> Any:
    return wnp.sum(wend.map(lambda e: e * x, np.arange(1.0, 7.0)))


def mapped_plain(d: Decide, x: Any) -> Any:
    return sum(e * x for e in range(1, 7))


def skipping(x: Any) -> Any:
    """for i < 20: skip evens, stop when i > 7, add i·x."""

    def body(s: Any) -> Any:
        i, total = s
        return i + 1, wend.cond(i % 2 == 0, lambda: total, lambda: total + i * x)

    return wend.while_loop(lambda s: (s[0] < 20) & (s[0] <= 7), body, (0, 0.0))[1]


def skipping_plain(d: Decide, x: Any) -> Any:
    total: Any = 0.0
    for i in range(20):
        if i > 7:
            break
        if i % 2 == 0:
            continue
        total = total + i * x
    return total


def geometric(n: Any) -> Any:
    def body(m: Any, s: Any) -> Any:
        return s + wend.fori_loop(0, m, lambda k, p: p * n, 1.0)

    return wend.fori_loop(0, 6, body, 0.0)


def geometric_plain(d: Decide, n: Any) -> Any:
    total: Any = 0.0
    for m in range(6):
        total = total + repeat(m, lambda p: p * n, 1.0)
    return total


def loop_in_cond_fun(x: Any) -> Any:
    def cond_fun(v: Any) -> Any:
        return v < wend.fori_loop(0, 5, lambda i, b: b * 2.0, 1.0)

    return wend.while_loop(cond_fun, lambda v: 3.0 * v, x)


def loop_in_cond_fun_plain(d: Decide, x: Any) -> Any:
    while d(lambda: x < 2.0**5):
        x = 3.0 * x
    return x


def sum_while(x: Any) -> Any:
    def body(v: Any) -> Any:
        return v + wend.fori_loop(0, 10, lambda i, s: s + i, 0)

    return wend.while_loop(lambda v: v < 200.0, body, x)


def sum_while_plain(d: Decide, x: Any) -> Any:
    while d(lambda: x < 200.0):
        x = x + 45
    return x


def loop_in_branch(p: bool) -> Callable[..., Any]:
    def fun(n: Any) -> Any:
        return wend.cond(
            np.bool_(p) & (n < 1000.0),
            lambda: wend.while_loop(lambda x: x < 10.0, lambda x: x + 1.0, n),
            lambda: 2.0 * n,
        )

    return fun


def loop_in_branch_plain(p: bool) -> Callable[..., Any]:
    def fun(d: Decide, n: Any) -> Any:
        if not p:
            return 2.0 * n
        while d(lambda: n < 10.0):
            n = n + 1.0
        return n

    return fun


def branch_in_loop(p: bool) -> Callable[..., Any]:
    def fun(x: Any) -> Any:
        test = np.bool_(p) & (x < 1000.0)
        return wend.fori_loop(0, 3, lambda i, v: wend.cond(test, lambda: 2.0 * v, lambda: 10.0), x)

    return fun


def branch_in_loop_plain(p: bool) -> Callable[..., Any]:
    return lambda d, x: repeat(3, lambda v: 2.0 * v if p else 10.0, x)


fourth = wend.function(lambda x: x * x * (x * x))


def call_in_loop(x: Any) -> Any:
    return wend.fori_loop(0, 2, lambda i, v: fourth(v), x)


def call_in_loop_plain(d: Decide, x: Any) -> Any:
    return repeat(2, lambda v: v * v * (v * v), x)


def sparse_reads(w: Any) -> Any:
    """A loop in a function in a loop, each trip of which reads two elements."""
    inner = wend.function(
        lambda w: wend.fori_loop(1, 3, lambda j, s: s + w[j] * j, 0.0)  # w[1] + 2 w[2]
    )
    return wend.fori_loop(0, 3, lambda i, s: s + inner(w), 0.0)


def sparse_reads_plain(d: Decide, w: Any) -> Any:
    total: Any = 0.0
    for _ in range(3):
        for j in (1, 2):
            total = total + w[j] * j
    return total


def cube_or_same(x: Any) -> Any:
    return wend.cond(x > 2.0, lambda: x * x * x, lambda: x)


def cube_or_same_plain(d: Decide, x: Any) -> Any:
    return x * x * x if d(lambda: x > 2.0) else x


def product_or_constant(x: Any, y: Any) -> Any:
    return wend.cond(x < 1.5, lambda: x * y * 2.0, lambda: 2.0)


def product_or_constant_plain(d: Decide, x: Any, y: Any) -> Any:
    return x * y * 2.0 if d(lambda: x < 1.5) else 2.0


def log_or_zero(x: Any) -> Any:
    return wend.cond(x > 0.0, wnp.log, lambda x: 0.0, x)


def log_or_zero_plain(d: Decide, x: Any) -> Any:
    return wnp.log(x) if d(lambda: x > 0.0) else 0.0


def everything_in_one_predicate(x: Any, w: Any) -> Any:
    """A captured weight, the counter of an outer loop and a carry in one predicate."""

    def body(i: Any, x: Any) -> Any:
        return wend.while_loop(lambda v: v < w * (i + 1) + 1.0, lambda v: v * 1.5 + 0.1 * i, x)

    return wend.fori_loop(0, 3, body, x)


def everything_in_one_predicate_plain(d: Decide, x: Any, w: Any) -> Any:
    for i in range(3):
        while d(lambda i=i: x < w * (i + 1) + 1.0):
            x = x * 1.5 + 0.1 * i
    return x


def from_integers(x: Any) -> Any:
    """A float carry updated only from integers."""

    def body(i: Any, c: Any) -> Any:
        return i * 2.0 + 1.0

    return wend.fori_loop(0, 3, body, x)


def from_integers_plain(d: Decide, x: Any) -> Any:
    for i in range(3):
        x = i * 2.0 + 1.0
    return x


def deep_mixture(x: Any, y: Any) -> Any:
    """A branch in a loop in a branch in a loop, with a scan at the bottom."""

    def inner(j: Any, v: Any) -> Any:
        return wend.cond(
            v * (j + 1) > 1.0,
            lambda: wend.scan(lambda c, e: (wnp.sin(c) + e * y, c), v, np.array([0.1, 0.2]))[0],
            lambda: v * y + 0.4,
        )

    def outer(i: Any, x: Any) -> Any:
        return wend.cond(
            x < 1.2, lambda: wend.fori_loop(0, i + 1, inner, x), lambda: wnp.cos(x) * y
        )

    return wend.fori_loop(0, 4, outer, x)


def deep_mixture_plain(d: Decide, x: Any, y: Any) -> Any:
    for i in range(4):
        if d(lambda: x < 1.2):
            for j in range(i + 1):
                if d(lambda j=j: x * (j + 1) > 1.0):
                    for e in (0.1, 0.2):
                        x = wnp.sin(x) + e * y
                else:
                    x = x * y + 0.4
        else:
            x = wnp.cos(x) * y
    return x


_A = np.array([[0.5, 0.2], [0.1, 0.4]])
_DA = np.array([[1.323, 1.269]] * 2)
_SQUARES = [(3, 1, 0), (18, 12, 9), (648, 864, 972), (839808, 2239488, 2939328)]
_TRIANGLES = [(2, 1.662), (3, 2.5431220), (4, 4.1874849)]

PROGRAMS: Sequence[Program] = [
    Program("T1 K8 square until", square_until, square_until_plain, (2.0,), 16, (32,), 48),
    Program("T2 no trip", square_until, square_until_plain, (9.0,), 9, (1,), 0),
    Program(
        "T2 no trip, captured",
        zero_trips_capturing,
        zero_trips_capturing_plain,
        (9.0, 3.0),
        9,
        (1, 0),
    ),
    Program("T3 captured", times_captured, times_captured_plain, (2.0, 3.0), 162, (81, 216)),
    Program("T5 by both", captured_by_both, captured_by_both_plain, (1.0, 3.0), 81, (81, 108)),
    Program("T6 by cond", captured_by_cond, captured_by_cond_plain, (2.0, 1.0), 18, (9, 0)),
    Program("T7 forgetful", forgetful, forgetful_plain, (1.0,), 5, (0,), 0),
    Program("T8 two outputs", two_outputs, two_outputs_plain, (1.0, 1.0), 4, (4, 0)),
    Program("T9 counter", counted_doubling, counted_doubling_plain, (1.0,), 1024, (1024,), 0),
    Program("T10 counter used", sum_of_counts, sum_of_counts_plain, (2.0,), 12, (6,), 0),
    Program("T11 bool flag", bool_flag, bool_flag_plain, (2.0,), 256, (1024,)),
    Program("T14 swap", swap, swap_plain, (1.0, 2.0), 2, (0, 1)),
    Program("T18 limited", limited, limited_plain, (2.0,), 256, (1024,)),
    Program("T19 power 5", integer_power(5), integer_power_plain(5), (2.0,), 32, (80,), 160),
    Program("T19 power 0", integer_power(0), integer_power_plain(0), (2.0,), 1, (0,), 0),
    Program(
        "T22 vector",
        doubled_vector,
        doubled_vector_plain,
        (np.array([1.0, 2.0]),),
        24,
        (np.array([8, 8]),),
    ),
    Program(
        "T22 cond on a sum",
        squared_vector,
        squared_vector_plain,
        (np.array([2.0, 3.0]),),
        256 + 6561,
        (np.array([1024, 17496]),),
    ),
    Program(
        "T27 tanh rnn",
        tanh_rnn,
        tanh_rnn_plain,
        (1.0, 0.5, 0.1),
        0.2120062,
        (0.01632808, 0.4979375, 1.7412915),
        digits=2e-6,
    ),
    Program(
        "T28 cos cos", cos_cos, cos_cos_plain, (1.0,), 0.8575532, (0.4328487,), -0.3292817, 1e-6
    ),
    Program(
        "T30 newton by step",
        newton_by_step,
        newton_by_step_plain,
        (2.0,),
        1.4142135,
        (0.3535534,),
        digits=1e-7,
    ),
    Program("T31 distance", distance, distance_plain, (1.0,), 1, (1,), 0),
    Program("T35 in series", in_series, in_series_plain, (2.0,), 16, (32,), 48),
    Program("T35 composed", composed, composed_plain, (2.0,), 16, (32,), 48),
    Program("T35 in parallel", in_parallel, in_parallel_plain, (1.0,), 64, (64,), 0),
    Program("T37 collatz", collatz, collatz_plain, (1.0,), 111 + 1.01**111, (1.01**111,), 0),
    Program("T38 powers", stacked_powers, stacked_powers_plain, (2.0,), 31, (49,)),
    Program("T38 running sum", running_sum, running_sum_plain, (1.0,), 10, (7,), 0),
    Program("T38 mapped", mapped, mapped_plain, (2.0,), 42, (21,), 0),
    Program("T40 skipping", skipping, skipping_plain, (1.0,), 16, (16,), 0),
    Program("T42 geometric", geometric, geometric_plain, (3.0,), 364, (547,), 668),
    Program("T45 loop in cond", loop_in_cond_fun, loop_in_cond_fun_plain, (1.0,), 81, (81,), 0),
    Program("T48 sum while", sum_while, sum_while_plain, (0.0,), 225, (1,), 0),
    Program("T49 true", loop_in_branch(True), loop_in_branch_plain(True), (0.0,), 10, (1,), 0),
    Program("T49 false", loop_in_branch(False), loop_in_branch_plain(False), (0.0,), 0, (2,), 0),
    Program("T50 true", branch_in_loop(True), branch_in_loop_plain(True), (1.0,), 8, (8,), 0),
    Program("T50 false", branch_in_loop(False), branch_in_loop_plain(False), (1.0,), 10, (0,), 0),
    Program("T52 call in loop", call_in_loop, call_in_loop_plain, (2.0,), 65536, (524288,)),
    Program(
        "T52 sparse reads",
        sparse_reads,
        sparse_reads_plain,
        (np.ones(4),),
        9,
        (np.array([0, 3, 6, 0]),),
    ),
    Program("T55 cube", cube_or_same, cube_or_same_plain, (3.0,), 27, (27,), 18),
    Program("T55 same", cube_or_same, cube_or_same_plain, (1.5,), 1.5, (1,), 0),
    Program("T55 product", product_or_constant, product_or_constant_plain, (1.0, 2.0), 4, (4, 2)),
    Program("T55 constant", product_or_constant, product_or_constant_plain, (2.0, 2.0), 2, (0, 0)),
    Program("T57 log or zero", log_or_zero, log_or_zero_plain, (0.0,), 0, (0,), 0),
    Program("K3 fibonacci", fibonacci, fibonacci_plain, (0.0, 1.0), 89, (55, 89)),
    Program(
        "K4 predicate",
        everything_in_one_predicate,
        everything_in_one_predicate_plain,
        (0.3, 0.7),
    ),
    Program("K7 seven trips", grow_until, grow_until_plain, (1.5, 2.0), 192, (128, 672)),
    Program("K7 no trip", grow_until, grow_until_plain, (150.0, 2.0), 150, (1, 0)),
    Program(
        "K9 newton",
        newton,
        newton_plain,
        (2.0,),
        1.41421356237,
        (0.35355339059,),
        -0.088388347648,
        1e-10,
    ),
    *(
        Program(f"K10 {n}", squares_times(n), squares_times_plain(n), (3.0, 2.0), v, (dx, da))
        for n, (v, dx, da) in enumerate(_SQUARES)
    ),
    Program("K14 from integers", from_integers, from_integers_plain, (1.0,), 5, (0,), 0),
    Program(
        "K16 c·c",
        cube_of_squares,
        cube_of_squares_plain,
        (1.1,),
        2.1435888,
        (15.5897368,),
        99.2074160,
        1e-8,
    ),
    Program(
        "K31 nest",
        nest,
        nest_plain,
        (1.0, 0.5, 0.1),
        2.197544312,
        (1.166325599, 4.141151083, 10.312187135),
        digits=1e-9,
    ),
    *(
        Program(
            f"K31 triangular {n}",
            triangular(n),
            triangular_plain(n),
            (1.0,),
            value,
            (1.1 ** (n * (n + 1) // 2),),
            0,
            5e-8,
        )
        for n, value in _TRIANGLES
    ),
    Program("K39 guarded", guarded_sqrt, guarded_sqrt_plain, (0.0,), 7, (0,), 0),
    Program("K39 not guarded", guarded_sqrt, guarded_sqrt_plain, (0.25,), 0.5, (1,), -2),
    Program("K40 halving", branching, branching_plain, (3.0,), 0.525, (0.125,), 0),
    Program("K40 adding", branching, branching_plain, (0.2,), 0.55, (0.5,), 0),
    Program(
        "A·v four times",
        power,
        power_plain,
        (_A, np.array([1.0, 2.0])),
        0.3888,
        (_DA, np.array([0.1296, 0.1296])),
    ),
    Program("deep mixture", deep_mixture, deep_mixture_plain, (0.5, 0.8)),
]
