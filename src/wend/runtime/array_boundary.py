"""How arrays cross between Python and a backend (D33).

A backend has its own arrays (D27): `numpy` and `native` those of NumPy, another one perhaps arrays
on a device. Its boundary knows which Python objects they are, converts arguments, and decides who
owns results. Code above the backends asks a boundary where it means "an array", not `np.ndarray`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.ir.types import TensorType


class ArrayBoundary(ABC):
    """The arrays of one kind of backend.

    Attributes:
        array_types: the classes of its arrays; subclasses are not included.
        tracer_types: the classes of what stands for them while their system traces a call.
        sharding_types: the classes of what says where the parts of one lie, on several devices.
        cure_for_read_only: what to do if a function changes one that is not writeable.
    """

    array_types: tuple[type, ...] = ()
    tracer_types: tuple[type, ...] = ()
    sharding_types: tuple[type, ...] = ()
    cure_for_read_only = "pass a copy: x.astype(x.dtype.newbyteorder('='))."

    @abstractmethod
    def type_of(self, array: Any) -> TensorType:
        """Return dtype and shape."""

    @abstractmethod
    def receive(self, leaf: Any) -> Any:
        """Return an array leaf of a call, or a number, as executables of the backend take it."""

    @abstractmethod
    def to_host(self, array: Any) -> Any:
        """Return an array as NumPy's, without a copy where that is possible."""

    @abstractmethod
    def unshare(self, results: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Return results that the caller may write to without changing `others` or one another."""

    @abstractmethod
    def copy(self, values: Sequence[Any]) -> list[Any]:
        """Return the values with every array copied, so that writes elsewhere do not reach them."""

    @abstractmethod
    def is_writeable(self, array: Any) -> bool:
        """Return whether a function may change the array in place."""

    @abstractmethod
    def write(self, array: Any, value: Any) -> None:
        """Replace the contents of an array by those of an array of any boundary."""

    @abstractmethod
    def shares_memory(self, a: Any, b: Any) -> bool:
        """Return whether a change of one array of this boundary may change the other."""

    def overlaps_itself(self, array: Any) -> bool:
        """Return whether a change of one element of an array may change another."""
        return False


class HostArrays(ArrayBoundary):
    """NumPy's arrays and scalars, in the memory of the process."""

    array_types = (np.ndarray, np.generic)

    def type_of(self, array: Any) -> TensorType:
        return TensorType(array.dtype, array.shape)

    def receive(self, leaf: Any) -> Any:
        """Return an array, or a NumPy scalar in place of a 0-d one.

        Of a subclass only the numbers: its operators are its own.
        """
        if isinstance(leaf, np.ndarray):
            array = leaf if type(leaf) is np.ndarray else np.asarray(leaf)
            return array if array.ndim else array[()]
        boundary = foreign_boundary(leaf)
        return np.asarray(leaf if boundary is None else boundary.to_host(leaf))[()]

    def to_host(self, array: Any) -> Any:
        return array

    def unshare(self, results: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        referenced = {id(other) for other in others}
        owned = []
        for result in results:
            if isinstance(result, np.ndarray) and result.ndim:
                flags = result.flags
                is_own = flags.owndata and flags.writeable and id(result) not in referenced
                result = result if is_own else np.array(result)
                referenced.add(id(result))
            owned.append(result)
        return owned

    def copy(self, values: Sequence[Any]) -> list[Any]:
        return [np.array(v) if isinstance(v, np.ndarray) and v.ndim else v for v in values]

    def is_writeable(self, array: Any) -> bool:
        return bool(array.flags.writeable)

    def write(self, array: Any, value: Any) -> None:
        array[...] = to_host(value)

    def shares_memory(self, a: Any, b: Any) -> bool:
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            return False
        try:
            shares: Any = np.shares_memory  # its stubs know only some values of `max_work`
            return bool(shares(a, b, max_work=1000))
        except np.exceptions.TooHardError:
            return True

    def overlaps_itself(self, array: Any) -> bool:
        if not isinstance(array, np.ndarray) or array.flags.forc or not array.flags.writeable:
            return False
        axes = zip(map(abs, array.strides), array.shape, strict=True)
        extent = array.itemsize  # of the axes with smaller strides
        for stride, size in sorted((stride, size) for stride, size in axes if size > 1):
            if stride < extent:
                return True
            extent += stride * (size - 1)
        return False


HOST = HostArrays()
_foreign: dict[type, ArrayBoundary] = {}


def register_boundary(boundary: ArrayBoundary) -> None:
    """Accept the arrays of a boundary as arguments of traced functions."""
    _foreign.update(dict.fromkeys(boundary.array_types, boundary))


def foreign_boundaries() -> Mapping[type, ArrayBoundary]:
    """Return the boundaries of the classes of arrays that are not NumPy's."""
    return _foreign


def foreign_boundary(x: object) -> ArrayBoundary | None:
    """Return the boundary of an array that is not NumPy's; None of anything else."""
    return _foreign.get(type(x))


def boundary_of(array: object) -> ArrayBoundary:
    """Return the boundary that an array belongs to."""
    return foreign_boundary(array) or HOST


def is_array(x: object) -> bool:
    """Return whether this is an array or an array scalar of some boundary."""
    return isinstance(x, (np.ndarray, np.generic)) or type(x) in _foreign


# Subclasses whose operators and methods are those of arrays
_PLAIN_CLASSES = (np.ndarray, np.memmap)


def check_no_subclass(array: Any) -> None:
    """Refuse an array of a class whose operators may be its own, as those of `np.matrix` are.

    Raises:
        TypeMismatchError: it is of such a class.
    """
    kind = type(array)
    is_plain = kind in _PLAIN_CLASSES or kind.__module__.startswith("wend.")
    if is_plain or not isinstance(array, np.ndarray):
        return
    if isinstance(array, np.ma.MaskedArray):  # looked up here, since naming `np.ma` imports it
        cure = "pass x.filled(0.0) and np.ma.getmaskarray(x), as two arrays."
        raise TypeMismatchError(explain("masked arrays are not traced.", cure=cure))
    raise TypeMismatchError(
        explain(
            f"an array of class {kind.__module__}.{kind.__qualname__} is not traced: its operators "
            "and methods may be its own.",
            cure="pass its numbers: np.asarray(x).",
        )
    )


def to_host(x: Any) -> Any:
    """Return an array of any boundary as NumPy's; anything else as it is."""
    boundary = foreign_boundary(x)
    return x if boundary is None else boundary.to_host(x)
