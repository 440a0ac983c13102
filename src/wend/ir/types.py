"""Types of values: tensors with known or symbolic dimensions, lists, maybes, tokens, objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from wend.base.errors import ShapeError
from wend.ir.dtypes import INEXACT, short


@dataclass(frozen=True, slots=True)
class Symbol:
    """A dimension that is only known at run time; equal symbols are equal sizes (D10)."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_fresh(self) -> bool:
        """Whether a shape rule made it to stand for a new unknown; the builder names it."""
        return self.name.startswith("?")


Dim: TypeAlias = int | Symbol
Shape: TypeAlias = tuple[Dim, ...]


def fresh(number: int = 0) -> Symbol:
    """A new unknown dimension in the answer of a shape rule; equal numbers are one unknown."""
    return Symbol(f"?{number}")


@dataclass(frozen=True, slots=True)
class TensorType:
    """An array: its dtype and shape. `shape` None: not even the rank is known."""

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
            raise ShapeError("the rank of this array is not known before it runs; reshape it first")
        return self.shape

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a known number."""
        return self.shape is not None and all(isinstance(dim, int) for dim in self.shape)

    def with_dtype(self, dtype: np.dtype) -> TensorType:
        return TensorType(dtype, self.shape)

    def with_shape(self, shape: Shape | None) -> TensorType:
        return TensorType(self.dtype, shape)


@dataclass(frozen=True, slots=True)
class ListType:
    """An immutable list of values of one type (D11)."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class MaybeType:
    """A value that may be Zero, or absent, at run time (D2)."""

    of: Type

    def __str__(self) -> str:
        return f"maybe<{self.of}>"


@dataclass(frozen=True, slots=True)
class TokenType:
    """Orders effects: who takes a token runs after who gave it (D16)."""

    def __str__(self) -> str:
        return "token"


@dataclass(frozen=True, slots=True)
class HostType:
    """An object of Python's that only host calls read: how one of them is pulled back (D17)."""

    def __str__(self) -> str:
        return "host"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A reference to a Variable that holds values of one type."""

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
    """The sizes as graphs print them: `n0,3`, or `...` where the rank is unknown."""
    return "..." if shape is None else ",".join(map(str, shape))


def is_differentiable(type: Type) -> bool:
    """Whether a value of this type can have a cotangent: floats, and lists of them."""
    match type:
        case TensorType(dtype=dtype):
            return dtype in INEXACT
        case ListType(element=inner) | MaybeType(of=inner):
            return is_differentiable(inner)
    return False


def without_maybe(type: Type) -> Type:
    """The type of the value when it is there."""
    return type.of if isinstance(type, MaybeType) else type


def symbols(type: Type) -> tuple[Symbol, ...]:
    """Every symbolic dimension of a type, in order."""
    while not isinstance(type, TensorType):
        match type:
            case ListType(element=inner) | MaybeType(of=inner) | ResourceType(of=inner):
                type = inner
            case _:
                return ()
    # Asked of every value that is made: most are numbers.
    return tuple([dim for dim in type.shape if isinstance(dim, Symbol)]) if type.shape else ()


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


def accepts(expected: Type, found: Type, bound: dict[Symbol, Dim] | None = None) -> bool:
    """Whether a value of type `found` may be given where `expected` is declared.

    Symbols of `expected` bind to what they meet: a symbol takes any size, but the same size
    each time. `bound` carries those bindings over several values (the params of one region).
    """
    bound = {} if bound is None else bound
    match expected, found:
        case TensorType(), TensorType():
            if expected.dtype != found.dtype:
                return False
            if expected.shape is None:
                return True
            if found.shape is None or len(expected.shape) != len(found.shape):
                return False
            pairs = zip(expected.shape, found.shape, strict=True)
            return all(_accepts_dim(mine, theirs, bound) for mine, theirs in pairs)
        case ListType(element=mine), ListType(element=theirs):
            return accepts(mine, theirs, bound)
        case MaybeType(of=mine), _:
            return accepts(mine, without_maybe(found), bound)
        case ResourceType(of=mine), ResourceType(of=theirs):
            return accepts(mine, theirs, bound)
    return expected == found


def _accepts_dim(mine: Dim, theirs: Dim, bound: dict[Symbol, Dim]) -> bool:
    if isinstance(mine, Symbol):
        return bound.setdefault(mine, theirs) == theirs
    return mine == theirs
