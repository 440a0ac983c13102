"""The `ndarray` methods that change traced arrays."""

from __future__ import annotations

from typing import Any

from numpy.exceptions import AxisError

from wend.base import refusals
from wend.base.errors import explain
from wend.base.source import at, user_source
from wend.numpy import changing, orders, reducing
from wend.numpy.operands import check_single, put_rank


def dtype_error(array: Any) -> TypeError:
    """Return the refusal of an assignment to `x.dtype`."""
    text = f"the dtype of {array!r} cannot be set in place{at(user_source())}."
    return refusals.refusal(TypeError(explain(text, cure="make another: x = x.view(dtype).")))


class InPlaceMethods:
    """The `ndarray` methods that change the array."""

    __slots__ = ()

    def sort(
        self: Any,
        axis: int = -1,
        kind: Any = None,
        order: None = None,
        *,
        stable: bool | None = None,
    ) -> None:
        """Sort in place, always stably, like `ndarray.sort`."""
        if not self.ndim:
            raise AxisError(axis, 0)
        result = reducing.sort(self, axis, kind, order, stable=stable)
        self.check_writeable("sort array")
        self.replace(result)

    def partition(self: Any, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """Partition in place, like `ndarray.partition`; the array is sorted fully."""
        self.check_writeable("partition array")
        self.replace(orders.partition(self, kth, axis, kind))

    def fill(self: Any, value: Any) -> None:
        """Assign a value to all elements, like `ndarray.fill`."""
        if put_rank(value):
            check_single(value, self.dtype)
        self[...] = value

    def put(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
        """Assign to elements of the flattened array, like `ndarray.put`."""
        changing.put(self, indices, values, mode)

    def resize(self: Any, *new_shape: Any, refcheck: bool = True) -> None:
        """Raise an error: a traced array keeps its size."""
        raise refusals.refusal(
            TypeError(
                explain(
                    f"{self!r} cannot change its size in place{at(user_source())}.",
                    cure="make another: x[:n] is shorter; np.resize(x, shape) repeats the "
                    "elements, and np.pad(x, (0, n)) adds zeros.",
                )
            )
        )
