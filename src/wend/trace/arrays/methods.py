"""The `ndarray` methods of traced arrays; each calls the function of `wend.numpy`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, recorder
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.numpy.public import STAGED
from wend.trace.arrays.attributes import example_of_value
from wend.trace.arrays.view_transforms import may_copy, view_transform_of

_MAX_LISTED = 256  # elements that `tolist` takes apart
_PYTHON_DTYPES = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "c": np.complex128}


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that is a function of NumPy, with its parameters in their order."""
    run = STAGED[function]

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return run(self, *args, **options)

    method.__name__ = method.__qualname__ = function.__name__
    return method


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
            example_of_value(self).astype(dtype, casting=casting)  # NumPy's error
        del subok
        converted = self._array_as(shaping.astype(self, dtype, copy=copy))
        is_same = converted is self and self.type.dims != ()
        return converted.contiguous_as(order) if is_same else converted

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

    def view_as(self: Any, result: Any) -> Any:
        array = self._array_as(result)
        if array is result:
            return result
        node = array.value.node
        if array.value is self.value:
            array.link_part(self, ...)
        elif node is not None and (transform := view_transform_of(node)) is not None:
            array.link_part(self, transform)
        else:
            array.link_view(self, may_copy=may_copy(node))
        return array

    def read_only_view_as(self: Any, result: Any) -> Any:
        view = result.as_zero_dim() if result.type.shape == () else result
        if result is not self:
            view.relink_view(self)
        view.writeable = False
        return view

    def ravel_as(self: Any, result: Any) -> Any:
        is_contiguous = self.is_contiguous()
        is_vector = result is self or result._part is not None
        if is_contiguous or not is_vector:
            return result
        return self._perhaps_copied(result, is_contiguous)

    def contiguous_as(self: Any, order: str | None) -> Any:
        if order not in ("C", "F"):
            return self
        is_contiguous = self.is_contiguous()
        if order == "F" and self.type.rank != 1:
            is_contiguous = None
        return self if is_contiguous else self._perhaps_copied(self, is_contiguous)

    def _perhaps_copied(self: Any, result: Any, is_contiguous: bool | None) -> Any:
        """Return the elements as an array of their own, or what may be a view: None."""
        array = recorder.get().wrap(result.value)  # type: ignore[union-attr]
        if is_contiguous is None:
            array.link_view(self, may_copy=True)
        return array

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        shape = shape[0] if len(shape) == 1 else shape
        return self.view_as(shaping.reshape(self, shape, order, copy=copy))

    def ravel(self, order: str = "C") -> Any:
        return self.ravel_as(shaping.ravel(self, order))

    def flatten(self, order: str = "C") -> Any:
        return shaping.ravel(self, order).copy()

    def transpose(self, *axes: Any) -> Any:
        perm = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self.view_as(shaping.transpose(self, perm))

    def squeeze(self, axis: Any = None) -> Any:
        squeezed = shaping.squeeze(self, axis)
        return self if squeezed is self else self.view_as(squeezed)

    swapaxes, repeat, diagonal = _method(np.swapaxes), _method(np.repeat), _method(np.diagonal)

    # Python's numbers
    def item(self: Any, *position: Any) -> Any:
        """Return an element as a Python number, by default the only one."""
        if (known := self._known()) is not None:
            return known.item(*position)
        position = position[0] if len(position) == 1 and type(position[0]) is tuple else position
        if len(position) > 1 or (position and self.type.rank == 1):
            return self[position].as_python_number()
        if position:
            return self.reshape(-1)[position[0]].as_python_number()
        if self.type.is_static and math.prod(self.type.dims) != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.reshape(()).as_python_number()

    def tolist(self: Any) -> Any:
        """Return the elements as nested lists of Python numbers.

        Raises:
            ConcreteValueError: only the run knows how many there are, or there are many.
        """
        if (known := self._known()) is not None:
            return known.tolist()
        if self.type.shape == ():
            return self.as_python_number()
        if not self.type.is_static or math.prod(self.type.dims) > _MAX_LISTED:
            raise self._concrete_error(".tolist()", "iterate over it, or keep it as an array.")
        return [row.tolist() for row in self]

    def as_python_number(self: Any) -> Any:
        """Return a scalar as Python's number of its kind: bool, int, float or complex."""
        dtype = self.type.dtype
        if dtype == np.uint64:
            raise self._concrete_error(
                "a Python integer", "convert it first, as it may not fit 64 bits: x.astype(int)."
            )
        return shaping.astype(self, _PYTHON_DTYPES[dtype.kind]).as_weak()

    # Reductions
    sum, prod = _method(np.sum), _method(np.prod)
    mean, var, std = _method(np.mean), _method(np.var), _method(np.std)
    max, min = _method(np.max), _method(np.min)
    any, all = _method(np.any), _method(np.all)
    argmax, argmin = _method(np.argmax), _method(np.argmin)
    trace = _method(np.trace)

    # Orders, running sums
    argsort, argpartition = _method(np.argsort), _method(np.argpartition)
    searchsorted = _method(np.searchsorted)
    cumsum, cumprod = _method(np.cumsum), _method(np.cumprod)

    # Elementwise, products, choices
    clip, round, dot = _method(np.clip), _method(np.round), _method(np.dot)
    take, choose, nonzero = _method(np.take), _method(np.choose), _method(np.nonzero)

    def conj(self) -> Any:
        return self._array_as(ew.conjugate(self)) if self.type.dtype.kind == "c" else self

    conjugate = conj

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        return STAGED[np.compress](condition, self, axis, out)
