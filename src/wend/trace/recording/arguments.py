"""Leaf types: which Python values are traced, and as what type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.refusals import refusal
from wend.eager.dispatch import Staged
from wend.eager.promotion import PYTHON_SCALARS, is_weak, tensor_type
from wend.ir.dtypes import is_supported
from wend.ir.types import ListType, TensorType
from wend.runtime.array_boundary import check_no_subclass, foreign_boundary
from wend.trace.arrays.concrete_array import ConcreteTracedArray


@dataclass(repr=False, frozen=True, slots=True)
class LeafType:
    """The type that a leaf of a pytree is traced with.

    Attributes:
        type: dtype and shape.
        weak: whether it is a Python scalar (D4).
        variable: for a `Variable`, its index among the variables that are passed.
        zero_dim: whether it is a 0-d array, no scalar of NumPy; None: in some runs only (D47).
        writeable: of a local array, whether it can be written to; None: in some runs only.
    """

    type: TensorType
    weak: bool = False
    variable: int | None = None
    zero_dim: bool | None = False
    writeable: bool | None = True

    def __repr__(self) -> str:
        if self.variable is not None:
            return f"Variable {self.type}"
        kind = " (weak)" if self.weak else " (0-d array)" if self.zero_dim else ""
        return f"{self.type}{kind}"


def is_array_leaf(x: Any) -> bool:
    """Return whether a leaf is traced; all other leaves are part of the cache key (D18)."""
    if isinstance(x, (np.ndarray, np.generic)):
        return is_supported(x.dtype)
    if isinstance(x, Staged) or type(x) in PYTHON_SCALARS:
        return True
    boundary = foreign_boundary(x)
    return boundary is not None and is_supported(boundary.type_of(x).dtype)


def to_native_byte_order(leaf: Any) -> Any:
    """Return an array in native byte order; a copy is read-only, since the caller does not see it.

    Raises:
        TypeMismatchError: graphs do not support its dtype, or it has a mask.
    """
    if not isinstance(leaf, np.ndarray):
        boundary = foreign_boundary(leaf)
        if boundary is not None and not is_supported(boundary.type_of(leaf).dtype):
            raise _not_traced(boundary.type_of(leaf).dtype)
        return leaf
    check_no_subclass(leaf)
    if is_supported(leaf.dtype):
        return leaf
    native_dtype = leaf.dtype.newbyteorder("=")
    if not is_supported(native_dtype):
        raise _not_traced(leaf.dtype)
    copy = leaf.astype(native_dtype)
    copy.flags.writeable = False
    return copy


def _not_traced(dtype: np.dtype) -> Exception:
    """Return the refusal of an array whose dtype graphs do not support."""
    is_number_of_another_library = dtype.kind == "V" and dtype.names is None  # as bfloat16 is
    return TypeMismatchError(
        explain(
            f"arrays of dtype {dtype} are not traced.",
            cure="pass x.astype(np.float32)."
            if is_number_of_another_library
            else "use numbers or bools; make strings and objects static arguments.",
        )
    )


# Classes of numbers whose values may become part of the key of a trace (D37)
INTEGERS = frozenset(
    {int, bool, np.bool, *[np.dtype(code).type for code in np.typecodes["AllInteger"]]}
)


def is_int64(x: int) -> bool:
    """Return whether a Python integer fits 64 bits."""
    return -(2**63) <= x < 2**63


def leaf_type(x: Any) -> LeafType:
    """Return the type of an array leaf, or of a traced list.

    Raises:
        OverflowError: a Python integer does not fit int64.
    """
    if type(x) is int and not is_int64(x):
        raise refusal(
            OverflowError(
                explain(
                    f"the Python integer {x} does not fit int64.",
                    cure="pass it as a float, or make its argument static: static_argnames.",
                )
            )
        )
    list_type = getattr(getattr(x, "value", None), "type", None)
    if isinstance(x, Staged) and isinstance(list_type, ListType):
        return LeafType(list_type)  # type: ignore[arg-type]
    return LeafType(tensor_type(x), is_weak(x), zero_dim=is_zero_dim(x))


def leaf_type_with_flags(x: Any) -> LeafType:
    """Return the type of a leaf that a branch or a trip of a loop leaves to what follows."""
    if isinstance(x, Staged):
        return replace(leaf_type(x), writeable=x.writeable)
    is_local = isinstance(x, ConcreteTracedArray)
    return replace(leaf_type(x), writeable=not is_local or x.flags.writeable)


def promotion_example(type: LeafType) -> Any:
    """Return an object that promotes like a leaf of this type."""
    if type.weak:
        return {"b": False, "i": 0, "f": 0.0, "c": 0j}[type.type.dtype.kind]
    return type.type.dtype.type(0)


def is_zero_dim(x: Any) -> bool | None:
    """Return whether an array is a 0-d array and no scalar; None: in some runs only (D47)."""
    return x.zero_dim if isinstance(x, Staged) else isinstance(x, np.ndarray) and not x.ndim


def common_value(options: Iterable[bool | None]) -> bool | None:
    """Return what is common to several runs: None where they differ."""
    distinct = {*options}
    return distinct.pop() if len(distinct) == 1 else None
