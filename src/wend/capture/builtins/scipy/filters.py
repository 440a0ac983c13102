"""Filters of `scipy.ndimage`, in functions of wend."""

from __future__ import annotations

import itertools
from typing import Any

from wend.eager.promotion import tensor_type
from wend.numpy import shaping

_PAD_MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def takes_filter(
    input: Any, weights: Any, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> bool:
    """Return whether `correlate` and `convolve` take their arguments: floats of known shapes."""
    array, kernel = tensor_type(input), tensor_type(weights)
    are_floats = array.dtype.kind == "f" and kernel.dtype.kind in "fiu"
    are_known = array.is_static and kernel.is_static and array.rank == kernel.rank
    return are_floats and are_known and mode in _PAD_MODES and origin == 0


def correlate(input: Any, weights: Any, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """Return the correlation of an array with weights around each element."""
    lengths = shaping.shape(weights)
    return _correlated(input, weights, mode, cval, [length // 2 for length in lengths])


def convolve(input: Any, weights: Any, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """Return the convolution of an array with weights around each element."""
    lengths = shaping.shape(weights)
    before = [(length - 1) // 2 for length in lengths]
    return _correlated(input, shaping.flip(weights), mode, cval, before)


def _correlated(input: Any, weights: Any, mode: str, cval: Any, before: list[int]) -> Any:
    shape, lengths = shaping.shape(input), shaping.shape(weights)
    widths = [(b, length - 1 - b) for b, length in zip(before, lengths, strict=True)]
    options = {"constant_values": cval} if _PAD_MODES[mode] == "constant" else {}
    padded = shaping.pad(input, widths, _PAD_MODES[mode], **options)
    total: Any = 0.0
    for position in itertools.product(*map(range, lengths)):
        part = tuple(slice(k, k + size) for k, size in zip(position, shape, strict=True))
        total = total + weights[position] * padded[part]
    return shaping.astype(total, tensor_type(input).dtype)
