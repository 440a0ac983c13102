"""Complex arrays by their parts: loop nests then compute chains of operations in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.expand.complex_parts import FORMULAS, FUNCTIONS, Formula, power
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.small_arrays import constant_of, is_small
from wend.ir.dtypes import real_of
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import contracting, creating, elementwise, reducing, shaping
from wend.passes.algebra import splat_value


def _is_complex(value: Value) -> bool:
    return value.tensor.dtype.kind == "c"


def _by_parts(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
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


def _bilinear(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Multiply by four products of reals; vectors by one loop."""
    if not _is_complex(node.results[0]):
        return None
    contracted = node.attrs.get("contract", ((), None))
    if not node.results[0].tensor.dims and contracted[0] == contracted[1]:
        product = b.mul(operands[0], b.refine(operands[1], operands[0].type))
        return [b.emit(reducing.reduce_sum, product, axes=contracted[0], keepdims=False)]
    x, y = ((b.real(value), b.imag(value)) for value in operands)

    def times(left: Value, right: Value) -> Any:
        return b.emit(node.op, left, right, **node.attrs)

    first = times(x[0], y[0])  # whose size may be one that only the run knows: that of all

    def alike(left: Value, right: Value) -> Any:
        return b.refine(times(left, right), first.type)

    real = b.sub(first, alike(x[1], y[1]))
    return [b.complex(real, b.add(alike(x[0], y[1]), alike(x[1], y[0])))]


def _elementwise(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Apply an elementwise operation to parts, in arrays; numbers are split where they are used."""
    if not any(map(_is_complex, operands)) or not _is_large(node.results[0]):
        return None
    parts = [_parts_of(b, value) for value in operands]
    shape = parts[0][0].tensor  # whose sizes may have other names than those of the others
    alike = [[b.refine(x, shape.with_dtype(x.tensor.dtype)) for x in pair] for pair in parts]
    results = _FORMULAS[node.op](b, *alike)
    return [b.complex(*results) if _is_complex(node.results[0]) else results[0]]


def _part(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Take the part of a number that was just joined from its parts."""
    joined = operands[0].node
    if joined is None or joined.op is not elementwise.complex:
        return None
    return [joined.operands[0 if node.op is elementwise.real else 1]]


def _parts_of(b: Any, value: Value) -> tuple[Value, ...]:
    """Return the parts of a complex value; a real one is its own part."""
    if not _is_complex(value):
        return (value,)
    if value.node is not None and value.node.op is elementwise.complex:
        return value.node.operands
    return b.real(value), b.imag(value)


def _is_large(value: Value) -> bool:
    """Return whether loops compute a value, not registers."""
    type = value.tensor
    return bool(type.shape) and not is_small(type.with_dtype(real_of(type.dtype)))


def _power(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Raise arrays to a known integer by multiplication, as NumPy does up to 100."""
    x, exponent = operands
    number = _known_number(exponent)
    if not _is_complex(x) or not _is_large(x) or number is None:
        return None
    if number != int(number.real) or not 0 < abs(number) < 100:
        return None
    real, imag = _parts_of(b, x)
    return [b.complex(*power(b, (real, b.refine(imag, real.type)), int(number.real)))]


def _known_number(value: Value) -> complex | None:
    """Return the number that all elements of an array are, None if none is known."""
    if value.node is None or value.node.op is not elementwise.complex:
        return None
    real, imag = map(splat_value, value.node.operands)
    return None if real is None or imag is None else complex(real, imag)


def _broadcast(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Broadcast the parts of a number."""
    x, *sizes = operands
    if not _is_complex(x) or x.tensor.shape != () or not _is_large(node.results[0]):
        return None
    number = constant_of(x)
    parts = _parts_of(b, x) if number is None else map(b.constant, (number.real, number.imag))
    real, imag = (b.emit(node.op, part, *sizes, **node.attrs) for part in parts)
    return [b.complex(real, b.refine(imag, real.type))]


def _cast(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Convert the parts; a real dtype drops the imaginary one, and bools join both."""
    (x,), dtype = operands, node.attrs["dtype"]
    if not _is_complex(x):
        is_by_parts = dtype.kind == "c" and x.tensor.dtype in REGISTERS and _is_large(x)
        return [b.complex(*_cast_parts(b, x, dtype))] if is_by_parts else None
    parts = _parts_of(b, x)
    if dtype.kind == "b":
        return [b.emit(elementwise.bit_or, *(b.cast(part, dtype) for part in parts))]
    if dtype.kind != "c":
        return [b.cast(parts[0], dtype)]
    return [b.complex(*_cast_parts(b, x, dtype))] if _is_large(x) else None


def _cast_parts(b: Any, x: Value, dtype: np.dtype) -> Sequence[Value]:
    real, *imag = (b.cast(part, real_of(dtype)) for part in _parts_of(b, x))
    return real, b.refine(imag[0], real.type) if imag else b.zeros_like(real)


_FORMULAS: Mapping[Op, Formula] = {**FORMULAS, **FUNCTIONS}
RULES: Mapping[Op, Any] = {
    **dict.fromkeys(_FORMULAS.keys() - {elementwise.complex}, _elementwise),
    elementwise.real: _part,
    elementwise.imag: _part,
    **dict.fromkeys(
        (
            *(reducing.reduce_sum, reducing.cumsum, shaping.sum_to, shaping.pad),
            *(creating.from_elements, elementwise.select),
        ),
        _by_parts,
    ),
    shaping.broadcast_to: _broadcast,
    elementwise.pow: _power,
    contracting.dot_general: _bilinear,
    contracting.convolve: _bilinear,
    elementwise.cast: _cast,
}
