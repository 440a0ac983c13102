"""Addresses of NumPy's Fourier transforms, the inner loops of the ufuncs of `numpy.fft`.

A loop is `void loop(char **args, npy_intp *sizes, npy_intp *steps, void *data)`, where

    args     the input, the factor, the output
    sizes    the number of transforms, of points in the input, of points in the output
    steps    in bytes: between transforms in the input, of factors, in the output; then between
             points in the input, in the output
    data     of the complex transforms: a byte, 1 for the forward one and 0 for the inverse
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Any

import numpy as np

from wend.backends.native.rt.numpy_loops import pointers_of
from wend.backends.native.target.platform import platform
from wend.ir.dtypes import complex_of

_PREFIX = "numpy.fft."
STEMS = ("fft", "rfft_n_even", "rfft_n_odd", "irfft")


def name(stem: str, dtype: np.dtype) -> str:
    """Return the name of the loop of a transform in modules; `dtype` is that of the reals."""
    return f"{_PREFIX}{stem}.{dtype.str[1:]}"


def declaration(stem: str, dtype: np.dtype) -> str:
    """Return the declaration of a loop."""
    return f"void @{name(stem, dtype)}(ptr, ptr, ptr, ptr)"


def is_transform(name: str) -> bool:
    """Return whether a name in a module is that of a loop."""
    return name.startswith(_PREFIX)


def address(name: str) -> int:
    """Return the address of a loop by its name in modules."""
    stem, _, dtype = name.removeprefix(_PREFIX).partition(".")
    return _address(stem, np.dtype(dtype))


def is_available(stem: str, dtype: np.dtype) -> bool:
    """Return whether the loop is where this module looks for it, and works."""
    is_real = dtype in (np.float32, np.float64)
    return platform().is_process and is_real and _address(stem, dtype) != 0


@cache
def _address(stem: str, dtype: np.dtype) -> int:
    try:
        ufunc = getattr(importlib.import_module("numpy.fft._pocketfft_umath"), stem, None)
    except ImportError:  # the module is not public
        return 0
    real, complex = dtype.char, complex_of(dtype).char
    source = real if stem.startswith("rfft") else complex
    type = f"{source}{real}->{real if stem == 'irfft' else complex}"
    address, _ = pointers_of(ufunc, type)
    return address if address and _transforms(address, stem, dtype) else 0


def _transforms(address: int, stem: str, dtype: np.dtype) -> bool:
    """Return whether a loop gives what NumPy's function gives."""
    points = 5 if stem == "rfft_n_odd" else 4
    count = points if stem == "fft" else points // 2 + 1
    x = (np.arange(2 * points) ** 2).astype(dtype).reshape(2, points)
    sample: Any = (
        x if stem.startswith("rfft") else np.sqrt(x[:, :count] + 1j).astype(complex_of(dtype))
    )
    functions: dict[str, Any] = {"fft": np.fft.fft, "irfft": np.fft.irfft}
    reference = functions.get(stem, np.fft.rfft)(sample)
    out = np.zeros_like(reference)
    factor = np.array(1 / points if stem == "irfft" else 1, dtype)
    forward = np.ones(1, np.uint8)
    args = (ctypes.c_void_p * 3)(*(array.ctypes.data for array in (sample, factor, out)))
    sizes = (ctypes.c_ssize_t * 3)(2, sample.shape[1], out.shape[1])
    steps = (ctypes.c_ssize_t * 5)(
        sample.strides[0], 0, out.strides[0], sample.strides[1], out.strides[1]
    )
    loop = ctypes.PYFUNCTYPE(None, *(ctypes.c_void_p,) * 4)(address)
    loop(
        ctypes.addressof(args),
        ctypes.addressof(sizes),
        ctypes.addressof(steps),
        forward.ctypes.data,
    )
    return np.allclose(out, reference, rtol=1e-4, atol=1e-4)  # NumPy's of floats are of doubles
