"""Types of values: tensors with known or symbolic dimensions, lists, maybes, tokens, objects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from wend.base.errors import ShapeError
from wend.base.lazy.dataclass import dataclass
from wend.base.refusals import refusal
from wend.ir.dtypes import INEXACT, short


@dataclass(frozen=True, slots=True)
class Symbol:
    """A dimension that is only known at run time; equal symbols denote equal sizes (D10)."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_fresh(self) -> bool:
        """Whether a shape rule made it for a new unknown, which the builder will name."""
        return self.name.startswith("?")


Dim: TypeAlias = int | Symbol
Shape: TypeAlias = tuple[Dim, ...]


def fresh(number: int = 0) -> Symbol:
    """Return a new unknown dimension for a shape rule's result; equal numbers are one unknown."""
    return Symbol(f"?{number}")


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of an array: dtype and shape. `shape` None: not even the rank is known."""

    dtype: np.dtype
    shape: Shape | None

    def __str__(self) -> str:
        return f"{short(self.dtype)}[{shape_text(self.shape)}]"

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def dims(self) -> Shape:
        """The shape, of a tensor whose rank is known."""
        if self.shape is None:
            raise refusal(
                ShapeError("the rank of this array is not known before it runs; reshape it first")
            )
        return self.shape

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a known number."""
        return self.shape is not None and all(isinstance(dim, int) for dim in self.shape)

    @property
    def nbytes(self) -> int | None:
        """The size of its elements in bytes; None where a dimension is symbolic."""
        sizes = [dim for dim in self.shape or () if isinstance(dim, int)]
        if self.shape is None or len(sizes) < len(self.shape):
            return None
        return math.prod(sizes) * self.dtype.itemsize

    def with_dtype(self, dtype: np.dtype) -> TensorType:
        return TensorType(dtype, self.shape)

    def with_shape(self, shape: Shape | None) -> TensorType:
        return TensorType(self.dtype, shape)


@dataclass(frozen=True, slots=True)
class ListType:
    """The type of an immutable list of values of one type (D11)."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class MaybeType:
    """The type of a value that may be Zero, or absent, at run time (D2)."""

    of: Type

    def __str__(self) -> str:
        return f"maybe<{self.of}>"


@dataclass(frozen=True, slots=True)
class TokenType:
    """The type of tokens, which order effects: a token's user runs after its producer (D16)."""

    def __str__(self) -> str:
        return "token"


@dataclass(frozen=True, slots=True)
class HostType:
    """The type of Python objects that only host calls read: records of host calls (D17)."""

    def __str__(self) -> str:
        return "host"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """The type of a reference to a Variable that holds values of one type."""

    of: TensorType

    def __str__(self) -> str:
        return f"ref<{self.of}>"


Type: TypeAlias = TensorType | ListType | MaybeType | TokenType | HostType | ResourceType

TOKEN = TokenType()
HOST = HostType()


def tensor(dtype: np.dtype | type | str, *shape: Dim) -> TensorType:
    """Shorthand: `tensor("f8", 2, 3)`."""
    return TensorType(np.dtype(dtype), shape)


def shape_text(shape: Shape | None) -> str:
    """Return the sizes as graphs print them: `n0,3`, or `...` where the rank is unknown."""
    return "..." if shape is None else ",".join(map(str, shape))


def shape_as_tuple_text(shape: Shape) -> str:
    """Return the sizes as NumPy's errors print them: `(n0,3)`, `(3,)`."""
    return f"({shape_text(shape)}{',' * (len(shape) == 1)})"


def is_differentiable(type: Type) -> bool:
    """Return whether a value of this type can have a cotangent: floats, and lists of them."""
    match type:
        case TensorType(dtype=dtype):
            return dtype in INEXACT
        case ListType(element=inner) | MaybeType(of=inner):
            return is_differentiable(inner)
    return False


def without_maybe(type: Type) -> Type:
    """Return the type of the value where it is present."""
    return type.of if isinstance(type, MaybeType) else type


def known_dims(type: Type) -> Shape:
    """Return the dimensions of a tensor, or of those that a type holds; none of unknown rank."""
    while not isinstance(type, TensorType):
        match type:
            case ListType(element=inner) | MaybeType(of=inner) | ResourceType(of=inner):
                type = inner
            case _:
                return ()
    return type.shape or ()


def symbols(type: Type) -> tuple[Symbol, ...]:
    """Return the symbolic dimensions of a type, in order."""
    dims = known_dims(type)
    # Called for every new value; most are scalars.
    return tuple([dim for dim in dims if isinstance(dim, Symbol)]) if dims else ()


def substitute(type: Type, dims: Mapping[Symbol, Dim]) -> Type:
    """Replace symbolic dimensions."""
    if not symbols(type):
        return type
    match type:
        case TensorType(dtype=dtype, shape=shape) if shape is not None:
            return TensorType(dtype, tuple(_lookup(dim, dims) for dim in shape))
        case ListType(element=inner):
            return ListType(substitute(inner, dims))
        case MaybeType(of=inner):
            return MaybeType(substitute(inner, dims))
        case ResourceType(of=tensor_type):
            inner_type = substitute(tensor_type, dims)
            assert isinstance(inner_type, TensorType)
            return ResourceType(inner_type)
    return type


def _lookup(dim: Dim, dims: Mapping[Symbol, Dim]) -> Dim:
    return dims.get(dim, dim) if isinstance(dim, Symbol) else dim


def accepts(expected: Type, actual: Type, bound: dict[Symbol, Dim] | None = None) -> bool:
    """Return whether a value of type `actual` may be passed where `expected` is declared.

    Symbols of `expected` bind to the sizes they meet: a symbol takes any size, but the same size
    each time. `bound` carries those bindings over several values (the params of one region).
    """
    bound = {} if bound is None else bound
    match expected, actual:
        case TensorType(), TensorType():
            if expected.dtype != actual.dtype:
                return False
            if expected.shape is None:
                return True
            if actual.shape is None or len(expected.shape) != len(actual.shape):
                return False
            pairs = zip(expected.shape, actual.shape, strict=True)
            return all(
                _accepts_dim(expected_inner, actual_inner, bound)
                for expected_inner, actual_inner in pairs
            )
        case ListType(element=expected_inner), ListType(element=actual_inner):
            return accepts(expected_inner, actual_inner, bound)
        case MaybeType(of=expected_inner), _:
            return accepts(expected_inner, without_maybe(actual), bound)
        case ResourceType(of=expected_inner), ResourceType(of=actual_inner):
            return accepts(expected_inner, actual_inner, bound)
    return expected == actual


def _accepts_dim(expected: Dim, actual: Dim, bound: dict[Symbol, Dim]) -> bool:
    if isinstance(expected, Symbol):
        return bound.setdefault(expected, actual) == actual
    return expected == actual
