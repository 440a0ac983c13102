"""`TensorSpec`: the dtype and shape of an argument, in place of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.ir.builder import new_symbol
from wend.ir.types import Shape, TensorType
from wend.trace.recording.arguments import LeafType


class TensorSpec:
    """The dtype and shape of an array; a size of None is known only at run time.

    Args:
        shape: the sizes, each an int or None; None instead of a sequence means any rank.
        dtype: anything that NumPy accepts as a dtype.
        name: a name for messages and graphs.

    Example:
        >>> import wend
        >>> wend.TensorSpec([None, 3], "float64")
        TensorSpec((None, 3), float64)
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(
        self,
        shape: Sequence[int | None] | None = (),
        dtype: Any = np.float64,
        name: str | None = None,
    ) -> None:
        self.shape = None if shape is None else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.name = name

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec({self.shape}, {self.dtype}{name})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def leaf_type(self) -> LeafType:
        """Return the type to trace with; every None becomes a new symbolic size."""
        if self.shape is None:
            return LeafType(TensorType(self.dtype, None))
        dims = tuple(new_symbol() if dim is None else dim for dim in self.shape)
        return LeafType(TensorType(self.dtype, dims))

    def accepts(self, type: LeafType) -> bool:
        """Return whether an argument of this type fits; Python scalars are cast."""
        actual = type.type
        if not self._accepts_shape(actual.shape):
            return False
        example = type.type.dtype.type(0).item() if type.weak else actual.dtype
        if type.weak:
            return bool(np.result_type(self.dtype, example) == self.dtype)
        return bool(actual.dtype == self.dtype)

    def _accepts_shape(self, shape: Shape | None) -> bool:
        if self.shape is None:
            return True
        if shape is None or len(shape) != len(self.shape):
            return False
        return all(expected in (None, dim) for expected, dim in zip(self.shape, shape, strict=True))
