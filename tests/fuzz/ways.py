"""Whether a program gives the same as plain NumPy, at once, by the interpreter and in native code.

Plain NumPy decides of values, of variables and of arguments that are changed. Gradients in native
code are compared with the interpreter's, with those of recorded runs, and with differences of the
plain function.
"""

from __future__ import annotations

import copy
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import wend
import wend.numpy as wnp
from tests.fuzz.program import Program
from wend.base import trees

TOL, SINGLE_TOL = 1e-9, 1e-3
GRADIENT_TOL, SINGLE_GRADIENT_TOL = 1e-7, 1e-2
SLOPE_TOL, STEP = 1e-4, 1e-6
NATIVE = {"backend": "native", "verify_memory": True}
MOST = 1e8  # nothing is compared beyond: what is chaotic is no fault
BUILT_IN = (
    IndexError,
    ZeroDivisionError,
    OverflowError,
    NotImplementedError,
    ValueError,
    TypeError,
)


def check_program(program: Program, *, second: bool = True, seen: Counter | None = None) -> None:
    """Run it four ways, with its gradients; `seen` counts what became of it.

    Raises:
        AssertionError: they differ.
    """
    seen = Counter() if seen is None else seen
    with np.errstate(all="ignore"), unraisable() as raised:
        if check_values(program, seen):
            wrt = [k for k, x in enumerate(program.calls[0]) if _is_float(x)]
            check_gradients(program, wrt, second, seen)
    assert not raised, f"where nothing may raise: {raised[0]!r}"


@contextmanager
def unraisable() -> Iterator[list[Any]]:
    """What is raised where nobody catches it, as in `__del__`."""
    raised: list[Any] = []
    usual = sys.unraisablehook
    sys.unraisablehook = lambda one: raised.append(one.exc_value)
    try:
        yield raised
    finally:
        sys.unraisablehook = usual


def check_values(program: Program, seen: Counter) -> bool:
    """Whether every call has a result that could be compared."""
    plain, kept = program.plain()
    ways = {
        "eager": ({"eager": True}, program.staged()),
        "interpreter": ({"backend": "numpy"}, program.staged()),
        "native": (NATIVE, program.staged()),
    }
    functions = {way: wend.function(f) for way, (_, (f, _)) in ways.items()}
    for count, args in enumerate(program.calls):
        expected = outcome(plain, kept, args)
        if isinstance(expected, Exception):
            seen[f"raises {type(expected).__name__}"] += 1
        elif not all(np.abs(x).max(initial=0) < MOST for x in map(np.asarray, expected)):
            seen["too large"] += 1
            return False
        found = {}
        for way, (setting, (_, variables)) in ways.items():
            with wend.config(**setting):
                found[way] = outcome(functions[way], variables, args)
        # Passes leave out what raises and is of no use.
        passed = [way for way in ("interpreter", "native") if not isinstance(found[way], Exception)]
        if isinstance(expected, Exception) and passed:
            alike(found["eager"], expected, 0, f"call {count}, eager")
            seen["raises in plain Python alone"] += 1
            return False
        if not args[0].size and raised_when_traced(found["native"]):
            # What has no items, and is known when traced, raises even where it does not run.
            assert raised_when_traced(found["interpreter"])
            seen["raises when traced"] += 1
            return False
        refused = [way for way, x in found.items() if isinstance(x, wend.WendError)]
        if refused:
            assert "eager" not in refused or len(refused) == 3, f"eager alone: {found['eager']!r}"
            assert ("native" in refused) == ("interpreter" in refused), f"{found}"
            seen[f"refused: {type(found[refused[-1]]).__name__}"] += 1
            return False
        for way, results in found.items():
            alike(results, expected, tolerance(program, TOL, SINGLE_TOL), f"call {count}, {way}")
        if isinstance(expected, Exception):
            return False
    seen["values"] += 1
    return True


def outcome(f: Callable[..., Any], variables: Sequence[Any], args: Sequence[Any]) -> Any:
    """Results, arguments after the call and what variables hold; or the error."""
    given = copy.deepcopy(args)
    try:
        results = f(*given)
    except Exception as error:
        if isinstance(error, wend.WendError) or isinstance(error, BUILT_IN):
            return error
        raise
    leaves = trees.flatten(results)[0]
    return [*leaves, *given, *(np.asarray(v.value) for v in variables)]


def raised_when_traced(found: Any) -> bool:
    """Whether it is an error that the Python of a program raised."""
    if not isinstance(found, Exception):
        return False
    frames = traceback.walk_tb(found.__traceback__)
    return any(frame.f_code.co_filename.startswith("<program") for frame, _ in frames)


def check_gradients(program: Program, wrt: Sequence[int], second: bool, seen: Counter) -> None:
    """First and second derivatives of the results' sines, at the last of the calls."""
    args = program.calls[-1]
    rng = np.random.default_rng(len(program.text))
    along = tuple(np.asarray(rng.normal(size=args[k].shape), args[k].dtype) for k in wrt)
    wanted = [k for k, x in enumerate(wrt) if x in program.rounded]

    def gradient(f: Callable[..., Any]) -> Callable[..., Any]:
        return wend.grad(lambda *xs: loss(wnp, f(*xs)), tuple(wrt))

    def slope(f: Callable[..., Any]) -> Callable[..., Any]:
        first = gradient(f)
        return wend.grad(
            lambda *xs: sum(wnp.sum(g * t) for g, t in zip(first(*xs), along, strict=True)),
            tuple(wrt),
        )

    def run(transform: Callable[..., Any], **setting: Any) -> Any:
        f, variables = program.staged()
        with wend.config(**setting):
            return outcome(transform(f), variables, args)

    expected = run(gradient, backend="numpy")
    native, eager = run(gradient, **NATIVE), run(gradient, eager=True)
    if isinstance(expected, wend.WendError):
        assert isinstance(native, wend.WendError), f"{native!r} is not {expected!r}"
        seen[f"gradient refused: {type(expected).__name__}"] += 1
        return
    if not all(np.abs(x).max(initial=0) < MOST for x in expected[: len(wrt)]):
        seen["gradient too large"] += 1
        return
    tol = tolerance(program, GRADIENT_TOL, SINGLE_GRADIENT_TOL)
    alike(native, expected, tol, "native gradient")
    if isinstance(eager, wend.WendError) or "with a sequence" in str(eager):
        # NumPy's arrays cannot hold what is recorded
        seen[f"gradient at once refused: {type(eager).__name__}"] += 1
    else:
        alike(eager, expected, tol, "gradient at once")
    if not is_single(program):
        check_slope(program, wrt, along, wanted, expected)
    seen["gradients"] += 1
    if not second:
        return
    expected, native = run(slope, backend="numpy"), run(slope, **NATIVE)
    if isinstance(expected, wend.WendError):
        assert isinstance(native, wend.WendError), f"{native!r} is not {expected!r}"
        seen[f"second gradient refused: {type(expected).__name__}"] += 1
        return
    if isinstance(expected, Exception) or all(
        np.abs(x).max(initial=0) < MOST for x in expected[: len(wrt)]
    ):
        alike(native, expected, 10 * tol, "second gradient")
        seen["second gradients"] += 1


def check_slope(
    program: Program,
    wrt: Sequence[int],
    along: Sequence[Any],
    wanted: Sequence[int],
    found: Sequence[Any],
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
    parts = [np.sum(found[k] * along[k]) for k in wanted]
    size = max([1.0, *map(abs, parts)])
    difference = abs(sum(parts) - slopes[0])
    assert difference < 10 * SLOPE_TOL * size, f"gradient: {sum(parts)}, by differences {slopes[0]}"


def loss(module: Any, results: Any) -> Any:
    """A smooth scalar of all floats among results."""
    total = 0.0
    for x in trees.flatten(results)[0]:
        if _is_float(x):
            total = total + module.sum(module.sin(x), dtype="f8")
    return total


def _is_float(x: Any) -> bool:
    return isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "") == "f"


def is_single(program: Program) -> bool:
    """Whether anything is of f32."""
    arrays = (x for args in program.calls for x in args if isinstance(x, np.ndarray))
    return "'f4'" in program.text or any(x.dtype == np.float32 for x in arrays)


def tolerance(program: Program, double: float, single: float) -> float:
    return single if is_single(program) else double


def alike(found: Any, expected: Any, tol: float, role: str) -> None:
    """Equal, or as far apart as `tol` for each unit of the largest; or errors of one class."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        kind = next((kind for kind in BUILT_IN if isinstance(expected, kind)), ())
        assert isinstance(found, kind or wend.WendError), f"{role}: {found!r}, not {expected!r}"
        return
    assert len(found) == len(expected), f"{role}: {len(found)} results, not {len(expected)}"
    for k, (x, y) in enumerate(zip(map(np.asarray, found), map(np.asarray, expected), strict=True)):
        about = f"{role}, result {k}"
        assert x.dtype == y.dtype, f"{about}: {x.dtype}, not {y.dtype}"
        assert x.shape == y.shape, f"{about}: {x.shape}, not {y.shape}"
        if y.dtype.kind != "f":
            np.testing.assert_array_equal(x, y, err_msg=about)
            continue
        most = np.abs(y[np.isfinite(y)]).max(initial=1.0)
        np.testing.assert_allclose(x, y, rtol=0, atol=tol * most, err_msg=about)
