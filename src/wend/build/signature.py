"""Signatures as text: `f64[n], f64[n, 3], i64`; equal names are equal sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.function.signature.spec import TensorSpec
from wend.ir.builder import new_symbol
from wend.ir.dtypes import BOOL, short
from wend.ir.types import Symbol, TensorType
from wend.trace.recording.arguments import LeafType

_DTYPES: Mapping[str, np.dtype] = {
    "bool": BOOL,
    **{
        short(np.dtype(name)): np.dtype(name)
        for name in (
            *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
            *("float32", "float64", "complex64", "complex128"),
        )
    },
}
_PART = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(?:,|$)")


class NamedSpec(TensorSpec):
    """A spec whose unknown sizes have names; those of one signature share them."""

    __slots__ = ("_symbols", "dims")

    def __init__(
        self, dims: tuple[int | str, ...], dtype: np.dtype, symbols: dict[str, Symbol]
    ) -> None:
        super().__init__([dim if isinstance(dim, int) else None for dim in dims], dtype)
        self.dims, self._symbols = dims, symbols

    def leaf_type(self) -> LeafType:
        """Return the type to trace with."""
        shape = tuple(
            dim if isinstance(dim, int) else self._symbols.setdefault(dim, new_symbol())
            for dim in self.dims
        )
        return LeafType(TensorType(self.dtype, shape))

    def names(self) -> Mapping[Symbol, str]:
        """Return the names of the sizes."""
        return {symbol: name for name, symbol in self._symbols.items()}


def parse_signature(text: str) -> list[NamedSpec]:
    """Return the specs of a signature.

    Raises:
        TypeMismatchError: the text is no signature.

    Example:
        >>> from wend.build.signature import parse_signature
        >>> parse_signature("f64[n, 3], i64")
        [TensorSpec((None, 3), float64), TensorSpec((), int64)]
    """
    symbols: dict[str, Symbol] = {}
    specs, position = [], 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or match[1] not in _DTYPES:
            remaining = text[position:].strip()
            what = f"{remaining!r} of the signature {text!r} is no type."
            raise TypeMismatchError(
                explain(what, f"dtypes: {', '.join(_DTYPES)}", cure="write f64[n, 3], for example.")
            )
        dims = [dim.strip() for dim in (match[2] or "").split(",") if dim.strip()]
        if not all(dim.isdecimal() or dim.isidentifier() for dim in dims):
            what = f"[{match[2]}] of the signature {text!r} is no shape."
            raise TypeMismatchError(explain(what, cure="write numbers and names, as in [n, 3]."))
        sizes = tuple(int(dim) if dim.isdecimal() else dim for dim in dims)
        specs.append(NamedSpec(sizes, _DTYPES[match[1]], symbols))
        position = match.end()
    return specs
