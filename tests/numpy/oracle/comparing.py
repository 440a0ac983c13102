"""Run calls under wend and under NumPy, and say how the outcomes differ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import wend
from wend.base.refusals import is_refusal

# Relative errors per dtype: those of another order of summation, not of another algorithm
_TOLERANCES = {"e": 4e-3, "f": 2e-5, "d": 1e-10, "F": 2e-5, "D": 1e-10}
_COMPUTED_IN = {"?": "e", "b": "e", "B": "e", "h": "f", "H": "f"}  # what functions make of integers

# What is traced. A trace guards what a function reads of globals and cells, not of these: most of
# the time would go into that.
_calls: ContextVar[Sequence[Call]] = ContextVar("calls")


@dataclass(frozen=True)
class Call:
    """A call of an array function.

    Attributes:
        name: what is called, in words.
        run: the call; gets the operands.
        operands: the arrays and numbers that are arguments of the compiled function.
        keywords: what `run` has bound, for messages.
        exact: whether signs of zeros count.
        like: the call to compare with, where that is not `run`.
    """

    name: str
    run: Callable[..., Any]
    operands: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    exact: bool = False
    like: Callable[..., Any] | None = None

    def __str__(self) -> str:
        operands = [
            f"{np.array2string(x, separator=', ')}:{x.dtype}"
            if isinstance(x, np.ndarray)
            else repr(x)
            for x in self.operands
        ]
        keywords = [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"{self.name}({', '.join([*operands, *keywords])})"


def expected(call: Call) -> Any:
    """The outcome in NumPy: a flat list of arrays, or the exception."""
    copies = [x.copy(order="K") if isinstance(x, np.ndarray) else x for x in call.operands]
    try:
        with np.errstate(all="ignore"):
            return _flat((call.like or call.run)(*copies))
    except Exception as error:
        return error


def compiled(calls: Sequence[Call], backend: str) -> list[Any]:
    """The outcomes under wend, from one compiled function where no call raises."""
    reached = 0

    @wend.do_not_capture  # what it changes, it changes when it is traced
    def batch(groups: Any) -> list[Any]:
        nonlocal reached
        results: list[Any] = []
        for reached, call in enumerate(_calls.get()):
            results.append(_flat(call.run(*groups[reached])))
        reached = -1
        return results

    function = wend.function(batch, capture=False, backend=backend, reduce_retracing=False)
    _calls.set(calls)
    try:
        return list(function([call.operands for call in calls]))
    except Exception as error:
        if len(calls) == 1:
            return [error]
    # An error of the trace ends with the call that raises it; one of the run may be of any.
    parts = [calls[:reached], calls[reached : reached + 1], calls[reached + 1 :]]
    if reached < 0:
        middle = len(calls) // 2
        parts = [calls[:middle], calls[middle:]]
    return [outcome for part in parts if part for outcome in compiled(part, backend)]


def difference(call: Call, result: Any, reference: Any) -> str | None:
    """How an outcome differs from NumPy's; None if it does not, "refused: …" if wend says so."""
    if isinstance(result, Exception):
        if isinstance(reference, Exception):
            return _of_errors(result, reference)
        if is_refusal(result) or "To fix it" in str(result):
            return f"refused: {str(result)[:150]}"
        return f"raises {type(result).__name__}: {str(result)[:150]}"
    if isinstance(reference, Exception):
        return f"does not raise {type(reference).__name__}: {str(reference)[:100]}"
    if len(result) != len(reference):
        return f"{len(result)} results, not {len(reference)}"
    differences = [_of_arrays(call, x, y) for x, y in zip(result, reference, strict=True)]
    return next((d for d in differences if d), None)


def _of_errors(error: Exception, reference: Exception) -> str | None:
    # The classes of ufuncs are private.
    family = TypeError if isinstance(reference, TypeError) else type(reference)
    if isinstance(error, family) or is_refusal(error):
        return None
    was, should = (f"{type(e).__name__}: {str(e)[:80]}" for e in (error, reference))
    return f"raises {was}, not {should}"


def _of_arrays(call: Call, x: Any, y: Any) -> str | None:
    a, b = np.asarray(x), np.asarray(y)
    if a.dtype != b.dtype:
        return f"dtype {a.dtype}, not {b.dtype}"
    if a.shape != b.shape:
        return f"shape {a.shape}, not {b.shape}"
    if b.dtype.kind not in "fc":
        return None if np.array_equal(a, b) else f"{a}, not {b}"
    if b.dtype.kind == "c" and not call.exact:  # a complex infinity may have any other part
        a, b = (np.where(np.isfinite(a) | np.isfinite(b), x, 0) for x in (a, b))
    parts = [(a.real, b.real), (a.imag, b.imag)] if b.dtype.kind == "c" else [(a, b)]
    computed = np.dtype(call.keywords.get("dtype") or b.dtype)
    chars = {b.dtype.char, computed.char, *(np.asarray(x).dtype.char for x in call.operands)}
    if "where" in call.keywords:  # and so `out=`, whose dtype is not that of the function
        chars |= {_COMPUTED_IN.get(c, c) for c in chars}
    tolerance, scale = max(_TOLERANCES.get(c, 0) for c in chars), _scale(call, b)
    if not all(_are_close(p, q, tolerance, scale, call.exact) for p, q in parts):
        return f"{a}, not {b}"
    return None


def _scale(call: Call, b: np.ndarray) -> float:
    """The size of numbers whose rounding errors may be in the result."""
    if call.exact:
        return float(np.finfo(b.dtype).tiny) * 4
    arrays = [b, *(np.asarray(x) for x in call.operands if not isinstance(x, str))]
    numbers = [np.abs(x[np.isfinite(x)].astype(complex)) for x in arrays if x.dtype.kind in "fciub"]
    return max((float(n.max()) for n in numbers if n.size), default=0.0)


def _are_close(a: Any, b: Any, tolerance: float, scale: float, signs: bool) -> bool:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if signs:
            same &= np.isnan(a) | (b != 0) | (np.signbit(a) == np.signbit(b))
        wide_a, wide_b = np.asarray(a, np.longdouble), np.asarray(b, np.longdouble)
        gap = np.abs(wide_a - wide_b)
        bound = tolerance * np.maximum(np.abs(wide_b), 0 if signs else scale)
        bound = bound + (scale if signs else 0)
        near = np.isfinite(a) & np.isfinite(b) & (gap <= bound) & ((b != 0) | (not signs))
        return bool(np.all(same | near))


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [x for item in result for x in _flat(item)]
    return [] if result is None else [result]
