"""The types of C for dtypes, and the names that C's functions and parameters may not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class CType(NamedTuple):
    """A type of C.

    Attributes:
        name: its name.
        alignment: of a field of this type, in bytes.
        parts: how many of them are one element: two of a complex number.
    """

    name: str
    alignment: int
    parts: int = 1


C_TYPES: Mapping[np.dtype, CType] = {
    np.dtype(np.bool_): CType("bool", 1),
    **{
        np.dtype(f"{sign}int{bits}"): CType(f"{sign}int{bits}_t", bits // 8)
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    np.dtype(np.float32): CType("float", 4),
    np.dtype(np.float64): CType("double", 8),
    np.dtype(np.complex64): CType("float", 4, 2),
    np.dtype(np.complex128): CType("double", 8, 2),
}
_WORDS = """
    workspace state auto bool break case char class const continue default delete do double else
    enum explicit export extern false float for friend goto if inline int int8_t int16_t int32_t
    int64_t long main mutable namespace new operator private protected public register restrict
    return short signed sizeof static struct switch template this throw true try typedef typename
    uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile while
"""
RESERVED = frozenset(_WORDS.split())
