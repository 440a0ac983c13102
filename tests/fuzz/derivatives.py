"""Whether derivatives of a program agree: in native code, by the interpreter and of recorded runs;
reverse with forward mode, and with differences of the plain function; and at second order.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wend
import wend.numpy as wnp
from tests.fuzz.outcome import alike, identical, is_large
from tests.fuzz.program import Program, is_float
from tests.fuzz.ways import Ways
from wend.base import trees
from wend.base.errors import AliasError, NotDifferentiableError

TOL, SINGLE_TOL = 1e-7, 1e-2
SLOPE_TOL, STEP = 1e-4, 1e-6


def check_derivatives(program: Program, ways: Ways, seen: Counter, *, second: bool) -> None:
    """First and second derivatives of the results' sines, at the last of the calls.

    Raises:
        AssertionError: two of them differ.
    """
    args = program.calls[-1]
    wrt = [k for k, x in enumerate(args) if is_float(x)]
    rng = np.random.default_rng(len(program.text))
    along = tuple(np.asarray(rng.normal(size=args[k].shape), args[k].dtype) for k in wrt)
    tol = SINGLE_TOL if program.is_single else TOL

    def smooth(*xs: Any) -> Any:
        return loss(wnp, ways.fun(*xs))

    gradient = wend.grad(smooth, tuple(wrt))
    ways.restart()
    expected = ways.run("interpreter", gradient, args)
    native, strict = (ways.run(way, gradient, args) for way in ("native", "strict"))
    identical(strict, expected, "gradient of strict native code")
    if isinstance(expected, wend.WendError):
        assert isinstance(native, wend.WendError), f"{native!r} is not {expected!r}"
        seen[f"gradient refused: {type(expected).__name__}"] += 1
        return
    if is_large(expected[: len(wrt)]):
        seen["gradient too large"] += 1
        return
    alike(native, expected, tol, "native gradient")
    eager = ways.run("eager", gradient, args)
    refusals = ("with a sequence", "read-only")
    if isinstance(eager, wend.WendError) or any(text in str(eager) for text in refusals):
        # NumPy's arrays cannot hold what is recorded, nor change once that was computed from them
        seen[f"gradient at once refused: {type(eager).__name__}"] += 1
    else:
        alike(eager, expected, tol, "gradient at once")
    reverse = [np.sum(g * t) for g, t in zip(expected, along, strict=False)]
    if not program.is_single:
        wanted = [place for place, k in enumerate(wrt) if k in program.rounded]
        check_difference(program, wrt, along, wanted, reverse)
    seen["gradients"] += 1
    check_forward(smooth, ways, args, dict(zip(wrt, along, strict=True)), reverse, tol, seen)
    if second:
        check_second(gradient, ways, args, along, tol, seen)


def check_difference(
    program: Program,
    wrt: Sequence[int],
    along: Sequence[Any],
    wanted: Sequence[int],
    reverse: Sequence[Any],
) -> None:
    """The gradient along a direction is the plain function's difference."""
    args = program.calls[-1]

    def at(step: float) -> float:
        moved = list(copy.deepcopy(args))
        for k in wanted:
            moved[wrt[k]] = moved[wrt[k]] + step * along[k]
        return float(loss(np, program.plain()[0](*moved)))

    slopes = [(at(h) - at(-h)) / (2 * h) for h in (STEP, 10 * STEP)]
    if abs(slopes[0] - slopes[1]) > SLOPE_TOL * max(abs(slopes[0]), 1.0):
        return  # too bent to tell
    parts = [reverse[k] for k in wanted]
    size = max([1.0, *map(abs, parts)])
    difference = abs(sum(parts) - slopes[0])
    assert difference < 10 * SLOPE_TOL * size, f"gradient: {sum(parts)}, by differences {slopes[0]}"


def check_forward(
    smooth: Callable[..., Any],
    ways: Ways,
    args: Sequence[Any],
    along: dict[int, Any],
    reverse: Sequence[Any],
    tol: float,
    seen: Counter,
) -> None:
    """Forward mode gives what reverse mode does along a direction."""
    tangents = tuple(along.get(k) for k in range(len(args)))
    push = wend.function(lambda *xs: wend.jvp(smooth, xs, tangents)[1])
    ways.restart()
    expected, strict = (ways.run(way, push, args) for way in ("interpreter", "strict"))
    identical(strict, expected, "tangent of strict native code")
    if isinstance(expected, NotDifferentiableError):
        # It wants no argument changed in place, not even one that is not differentiated.
        assert "in place" in str(expected), f"{expected!r}"
        seen["tangent refused"] += 1
        return
    if isinstance(expected, AliasError):
        # A loop is one node here, and no sequence of trips that Python runs for each path.
        seen["tangent refused: AliasError"] += 1
        return
    if isinstance(expected, wend.WendError) and "a run may not get there" in str(expected):
        # Likewise, what raises on one path is no error of that path alone.
        seen[f"tangent refused: {type(expected).__name__}"] += 1
        return
    assert not isinstance(expected, Exception), f"forward mode: {expected!r}"
    size = max([1.0, *map(abs, reverse)])
    difference = abs(expected[0] - sum(reverse))
    assert difference <= 10 * tol * size, f"tangent: {expected[0]}, by gradient {sum(reverse)}"
    seen["tangents"] += 1


def check_second(
    gradient: Callable[..., Any],
    ways: Ways,
    args: Sequence[Any],
    along: Sequence[Any],
    tol: float,
    seen: Counter,
) -> None:
    """The gradient of the gradient along a direction."""
    wrt = tuple(k for k, x in enumerate(args) if is_float(x))
    slope = wend.grad(
        lambda *xs: sum(wnp.sum(g * t) for g, t in zip(gradient(*xs), along, strict=True)), wrt
    )
    ways.restart()
    expected, strict = (ways.run(way, slope, args) for way in ("interpreter", "strict"))
    identical(strict, expected, "second gradient of strict native code")
    native = ways.run("native", slope, args)
    if isinstance(expected, wend.WendError):
        assert isinstance(native, wend.WendError), f"{native!r} is not {expected!r}"
        seen[f"second gradient refused: {type(expected).__name__}"] += 1
    elif isinstance(expected, Exception) or not is_large(expected[: len(wrt)]):
        alike(native, expected, 10 * tol, "second gradient")
        seen["second gradients"] += 1


def loss(module: Any, results: Any) -> Any:
    """A smooth scalar of all floats among results."""
    total = 0.0
    for x in trees.flatten(results)[0]:
        if is_float(x):
            total = total + module.sum(module.sin(x), dtype="f8")
    return total
