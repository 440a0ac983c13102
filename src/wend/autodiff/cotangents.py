"""What has arrived at each forward value so far. Nothing arrived: ZERO, and no arithmetic."""

from __future__ import annotations

from wend.base.zero import ZERO, Zero
from wend.ir.graph import Value
from wend.ir.types import MaybeType, without_maybe
from wend.ops import maybe
from wend.ops.build import Build

Cotangent = Value | Zero


class Cotangents:
    """Cotangents of forward values, as values of the backward graph."""

    def __init__(self, *, spelled_out: bool = False) -> None:
        """With `spelled_out`, sums of contributions are `autograd_add` nodes, known or not."""
        self._spelled_out = spelled_out
        self._arrived: dict[Value, Value] = {}

    def add(self, b: Build, value: Value, ct: Cotangent) -> None:
        """Add a contribution; Zero adds nothing."""
        if isinstance(ct, Zero):
            return
        ct = _named_alike(b, ct, value)
        before = self._arrived.get(value)
        self._arrived[value] = ct if before is None else self._sum(b, before, ct)

    def _sum(self, b: Build, x: Value, y: Value) -> Value:
        return b.emit(maybe.autograd_add, x, y) if self._spelled_out else b.autograd_add(x, y)

    def put(self, value: Value, ct: Cotangent) -> None:
        """Replace what has arrived."""
        if isinstance(ct, Zero):
            self._arrived.pop(value, None)
        else:
            self._arrived[value] = ct

    def get(self, value: Value) -> Cotangent:
        return self._arrived.get(value, ZERO)

    def take(self, value: Value) -> Cotangent:
        """Return what has arrived, and forget it."""
        return self._arrived.pop(value, ZERO)


def _named_alike(b: Build, ct: Value, value: Value) -> Value:
    """The cotangent with its sizes under the primal's names, so that contributions can be added."""
    wanted = without_maybe(value.type)
    return b.refine(ct, MaybeType(wanted) if isinstance(ct.type, MaybeType) else wanted)


def or_zeros(b: Build, ct: Cotangent, like: Value) -> Value:
    """A cotangent or tangent as an array: zeros where there is none."""
    return b.instantiate(ct, like) if isinstance(ct, Value) else b.zeros_like(like)
