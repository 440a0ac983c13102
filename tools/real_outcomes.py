"""What a caller sees of a call, how two outcomes are compared, and gradients."""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import wend
from wend.base.refusals import is_refusal

_CLOSE, _DOUBLE_BITS = 1e-6, 64
_ENDS = (-1e-6, 1e-6), (-1e-5, 1e-5), (0.0, 1e-5), (-1e-5, 0.0)  # one-sided ones show kinks
_SMALLER_STEPS = tuple(10.0**-k for k in range(7, 15))
_GRADIENT_CLOSE, _MOST_ROUNDING = 1e-4, 0.02
_LEAST, _SAMPLES = 1e-3, 8
_EPSILON = float(np.finfo(float).eps)
_PLAIN_TYPES = (
    (bool, np.bool_),
    (int, np.integer),
    (float, np.floating),
    (complex, np.complexfloating),
)


@dataclass(frozen=True)
class Outcome:
    """All that a caller sees: value, error, output, and the arguments afterwards."""

    value: Any
    error: BaseException | None
    output: str
    arguments: Any


def differ(expected: Outcome, found: Outcome) -> str:
    """Say how two outcomes differ; empty where they do not."""
    if (expected.error is None) != (found.error is None):
        return f"error {expected.error!r} became {type(found.error).__name__}: {found.error}"
    if expected.error is not None:
        one, other = expected.error, found.error
        texts = [str(e).partition("\n")[0].rstrip(".") for e in (one, other)]
        if not isinstance(other, type(one)) or texts[0] not in texts[1]:
            return f"error {one!r} became {other!r}"
    rounding = 64 * _EPSILON * _largest((expected.value, expected.arguments))
    if path := _differ(expected.value, found.value, rounding):
        return f"value: {path}"
    if path := _differ(expected.arguments, found.arguments, rounding):
        return f"arguments afterwards: {path}"
    if expected.output != found.output:
        return f"output {expected.output[:80]!r} became {found.output[:80]!r}"
    return ""


def is_as_sensitive(
    run: Callable[[Any], Outcome], arguments: Any, expected: Outcome, found: Outcome
) -> bool:
    """Return whether plain Python's result moves as far when its arguments move by a last bit."""
    largest = [0.0] * len(_numbers(expected))
    rng = np.random.default_rng(2)
    for _ in range(_SAMPLES):
        moved = run(_map_all(lambda x: np.nextafter(x, rng.choice([-np.inf, np.inf])), arguments))
        distances = _distances(expected, moved)
        if distances is not None:
            largest = [max(a, b) for a, b in zip(largest, distances, strict=True)]
    distances = _distances(expected, found)
    if distances is None or not any(largest):
        return False
    return all(d <= _SAMPLES * most for d, most in zip(distances, largest, strict=True))


def _distances(expected: Outcome, found: Outcome) -> list[float] | None:
    """Return how far each number has moved; None where anything else differs."""
    if _differ(expected.value, found.value, np.inf) or expected.error or found.error:
        return None
    if _differ(expected.arguments, found.arguments, np.inf) or expected.output != found.output:
        return None
    pairs = zip(_numbers(expected), _numbers(found), strict=True)
    return [float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs]


def _numbers(outcome: Outcome) -> list[Any]:
    return [np.asarray(x) for x in _floats((outcome.value, outcome.arguments))]


def _largest(value: Any) -> float:
    finite = [np.abs(x[np.isfinite(x)]) for x in map(np.asarray, _floats(value))]
    return max((float(x.max()) for x in finite if x.size), default=0.0)


def _differ(one: Any, other: Any, rounding: float, depth: int = 0) -> str:
    """Say where two values differ. NumPy's scalars count as Python's numbers of their kind."""
    for kind in _PLAIN_TYPES:
        if isinstance(one, kind) and not isinstance(one, np.ndarray):
            is_same = isinstance(other, kind) and _is_close(one, other, rounding)
            return "" if is_same else f"{one!r} became {other!r}"
    if type(one) is not type(other):
        return f"{one!r:.60} of {type(one).__name__} became {other!r:.60} of {type(other).__name__}"
    if isinstance(one, np.ndarray):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{one.dtype}{one.shape} became {other.dtype}{other.shape}"
        is_same = _is_close(one, other, rounding)
        return "" if is_same else f"{one!r:.90} became {other!r:.90}"
    if isinstance(one, Mapping):
        if list(one) != list(other):
            return f"keys {list(one)} became {list(other)}"
        each = ((k, _differ(one[k], other[k], rounding, depth + 1)) for k in one)
        return _first(f"[{k!r}] {d}" for k, d in each if d)
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return f"{len(one)} items became {len(other)}"
        pairs = enumerate(zip(one, other, strict=True))
        each = ((k, _differ(a, b, rounding, depth + 1)) for k, (a, b) in pairs)
        return _first(f"[{k}] {d}" for k, d in each if d)
    if hasattr(one, "__dict__") and not callable(one) and depth < 8:
        return _differ(vars(one), vars(other), rounding, depth + 1)
    return "" if one == other or callable(one) else f"{one!r:.60} became {other!r:.60}"


def _first(texts: Iterator[str]) -> str:
    return next(texts, "")


def _is_close(one: Any, other: Any, rounding: float) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    finite = np.abs(one[np.isfinite(one)])
    scale = float(finite.max()) if finite.size else 1.0
    close = _CLOSE if np.finfo(one.dtype).bits == _DOUBLE_BITS else 1e-3
    absolute = max(close * 1e-3 * scale, rounding)
    return bool(np.allclose(one, other, rtol=close, atol=absolute, equal_nan=True))


def gradient_outcome(function: Any, calls: Any, expected: list[Outcome]) -> dict[str, Any]:
    """Compare the gradient of the first call that has one with central differences."""
    for (args, kwargs), outcome in zip(calls, expected, strict=True):
        if outcome.error is not None or not _floats(outcome.value):
            continue
        argnums = tuple(k for k, a in enumerate(args) if _floats(a))
        if argnums and all(_is_all_floats(args[k]) for k in argnums):
            return _compare_gradient(function, args, kwargs, argnums)
    return {"status": "none"}


def _compare_gradient(function: Any, args: Any, kwargs: Any, argnums: Any) -> dict[str, Any]:
    def loss(*values: Any) -> Any:
        return _weighed(function(*values, **kwargs))

    rng = np.random.default_rng(1)
    direction, other = (
        tuple(_map(lambda x: rng.normal(size=np.shape(x)) * _unit(x), args[k]) for k in argnums)
        for _ in range(2)
    )
    both = tuple(_map2(lambda a, b: a + b, a, b) for a, b in zip(direction, other, strict=True))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            slopes = [_slope(loss, args, argnums, direction, *ends) for ends in _ENDS]
            parts = [_slope(loss, args, argnums, way, *_ENDS[0]) for way in (other, both)]
        except Exception as error:  # noqa: BLE001
            return {"status": "none", "cause": f"no differences: {error}"}
        if not np.isclose(parts[1] - parts[0], slopes[0], 1e-3, 1e-6):
            return {"status": "none", "cause": "not linear here: no derivative"}
        if not np.isfinite(slopes).all() or not np.allclose(slopes, slopes[0], 1e-3, 1e-6):
            return {"status": "none", "cause": "not smooth here"}
        if _has_kink(loss, args, argnums, direction):
            return {"status": "none", "cause": "a kink"}
        start = time.perf_counter()
        try:
            gradients = wend.grad(loss, argnums=argnums)(*copy.deepcopy(args))
        except Exception as error:  # noqa: BLE001
            status = "refused" if is_refusal(error) else "raw"
            return {"status": status, "cause": f"{type(error).__name__}: {error}"}
        seconds = time.perf_counter() - start
    slope = sum(
        float(np.sum(g * d)) for g, d in zip(_leaves(gradients), _leaves(direction), strict=True)
    )
    scale = max(1.0, abs(slopes[0]))
    if abs(slope - slopes[1]) <= max(_GRADIENT_CLOSE * scale, 5 * abs(slopes[0] - slopes[1])):
        return {"status": "right", "seconds": seconds}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        near = _compare_near(loss, args, argnums, direction, slope, scale)
    return near or {"status": "wrong", "cause": f"{slope} but differences give {slopes}"}


def _has_kink(loss: Any, args: Any, argnums: Any, direction: Any) -> bool:
    """Return whether the slopes of both sides differ as much at a tenth of the step."""
    gaps = []
    for step in (1e-5, 1e-6):
        sides = [_slope(loss, args, argnums, direction, *e) for e in ((-step, 0), (0, step))]
        gaps.append(abs(sides[1] - sides[0]))
    rounding = 16 * _EPSILON * abs(float(loss(*copy.deepcopy(args)))) / 1e-6
    return gaps[1] > max(0.5 * gaps[0], rounding, _GRADIENT_CLOSE)


def _compare_near(
    loss: Any, args: Any, argnums: Any, direction: Any, slope: float, scale: float
) -> dict[str, Any] | None:
    """Compare with differences of smaller steps, which stay on the path of the point itself.

    Steps on either side count if the program runs the same lines there. A slope that rounding may
    hide says nothing. None if the gradient is none of the slopes.
    """
    path, has_neighbour = _lines_run(loss, args, argnums, direction, 0.0), False
    size = abs(float(loss(*copy.deepcopy(args))))
    for step in _SMALLER_STEPS:
        sides = [s for s in (-step, step) if _lines_run(loss, args, argnums, direction, s) == path]
        has_neighbour = has_neighbour or bool(sides)
        rounding = 16 * _EPSILON * size / step
        if not sides or rounding > _MOST_ROUNDING * scale:
            continue
        near = _slope(loss, args, argnums, direction, min(0.0, *sides), max(0.0, *sides))
        if abs(slope - near) <= max(_GRADIENT_CLOSE * scale, rounding):
            return {"status": "right", "cause": f"steps of {step}"}
    return None if has_neighbour else {"status": "none", "cause": "a path of this point alone"}


def _lines_run(loss: Any, args: Any, argnums: Any, direction: Any, step: float) -> int:
    """Return a number that tells which lines of programs a run goes through, in order."""
    lines = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if "site-packages" in frame.f_code.co_filename:
            return None
        lines.append((frame.f_code.co_filename, frame.f_lineno))
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        loss(*_moved(args, argnums, direction, step))
    finally:
        sys.settrace(previous)
    return hash(tuple(lines))


def _slope(loss: Any, args: Any, argnums: Any, direction: Any, low: float, high: float) -> float:
    values = [float(loss(*_moved(args, argnums, direction, step))) for step in (low, high)]
    return (values[1] - values[0]) / (high - low)


def _moved(args: Any, argnums: Any, direction: Any, step: float) -> list[Any]:
    """Return arguments that have moved by a step in a direction."""
    moved = list(copy.deepcopy(args))
    for k, way in zip(argnums, direction, strict=True):
        moved[k] = _map2(lambda x, d: x + step * d, moved[k], way)
    return moved


def _unit(x: Any) -> Any:
    """Return the unit of the steps of each element: its size, if that is tiny."""
    size = np.abs(np.asarray(x, float))
    return np.where((size > 0.0) & (size < _LEAST), size, 1.0)


def _weighed(value: Any) -> Any:
    total = 0.0
    for k, leaf in enumerate(_leaves(value)):  # one that is an int in Python keeps its number
        if not _is_float(leaf):
            continue
        weights = np.cos(np.arange(np.size(leaf)) + k).reshape(np.shape(leaf))
        total = total + np.sum(weights * leaf)
    return total


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [value]


def _floats(value: Any) -> list[Any]:
    return [x for x in _leaves(value) if _is_float(x)]


def _is_float(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return True
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _is_all_floats(value: Any) -> bool:
    return len(_leaves(value)) == len(_floats(value))


def _like(value: Any, items: list[Any]) -> Any:
    """Return a list, tuple or named tuple of the type of another."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _map(function: Any, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return _like(value, [_map(function, x) for x in value])
    if isinstance(value, dict):
        return {key: _map(function, x) for key, x in value.items()}
    return function(value)


def _map_all(function: Any, value: Any) -> Any:
    """Map the floats of a value, and leave the rest."""
    if isinstance(value, (list, tuple)):
        return _like(value, [_map_all(function, x) for x in value])
    if isinstance(value, dict):
        return {k: _map_all(function, x) for k, x in value.items()}
    if isinstance(value, float):
        return float(function(value))
    return function(value) if _is_float(value) else value


def _map2(function: Any, value: Any, other: Any) -> Any:
    if isinstance(value, (list, tuple)):
        pairs = zip(value, other, strict=True)
        return _like(value, [_map2(function, a, b) for a, b in pairs])
    if isinstance(value, dict):
        return {key: _map2(function, x, other[key]) for key, x in value.items()}
    moved = function(value, other)
    return float(moved) if isinstance(value, float) else moved
