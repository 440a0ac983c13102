"""`np.apply_along_axis`, `apply_over_axes` and `np.vectorize` of functions on traced arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager.dispatch import any_staged
from wend.eager.promotion import as_array, tensor_type
from wend.numpy import creating, shaping, views
from wend.trace.control.scan import map as map_rows

Call = Callable[..., Any]


def apply_along_axis(capture: Callable[[Call], Call]) -> Call:
    """Return `np.apply_along_axis` for functions that `capture` captures."""

    def run(func1d: Call, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
        if not any_staged((arr, *args, *kwargs.values())):
            return np.apply_along_axis(func1d, axis, arr, *args, **kwargs)
        function = capture(func1d)
        moved = shaping.moveaxis(as_array(arr), axis, -1)
        lead, length = shaping.shape(moved)[:-1], shaping.shape(moved)[-1]
        rows = views.reshape(moved, (math.prod(lead), length))
        results = map_rows(lambda row: creating.asarray(function(row, *args, **kwargs)), rows)
        tail = shaping.shape(results)[1:]
        results = views.reshape(results, (*lead, *tail))
        first = axis % (len(lead) + 1)
        sources = range(len(lead), len(lead) + len(tail))
        return shaping.moveaxis(results, [*sources], [first + k for k in range(len(tail))])

    return run


def apply_over_axes(capture: Callable[[Call], Call]) -> Call:
    """Return `np.apply_over_axes` for functions that `capture` captures."""

    def run(func: Call, a: Any, axes: Any) -> Any:
        if not any_staged((a,)):
            return np.apply_over_axes(func, a, axes)
        function, result = capture(func), as_array(a)
        rank = len(shaping.shape(result))
        for axis in [axes] if np.ndim(axes) == 0 else axes:
            axis = axis + rank if axis < 0 else axis
            reduced = function(result, axis)
            if len(shaping.shape(reduced)) != rank:
                reduced = shaping.expand_dims(reduced, axis)
                if len(shaping.shape(reduced)) != rank:
                    text = "function is not returning an array of the correct shape"
                    raise ValueError(text)
            result = reduced
        return result

    return run


def call_vectorized(capture: Callable[[Call], Call], vectorized: Any, /, *args: Any) -> Any:
    """Call what `np.vectorize` returns.

    Raises:
        UnsupportedError: it has a signature, or excludes arguments.
    """
    if not any_staged(args):
        return vectorized(*args)
    if vectorized.signature is not None or vectorized.excluded:
        what = f"np.vectorize with a signature or excluded arguments{at(user_source())}"
        cure = "write a function of one element, or use wend.vmap."
        raise refusal(UnsupportedError(explain(f"{what} is not recorded.", cure=cure)))
    function = capture(vectorized.pyfunc)
    arrays = shaping.broadcast_arrays(*[as_array(arg) for arg in args])
    shape = shaping.shape(arrays[0])
    flat = tuple([views.reshape(array, (math.prod(shape),)) for array in arrays])
    results = map_rows(lambda items: function(*[_as_python(item) for item in items]), flat)
    columns = results if isinstance(results, tuple) else (results,)
    otypes = vectorized.otypes or [None] * len(columns)
    shaped = [_shaped(*pair, shape) for pair in zip(columns, otypes, strict=True)]
    return tuple(shaped) if isinstance(results, tuple) else shaped[0]


def _as_python(item: Any) -> Any:
    """Return an element as NumPy passes it: a Python number."""
    return item.as_python_number() if tensor_type(item).dtype.kind in "bifc" else item


def _shaped(result: Any, otype: Any, shape: Any) -> Any:
    result = views.reshape(result, shape)
    return result if otype is None else shaping.astype(result, np.dtype(otype))
