"""Complex numbers in loop nests: a pair of reals is one LLVM structure, which takes a register.

LLVM replaces such structures by their fields before it vectorizes loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.kinds import PARTS, REGISTERS
from wend.ir.dtypes import real_of
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops

EmitPair: TypeAlias = Callable[..., str]  # (low, node, operands) -> result


def load_pair(low: Lowering, dtype: np.dtype, address: str, access: str) -> str:
    """Emit a load of the parts of a complex number."""
    part = PARTS[dtype]
    parts = [low.w.load(part, at, access) for at in (address, _imag_address(low, part, address))]
    return _pair(low, part, *parts)


def store_pair(low: Lowering, dtype: np.dtype, value: str, address: str, access: str) -> None:
    """Emit a store of the parts of a complex number."""
    part = PARTS[dtype]
    for k, at in enumerate((address, _imag_address(low, part, address))):
        low.w.store(part, _part(low, part, value, k), at, access)


def _imag_address(low: Lowering, part: str, address: str) -> str:
    return low.w.define(f"getelementptr {part}, ptr {address}, i64 1")


def _pair(low: Lowering, part: str, real: str, imag: str) -> str:
    type = f"{{{part}, {part}}}"
    half = low.w.define(f"insertvalue {type} poison, {part} {real}, 0")
    return low.w.define(f"insertvalue {type} {half}, {part} {imag}, 1")


def _part(low: Lowering, part: str, pair: str, k: int) -> str:
    return low.w.define(f"extractvalue {{{part}, {part}}} {pair}, {k}")


def _emit_part(k: int) -> EmitPair:
    """Return the emitter of a part of a complex number."""
    return lambda low, node, x: _part(low, PARTS[node.operands[0].tensor.dtype], x, k)


def _emit_complex(low: Lowering, node: Node, real: str, imag: str) -> str:
    """Emit the complex number that consists of two reals."""
    return _pair(low, PARTS[node.results[0].tensor.dtype], real, imag)


PAIR_ELEMENTS: Mapping[Op, EmitPair] = {
    ops.real: _emit_part(0),
    ops.imag: _emit_part(1),
    ops.complex: _emit_complex,
}


def computes_pairs(node: Node) -> bool:
    """Return whether a node takes arrays of complex numbers apart, or joins their parts."""
    if node.op not in PAIR_ELEMENTS or not node.results[0].tensor.shape:
        return False
    types = [value.tensor for value in (*node.operands, *node.results)]
    return any(type.dtype in PARTS for type in types) and all(
        type.shape is not None and real_of(type.dtype) in REGISTERS for type in types
    )
