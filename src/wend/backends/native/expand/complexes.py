"""Complex numbers by their parts, where an operation has an emitter for reals only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import contracting, creating, elementwise, reducing, shaping


def _is_complex(value: Value) -> bool:
    return value.tensor.dtype.kind == "c"


def by_parts(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Apply an operation that moves or adds numbers to the real and the imaginary parts."""
    if not _is_complex(node.results[0]):
        return None
    halves = []
    for part, name in ((b.real, "real"), (b.imag, "imag")):
        attrs: dict[str, Any] = dict(node.attrs)
        if "value" in attrs:  # what fills the result, a number of any kind
            attrs["value"] = getattr(complex(attrs["value"]), name)
        halves.append(
            b.emit(node.op, *(part(x) if _is_complex(x) else x for x in operands), **attrs)
        )
    return [b.complex(halves[0], b.refine(halves[1], halves[0].type))]


def bilinear(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Multiply by four products of reals."""
    if not _is_complex(node.results[0]):
        return None
    x, y = ((b.real(value), b.imag(value)) for value in operands)

    def times(left: Value, right: Value) -> Any:
        return b.emit(node.op, left, right, **node.attrs)

    first = times(x[0], y[0])  # whose size may be one that only the run knows: that of all

    def alike(left: Value, right: Value) -> Any:
        return b.refine(times(left, right), first.type)

    real = b.sub(first, alike(x[1], y[1]))
    return [b.complex(real, b.add(alike(x[0], y[1]), alike(x[1], y[0])))]


def cast(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Drop the imaginary part; what is true has a part that is not 0."""
    (x,), dtype = operands, node.attrs["dtype"]
    if _is_complex(x) and dtype.kind not in "cb":
        return [b.cast(b.real(x), dtype)]
    if _is_complex(x) and dtype.kind == "b":
        return [b.emit(elementwise.bit_or, b.cast(b.real(x), dtype), b.cast(b.imag(x), dtype))]
    return None


RULES: Mapping[Op, Any] = {
    **dict.fromkeys(
        (
            *(reducing.reduce_sum, reducing.cumsum, shaping.sum_to, shaping.pad),
            *(creating.from_elements, elementwise.select),
        ),
        by_parts,
    ),
    contracting.dot_general: bilinear,
    contracting.convolve: bilinear,
    elementwise.cast: cast,
}
