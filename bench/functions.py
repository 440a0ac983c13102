"""`python -m bench.functions [NAME ...]`: array functions in native code beside NumPy's own.

    ratio("exp", "float64", 1_000_000)    # our time over NumPy's, in this process

Each is compiled alone: what is measured is a whole call, the result's memory included.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.special

import wend
import wend.numpy as wnp

ROUNDS = 40  # how often both take turns; the fastest counts
SAMPLE = 0.0005  # seconds that one turn lasts at least
FLOATS, INTS = ("float64", "float32"), ("int64", "int32")
Draw = Callable[[np.random.Generator, int, np.dtype], np.ndarray]


def between(low: float, high: float) -> Draw:
    """Numbers that are drawn evenly; whole ones where the dtype is."""

    def draw(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
        if dtype.kind == "b":
            return rng.random(size) < 0.5
        if dtype.kind in "iu":
            return rng.integers(math.ceil(low), math.floor(high) + 1, size).astype(dtype)
        return rng.uniform(low, high, size).astype(dtype)

    return draw


def flags(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """True and False in turn, by chance."""
    return rng.random(size) < 0.5


def square(draw: Draw) -> Draw:
    """About as many numbers in rows and columns."""

    def drawn(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
        side = math.isqrt(size)
        return draw(rng, side * side, dtype).reshape(side, side)

    return drawn


def ordered(draw: Draw) -> Draw:
    """The same from the least on."""
    return lambda rng, size, dtype: np.sort(draw(rng, size, dtype))


def positions(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """Where to read an array of as many numbers."""
    return rng.integers(0, size, size)


@dataclass(frozen=True, slots=True)
class Row:
    """A function and what it is called with.

    Attributes:
        call: takes a namespace like NumPy's, and arrays.
        draws: one for each array.
        dtypes: what it is measured on.
    """

    call: Callable[..., Any]
    draws: tuple[Draw, ...]
    dtypes: tuple[str, ...] = FLOATS


WIDE, UNIT, PLUS = between(-10, 10), between(-0.99, 0.99), between(0.01, 100)


def _plain(name: str, *draws: Draw, dtypes: tuple[str, ...] = FLOATS) -> tuple[str, Row]:
    return name, Row(lambda xp, *arrays: getattr(xp, name)(*arrays), draws, dtypes)


def _special(name: str) -> tuple[str, Row]:
    return name, Row(lambda xp, x: getattr(_special_of(xp), name)(x), (between(-5, 5),))


def _over_axis(name: str, axis: int) -> tuple[str, Row]:
    row = Row(lambda xp, x: getattr(xp, name)(x, axis=axis), (square(WIDE),))
    return f"{name}_axis{axis}", row


def _special_of(xp: Any) -> Any:
    return scipy.special if xp is np else wnp.special


BOTH = (*FLOATS, *INTS)
ROWS: Mapping[str, Row] = dict(
    [
        # functions of one number
        *(_plain(name, between(-10, 10)) for name in ("sin", "cos", "tan", "tanh", "exp", "exp2")),
        *(_plain(name, between(-10, 10)) for name in ("expm1", "sinh", "cosh", "cbrt", "arctan")),
        *(_plain(name, PLUS) for name in ("log", "log2", "log10", "log1p", "sqrt")),
        *(_plain(name, UNIT) for name in ("arcsin", "arccos", "arctanh")),
        _plain("arcsinh", WIDE),
        _plain("arccosh", between(1, 100)),
        *map(_special, ("erf", "erfc", "expit")),
        *(_plain(name, WIDE) for name in ("floor", "ceil", "trunc", "rint", "reciprocal")),
        *(_plain(name, WIDE) for name in ("isnan", "isinf", "isfinite", "signbit", "deg2rad")),
        *(_plain(n, WIDE, dtypes=BOTH) for n in ("abs", "negative", "positive", "sign", "square")),
        _plain("invert", between(-1000, 1000), dtypes=(*INTS, "bool")),
        _plain("logical_not", flags, dtypes=("bool",)),
        # of two
        *(_plain(n, WIDE, WIDE, dtypes=BOTH) for n in ("add", "subtract", "multiply")),
        *(_plain(n, WIDE, between(1, 10), dtypes=BOTH) for n in ("divide", "floor_divide")),
        *(_plain(n, WIDE, between(1, 10), dtypes=BOTH) for n in ("remainder", "fmod")),
        _plain("power", between(0.5, 9), between(0, 5), dtypes=BOTH),
        *(_plain(n, WIDE, WIDE) for n in ("arctan2", "hypot", "copysign", "logaddexp")),
        *(_plain(n, WIDE, WIDE, dtypes=BOTH) for n in ("maximum", "minimum")),
        *(_plain(n, WIDE, WIDE, dtypes=BOTH) for n in ("equal", "not_equal", "less")),
        *(_plain(n, WIDE, WIDE, dtypes=BOTH) for n in ("less_equal", "greater", "greater_equal")),
        *(_plain(n, WIDE, WIDE, dtypes=INTS) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")),
        *(_plain(n, WIDE, between(0, 20), dtypes=INTS) for n in ("left_shift", "right_shift")),
        *(
            _plain(n, flags, flags, dtypes=("bool",))
            for n in ("logical_and", "logical_or", "logical_xor")
        ),
        ("add_scalar", Row(lambda xp, x: x + 3, (WIDE,), BOTH)),
        ("square_power", Row(lambda xp, x: x**2, (WIDE,), BOTH)),
        # of more
        ("where", Row(lambda xp, c, x, y: xp.where(c, x, y), (flags, WIDE, WIDE), BOTH)),
        ("clip", Row(lambda xp, x: xp.clip(x, -3, 4), (WIDE,), BOTH)),
        # casts
        *(
            (f"astype_{to}", Row(lambda xp, x, to=to: x.astype(to), (WIDE,), BOTH))
            for to in (*BOTH, "int8", "bool")
        ),
        # reductions, of rows and of columns
        *(_plain(n, WIDE, dtypes=BOTH) for n in ("sum", "max", "min", "mean")),
        *(_plain(n, WIDE) for n in ("std", "var")),
        _plain("prod", between(0.9, 1.1)),
        *(_plain(name, WIDE, dtypes=BOTH) for name in ("argmax", "argmin")),
        *(_plain(name, flags, dtypes=("bool",)) for name in ("any", "all")),
        *(_over_axis(n, k) for n in ("sum", "max", "mean", "argmax") for k in (0, 1)),
        *(_plain(name, WIDE) for name in ("cumsum", "diff")),
        _plain("cumprod", between(0.999, 1.001)),
        # what moves numbers
        *(_plain(name, WIDE, dtypes=BOTH) for name in ("copy", "sort")),
        _plain("argsort", WIDE),
        ("flip", Row(lambda xp, x: xp.copy(xp.flip(x)), (WIDE,), BOTH)),
        ("transpose", Row(lambda xp, x: xp.ascontiguousarray(x.T), (square(WIDE),))),
        ("concatenate", Row(lambda xp, x, y: xp.concatenate([x, y]), (WIDE, WIDE))),
        ("stack", Row(lambda xp, x, y: xp.stack([x, y]), (WIDE, WIDE))),
        ("stack_last", Row(lambda xp, x, y: xp.stack([x, y], axis=1), (WIDE, WIDE))),
        ("roll", Row(lambda xp, x: xp.roll(x, 7), (WIDE,))),
        ("repeat", Row(lambda xp, x: xp.repeat(x, 2), (WIDE,))),
        ("tile", Row(lambda xp, x: xp.tile(x, 2), (WIDE,))),
        ("every_second", Row(lambda xp, x: xp.copy(x[::2]), (WIDE,))),
        ("take", Row(lambda xp, x, k: xp.take(x, k), (WIDE, positions))),
        # orders, positions, masks
        _plain("searchsorted", ordered(WIDE), WIDE),
        *(_plain(n, WIDE) for n in ("median", "unique")),
        _plain("nextafter", WIDE, WIDE),
        *(_plain(n, between(0, 99), between(1, 99), dtypes=INTS) for n in ("gcd", "lcm")),
        ("quantile", Row(lambda xp, x: xp.quantile(x, 0.3), (WIDE,))),
        ("digitize", Row(lambda xp, x: xp.digitize(x, xp.linspace(-9, 9, 50)), (WIDE,))),
        ("isin", Row(lambda xp, x: xp.isin(x, x[:1000]), (WIDE,), INTS)),
        ("bincount", Row(lambda xp, x: xp.bincount(x, minlength=100), (between(0, 99),), INTS)),
        ("take_along_axis", Row(lambda xp, x, k: xp.take_along_axis(x, k, 0), (WIDE, positions))),
        ("compress", Row(lambda xp, c, x: xp.compress(c, x), (flags, WIDE))),
        ("extract", Row(lambda xp, c, x: xp.extract(c, x), (flags, WIDE))),
        ("flatnonzero", Row(lambda xp, c: xp.flatnonzero(c), (flags,), ("bool",))),
        ("convolve", Row(lambda xp, x: xp.convolve(x, x[:50]), (WIDE,))),
        ("interp", Row(lambda xp, x, y: xp.interp(x, y[::1000], x[::1000]), (WIDE, ordered(WIDE)))),
        ("zeros_like", Row(lambda xp, x: xp.zeros_like(x), (WIDE,))),
        ("full_like", Row(lambda xp, x: xp.full_like(x, 2.5), (WIDE,))),
        ("broadcast_row", Row(lambda xp, x: x + x[0], (square(WIDE),))),
        ("broadcast_column", Row(lambda xp, x: x + x[:, :1], (square(WIDE),))),
    ]
)


def ratio(name: str, dtype: str, size: int = 1_000_000) -> float:
    """How long a call takes in native code, over how long NumPy takes: the fastest of some.

    Args:
        name: a key of `ROWS`.
        dtype: of the arrays that are not positions or flags.
        size: how many numbers they have.
    """
    ours, numpys = times(name, dtype, size)
    return ours / numpys


def times(name: str, dtype: str, size: int) -> tuple[float, float]:
    """Seconds for a call, in native code and in NumPy."""
    row, rng = ROWS[name], np.random.default_rng(7)
    arrays = [draw(rng, size, np.dtype(dtype)) for draw in row.draws]
    compiled = wend.function(lambda *given: row.call(wnp, *given), backend="native")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fastest(partial(compiled, *arrays), partial(row.call, np, *arrays))


def fastest(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """Seconds for a call of each: they take turns, and the fastest turn counts."""
    both = first, second
    counts = []
    for call in both:
        for _ in range(4):  # native code for the call is made at the second one
            call()
        start = time.perf_counter()
        call()
        counts.append(max(1, math.ceil(SAMPLE / (time.perf_counter() - start + 1e-7))))
    best = [math.inf, math.inf]
    for _ in range(ROUNDS):
        for k, call in enumerate(both):
            start = time.perf_counter()
            for _ in range(counts[k]):
                call()
            best[k] = min(best[k], (time.perf_counter() - start) / counts[k])
    return best[0], best[1]


def lines(names: Iterable[str], sizes: Iterable[int]) -> Iterator[str]:
    """The lines of a table, and geometric means."""
    sizes = list(sizes)
    head = " | ".join(f"{size:,} numbers: µs | over NumPy" for size in sizes)
    yield f"| function | dtype | {head} |"
    yield f"|---|---|{'--:|--:|' * len(sizes)}"
    logs: dict[int, list[float]] = {size: [] for size in sizes}
    for name in names:
        for dtype in ROWS[name].dtypes:
            cells = []
            for size in sizes:
                ours, numpys = times(name, dtype, size)
                logs[size].append(math.log(ours / numpys))
                cells.append(f"{ours * 1e6:.4g} | {ours / numpys:.2f}")
            yield f"| {name} | {dtype} | {' | '.join(cells)} |"
    means = " | ".join(f" | {math.exp(sum(logs[s]) / len(logs[s])):.2f}" for s in sizes)
    yield f"| geometric mean | | {means} |"


def main(given: list[str] | None = None) -> int:
    """Print the table for what the command line names; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.functions", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="function", help=", ".join(ROWS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 1_000])
    options = parser.parse_args(given)
    for name in options.names:
        if name not in ROWS:
            parser.error(f"no function {name!r}; there are {', '.join(ROWS)}")
    for line in lines(options.names or ROWS, options.sizes):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
