"""Accumulated cotangents of forward values; ZERO, without arithmetic, where none has arrived."""

from __future__ import annotations

from wend.base.zero import ZERO, Zero
from wend.ir.graph import Value
from wend.ir.types import MaybeType, without_maybe
from wend.ops import maybe
from wend.ops.build import Build

Cotangent = Value | Zero


class Cotangents:
    """The accumulated cotangents of forward values, as values of the backward graph."""

    def __init__(self, *, spelled_out: bool = False) -> None:
        """Create an empty map; with `spelled_out`, every sum is an `autograd_add` node."""
        self._spelled_out = spelled_out
        self._arrived: dict[Value, Value] = {}

    def add(self, b: Build, value: Value, ct: Cotangent) -> None:
        """Add a contribution; Zero adds nothing."""
        if isinstance(ct, Zero):
            return
        ct = _refine_like_primal(b, ct, value)
        accumulated = self._arrived.get(value)
        self._arrived[value] = ct if accumulated is None else self._sum(b, accumulated, ct)

    def _sum(self, b: Build, x: Value, y: Value) -> Value:
        return b.emit(maybe.autograd_add, x, y) if self._spelled_out else b.autograd_add(x, y)

    def set(self, value: Value, ct: Cotangent) -> None:
        """Replace the accumulated cotangent."""
        if isinstance(ct, Zero):
            self._arrived.pop(value, None)
        else:
            self._arrived[value] = ct

    def get(self, value: Value) -> Cotangent:
        return self._arrived.get(value, ZERO)

    def take(self, value: Value) -> Cotangent:
        """Remove and return the accumulated cotangent."""
        return self._arrived.pop(value, ZERO)


def _refine_like_primal(b: Build, ct: Value, value: Value) -> Value:
    """Return the cotangent under the primal's dimension symbols, so that sums type-check."""
    primal_type = without_maybe(value.type)
    return b.refine(ct, MaybeType(primal_type) if isinstance(ct.type, MaybeType) else primal_type)


def instantiate_or_zeros(b: Build, ct: Cotangent, like: Value) -> Value:
    """Return a cotangent or tangent as an array: zeros for Zero."""
    return b.instantiate(ct, like) if isinstance(ct, Value) else b.zeros_like(like)
