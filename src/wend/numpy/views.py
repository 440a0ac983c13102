"""Functions whose result NumPy gives as a view; those of `shaping` give numbers for 0-d arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.numpy.public import implements


@implements(np.reshape)
def reshape(x: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """Give a new shape to an array without changing its data; see `numpy.reshape`.

    Traced arrays are read in the orders C and F.
    """
    return _view(x, shaping.reshape(x, shape, order, copy=copy))


@implements(np.broadcast_to)
def broadcast_to(x: Any, shape: Any) -> Any:
    """Broadcast an array to a new shape, as a read-only view; see `numpy.broadcast_to`."""
    return read_only_view(x, shaping.broadcast_to(x, shape))


@implements(np.squeeze)
def squeeze(x: Any, axis: Any = None) -> Any:
    """Remove axes of size 1 from an array; see `numpy.squeeze`."""
    return _view(x, shaping.squeeze(x, axis))


@implements(np.ravel)
def ravel(x: Any, order: str = "C") -> Any:
    """Return a flattened array; see `numpy.ravel`."""
    flat = shaping.ravel(x, order)
    return x.ravel_as(flat) if isinstance(x, Staged) and not x.weak else flat


@implements(np.imag)
def imag(x: Any) -> Any:
    """Return the imaginary part, which is read-only of a real array; see `numpy.imag`."""
    return x.imag if hasattr(x, "imag") else ew.imag(x)


def read_only_view(x: Any, result: Any) -> Any:
    """Return elements of an array as a view that cannot be written to."""
    if not isinstance(result, Staged):
        return result
    whole = x if isinstance(x, Staged) and not x.weak else result
    return whole.read().read_only_view_as(result)


def _view(x: Any, result: Any) -> Any:
    if isinstance(x, Staged) and not x.weak:
        return x.view_as(result)
    return shaping.as_array_of(result)
