"""The `ndarray` methods of traced arrays; each calls the function of `wend.numpy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.refusals import refusal
from wend.eager.dispatch import Staged, recorder
from wend.numpy import (
    calculus,
    contracting,
    indexing,
    matrices,
    numbers,
    rearranging,
    reducing,
    searching,
    selecting,
    shaping,
)
from wend.numpy import elementwise as ew


def _check_no_out(out: Any) -> None:
    if out is not None:
        raise refusal(TypeError("out= of a method of a traced array: use the result"))


class Methods(Staged):
    """The `ndarray` methods that do not change the array."""

    __slots__ = ()

    # Other types and shapes
    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        if not np.can_cast(self.type.dtype, dtype, casting):  # type: ignore[arg-type]
            raise TypeError(f"cannot cast {self!r} to {np.dtype(dtype)} by the rule {casting!r}")
        del subok
        del order
        return self._array_as(shaping.astype(self, dtype, copy=copy))

    def copy(self, order: str = "C") -> Any:
        del order
        recording: Any = recorder.get()
        if recording is None:
            raise self.leaked()
        copied = recording.wrap(recording.lift(self), weak=self.weak)
        copied.zero_dim = self.zero_dim
        return copied

    def _array_as(self, result: Any) -> Any:
        """Return a result of a method that gives arrays of arrays, and scalars of scalars."""
        is_number = self.type.shape == () and self.zero_dim is False
        if is_number or not isinstance(result, Staged) or result.type.shape != ():
            return result
        array: Any = result.as_zero_dim()  # type: ignore[attr-defined]
        array.zero_dim = True if self.type.shape != () else self.zero_dim
        return array

    def _view_as(self, result: Any) -> Any:
        """Return a result of a method that gives a view; a 0-d one is not written through."""
        array = self._array_as(result)
        if array is not result:
            array.link_view(self)
        return array

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        shape = shape[0] if len(shape) == 1 else shape
        return self._view_as(shaping.reshape(self, shape, order, copy=copy))

    def ravel(self, order: str = "C") -> Any:
        return shaping.reshape(self, (-1,), order)

    def flatten(self, order: str = "C") -> Any:
        return self.ravel(order).copy()

    def transpose(self, *axes: Any) -> Any:
        perm = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self._view_as(shaping.transpose(self, perm))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return shaping.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        return self._view_as(shaping.squeeze(self, axis))

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        return rearranging.repeat(self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return matrices.diagonal(self, offset, axis1, axis2)

    # Reductions
    def sum(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Any:
        _check_no_out(out)
        return reducing.sum(self, axis, dtype, keepdims=keepdims)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Any:
        _check_no_out(out)
        return reducing.prod(self, axis, dtype, keepdims=keepdims)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Any:
        _check_no_out(out)
        return reducing.mean(self, axis, dtype, keepdims=keepdims)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:
        _check_no_out(out)
        return reducing.var(self, axis, dtype, ddof=ddof, keepdims=keepdims)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:
        _check_no_out(out)
        return reducing.std(self, axis, dtype, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        _check_no_out(out)
        return reducing.max(self, axis, keepdims=keepdims)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        _check_no_out(out)
        return reducing.min(self, axis, keepdims=keepdims)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        _check_no_out(out)
        return reducing.any(self, axis, keepdims=keepdims)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        _check_no_out(out)
        return reducing.all(self, axis, keepdims=keepdims)

    def argmax(self, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        _check_no_out(out)
        return reducing.argmax(self, axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        _check_no_out(out)
        return reducing.argmin(self, axis, keepdims=keepdims)

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: Any = None,
        out: None = None,
    ) -> Any:
        _check_no_out(out)
        return matrices.trace(self, offset, axis1, axis2, dtype)

    # Orders, running sums
    def argsort(
        self, axis: Any = -1, kind: Any = None, order: None = None, *, stable: bool | None = None
    ) -> Any:
        return reducing.argsort(self, axis, kind, order, stable=stable)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        return searching.searchsorted(self, v, side, sorter)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        _check_no_out(out)
        return reducing.cumsum(self, axis, dtype)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        _check_no_out(out)
        return calculus.cumprod(self, axis, dtype)

    # Elementwise, products, choices
    def clip(self, min: Any = None, max: Any = None, out: None = None) -> Any:
        _check_no_out(out)
        return ew.clip(self, min, max)

    def round(self, decimals: int = 0, out: None = None) -> Any:
        _check_no_out(out)
        return numbers.round(self, decimals)

    def conj(self) -> Any:
        return self._array_as(ew.conjugate(self)) if self.type.dtype.kind == "c" else self

    conjugate = conj

    def dot(self, other: Any) -> Any:
        return contracting.dot(self, other)

    def take(self, indices: Any, axis: Any = None, out: None = None, mode: str = "raise") -> Any:
        _check_no_out(out)
        return indexing.take(self, indices, axis, mode=mode)

    def compress(self, condition: Any, axis: int | None = None, out: None = None) -> Any:
        _check_no_out(out)
        return selecting.compress(condition, self, axis)

    def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Any:
        _check_no_out(out)
        return selecting.choose(self, choices, mode)

    def nonzero(self) -> Any:
        return indexing.nonzero(self)
