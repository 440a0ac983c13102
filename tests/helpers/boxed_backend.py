"""A backend whose arrays are no ndarrays: it proves that the seam of D33 is the only way in.

`Boxed` has no `shape`, `dtype` or `flags`, so code that means "an array" and asks for NumPy's
fails. Executables are those of the numpy backend; they take `Boxed` arrays and give `Boxed`
arrays, and refuse an ndarray.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.backends.protocol import Executable
from wend.ir.graph import Graph
from wend.ir.types import TensorType
from wend.runtime.array_boundary import HOST, ArrayBoundary, to_host


class Boxed(NDArrayOperatorsMixin):
    """An array of the boxed backend; arithmetic outside of functions gives NumPy's arrays."""

    __slots__ = ("_array",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if not all(isinstance(x, (Boxed, np.ndarray, np.generic, int, float)) for x in inputs):
            return NotImplemented  # a traced array has a way of its own
        return getattr(ufunc, method)(*(x._array if isinstance(x, Boxed) else x for x in inputs))

    def __float__(self) -> float:
        return float(self._array)

    def __bool__(self) -> bool:
        return bool(self._array)

    def __getitem__(self, key: Any) -> Any:
        return self._array[key]

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"Boxed({self._array!r})"


def _boxed(x: Any) -> Any:
    return Boxed(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


def _unboxed(x: Any) -> Any:
    assert not isinstance(x, (np.ndarray, np.generic)), "an array came in past the boundary"
    return HOST.receive(x._array) if isinstance(x, Boxed) else x


class BoxedArrays(ArrayBoundary):
    array_types = (Boxed,)

    def type_of(self, array: Boxed) -> TensorType:
        return TensorType(array._array.dtype, array._array.shape)

    def receive(self, leaf: Any) -> Boxed:
        return leaf if isinstance(leaf, Boxed) else Boxed(np.asarray(HOST.receive(leaf)))

    def to_host(self, array: Boxed) -> Any:
        return array._array

    def unshare(self, results: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        return [_boxed(x) for x in HOST.unshare([*map(to_host, results)], [*map(to_host, others)])]

    def copy(self, values: Sequence[Any]) -> list[Any]:
        return [Boxed(v._array.copy()) if isinstance(v, Boxed) else v for v in values]

    def is_writeable(self, array: Boxed) -> bool:
        return HOST.is_writeable(array._array)

    def write(self, array: Boxed, value: Any) -> None:
        HOST.write(array._array, value)

    def shares_memory(self, a: Any, b: Any) -> bool:
        return HOST.shares_memory(to_host(a), to_host(b))


class BoxedExecutable:
    """Without any optional capability."""

    def __init__(self, execute: Executable) -> None:
        self._execute = execute

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        return [_boxed(x) for x in self._execute([_unboxed(x) for x in arguments])]


class BoxedBackend:
    name = "boxed"
    boundary: ArrayBoundary = BoxedArrays()

    def compile(self, graph: Graph) -> Executable:
        return BoxedExecutable(NUMPY.compile(graph))


BOXED = BoxedBackend()
