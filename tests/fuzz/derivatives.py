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
from tests.fuzz.share import Share
from tests.fuzz.ways import Ways
from wend.base import trees
from wend.base.errors import AliasError, NotDifferentiableError

TOL, SINGLE_TOL = 1e-7, 1e-2
SLOPE_TOL, STEP = 1e-4, 1e-6


def check_derivatives(program: Program, ways: Ways, share: Share, seen: Counter) -> None:
    """First and second derivatives of the results' sines, at the last of the calls.

    Raises:
        AssertionError: two of them differ.
    """
    args = program.calls[-1]
    wrt = [k for k, x in enumerate(args) if is_float(x)]
    rng = np.random.default_rng(len(program.text))
    along = tuple(np.asarray(rng.normal(size=args[k].shape), args[k].dtype) for k in wrt)
    tol = SINGLE_TOL if program.is_single else TOL
    fun = ways.function if share.is_nested else ways.fun

    def smooth(*xs: Any) -> Any:
        return loss(wnp, fun(*xs))

    gradient = wend.grad(smooth, tuple(wrt))
    ways.restart()
    expected = ways.run("interpreter", gradient, args)
    found = {way: ways.run(way, gradient, args) for way in share.gradients}
    if "strict" in found:
        identical(found["strict"], expected, "gradient of strict native code")
    if isinstance(expected, wend.WendError):
        for way in {"native"} & {*found}:
            assert isinstance(found[way], wend.WendError), f"{found[way]!r} is not {expected!r}"
        seen[f"gradient refused: {type(expected).__name__}"] += 1
        return
    if is_large(expected[: len(wrt)]):
        seen["gradient too large"] += 1
        return
    refusals = ("with a sequence", "read-only")
    for way, x in found.items():
        if way == "eager" and (
            isinstance(x, wend.WendError) or any(text in str(x) for text in refusals)
        ):
            # NumPy's arrays cannot hold what is recorded, nor change once it was computed from them
            seen[f"gradient at once refused: {type(x).__name__}"] += 1
        else:
            alike(x, expected, tol, f"{way} gradient")
    reverse = [np.sum(g * t) for g, t in zip(expected, along, strict=False)]
    wanted = [place for place, k in enumerate(wrt) if k in program.rounded]
    check_difference(program, wrt, along, wanted, reverse, seen)
    seen["gradients"] += 1
    if share.tangents:
        tangents = dict(zip(wrt, along, strict=True))
        check_forward(smooth, ways, share, args, tangents, reverse, tol, seen)
    if share.second:
        check_second(gradient, ways, share, args, along, tol, seen)


def check_difference(
    program: Program,
    wrt: Sequence[int],
    along: Sequence[Any],
    wanted: Sequence[int],
    reverse: Sequence[Any],
    seen: Counter,
) -> None:
    """The gradient along a direction is the plain function's difference, in double precision."""
    tol = SINGLE_TOL if program.is_single else 10 * SLOPE_TOL
    program = program.widened()
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
    assert difference < tol * size, f"gradient: {sum(parts)}, by differences {slopes[0]}"
    seen["differences"] += 1


def check_forward(
    smooth: Callable[..., Any],
    ways: Ways,
    share: Share,
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
    expected = ways.run("interpreter", push, args)
    found = {way: ways.run(way, push, args) for way in share.tangents}
    if "strict" in found:
        identical(found["strict"], expected, "tangent of strict native code")
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
    for way, x in found.items():
        alike(x, expected, tol, f"{way} tangent")
    seen["tangents"] += 1


def check_second(
    gradient: Callable[..., Any],
    ways: Ways,
    share: Share,
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
    expected = ways.run("interpreter", slope, args)
    found = {way: ways.run(way, slope, args) for way in share.second}
    if "strict" in found:
        identical(found["strict"], expected, "second gradient of strict native code")
    if isinstance(expected, wend.WendError):
        for x in found.values():
            assert isinstance(x, wend.WendError), f"{x!r} is not {expected!r}"
        seen[f"second gradient refused: {type(expected).__name__}"] += 1
    elif isinstance(expected, Exception) or not is_large(expected[: len(wrt)]):
        for way, x in found.items():
            alike(x, expected, 10 * tol, f"{way} second gradient")
        seen["second gradients"] += 1


def loss(module: Any, results: Any) -> Any:
    """A smooth scalar of all floats among results."""
    total = 0.0
    for x in trees.flatten(results)[0]:
        if is_float(x):
            total = total + module.sum(module.sin(x), dtype="f8")
    return total
