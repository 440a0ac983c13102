"""Plain Python functions for the conformance table: each with arguments that take every path."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Snippet:
    """A function and the arguments to try.

    Attributes:
        fun: the function.
        arguments: tuples of arguments.
        refused: what the error says where wend refuses traced arguments; None: it does not.
    """

    fun: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], ...]
    refused: str | None = None


SNIPPETS: list[Snippet] = []


def on(*arguments: Any, refused: str | None = None) -> Callable[[Any], Any]:
    """Add a function to the table; one argument need not be a tuple."""
    every = tuple(a if isinstance(a, tuple) else (a,) for a in arguments)

    def add(fun: Any) -> Any:
        SNIPPETS.append(Snippet(fun, every, refused))
        return fun

    return add


INTS = (0, 1, 2, 5, -3)
FLOATS = (0.0, 1.0, 2.5, -4.0)
ROWS = (np.arange(6.0).reshape(3, 2), np.ones((1, 2)), np.zeros((0, 2)))
VECTORS = (np.arange(4.0), np.array([2.5]), np.zeros(0))


# ---------------------------------------------------------------- while
@on(*INTS)
def while_counts(n):
    i = 0
    while i < n:
        i += 1
    return i


@on(*FLOATS)
def while_float(x):
    while x < 10.0:
        x = abs(x) * 2 + 1
    return x


@on(*INTS)
def while_sum(n):
    s, i = 0, 0
    while i < n:
        s += i * i
        i += 1
    return s, i


@on(*INTS)
def while_else(n):
    i = 0
    while i < n:
        i += 2
    else:
        i += 100
    return i


@on(*INTS)
def while_else_break(n):
    i = 0
    while i < n:
        if i == 3:
            break
        i += 1
    else:
        i += 100
    return i


@on(*INTS)
def while_true_break(n):
    i = 0
    while True:
        if i >= n:
            break
        i += 1
    return i


@on(*INTS)
def while_true_middle(n):
    i = s = 0
    while True:
        s += i
        if i >= n:
            break
        i += 1
    return i, s


@on(*INTS)
def while_true_end(n):
    i = 0
    while True:
        i += 1
        if i >= n:
            break
    return i


@on(*INTS)
def while_two_breaks(n):
    i = 0
    while True:
        i += 1
        if i > 7:
            break
        if i > n:
            break
        i += 1
    return i


@on(*INTS)
def while_continue(n):
    i = s = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        s += i
    return s


@on(*INTS)
def while_return(n):
    i = 0
    while i < 10:
        if i == n:
            return i * 100
        i += 1
    return -i


@on(*INTS)
def while_true_return(n):
    i = 0
    while True:
        i += 1
        if i > n:
            return i


@on(1.0, 4.0)
def returns_what_a_loop_changes_in_place(x):
    y = np.zeros(3)
    while True:
        old = y.copy()
        for i in range(3):
            y[i] = 0.5 * y[i] + x
        if np.abs(y - old).max() < 0.1:
            return y


@on(1.0, 2.5, 4.0, -1.0)
def returns_from_a_nest_what_it_changes_in_place(x):
    y, z = np.zeros(3), np.ones(2)
    for _ in range(4):
        for i in range(3):
            y[i] += x
            if y[i] > 9.0:
                return y, z
            if y.sum() > 8.0:
                return y * 2.0, y[1:]
        y *= 0.9
        z += y[:2]
    return y, z


@on(1.0, 3.0)
def changes_what_a_loop_has_returned(x):
    def grown(y):
        while True:
            y += x
            if y[0] > 4.0:
                return y[1:]

    y = np.zeros(3)
    part = grown(y)
    part[0] = -1.0
    return y, part.sum()


@on(0.5, 30.0, 0.001)
def returns_an_array_of_a_list_that_grows(x):
    out = [x]
    for _ in range(100):
        out.append(2.0 * out[-1])
        if out[-1] > 20.0:
            return np.array(out)
    return np.array(out)


@on((np.array([1.0, 3.0, 2.0]), 0, 2), (np.array([3.0, 1.0, 2.0]), 1, -1))
def swaps_by_lists_of_positions(x, k, p):
    x, order = x.copy(), np.arange(3)
    table = np.outer(x, x)
    x[[k, p]] = x[[p, k]]
    order[[k, p]] = order[[p, k]]
    table[:, [k, p]] = table[:, [p, k]]
    table[[k, p], [0, 1]] += 1.0
    return x, order, table, table[[[k], [p]], [k, p]]


@on(1.0, 7.0, 30.0)
def returns_what_a_trip_has_made(x):
    y = 0
    for i in range(10):
        y = x * i
        if y > 50.0:
            return i, y
        if y > 20.0:
            return -1, x
    return i, 1.0


@on(*INTS)
def while_return_else(n):
    i = 0
    while i < 4:
        if i == n:
            return 1.5 * i
        i += 1
    else:
        i = 50
    return i * 1.0


@on(*INTS)
def while_not(n):
    i = 0
    while not i >= n:
        i += 1
    return i


@on(*INTS)
def while_and(n):
    i = 0
    while i < n and i < 3:
        i += 1
    return i


@on(*INTS)
def while_or(n):
    i = 0
    while i < n or i < 2:
        i += 1
    return i


@on(*INTS)
def while_chained(n):
    i = 0
    while -1 < i < n:
        i += 1
    return i


@on(*INTS)
def while_truth_of_int(n):
    n = abs(n)
    s = 0
    while n:
        s += n
        n -= 1
    return s


@on(*INTS)
def while_walrus(n):
    i = 0
    while (j := i * 2) < n:
        i += 1
    return i, j


@on(*INTS, 8, 20)
def while_walrus_and_break(n):
    t = 0
    while (k := n - 1) > 0:
        n = n - 1
        t = t + k
        if t > 10:
            break
    return t, k, n


@on(*INTS, 8)
def while_walrus_continue_and_return(n):
    s = 0
    while (k := n - s) > 0:
        s += 1
        if s == 2:
            continue
        if s > 4:
            return -k
    return k


@on(*INTS, 8, 20)
def while_walrus_else_break_and_return(n):
    i = 0
    while i < 3 and (k := n - i) > 0:
        i += 1
        if k == 7:
            return -k
        if k > 17:
            break
    else:
        i = -n
    return i


@on(*INTS)
def while_walrus_and(n):
    i = 0
    while i < 10 and (j := i * 2) < n:
        i += j + 1
    return i


@on(*INTS)
def while_nested(n):
    s = i = 0
    while i < n:
        j = 0
        while j < i:
            s += j
            j += 1
        i += 1
    return s


@on(*INTS)
def while_nested_break(n):
    s = i = 0
    while i < n:
        j = 0
        while True:
            if j > i:
                break
            s += 1
            j += 1
        if s > 6:
            break
        i += 1
    return s, i


@on(*INTS)
def while_nested_return(n):
    i = 0
    while i < 5:
        j = 0
        while j < 5:
            if i * j == n:
                return i * 10 + j
            j += 1
        i += 1
    return -1


@on(*INTS)
def three_deep_breaks(n):
    s = 0
    for i in range(4):
        for j in range(4):
            for k in range(4):
                s += 1
                if k > n:
                    break
            if j > n + 1:
                break
        if i > n + 2:
            break
    return s


@on(*INTS)
def three_deep_return(n):
    for i in range(3):
        for j in range(3):
            k = 0
            while k < 3:
                if i + j + k == n:
                    return i, j, k
                k += 1
    return -1, -1, -1


@on(*INTS)
def collatz(n):
    n = abs(n) + 1
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@on((12, 18), (7, 0), (1, 1), (100, 75))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@on(*FLOATS)
def newton(a):
    a = abs(a) + 1.0
    x = a
    while abs(x * x - a) > 1e-9 * a:
        x = 0.5 * (x + a / x)
    return x


@on(*INTS)
def while_counts_down(n):
    s = 0
    while n > 0:
        n -= 1
        if n == 2:
            continue
        s += n
    return s, n


@on(*INTS)
def while_python_counter(x):
    i = 0
    while i < 4:
        x = x * 2
        i = i + 1
    return x, i


# ---------------------------------------------------------------- for
@on(*INTS)
def for_range(n):
    s = 0
    for i in range(n):
        s += i
    return s


@on((0, 5), (2, 2), (5, 0), (-3, 3))
def for_range_two(a, b):
    s = 0
    for i in range(a, b):
        s = s * 2 + i
    return s


@on((0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 1, -1), (1, 5, -1), (3, 4, 100))
def for_range_three(a, b, step):
    s = c = 0
    for i in range(a, b, step):
        s = s * 2 + i
        c += 1
    return s, c


@on(*INTS)
def for_range_constant_negative(x):
    for i in range(5, 0, -2):
        x = x * 2 + i
    return x


@on(*INTS)
def for_unused_target(n):
    x = 1
    for _ in range(n):
        x *= 2
    return x


@on(*INTS)
def for_break(n):
    s = 0
    for i in range(10):
        if i > n:
            break
        s += i
    return s


@on(*INTS)
def for_continue(n):
    s = 0
    for i in range(6):
        if i == n:
            continue
        s += i
    return s


@on(*INTS)
def for_break_continue(n):
    s = 0
    for i in range(20):
        if i % 2 == 0:
            continue
        if i > n + 5:
            break
        s = s + i
    return s


@on(*INTS)
def for_else(n):
    s = 0
    for i in range(4):
        s += i
        if i == n:
            break
    else:
        s += 100
    return s


@on(*INTS)
def for_else_no_break(n):
    s = 0
    for i in range(n):
        s += i
    else:
        s += 100
    return s


@on(*INTS)
def for_return(n):
    for i in range(5):
        if i * i > n:
            return i
    return 99


@on(*INTS)
def for_return_tuple(n):
    for i in range(5):
        if i * i > n:
            return i, n
    return 99, 0


@on(*INTS)
def for_return_dict(n):
    for i in range(5):
        if i * i > n:
            return {"i": i, "n": n}
    return {"i": 99, "n": 0}


@on(*INTS)
def for_target_after(n):
    i = -1
    for i in range(5):
        if i >= n:
            break
    return i


@on(*INTS)
def for_target_after_traced_bound(n):
    i = -1
    for i in range(n):
        pass
    return i


@on(*INTS)
def for_target_after_known(x):
    for i in range(3):
        x = x + i
    return x + i


@on(*INTS)
def for_target_reassigned(n):
    s = 0
    for i in range(4):
        i = i * 2 + n
        s += i
    return s


@on(*INTS)
def for_nested(n):
    s = 0
    for i in range(n):
        for j in range(i):
            s += i * j
    return s


@on(*INTS)
def for_nested_break(n):
    s = 0
    for i in range(4):
        for j in range(4):
            if j > n:
                break
            s += j
        else:
            s += 1000
    return s


@on(*INTS)
def for_nested_continue(n):
    s = 0
    for i in range(4):
        for j in range(4):
            if j == n:
                continue
            s += j
        if i == n:
            continue
        s += 100
    return s


@on(*VECTORS)
def for_array(x):
    s = 0.0
    for v in x:
        s = s * 2 + v
    return s


@on(*ROWS)
def for_rows(x):
    s = np.zeros(2)
    for row in x:
        s = s + row * 2
    return s


@on(*ROWS)
def for_rows_unpacked(x):
    s = 0.0
    for a, b in x:
        s += a * b + 1
    return s


@on(*VECTORS)
def for_enumerate(x):
    s = 0.0
    for i, v in enumerate(x):
        s += i * v
    return s


@on(*VECTORS)
def for_enumerate_start(x):
    s = 0.0
    for i, v in enumerate(x, 5):
        s += i * v
    return s


@on(*VECTORS)
def for_zip(x):
    s = 0.0
    for a, b in zip(x, x[::-1]):
        s += a * b + 1
    return s


@on(*VECTORS)
def for_zip_range(x):
    s = 0.0
    for i, b in zip(range(3), x):
        s += i * b
    return s


@on(*VECTORS)
def for_zip_list(x):
    s = 0.0
    for k, b in zip([1.0, 2.0], x):
        s += k * b
    return s


@on(*VECTORS)
def for_enumerate_zip(x):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, x + 1)):
        s += i * a * b
    return s


@on(*VECTORS)
def for_array_break(x):
    s = 0.0
    for v in x:
        if v > 1.5:
            break
        s += v + 1
    return s


@on(*VECTORS)
def for_array_return(x):
    for v in x:
        if v > 1.5:
            return v
    return -1.0


@on(*VECTORS)
def for_index_array(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * i
    return s


@on(*FLOATS)
def for_list(x):
    for k in [1, 2, 3]:
        x = x * k
    return x


@on(*FLOATS)
def for_list_break(x):
    for k in [1.0, 2.0, 3.0]:
        if x > k:
            break
        x = x + k
    return x


@on(*INTS)
def for_list_else_binds_what_the_body_has_bound(n):
    b, c = 7, 0
    for k in (0, 3):
        b = n + k
        if b > 2:
            break
    else:
        b = -n
    while c < n:
        c = c + 2
        for b in [1, c]:
            if b > 3:
                continue
            if c > 2:
                break
        else:
            b = 0
    return b, c


@on(*FLOATS)
def for_list_else(x):
    for k in [1.0, 2.0, 3.0]:
        if x > k:
            break
        x = x + k
    else:
        x = x - 100
    return x


@on(*FLOATS)
def for_list_continue(x):
    s = 0.0
    for k in (1.0, 2.0, 3.0):
        if x > k:
            continue
        s += k
    return s


@on(*FLOATS)
def for_list_return(x):
    for k in (1.0, 2.0, 3.0):
        if x < k:
            return k
    return x


@on(*FLOATS)
def for_dict(x):
    for name, k in {"a": 1.0, "b": 2.0}.items():
        x = x * k + len(name)
    return x


@on(*FLOATS)
def for_keys_break(x):
    d = {"a": 1.0, "b": 2.0, "c": 3.0}
    s = 0.0
    for key in d:
        if s > x:
            break
        s += d[key]
    return s


@on(*INTS)
def for_list_of_traced(n):
    s = 0
    for v in [n, n + 1, n * 2]:
        if v > 2:
            s += v
    return s


@on(*FLOATS)
def for_ragged_tableau(x):
    table = [[], [0.5], [0.25, 0.25]]
    ks = []
    for i in range(3):
        ks.append(x + sum(table[i][j] * ks[j] for j in range(i)))
    return ks[0] + ks[1] + ks[2]


@on(*FLOATS)
def for_python_list_indexed(x):
    w = [1.0, 2.0, 3.0]
    for i in range(3):
        x = x * w[i]
    return x


@on(*FLOATS)
def for_empty_list(x):
    for k in []:
        x = x * k
    return x


@on(*INTS)
def for_reversed(x):
    for i in reversed(range(4)):
        x = x * 2 + i
    return x


@on(*INTS)
def for_sorted_list(x):
    for i in sorted([3, 1, 2]):
        x = x * 2 + i
    return x


@on(*INTS)
def for_generator(x):
    for k in (j * j for j in range(3)):
        x = x + k
    return x


@on(*INTS)
def for_attribute_target(n):
    class Box:
        pass

    ref = Box()
    ref.v = 0
    for ref.v in range(3):
        n = n + ref.v
    return n


# ---------------------------------------------------------------- if
@on(*INTS)
def if_else(n):
    if n > 1:
        y = n * 2
    else:
        y = -n
    return y


@on(*INTS)
def if_only(n):
    y = 5
    if n > 1:
        y = n
    return y


@on(*INTS)
def if_elif(n):
    if n < 0:
        y = 1
    elif n == 0:
        y = 2
    elif n < 3:
        y = 3
    else:
        y = 4
    return y


@on(*INTS)
def if_nested(n):
    y = 0
    if n > 0:
        if n > 3:
            y = 1
        else:
            y = 2
        y += 10
    elif n < -1:
        if n < -2:
            y = 3
    return y


@on(*INTS)
def if_return_both(n):
    if n > 1:
        return n
    else:
        return -n


@on(*INTS)
def if_return_one(n):
    if n > 1:
        return n
    n = n + 10
    return n


@on(*INTS)
def if_return_chain(n):
    if n > 3:
        return 1
    if n > 1:
        return 2
    if n > 0:
        n = n * 7
    else:
        return 3
    return n


@on(*INTS)
def if_return_nested(n):
    if n > 0:
        if n > 3:
            return 1
        n = n * 2
    else:
        if n < -1:
            return 2
        n = n - 5
    return n


@on(*INTS)
def if_return_none(n):
    if n > 1:
        return
    return None


@on(*INTS)
def if_truth_of_int(n):
    if n:
        return 1
    return 0


@on(*FLOATS)
def if_truth_of_float(x):
    return 1.0 if x else 2.0


@on(*INTS)
def if_not(n):
    if not n > 1:
        n = n + 100
    return n


@on(*INTS)
def if_and_or(n):
    if (n > 0 and n < 3) or n == -3:
        return n * 10
    return n


@on(*INTS)
def if_on_python(n):
    flag = True
    if flag:
        y = n
    else:
        undefined_name()  # noqa: F821
    return y


@on(*INTS)
def if_swap(n):
    a, b = n, 2
    if a < b:
        a, b = b, a
    return a, b


@on(*INTS)
def if_new_in_both(n):
    if n > 1:
        a, b = 1, 2.0
    else:
        a, b = 2, 3.0
    return a, b


@on(*INTS)
def if_int_or_float(n):
    if n > 1:
        a = 1
    else:
        a = 2.5
    return a


@on(*INTS)
def if_pass(n):
    if n > 1:
        pass
    else:
        n = 3
    return n


@on(*INTS)
def if_unbound_not_read(n):
    if n > 1:
        t = n * 2
        n = t + 1
    return n


@on(*INTS)
def if_unbound_read(n):
    if n > 1:
        y = n * 2
    return y


@on(*INTS)
def if_unbound_read_in_sum(n):
    if n > 1:
        y = n * 2
    elif n < -1:
        y = 3
    return y + 1


@on(*INTS)
def while_unbound_read(n):
    i = 0
    while i < n:
        y = i
        i += 1
    return y


@on(*INTS)
def for_unbound_read(n):
    for i in range(n):
        y = i
    return y


@on(*INTS)
def for_target_unbound(n):
    for i in range(n):
        pass
    return i


@on(*INTS)
def never_bound(n):
    n = n + 1
    return missing + n  # noqa: F821


@on(*INTS)
def deleted(n):
    y = n
    del y
    return y  # noqa: F821


@on(*INTS)
def deleted_and_bound(n):
    y = n
    del y
    if n > 1:
        y = 2
    else:
        y = 3
    return y


@on(*INTS)
def deleted_in_loop(n):
    for _ in range(3):
        t = n * 2
        n = t - 1
        del t
    return n


@on(*INTS)
def local_before_assignment(n):
    if n > 100:
        pass
    z = late + n  # noqa: F821
    late = 1
    return z, late


@on(*INTS)
def bound_in_loop_surely(x):
    for i in range(3):
        last = x * i
        x = x + 1
    return last


@on(*INTS)
def bound_in_while_true(n):
    while True:
        y = n * 2
        n += 1
        if n > 3:
            break
    return y


@on(*INTS)
def flag_none_start(n):
    best = None
    for i in range(4):
        if best is None:
            best = i + n
        else:
            best = best + i
    return best


# ---------------------------------------------------------------- expressions
@on(*INTS)
def ternary(n):
    return n * 2 if n > 1 else -n


@on(*INTS)
def ternary_nested(n):
    return (1 if n > 3 else 2) if n > 0 else (3 if n < -1 else 4)


@on(*INTS)
def ternary_in_test(n):
    return 1 if (n > 1 if n > 0 else n < -1) else 2


@on(*INTS)
def ternary_in_loop(n):
    s = 0
    for i in range(5):
        s += i if i < n else -1
    return s


@on(*INTS)
def bool_value(n):
    return n > 0 and n < 3


@on(*INTS)
def or_default(n):
    return n or 7


@on(*INTS)
def and_value(n):
    return n and n + 1


@on((3, 0), (0, 0), (5, 5))
def short_circuit(a, b):
    return 1 if b != 0 and a / b > 0.5 else 0


@on(*INTS)
def chained(n):
    return 0 < n < 3


@on(*INTS)
def chained_three(n):
    return -5 < n <= 2 != 1


@on(*INTS)
def chained_in_if(n):
    if 0 <= n <= 2:
        return 1
    return 0


@on(*INTS)
def not_value(n):
    return not n > 1, not n


@on(*INTS)
def is_none(n):
    x = None
    if x is None:
        x = n
    return x is not None and n > 1


@on(*INTS)
def walrus_in_if(n):
    if (y := n * 2) > 3:
        return y
    return y - 100


@on(*INTS)
def walrus_in_expression(n):
    z = (y := n + 1) * y
    return z + y


@on(*INTS)
def walrus_in_and(n):
    if n > 0 and (y := n * 2) > 3:
        n = y
    return n


@on(*INTS)
def walrus_in_ternary(n):
    y = 0
    z = (y := 5) if n > 1 else 2
    return y + z


@on(*INTS)
def walrus_in_or(n):
    y = 1
    if n > 3 or (y := n * 3) > 2:
        return y
    return -y


@on(*INTS)
def walrus_in_comprehension(n):
    xs = [(last := n + k) for k in range(3)]
    return xs, last


@on(*INTS)
def walrus_chained(n):
    return 0 < (y := n + 1) < 5, y


# ---------------------------------------------------------------- walrus in what may be skipped
@on(*INTS, refused="`y` is read, but it is bound only on one path of the and at")
def skipped_in_and(n):
    if n > 1 and (y := n * 2) > 3:
        pass
    return y


@on(*INTS)
def skipped_in_and_keeps_the_old(n):
    y = 7
    if n > 1 and (y := n * 2) > 4:
        n = n + y
    return n, y


@on(*INTS)
def skipped_in_and_read_where_bound(n):
    if n > 1 and (y := n * 2) > 3 and y < 9:
        return y
    return -1


@on(*INTS, refused="`y` is read")
def skipped_in_and_read_in_else(n):
    if n > 1 and (y := n * 2) > 3:
        z = y
    else:
        z = y + 1
    return z


@on(*INTS)
def skipped_in_and_bound_in_else(n):
    if n > 1 and (y := n * 2) > 3:
        y += 1
    else:
        y = 5
    return y


@on(*INTS)
def skipped_in_or_bound_where_it_fails(n):
    if n < 1 or (y := n * 2) < 3:
        return 0
    return y


@on(*INTS)
def skipped_in_not_or(n):
    if not (n < 1 or (y := n * 2) < 3):
        n = n + y
    return n


@on(*INTS, refused="`y` is read, but it is bound only on one path of the or at")
def skipped_in_or_statement(n):
    z = n > 1 or (y := n * 2) > 3
    return z, y


@on(*INTS, refused="`y` is read, but it is bound only on one path of the if at")
def skipped_in_ternary(n):
    z = (y := n * 3) if n > 1 else 2
    return z + y


@on(*INTS)
def bound_in_both_of_ternary(n):
    z = (y := n * 3) if n > 1 else (y := 2)
    return z + y


@on(*INTS, refused="`y` is read")
def read_beside_what_may_be_skipped(n):
    return (n > 1 and (y := n * 2) > 3), y


@on(*INTS)
def old_value_read_beside(n):
    y = 1
    return (n > 1 and (y := n * 2) > 3), y


@on(*INTS)
def skipped_then_bound_anew(n):
    z = n > 1 and (y := n * 2) > 3
    y = 4
    return z, y


@on(*INTS)
def ternary_on_what_binds(n):
    return y if n > 1 and (y := n * 2) > 5 else -n


@on(*INTS)
def nested_groups_bind(n):
    if (n > 0 and (a := n + 1) > 2) and (b := a * 2) > 5:
        return a, b
    return 0, 0


@on(*INTS, refused="`b` is read")
def nested_groups_skip(n):
    if (n > 0 and (a := n + 1) > 2) or (b := n * 2) > 5:
        n = n + 1
    a = 3
    return a, b


@on(*INTS)
def chained_binds_where_it_holds(n):
    if 0 < n < (y := n * 2) < 20:
        return y
    return -1


@on(*INTS, refused="`y` is read")
def chained_skips(n):
    z = 0 < n < (y := n * 2) < 20
    return z, y


@on(*INTS)
def chained_keeps_the_old(n):
    y = 4
    z = 0 < n < (y := y * 2) < 20
    return z, y


@on(*INTS)
def while_test_binds_for_its_body(n):
    i = s = 0
    while i < n and (y := i * 2) < 6:
        s += y
        i += 1
    return s


@on(*INTS, refused="`y` is read, but it is bound only on one path of the and at")
def while_test_skips(n):
    i = 0
    while i < n and (y := i * 2) < 6:
        i += 1
    return y


@on(*INTS)
def while_test_keeps_the_old(n):
    i, y = 0, -1
    while i < n and (y := i * 2) < 6:
        i += 1
    return i, y


@on(*INTS)
def while_test_binds_where_it_fails(n):
    i = 0
    while i < n or (y := i * 2) < 6:
        i += 1
    return y


@on(*INTS)
def while_test_binds_and_a_break(n):
    i = s = 0
    while i < 9 and (y := i * 2) < 12:
        if y > n:
            break
        s += y
        i += 1
    return s, i


@on(*INTS)
def while_test_is_a_ternary(n):
    i, y = 0, 9
    while (y := i) < n if n > 1 else i < 3:
        i += 1
    return i, y


@on(*INTS)
def while_test_chain_binds(n):
    i = s = 0
    while -9 < (y := i * 2) < (c := n + 1) < 9:
        s += y + c
        i += 1
    return s, i


@on(*INTS)
def while_test_binds_what_nobody_reads(n):
    i, a, b, c = 0, n, 2, 1
    while i < 3 and -9 < (w := b) < (c := a) < 9:
        i += 1
        a, b = b, a
        c = max(a, 9)
        if a > 3:
            continue
    return i, a, b, c


@on((0, 2), (5, 2), (1, 0))
def sure_where_no_run_comes(a, b):
    if b > 3 or (a > 1 or (w := b) > 0 or w < -5):
        a = a + 1
    return a


@on(*INTS)
def middle_exit_binds(n):
    i = s = 0
    while True:
        i += 1
        if i > n or (y := i * 3) > 9:
            break
        s += y
    return s


@on(*INTS)
def skipped_in_a_loop_keeps_the_last(n):
    y = 0
    for i in range(5):
        if i < n and (y := i * 2) > 2:
            n -= 1
    return n, y


@on(*INTS, refused="`y` is read")
def skipped_in_a_loop(n):
    for i in range(5):
        if i < n and (y := i * 2) > 2:
            n -= 1
    return n, y


@on(*INTS)
def comprehension_binds_in_its_filter(n):
    return [y + n for k in range(4) if k > 1 and (y := k * 2) > 4]


@on(*INTS)
def comprehension_skips(n):
    y = n
    z = [(k > 1 and (y := k)) for k in range(3)]
    return z, y


@on(*INTS)
def comprehension_ternary_binds(n):
    z = [(y := k) if k > 0 else -1 for k in range(3)]
    return z, y, n


@on(*INTS)
def comprehension_chain_binds(n):
    z = [0 < k < (y := k * 2) < 5 for k in range(3)]
    return z, y, n


@on(*INTS, refused="stands in a comprehension or lambda")
def comprehension_skips_by_traced(n):
    y = 1
    z = [(n > k and (y := k)) for k in range(3)]
    return z, y


@on(*INTS, refused="stands in a comprehension or lambda")
def lambda_binds(n):
    f = lambda v: (v > 1 and (y := v * 2) > 4 and y) or 0  # noqa: E731
    return f(n)


@on(*INTS, refused="`y` is read")
def whole_comprehension_skipped(n):
    z = n > 1 and [(y := k) for k in range(3)][0] == 0
    return z, y


@on(*INTS)
def assert_binds(n):
    assert n > -9 and (y := n * 2) < 99  # noqa: PT018
    return y


@on(*INTS)
def with_head_binds(n):
    y = 3
    with contextlib.nullcontext(n > 1 and (y := n) > 2) as k:
        z = k
    return z, y


@on(*INTS, refused="`y` is read")
def with_head_skips(n):
    with contextlib.nullcontext(n > 1 and (y := n) > 2) as k:
        z = y
    return z, k


@on(*INTS, refused="`y` is read")
def match_head_skips(n):
    match 3 if n > 1 and (y := n * 2) > 4 else 4:
        case 3:
            z = 1
        case _:
            z = y
    return z


@on(*INTS, refused="`y` is read")
def for_head_skips(n):
    s = 0
    for i in range(3 if n > 1 and (y := n * 2) > 4 else 2):
        s += i
    return s + y


@on(*INTS, refused="`seen` is read, but it is bound only on one path of the and at")
def nonlocal_skipped_in_return(n):
    def look(v):
        nonlocal seen
        return v > 1 and (seen := v * 2) > 3

    if n > 100:
        seen = 0
    z = look(n)
    return z, seen


@on(*INTS)
def nonlocal_keeps_the_old(n):
    seen = -1

    def look(v):
        nonlocal seen
        return v > 1 and (seen := v * 2) > 3

    z = look(n)
    return z, seen


@on(*INTS)
def elif_binds(n):
    if n > 3 and (y := n) > 4:
        return y
    elif n > 0 and (y := -n) < 0:
        return y * 10
    return 0


@on(*INTS)
def comprehension(n):
    return [n * k for k in range(3)]


@on(*INTS)
def comprehension_if_python(n):
    return [n * k for k in range(5) if k % 2]


@on(*INTS)
def comprehension_ternary(n):
    return [n if n > k else k for k in range(3)]


@on(*INTS)
def comprehension_dict(n):
    return {str(k): n + k for k in range(3)}


@on(*INTS)
def comprehension_nested(n):
    return [[n * i + j for j in range(i)] for i in range(3)]


@on(*VECTORS[:1])
def comprehension_rows(x):
    return [v * 2 for v in x]


@on(*INTS)
def sum_generator(n):
    return sum(n * k for k in range(4))


@on(*INTS)
def min_max(n):
    return min(n, 2), max(n, 2, 3), abs(n)


@on(*INTS)
def any_all_python(n):
    return n if any(k > 2 for k in range(4)) and all([True, 1]) else -n


@on(*INTS)
def lambda_call(n):
    double = lambda v: v * 2 if v > 1 else v  # noqa: E731
    return double(n) + double(n + 1)


@on(*INTS)
def two_lambdas(n):
    f, g = (lambda v: v + 1 if v > 0 else v), (lambda v: v * 3 if v > 1 else v - 1)
    return f(n), g(n)


@on(*INTS)
def lambda_default(n):
    f = lambda v, k=n: v + k if v > k else v - k  # noqa: E731
    return f(2)


@on(*INTS, refused="`rest`")
def star_assignment(n):
    a, *rest, b = [n, n + 1, n + 2, n + 3]
    if n > 1:
        a, *rest = rest
    return a, rest, b


@on(*INTS)
def multiple_assignment(n):
    a = b = c = n
    if n > 1:
        a = b = 5
    return a, b, c


@on(*INTS)
def augmented(n):
    x = n
    x += 2
    x *= 3
    x -= 1
    x //= 2
    x %= 7
    if n > 0:
        x **= 2
        x += n
    return x


@on(*INTS)
def augmented_bits(n):
    x = n
    x <<= 2
    x |= 1
    x &= 12
    x ^= 5
    if n > 0:
        x >>= 1
    return x


@on(*INTS)
def annotated(n: int) -> int:
    y: int = n * 2
    z: int
    if n > 1:
        z = y
    else:
        z = 3
    return z


@on(*INTS)
def docstring(n):
    """What it says."""
    if n > 1:
        return 1
    return 2


@on(*INTS)
def f_string(n):
    names = []
    for k in [1, 2]:
        names.append(f"k{k}")
    return {name: n for name in names}


@on(*INTS)
def slices(n):
    xs = [n, n + 1, n + 2]
    ys = xs[1:]
    if n > 1:
        ys = xs[:2]
    return ys


@on(*INTS)
def assert_holds(n):
    assert n > -100, "too small"
    assert n < 100
    return n


@on(*INTS)
def assert_python(n):
    assert True, "fine"
    return n


# ---------------------------------------------------------------- with, try, match
@contextlib.contextmanager
def _manager(log):
    log.append(1)
    yield 3
    log.append(2)


@on(*INTS)
def with_if(n):
    with contextlib.nullcontext(2) as k:
        if n > 1:
            n = n * k
    return n


@on(*INTS)
def with_loop_break(n):
    i = 0
    while i < 5:
        with contextlib.nullcontext():
            if i > n:
                break
            i += 1
        i += 1
    return i


@on(*INTS)
def with_return(n):
    with contextlib.nullcontext():
        if n > 1:
            return 1
        n = n + 1
    return n


@on(*INTS)
def with_loop_return(n):
    for i in range(4):
        with contextlib.nullcontext(i) as k:
            if k > n:
                return k
    return -1


@on(*INTS)
def with_manager(n):
    log = []
    with _manager(log) as k:
        n = n + k
    return n, log


@on(*INTS)
def try_finally(n):
    try:
        if n > 1:
            n = n * 2
    finally:
        n = n + 1
    return n


@on(*INTS)
def try_finally_loop(n):
    s = 0
    for i in range(4):
        try:
            if i > n:
                break
            s += i
        finally:
            s += 100
    return s


@on(*INTS)
def try_finally_continue(n):
    s = 0
    for i in range(4):
        try:
            if i == n:
                continue
            s += i
        finally:
            s += 100
        s += 1000
    return s


@on(*INTS)
def try_finally_return(n):
    s = 0
    try:
        if n > 1:
            return n
        s = 5
    finally:
        s = 7
    return s


@on(*INTS)
def try_finally_loop_return(n):
    for i in range(4):
        try:
            if i > n:
                return i
        finally:
            n -= 1
    return n


@on(*INTS)
def try_except_python(n):
    try:
        k = {"a": 1}["b"]
    except KeyError:
        k = 2
    return n * k


@on(*INTS)
def try_except_else(n):
    try:
        k = int("3")
    except ValueError as error:
        k = len(str(error))
    else:
        if n > 1:
            k = k + n
    finally:
        n = n + 1
    return n, k


@on(*INTS)
def try_star(n):
    for k in ["1", "x", "3"]:
        try:
            n = n + int(k)
        except* ValueError:
            if n > 1:
                n = n * 2
        finally:
            n = n - 1
    return n


@on(*INTS, refused="while the if at")
def try_star_around_a_branch(n):
    for k in ["1", "x", "3"]:
        try:
            if n > 3:
                break
            n = n + int(k)
        except* ValueError:
            if n > 1:
                n = n * 2
        finally:
            n = n - 1
    return n


@on(*INTS)
def try_in_loop(n):
    for k in ["1", "x", "3"]:
        try:
            n = n + int(k)
        except ValueError:
            continue
        if n > 4:
            break
    return n


@on(*INTS)
def match_literals(n):
    match n:
        case 0:
            y = 10
        case 1 | 2:
            y = 20
        case -3:
            y = 30
        case _:
            y = 40
    return y


@on(*INTS)
def match_capture(n):
    match n * 2:
        case 0:
            return 1
        case m:
            return m + 1


@on(*INTS)
def match_guard(n):
    match n:
        case 1:
            y = 1
        case m if m > 1:
            y = m * 2
        case m if m < -1:
            y = m * 3
        case _:
            y = 0
    return y


@on(*INTS)
def match_no_default(n):
    y = -1
    match n:
        case 1:
            y = 1
        case 2:
            y = 2
    return y


@on(*INTS)
def match_return(n):
    match n:
        case 0:
            return 5
        case 1:
            n = 7
    return n


@on(*INTS)
def match_in_loop(n):
    s = 0
    for i in range(6):
        match i:
            case 2:
                continue
            case 4:
                break
        s += i + n
    return s


@on(*INTS)
def match_in_loop_traced(n):
    s = 0
    for i in range(6):
        match i + n:
            case 2:
                continue
            case 4:
                break
            case 20:
                return 1
        s += i
    return s


@on(*INTS)
def match_as(n):
    match n:
        case (1 | 2) as m:
            y = m * 10
        case _:
            y = 0
    return y


@on(*INTS)
def match_structure(n):
    match (n, 2):
        case (a, 3):
            y = a
        case (a, b):
            y = a * b
    return y


@on(*INTS)
def match_mapping(n):
    match {"kind": "add", "by": 2}:
        case {"kind": "sub", "by": k}:
            y = n - k
        case {"kind": "add", "by": k}:
            y = n + k if n > 0 else n
    return y


@on(*INTS)
def match_string(n):
    match "abc":
        case "xyz":
            y = 1
        case "abc":
            y = n if n > 0 else 3
    return y


class _Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@on(*INTS, *FLOATS)
def match_class_of_a_number(n):
    match n:
        case bool():
            return -1
        case int(k) if k > 1:
            return k * 3
        case float() | complex():
            return n * 0.5
        case _:
            return n - 1


@on(*FLOATS)
def match_class_with_parts(x):
    match _Point(x, 1.0):
        case _Point(1.0, y):
            r = y + 7
        case _Point(x=v, y=_) if v > 1:
            r = v + 1
        case _Point(a, b) as p:
            r = a * b - 5 + p.x
    return r


@on(*FLOATS)
def match_class_that_it_is_not(x):
    match [x]:
        case _Point(a):
            return a
        case str(s):
            return s
        case list([first]):
            return first * 2
    return x


@on(*FLOATS)
def match_sequences(x):
    match (x, (1.0, x)):
        case (1.0, v):
            r = v[1]
        case (a, b, c):
            r = a
        case (float() as q, (1.0, 2.5)):
            r = q * 10
        case [a, [b, c]]:
            r = a - b + c
    return r


@on(*FLOATS, refused="asks for the class of parts of a sequence")
def match_class_in_a_sequence_of_any_length(x):
    match [x, 1.0]:
        case [float(), *rest]:
            return x * len(rest)
    return x


@on(*VECTORS)
def match_of_an_array(v):
    match v:
        case [a, b]:
            return a
        case np.ndarray():
            return v.sum()
    return -1.0


# ---------------------------------------------------------------- attributes, items
class Box:
    """Holds things."""

    count = 0

    def __init__(self, v: Any = 0) -> None:
        self.v = v
        self.d = {"k": v, "n": 0}
        self.__hidden = 2

    def step(self, x):
        if self.v < x:
            self.v = self.v + 1
        return self.v

    def run(self, n):
        while self.v < n:
            self.v += 2
            self.d["k"] = self.v
        return self.v

    def private(self, n):
        if n > 1:
            self.__hidden = n
        return self.__hidden

    def bump(self):
        self.v = self.v + 1

    @property
    def double(self):
        return self.v * 2 if self.v > 1 else self.v

    @staticmethod
    def static(n):
        return n if n > 1 else 5

    @classmethod
    def klass(cls, n):
        return n + cls.count if n > 1 else 6

    def __call__(self, n):
        return n * 2 if n > 1 else n


class Child(Box):
    """Calls its parent."""

    def step(self, x):
        y = super().step(x)
        if y > 1:
            y = y * 10
        return y

    def run(self, n):
        s = 0
        for _ in range(2):
            s = s + super().run(n)
        return s


@on(*INTS)
def attribute_in_if(n):
    b = Box(1)
    if n > 1:
        b.v = n
    return b.v


@on(*INTS)
def attribute_in_while(n):
    b = Box(0)
    while b.v < n:
        b.v += 2
    return b.v


@on(*INTS)
def attribute_in_for(n):
    b = Box(0)
    for i in range(n):
        b.v = b.v + i
    return b.v


@on(*INTS)
def attribute_of_attribute(n):
    b = Box(0)
    b.inner = Box(0)
    for _ in range(3):
        b.inner.v = b.inner.v + n
    return b.inner.v


@on(*INTS)
def attribute_first_bound(n):
    b = Box(0)
    if n > 1:
        b.new = 1
    else:
        b.new = n
    return b.new


@on(*INTS)
def attribute_augmented(n):
    b = Box(n)
    if n > 1:
        b.v *= 2
    return b.v


@on(*INTS)
def item_in_if(n):
    d = {"k": 1, "m": 2}
    if n > 1:
        d["k"] = n
    return d["k"], d["m"]


@on(*INTS)
def item_in_while(n):
    d = {"k": 0}
    while d["k"] < n:
        d["k"] += 2
    return d["k"]


@on(*INTS)
def item_new(n):
    d = {}
    if n > 1:
        d["k"] = 1
    else:
        d["k"] = 2
    return d["k"]


@on(*INTS)
def item_of_attribute(n):
    b = Box(0)
    for i in range(3):
        b.d["k"] = b.d["k"] + n
    if n > 1:
        b.d["n"] = 5
    return b.d["k"], b.d["n"]


@on(*INTS)
def item_list(n):
    xs = [0, 0, 0]
    for i in [0, 1, 2]:
        xs[i] = n + i
    if n > 1:
        xs[0] = 7
    return xs


@on(*INTS)
def item_nested(n):
    d = {"a": {"b": [1, 2]}}
    if n > 1:
        d["a"]["b"][0] = n
    return d


@on(*INTS)
def list_swap(n):
    xs = [n, 2, 3]
    if xs[0] > xs[1]:
        xs[0], xs[1] = xs[1], xs[0]
    return xs


@on(*INTS)
def list_append_python(n):
    xs = []
    for k in [1, 2, 3]:
        xs.append(n * k)
    return xs


@on(*INTS)
def list_append_both(n):
    xs = []
    if n > 1:
        xs.append(n)
    else:
        xs.append(-n)
    return xs


@on(*INTS)
def list_pop(n):
    xs = [1, 2, n]
    y = xs.pop()
    if n > 1:
        y = y + xs[0]
    return y, xs


@on(*INTS)
def dict_update(n):
    d = {"a": 1}
    d.update(a=n)
    if n > 1:
        d.update(a=5)
    return d


@on(*INTS)
def alias_of_list(n):
    xs = [1, 2]
    ys = xs
    ys.append(n)
    return xs


@on(*INTS)
def alias_of_list_in_loop(n):
    xs = [0]
    ys = xs
    for k in [1, 2]:
        xs[0] = xs[0] + n * k
    return ys[0]


@on(*INTS)
def method(n):
    return Box(1).step(n)


@on(*INTS)
def method_run(n):
    b = Box(0)
    v = b.run(n)
    return v, b.v, b.d["k"]


@on(*INTS)
def method_super(n):
    return Child(1).step(n), Child(0).run(n)


@on(*INTS)
def private_names(n):
    return Box(0).private(n)


@on(*INTS)
def property_read(n):
    return Box(n).double


@on(*INTS)
def static_and_class_methods(n):
    return Box.static(n), Box.klass(n), Box(1).static(n), Child.klass(n)


@on(*INTS)
def callable_object(n):
    return Box(1)(n)


@on(*INTS)
def method_in_loop(n):
    b = Box(0)
    s = 0
    for i in range(3):
        s = s + b.step(n)
    return s, b.v


@on(*INTS)
def helper_changes_attribute(n):
    b = Box(n)
    for i in range(3):
        b.bump()
    return b.v


@on(*INTS)
def helper_changes_attribute_in_if(n):
    b = Box(0)
    if n > 1:
        b.bump()
    return b.v


@on(*INTS)
def bound_method(n):
    f = Box(1).step
    return f(n) + f(n)


@on(*INTS)
def list_grows_and_changes(n):
    xs = [0.5]
    for i in range(n):
        xs.append(i * 2.0)
    xs[0] = xs[-1] + 1
    return np.sum(xs), np.max(xs), max(xs), np.exp(xs)[0]


@on(*INTS)
def alias_of_what_grows_in_python(n):
    xs = []
    ys = xs
    for k in range(3):
        xs.append(n * k)
    return ys


@on(*INTS)
def copy_of_what_grows(n):
    xs = [1.0]
    ys = list(xs)
    for k in range(n):
        xs.append(k * 1.0)
    return ys, np.stack(xs)


# ---------------------------------------------------------------- functions
def _helper(x):
    while x < 10:
        x = abs(x) * 2 + 1
    return x


def _factorial(k):
    if k <= 1:
        return 1
    return k * _factorial(k - 1)


def _power(x, k):
    """Recursion on a Python int."""
    if k == 0:
        return 1
    half = _power(x, k // 2)
    return half * half * x if k % 2 else half * half


def _clip(x, *, low=0, high=3):
    if x < low:
        return low
    return high if x > high else x


def _twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        y = f(*args, **kwargs)
        if y > 3:
            y = f(y)
        return y

    return wrapper


@_twice
def _decorated(x):
    return x * 2 if x > 1 else x + 1


@on(*INTS)
def helper(n):
    return _helper(n) + 1


@on(*INTS)
def helper_in_loop(n):
    s = 0
    for i in range(3):
        s = s + _helper(i + n)
    return s


@on(*INTS)
def helper_keywords(n):
    return _clip(n), _clip(n, high=1), _clip(n, low=1, high=2)


@on(*INTS)
def recursion_on_python(n):
    return n * _factorial(4) + _power(n, 5)


@on(*INTS)
def decorated(n):
    return _decorated(n)


@on(*INTS)
def nested_function(n):
    def inner(x):
        if x > n:
            return x
        return n

    return inner(2) + inner(-1)


@on(*INTS)
def nested_function_live(n):
    k = 1

    def inner(x):
        return x + k

    a = inner(n)
    k = 5
    return a, inner(n)


@on(*INTS)
def nested_function_in_loop(n):
    s = 0
    for i in range(3):

        def inner(x):
            return x * 2 if x > n else x

        s = s + inner(i)
    return s


@on(*INTS)
def nonlocal_count(n):
    count = 0

    def bump(x):
        nonlocal count
        if x > 1:
            count = count + x
        return count

    bump(n)
    bump(2)
    return count


@on(*INTS)
def nonlocal_in_loop(n):
    count = 0

    def bump():
        nonlocal count
        count = count + n

    for _ in range(3):
        bump()
    return count


@on(*INTS)
def nonlocal_in_while(n):
    count = 0

    def bump(k):
        nonlocal count
        count += k

    i = 0
    while i < n:
        bump(i)
        i += 1
    return count


@on(*INTS)
def nonlocal_in_if(n):
    count = 0

    def bump():
        nonlocal count
        count = count + 1

    if n > 1:
        bump()
    return count


_total = 0


@on(*INTS)
def global_read(n):
    return n if n > len(INTS) - 3 else _OFFSET


_OFFSET = 3


@on((1, 2), (3, 1), (2, 2))
def defaults(a, b, k=2):
    if a > b:
        return a * k
    return b * k


@on((1, 2), (3, 1, 4), (5,))
def varargs(a, *rest):
    for v in rest:
        if v > a:
            a = v
    return a


@on(*INTS)
def kwargs_call(n):
    def inner(**options):
        s = 0
        for key in sorted(options):
            s = s * 2 + options[key]
        return s

    return inner(b=n, a=2)


@on(*INTS)
def star_call(n):
    args = (n, 2)
    return _larger(*args), _larger(*[1, n]), _larger(**{"a": n, "b": 0})


def _larger(a, b):
    if a > b:
        return a
    return b


@on(*INTS)
def partial(n):
    f = functools.partial(_larger, 2)
    return f(n), functools.partial(_clip, high=1)(n)


@on(*INTS)
def map_call(n):
    return list(map(lambda v: v * 2 if v > 1 else v, [n, n + 1]))


@on(*INTS)
def reduce_call(n):
    return functools.reduce(lambda a, b: a if a > b else b, [n, 1, n + 1])


@on(*INTS)
def function_as_value(n):
    f = _larger if n is not None else _clip
    return f(n, 1)


@on(*INTS)
def immediately_called(n):
    return (lambda v: v if v > 1 else -v)(n)


@on(*INTS)
def closure_over_loop_variable(n):
    fs = []
    for k in [1, 2, 3]:
        fs.append(lambda v, k=k: v + k)
    return [f(n) for f in fs]


@on(*INTS)
def late_binding(n):
    fs = []
    for k in [1, 2, 3]:
        fs.append(lambda v: v + k)
    return [f(n) for f in fs]


@on(*INTS)
def class_inside(n):
    class Point:
        scale = 2

        def __init__(self, x):
            self.x = x

        def far(self):
            if self.x > 1:
                return self.x * self.scale
            return 0

    return Point(n).far()


@on(*INTS)
def early_return_none_python(n):
    def nothing(flag):
        if flag:
            return None
        return 1

    return n if nothing(True) is None else -n


@on(*INTS)
def two_returns_in_nested_loops(n):
    for i in range(3):
        for j in range(3):
            if i + j == n:
                return i * 10 + j
            if i * j > n:
                return -1
    else:
        return 77


@on(*INTS)
def return_in_else_of_loop(n):
    for i in range(3):
        if i == n:
            break
    else:
        return 5
    return i


@on(*INTS)
def continue_in_nested_if(n):
    s = 0
    for i in range(6):
        if i > 1:
            if i > n:
                s += 100
                continue
            elif i == 3:
                continue
            s += 10
        s += 1
    return s


@on(*INTS)
def break_after_work(n):
    s = 0
    for i in range(6):
        if i > n:
            s += 50
            t = s * 2
            s = t
            break
        s += i
    return s


@on(*INTS)
def flags_by_hand(n):
    found = False
    i = 0
    while not found and i < 10:
        found = i * i > n
        i += 1
    return found, i


@on(*INTS)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@on(*FLOATS)
def weak_becomes_strong(x):
    s = 0
    for i in range(3):
        s = s + x * np.float64(2)
    return s


@on(*FLOATS)
def bisection(x):
    lo, hi = -10.0, 10.0
    while hi - lo > 1e-6:
        mid = 0.5 * (lo + hi)
        if mid * mid * mid < x:
            lo = mid
        else:
            hi = mid
    return lo


@on(*VECTORS)
def array_while(x):
    k = 0
    while (x < 10).any() and k < 20:
        x = x * 2 + 1
        k += 1
    return x, k


@on(*VECTORS)
def array_if(x):
    if x.sum() > 3:
        x = x / 2
    return x


@on((np.array([1.0, 2.0]), 3), (np.array([0.5, 0.5]), 0), (np.eye(2), 2))
def matrix_power(a, n):
    r = a
    for _ in range(n):
        r = r @ a if a.ndim == 2 else r * a
    return r


@on(*INTS)
def side_effects_once(n):
    log = []

    def note(k):
        log.append(k)

    i = 0
    while i < 3:
        note(i)
        i += 1
    return n, log


@on(*INTS)
def python_loop_side_effects(n):
    seen = {}
    for k in range(3):
        seen[str(k)] = n
    return seen


@on(*INTS)
def string_in_loop(n):
    s = ""
    for k in range(3):
        s = s + "ab"
    return n * len(s)


@on(*INTS)
def string_beside_traced(n):
    s = ""
    for k in [1, 2, 3]:
        s = s + "a"
        n = n + len(s)
    return n


@on(*INTS)
def type_changes_in_python(n):
    x = None
    for k in [1, 2]:
        x = [x, k]
    return n + x[1]


@on(*INTS)
def print_is_left(n):
    if n > 1:
        y = [n, [n, (n, 2)]]
    else:
        y = [0, [n, (n, 1)]]
    return y


@on(*INTS)
def semicolons(n):
    i = 0
    s = 0  # noqa: E702
    while i < n:
        s += i
        i += 1  # noqa: E701, E702
    return s


@on(*INTS)
def conditional_definition(n):
    if True:

        def f(x):
            return x + 1 if x > 1 else x
    else:

        def f(x):
            return x

    return f(n)


@on(*INTS)
def global_del_try(n):
    x = 1
    try:
        del x
        x  # noqa: B018
    except NameError:
        n = n + 1
    return n


@on(*INTS)
def import_inside(n):
    import math

    if n > 1:
        n = n + 1
    return n + math.pi


@on(*FLOATS)
def math_functions(x):
    import math

    y = math.exp(x) if x < 0 else math.sqrt(x)
    return y + math.sin(x) + math.floor(x) + float(x) + int(x)


@on(*INTS)
def isinstance_of_traced(n):
    return n * 2 if isinstance(n, int) else n


@on(*INTS)
def return_list_in_loop(n):
    for i in range(3):
        if i == n:
            return [i, [n]]
    return [0, [0]]


@on(*INTS)
def while_with_item_test(n):
    xs = [0, 5]
    while xs[0] < n:
        xs[0] = xs[0] + 1
        xs[1] -= 1
    return xs


@on(*INTS)
def tuple_state(n):
    p = (0, 1)
    for _ in range(n):
        p = (p[1], p[0] + p[1])
    return p


@on(*INTS)
def loop_inside_branch(n):
    if n > 1:
        i = 0
        while i < n:
            i += 2
    else:
        i = -1
    return i


@on(*INTS)
def branch_with_break_in_loop_in_branch(n):
    s = 0
    if n > 0:
        for i in range(10):
            if i > n:
                break
            s += i
        else:
            s = -1
    return s


@on(*INTS)
def loop_return_inside_branch(n):
    if n > 0:
        for i in range(10):
            if i * i > n:
                return i
        n = 100
    return n


@on(*INTS)
def return_from_loop_else_branch(n):
    while n < 10:
        if n == 2:
            return 0
        elif n == 5:
            n += 2
            continue
        else:
            n += 1
    return n


@on(*INTS)
def container_made_in_a_branch(n):
    if n > 1:
        xs = [0, 0]
        xs[0] = n
    else:
        xs = [1]
        xs.append(n)
    return xs


@on(*INTS)
def container_made_in_a_loop(n):
    s = 0
    for i in range(3):
        d = {"a": i}
        d["a"] += n
        d["b"] = d["a"]
        s = s + d["b"]
    return s


@on((1, 2), (3, 0))
def else_reads_what_the_loop_binds(a, b):
    for i in range(3):
        b = i
        a, b = b, a
    else:
        a = 1 if not (a == 3) else b
    while a < 5:
        b = a
        a = a + 1
    else:
        a = b
    return a


# Rows, parts and helpers change the arrays that they belong to
def _put(array, position, value):
    array[position] = value


def _add_to(array, value):
    array += value


@on(ROWS[0], ROWS[1])
def rows_at_positions_are_views(x):
    x = x * 1.0
    for i in range(x.shape[0]):
        row = x[i]
        row += 1.0
        row[0] = i
    return x


@on((ROWS[0], 1), (ROWS[0], -1))
def a_part_between_traced_bounds_is_a_view(x, n):
    x = x * 1.0
    part = x[n:]
    part *= 2.0
    part[0] = 7.0
    return x


@on(*ROWS)
def rows_gone_through_are_views(x):
    x = x * 1.0
    total = 0.0
    for row in x:
        row += 1.0
        total = total + row.sum()
    return x, total


@on(*ROWS)
def an_array_that_changes_under_its_loop(x):
    x = x * 1.0
    for i, row in enumerate(x):
        if i + 1 < x.shape[0]:
            x[i + 1] += row
    return x


@on(2.0)
def a_helper_fills_an_array(x):
    y = np.zeros(3)
    _put(y, 0, x)
    _add_to(y, x)
    return y.sum() + y[0]


@on(2.0)
def a_helper_fills_an_array_in_a_loop(x):
    y = np.zeros(70)
    for i in range(70):
        _put(y, i, x * i)
    return y.sum() + y[3]


@on(2.0)
def an_array_by_two_names(x):
    y = np.zeros(3)
    z = y
    y[0] = x
    z[1] = x + 1
    return y * z


@on(2.0, 3)
def elements_as_one_of_several_targets(x):
    y, z = np.zeros(3), np.zeros((2, 2))
    y[0] = z[1, 0] = x
    y[1], z[0] = x * x, (x, 1.0)
    (y[2], a), *z[:, 1] = (x + 1, x), 5.0, 6.0
    return y, z, a


@on(3, 5)
def arrays_of_traced_sizes(n):
    x = np.zeros((n, 2)) + np.arange(n)[:, None]
    y = np.ones(n, dtype=int) + np.full(n, 2)
    x[1:n, 0] = np.linspace(0.0, 1.0, n)[1:]
    for i in range(n):
        x[i, 1] += y[: i + 1].sum()
    return x @ np.eye(2) + np.identity(2)[0]


@on((ROWS[0], 1))
def cut_to_another_length_in_each_trip(x, n):
    total = 0.0
    for i in range(100):
        part = x[n % (i + 1) :]
        part = part * 2.0
        part[:] += 1.0
        total = total + part.sum()
    return total


@on(1, 2)
def plain_arrays_at_traced_positions_and_sizes(n):
    x = np.arange(6.0)
    rows = np.reshape(x, (n, -1))
    spread = np.broadcast_to(np.arange(2.0), (n, 2))
    total = rows.sum(axis=1) + spread.sum()
    return np.take(x, n), np.repeat(x, n).sum(), np.roll(x, n), total


# ---------------------------------------------------------------- changes out of sight
@on(*FLOATS)
def append_in_a_choice(x):
    items = [x, 1.0]
    items.append(5.0) if x > 1 else items.append(6.0)
    return items


@on(*FLOATS)
def append_by_a_lambda(x):
    items = [0.0]
    add = lambda v: items.append(v)  # noqa: E731
    if x > 1:
        add(1.0)
    else:
        add(2.0)
    return items


@on(*FLOATS)
def append_in_a_comprehension(x):
    items = [0.0]
    if x > 1:
        [items.append(v) for v in (1.0, 2.0)]
    else:
        [items.append(v) for v in (3.0, 4.0)]
    return items


@on(*FLOATS)
def append_by_a_bound_method(x):
    items = [0.0]
    put = items.append
    if x > 1:
        put(1.0)
    else:
        list.append(items, 2.0)
    return items


@on(*FLOATS)
def sort_on_one_path(x):
    items = [3.0, 1.0]
    if x > 1:
        items.sort()
    return items


class _Doubling:
    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, w):
        self._v = 2 * w


@on(*FLOATS)
def property_setter(x):
    ref = _Doubling(1.0)
    if x > 1:
        ref.v = x
    for _ in range(2):
        ref.v = ref.v + x
    return ref.v


@on(*FLOATS)
def setattr_on_one_path(x):
    ref = _Doubling(x)
    if x > 1:
        setattr(ref, "_v", 9.0)  # noqa: B010
    return ref._v


@on(1, 2, 5)
def iterator_after_break(n):
    it = iter([1, 2, 3, 4])
    s = 0
    for v in it:
        s += v * n
        if v == 2:
            break
    return s + next(it)


@on(*FLOATS)
def plain_array_changed_after_it_was_read(x):
    a = np.zeros(2)
    y = x + a
    a[0] = 5.0
    z = x + a
    a += 1.0
    return y, z, x * a


@on(*FLOATS)
def annotated_locals_after_an_early_exit(x):
    if x > 1:
        return x, x
    y: float
    z: float = x * 2
    y = z + 1
    while y < 10:
        step: float = 3.0
        if y > 5:
            break
        y += step
    return y, z


@on((np.arange(10.0), np.int8(120)), (np.arange(3.0), np.uint64(7)), (np.arange(3.0), -2))
def enumerate_from_a_narrow_integer(x, first):
    s = 0.0
    for i, v in enumerate(x, first):
        s += i * v
    return s
