"""The programs of `helpers/programs.py` once more, as anyone would write them in plain Python.

Nothing here knows that it will be recorded: `while`, `for`, `if`, lists and NumPy. `PLAIN` says
which program each stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wend
from tests.helpers.programs import fourth


def square_until(x: Any) -> Any:
    while x < 8.0:
        x = x * x
    return x


def newton(a: Any) -> Any:
    x = 1.0
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def newton_by_step(a: Any) -> Any:
    x, last = 2.0, 0.0
    while abs(x - last) > 1e-6:
        x, last = 0.5 * (x + a / x), x
    return x


def squares_times(n: int) -> Callable[..., Any]:
    def fun(x: Any, a: Any) -> Any:
        for _ in range(n):
            x = x * x * a
        return x

    return fun


def fibonacci(a: Any, b: Any) -> Any:
    for _ in range(10):
        a, b = b, a + b
    return b


def grow_until(x: Any, a: Any) -> Any:
    while x <= 100.0:
        x = x * a
    return x


def branching(x: Any) -> Any:
    for _ in range(4):
        if x > 1.0:
            x = 0.5 * x
        else:
            x = x + 0.3
    return x


def nest(x: Any, w: Any, b: Any) -> Any:
    for _ in range(5):
        v = x
        for _ in range(5):
            v = w * v + b
        x = x + v
    return x


def triangular(n: int) -> Callable[..., Any]:
    def fun(x: Any) -> Any:
        for i in range(n):
            for _ in range(i + 1):
                x = 1.1 * x + 0.1
        return x

    return fun


def power(a: Any, v: Any) -> Any:
    for _ in range(4):
        v = a @ v
    return np.sum(v)


def cube_of_squares(c: Any) -> Any:
    for _ in range(3):
        c = c * c
    return c


def guarded_sqrt(x: Any) -> Any:
    return 7.0 if x < 1e-3 else np.sqrt(x)


def zero_trips_capturing(x: Any, c: Any) -> Any:
    while x < 8.0:
        x = x * c
    return x


def times_captured(x: Any, c: Any) -> Any:
    while x < 100.0:
        x = x * c
    return x


def captured_by_both(x: Any, c: Any) -> Any:
    while x < 10.0 * c:
        x = x * c
    return x


def captured_by_cond(x: Any, y: Any) -> Any:
    while x + y < 9.0:
        x = 3.0 * x
    return x


def forgetful(x: Any) -> Any:
    for _ in range(3):
        x = 5.0
    return x


def two_outputs(x: Any, y: Any) -> Any:
    for _ in range(2):
        x, y = 2.0 * x, 3.0 * y
    return x


def counted_doubling(x: Any) -> Any:
    i = 0
    while i < 10:
        i, x = i + 1, x * 2.0
    return x


def sum_of_counts(x: Any) -> Any:
    s = 0
    for i in range(4):
        s = s + x * i
    return s


def bool_flag(x: Any) -> Any:
    go = True
    while go:
        square = x * x
        go, x = square < 50.0, square
    return x


def swap(a: Any, b: Any) -> Any:
    for _ in range(3):
        a, b = b, a
    return a


def limited(x: Any) -> Any:
    trips = 0
    while trips < 3:
        x, trips = x * x, trips + 1
    return x


def integer_power(n: int) -> Callable[..., Any]:
    def fun(x: Any) -> Any:
        p = 1.0
        for _ in range(np.int64(n)):
            p = p * x
        return p

    return fun


def doubled_vector(v: Any) -> Any:
    for _ in range(3):
        v = v * 2.0
    return np.sum(v)


def squared_vector(v: Any) -> Any:
    while np.sum(v) < 100.0:
        v = v * v
    return np.sum(v)


def tanh_rnn(h: Any, w: Any, b: Any) -> Any:
    for _ in range(5):
        h = np.tanh(w * h + b)
    return h


def cos_cos(x: Any) -> Any:
    for _ in range(2):
        x = np.cos(x)
    return x


def distance(x: Any) -> Any:
    for _ in range(4):
        x = 3.0 - x if x < 3.0 else x - 3.0
    return x


def in_series(x: Any) -> Any:
    while x < 4.0:
        x = x * x
    while x < 16.0:
        x = x * x
    return x


def composed(x: Any) -> Any:
    return square_until(square_until(x))


def in_parallel(x: Any) -> Any:
    def doubled(x: Any) -> Any:
        for _ in range(5):
            x = x * 2.0
        return x

    return doubled(x) + doubled(x)


def collatz(x: Any) -> Any:
    """Steps from 27; x rides along."""
    n, steps = np.int64(27), 0
    while n != 1:
        n, steps, x = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1, x * 1.01
    return x + steps


def stacked_powers(x: Any) -> Any:
    p, powers = 1.0, []
    for _ in range(5):
        last, p = p, p * x
        powers.append(last)
    return np.sum(np.array(powers))


def running_sum(theta: Any) -> Any:
    elements = np.array([1.0, 2.0, 3.0])
    s, sums = elements[0], []
    for e in elements[1:]:
        s = s + e * theta
        sums.append(s)
    return elements[0] + np.sum(np.array(sums))


def mapped(x: Any) -> Any:
    products = []
    for e in np.arange(1.0, 7.0):
        products.append(e * x)
    return np.sum(np.array(products))


def skipping(x: Any) -> Any:
    """While i < 20: skip evens, stop when i > 7, add i·x."""
    i, total = 0, 0.0
    while (i < 20) & (i <= 7):
        i, total = i + 1, (total if i % 2 == 0 else total + i * x)
    return total


def skipping_by_break(x: Any) -> Any:
    total = 0.0
    for i in range(20):
        if i > 7:
            break
        if i % 2 == 0:
            continue
        total = total + i * x
    return total


def geometric(n: Any) -> Any:
    total = 0.0
    for m in range(6):
        p = 1.0
        for _ in range(m):
            p = p * n
        total = total + p
    return total


def loop_in_cond_fun(x: Any) -> Any:
    def bound() -> Any:
        b = 1.0
        for _ in range(5):
            b = b * 2.0
        return b

    while x < bound():
        x = 3.0 * x
    return x


def sum_while(x: Any) -> Any:
    while x < 200.0:
        s = 0
        for i in range(10):
            s = s + i
        x = x + s
    return x


def loop_in_branch(p: bool) -> Callable[..., Any]:
    def fun(n: Any) -> Any:
        if np.bool_(p) & (n < 1000.0):
            while n < 10.0:
                n = n + 1.0
            return n
        return 2.0 * n

    return fun


def branch_in_loop(p: bool) -> Callable[..., Any]:
    def fun(x: Any) -> Any:
        test = np.bool_(p) & (x < 1000.0)
        for _ in range(3):
            x = 2.0 * x if test else 10.0
        return x

    return fun


def call_in_loop(x: Any) -> Any:
    for _ in range(2):
        x = fourth(x)
    return x


@wend.function
def two_reads(w: Any) -> Any:
    s = 0.0
    for j in range(1, 3):
        s = s + w[j] * j
    return s


def sparse_reads(w: Any) -> Any:
    """A loop in a function in a loop, each trip of which reads two elements."""
    total = 0.0
    for _ in range(3):
        total = total + two_reads(w)
    return total


def cube_or_same(x: Any) -> Any:
    if x > 2.0:
        return x * x * x
    return x


def product_or_constant(x: Any, y: Any) -> Any:
    return x * y * 2.0 if x < 1.5 else 2.0


def log_or_zero(x: Any) -> Any:
    return np.log(x) if x > 0.0 else 0.0


def everything_in_one_predicate(x: Any, w: Any) -> Any:
    """A captured weight, the counter of an outer loop and a carry in one predicate."""
    for i in range(3):
        while x < w * (i + 1) + 1.0:
            x = x * 1.5 + 0.1 * i
    return x


def from_integers(x: Any) -> Any:
    """A float carry updated only from integers."""
    for i in range(3):
        x = i * 2.0 + 1.0
    return x


def deep_mixture(x: Any, y: Any) -> Any:
    """A branch in a loop in a branch in a loop, with a loop over rows at the bottom."""
    for i in range(4):
        if x < 1.2:
            for j in range(i + 1):
                if x * (j + 1) > 1.0:
                    for e in np.array([0.1, 0.2]):
                        x = np.sin(x) + e * y
                else:
                    x = x * y + 0.4
        else:
            x = np.cos(x) * y
    return x


# By the names of the programs.
PLAIN: dict[str, Callable[..., Any]] = {
    "T1 K8 square until": square_until,
    "T2 no trip": square_until,
    "T2 no trip, captured": zero_trips_capturing,
    "T3 captured": times_captured,
    "T5 by both": captured_by_both,
    "T6 by cond": captured_by_cond,
    "T7 forgetful": forgetful,
    "T8 two outputs": two_outputs,
    "T9 counter": counted_doubling,
    "T10 counter used": sum_of_counts,
    "T11 bool flag": bool_flag,
    "T14 swap": swap,
    "T18 limited": limited,
    "T19 power 5": integer_power(5),
    "T19 power 0": integer_power(0),
    "T22 vector": doubled_vector,
    "T22 cond on a sum": squared_vector,
    "T27 tanh rnn": tanh_rnn,
    "T28 cos cos": cos_cos,
    "T30 newton by step": newton_by_step,
    "T31 distance": distance,
    "T35 in series": in_series,
    "T35 composed": composed,
    "T35 in parallel": in_parallel,
    "T37 collatz": collatz,
    "T38 powers": stacked_powers,
    "T38 running sum": running_sum,
    "T38 mapped": mapped,
    "T40 skipping": skipping,
    "T42 geometric": geometric,
    "T45 loop in cond": loop_in_cond_fun,
    "T48 sum while": sum_while,
    "T49 true": loop_in_branch(True),
    "T49 false": loop_in_branch(False),
    "T50 true": branch_in_loop(True),
    "T50 false": branch_in_loop(False),
    "T52 call in loop": call_in_loop,
    "T52 sparse reads": sparse_reads,
    "T55 cube": cube_or_same,
    "T55 same": cube_or_same,
    "T55 product": product_or_constant,
    "T55 constant": product_or_constant,
    "T57 log or zero": log_or_zero,
    "K3 fibonacci": fibonacci,
    "K4 predicate": everything_in_one_predicate,
    "K7 seven trips": grow_until,
    "K7 no trip": grow_until,
    "K9 newton": newton,
    **{f"K10 {n}": squares_times(n) for n in range(4)},
    "K14 from integers": from_integers,
    "K16 c·c": cube_of_squares,
    "K31 nest": nest,
    **{f"K31 triangular {n}": triangular(n) for n in (2, 3, 4)},
    "K39 guarded": guarded_sqrt,
    "K39 not guarded": guarded_sqrt,
    "K40 halving": branching,
    "K40 adding": branching,
    "A·v four times": power,
    "deep mixture": deep_mixture,
}
