"""Python's builtin functions and operators on its numbers, for the conformance table."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from tests.capture.snippets import FLOATS, INTS, on

ROW = np.array([1.0, 2.0, 3.0])
TENTHS = (0.15, 2.675, -0.25, 1234.5678)


def _sign(v):
    return 1 if v > 0 else -1


def _is_even(v):
    return v % 2 == 0


def _doubled(v):
    return v * 2 if v > 1 else v


# ---------------------------------------------------------------- bools are integers
@on(*INTS)
def bools_count_as_integers(n):
    b = n > 0
    found = -b, +b, abs(b), b + b, b - True, 3 * b, b / 2, b // 1, b % 2, b**2, b << 2
    return *found, True - b, 1 - b, -b * 2.0, int(b), float(b), round(b), sum([b, b]), divmod(b, 2)


@on(*INTS)
def bools_stay_bools(n):
    b = n > 0
    return b & True, b | False, b ^ True, b == 1, not b, b & 3, 3 ^ b, (b if b else 5)


@on(*INTS, refused="~True is -2")
def a_bool_inverted(n):
    return ~(n > 0)


# ---------------------------------------------------------------- one number
@on(*FLOATS)
def divmod_of_floats(x):
    return divmod(x, 0.75), divmod(x, 2), divmod(5, abs(x) + 1), divmod(7.0, -abs(x) - 1)


@on(*INTS)
def divmod_of_integers(n):
    return divmod(n, 3), divmod(n, -3), divmod(10, n + 20)


@on(*FLOATS, *TENTHS)
def round_of_floats(x):
    return round(x), round(x, 1), round(x, 2), round(x * 123, -1), round(x, None), round(x, 0)


@on(*INTS)
def round_of_integers(n):
    return round(n), round(n * 17, -1), round(n, 2), round(n * 15, -1), round(n * 25, -1)


@on(*INTS)
def pow_of_integers(n):
    return pow(n, 2), pow(2, abs(n)), pow(2.0, n)


@on(*INTS, refused="takes no modulus")
def pow_with_a_modulus(n):
    return pow(n + 10, 3, 7)


@on(*FLOATS)
def complex_of_parts(x):
    return complex(x, 2.0).real, complex(x).imag, abs(complex(3.0, x))


# ---------------------------------------------------------------- what a thing is
@on(*INTS)
def classes_of_numbers_of_python(n):
    b = n > 1
    found = [isinstance(b, kind) for kind in (bool, int, float, np.bool_, np.generic, np.ndarray)]
    found += [isinstance(n, kind) for kind in (bool, int, float, np.integer, (list, int), object)]
    return found, isinstance(n + 0.5, float), isinstance(n, int | float), type(n) is int


@on(np.float64(1), np.int64(3), np.float32(2))
def classes_of_numbers_of_numpy(x):
    kinds = (float, int, np.floating, np.integer, np.generic, np.ndarray, np.number)
    return [isinstance(x, kind) for kind in kinds], isinstance(x > 1, bool)


@on(ROW, np.arange(3))
def classes_of_arrays(x):
    kinds = (float, int, np.floating, np.generic, np.ndarray, list)
    found = [isinstance(y, kind) for y in (x, x.sum(), x[0], x > 1) for kind in kinds]
    return found, type(x) is np.ndarray


# ---------------------------------------------------------------- many values
@on(*FLOATS)
def any_and_all(x):
    items = any(x > i for i in range(3)), all(x > i for i in range(3))
    return *items, any([x > 1, x < 0]), all((x > 1,)), any([]), all([]), any([x > 1, True])


@on(*FLOATS)
def any_and_all_of_numbers(x):
    return any(v for v in [x, x - 1]), all([x, 1.0]), any(map(_is_even, [1, 2]))


@on(ROW, ROW - 2)
def any_and_all_of_an_array(x):
    return any(x > 2), all(x > 0), any(x)


@on(*FLOATS)
def sum_from_a_start(x):
    return sum([x, 2], 10), sum((x * i for i in range(3)), start=1.5), sum([], x), sum([x > 1])


@on(*FLOATS)
def extremes_by_a_key(x):
    by_key = min(x, 1.0, key=lambda v: -v), max([x, 1.0, -x], key=abs)
    return *by_key, max([], default=x), min([x, 3.0], default=1.0), min({"a": x, "b": 1.0}.values())


@on(*FLOATS)
def an_extreme_of_pairs_by_a_key(x):
    return max([(x, 0.0), (1.0, 1.0)], key=lambda pair: pair[0])


@on(*FLOATS)
def an_extreme_of_pairs(x):
    low = min((v * v, k) for k, v in enumerate([x, 1.0, -x, 2.0]))
    return max([(x, 0.0), (1.0, 1.0)]), low, min(range(3), key=lambda k: (x * k, -k))


@on(*FLOATS)
def an_extreme_of_pairs_with_equal_heads(x):
    return max([(1.0, 2, x), (1.0, 2, 0.0), (0.0, 3, x)]), min((1.0, x), (1.0, 0.5), (1.0, x))


@on(*FLOATS)
def an_extreme_of_pairs_with_nan(x):
    nan = float("nan")
    return max((nan, x), (1.0, x)), max((x, nan), (1.0, 2.0)), min((1.0, nan), (x, 3.0))


@on(*FLOATS, refused="compares lists of")
def an_extreme_of_lists(x):
    return max([[x, 0.0], [1.0, 1.0]])


@on(*FLOATS)
def pairs_that_their_heads_order(x):
    parts = {"b": x, "a": 2.0 * x, "c": 1.0}
    by_name = [v for _, v in sorted(parts.items(), reverse=True)]
    low, high = min((2, x), (1, -x)), max(([1, x], [1.5, 0.0]))
    ranks = iter((2, 0, 1))
    by_key = sorted([x, 2.0 * x, 1.0], key=lambda v: (next(ranks), v))
    return by_name, low, high, by_key, sorted([("b", x), ("a", x)])[0][0] == "a"


@on(*FLOATS)
def extremes_beside_nan(x):
    nan = float("nan")
    return max(x, nan), max(nan, x), min(x, nan), min(nan, x)


@on(ROW)
def extremes_of_an_array(x):
    return min(x), max(x), min(x, key=lambda v: -v), max(x[0], x[1], key=lambda v: -v)


@on(*FLOATS)
def numbers_in_order(x):
    return sorted([x, 1.0, 0.5]), sorted([x, 1.0], reverse=True), sorted([3, 1], key=lambda v: -v)


@on(*FLOATS)
def in_order_by_a_traced_key(x):
    return sorted([3.0, 1.0, 2.0], key=lambda v: v * x), sorted([x, 1.0, -1.0], key=abs)


@on(*FLOATS)
def a_list_put_in_order(x):
    items = [x, 1.0, 0.5]
    items.sort()
    backwards = [x, 2.0]
    backwards.sort(reverse=True)
    return items, backwards


@on(ROW[::-1])
def an_array_in_order(x):
    return sorted(x), sorted(x, reverse=True)


@on(*FLOATS)
def pairs_in_order(x):
    pairs = [(x, 1.0), (0.0, 2.0), (x, -1.0), (1.0, 3.0)]
    ranks = [0] * 4
    for position, (_, k) in enumerate(sorted((v, k) for k, (v, _) in enumerate(pairs))):
        ranks[k] = position + 1
    pairs.sort(key=lambda pair: pair[0], reverse=True)
    return sorted(pairs), pairs, sorted(pairs, reverse=True), ranks


@on(*FLOATS, refused="lists, tuples or objects in an order")
def lists_in_order(x):
    return sorted([[x, 1.0], [0.0, 2.0]])


@on(*FLOATS, refused="lists, tuples or objects in an order")
def pairs_with_arrays_in_order(x):
    return sorted([(x, np.ones(2)), (0.0, np.zeros(2))], key=lambda pair: pair[0])


@on(*INTS)
def in_and_not_in(n):
    found = n in [1, 2, 3], n not in (1, 5), n in {0, 1}, 2 in [n, 3], n in np.array([1, 2])
    return *found, n in range(10), 3 in range(n), n in range(1, n + 4, 2), 0 < n in [1, 2]


@on(*INTS)
def a_list_times_a_number(n):
    k = 2
    return [n, 1] * k


@on(*INTS, refused="as a repeat count")
def a_list_times_a_traced_number(n):
    return [1, 2] * n


# ---------------------------------------------------------------- ranges and what goes through
@on(*INTS)
def ranges_from_the_end(n):
    s = 0
    for i in reversed(range(n)):
        s = s * 2 + i
    for i in reversed(range(1, n, 2)):
        s = s * 2 + i
    for i in reversed(range(n, -1, -1)):
        s = s + i * 3
    for i in range(n)[::-1]:
        s = s + i
    for i in reversed(range(5)):
        s = s * 2 + i * n
    return s, len(range(n)), bool(range(n))


@on(*INTS)
def ranges_together(n):
    s = 0
    for i, j in enumerate(reversed(range(n)), start=2):
        s = s + i * j
    for i, j in zip(range(n), reversed(range(n))):  # noqa: B905
        s = s + i * j
    for i, j in zip(range(n), [1, 2, 3, 4, 5, 6]):  # noqa: B905
        s = s + i * j
    return s


@on(*INTS)
def enumerate_from_a_traced_start(n):
    s = 0
    for i, v in enumerate([n, 2, 3], 1):
        s += i * v
    for i, v in enumerate(range(n), start=n):
        s += i * v
    for i, v in enumerate([1, 2], n):
        s += i * v
    return s


@on(ROW, np.zeros(0))
def arrays_from_the_end(x):
    s = 0.0
    for v in reversed(x):
        s = s * 2 + v
    for i, v in enumerate(reversed(x)):
        s += i * v
    return s


@on(ROW)
def zip_of_equal_lengths(x):
    s = 0.0
    for u, v in zip(x, x * 2, strict=True):
        s += u * v
    return s


@on(ROW)
def zip_of_other_lengths(x):
    s = 0.0
    for u, v in zip(x, x[:2], strict=True):
        s += u * v
    return s


@on(*INTS)
def map_of_functions(n):
    s = 0
    for v in map(_sign, [n, n + 1]):
        s += v
    for v in map(abs, [n, -n]):
        s += v
    for v in map(int, [n > 1, True]):
        s += v
    return s, list(map(lambda a, b: a * b + n, [1, 2], [3, 4])), max(map(_sign, [n, 0]))


@on(*INTS)
def map_of_a_traced_range(n):
    s = 0
    for v in map(_doubled, range(n)):
        s += v
    return s


@on(ROW)
def map_of_an_array(x):
    s = 0.0
    for v in map(_doubled, x):
        s += v
    return s, list(map(float, x)), sum(map(float, x))


@on(*INTS)
def functions_given_to_reduce(n):
    def larger(a, b):
        if a > b:
            return a
        return b

    return functools.reduce(larger, [n, 1, n + 1]), list(itertools.accumulate([n, 1, 3], larger))


@on(*INTS)
def filter_by_known_values(n):
    return [v * n for v in filter(lambda v: v > 1, [1, 2, 3])]


@on(*INTS, refused="`filter` at")
def filter_by_traced_values(n):
    return sum(filter(lambda v: v > n, [1, 2, 3]))


@on(*INTS, refused="the length of a range is needed")
def a_traced_range_in_a_comprehension(n):
    return sum(k * 2 for k in range(n))


# ---------------------------------------------------------------- texts
TEXT = "but the numbers in it are only known when the function runs"


@on(*FLOATS, refused=TEXT)
def a_text_compared(x):
    return x if str(x) == "2.5" else 0.0


@on(*FLOATS, refused=TEXT)
def a_text_measured(x):
    return len(repr(x)), len(f"{x}"), len("{}".format(x)), len("%s" % x)  # noqa: UP031, UP032


@on(*FLOATS, refused=TEXT)
def a_text_searched(x):
    return x if "." in str([x]) else -x


@on(*FLOATS, refused=TEXT)
def a_text_in_a_list(x):
    return x if str(x) in ["2.5", "1.0"] else -x


@on(*FLOATS, refused=TEXT)
def a_text_in_a_text(x):
    return x if str(x) in "2.5" else -x


@on(*FLOATS, refused=TEXT)
def a_text_as_a_key(x):
    return {"2.5": 1.0}.get(format(x), 5.0)


@on(*FLOATS, refused=TEXT)
def a_text_changed(x):
    return x if ", ".join(map(str, [x, x])).startswith("2") else -x


@on(*FLOATS, refused="formats a number")
def a_number_in_a_text(x):
    return len("%d" % x)  # noqa: UP031


@on(*FLOATS)
def texts_of_what_is_known(x):
    said = "%s %d" % ("a", 3) + f"{2.5:.1f}" + str(b"b", "utf8") + "{}".format([1])  # noqa: UP031, UP032
    return x * len(said), said == "a 32.5b[1]", "" == ""


@on(*FLOATS)
def a_text_that_is_not_looked_at(x):
    said = "x is " + str(x) + " and %.2f, " % x + ", ".join([repr(x), "y"])  # noqa: UP031
    if said and x is None:
        raise ValueError(said)
    return x
