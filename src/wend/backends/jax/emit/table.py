"""Emits one node: while lowering if its operands are known, by JAX, or by a call of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.emit import (
    checking,
    contracting,
    elementwise,
    hosting,
    indexing,
    linalg,
    lists,
    maybes,
    parts,
    random,
    reducing,
    shaping,
)
from wend.backends.jax.emit.host_calls import call_host
from wend.backends.jax.emit.stacked import emit_of_stacked
from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.backends.jax.values import Maybe, Stacked, is_static
from wend.base.errors import UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.source import at
from wend.ir.graph import Node
from wend.ir.op import Effect, Op
from wend.ir.types import HOST, TensorType, tensor
from wend.ops import creating
from wend.ops.lists import list_push
from wend.ops.spilling import spill

_FAMILIES = (
    checking,
    contracting,
    elementwise,
    hosting,
    indexing,
    linalg,
    lists,
    maybes,
    parts,
    random,
    reducing,
    shaping,
)
EMITTERS: dict[Op, Emitter] = {
    op: emitter for family in _FAMILIES for op, emitter in family.EMITTERS.items()
}
_BY_KERNEL = {**elementwise.BY_KERNEL, **reducing.BY_KERNEL}
# Operations that take lists as arrays whose first size only the run knows
_TAKES_STACKED = {*shaping.SIZING, spill}
_FOLDED = 256  # elements; what is known and larger is computed by the program


def emit(
    ctx: GraphLowering, node: Node, operands: Sequence[Any], *, is_checked_later: bool = False
) -> Sequence[Any]:
    """Emit a node without regions; return its results."""
    if node.op is creating.constant:
        return [node.attrs["value"][()]]
    folded = _folded(node, operands)
    if folded is not None:
        return folded
    if node.op is list_push:
        return [lists.push(ctx, node, operands, is_checked_later=is_checked_later)]
    emitter = EMITTERS.get(node.op)
    if not _is_left_to_numpy(node):
        result = emit_of_stacked(ctx, node, operands)
        if result is not None:
            return [result]
    if emitter is None or _is_left_to_numpy(node):
        return _call_kernel(ctx, node, operands)
    if node.op not in _TAKES_STACKED:
        pairs = zip(operands, node.operands, strict=True)
        operands = [
            shaping.sized(ctx, node, x, value.tensor.dims) if isinstance(x, Stacked) else x
            for x, value in pairs
        ]
    results = emitter(ctx, node, operands)
    return results if isinstance(results, (tuple, list)) else [results]


def _is_left_to_numpy(node: Node) -> bool:
    kinds = _BY_KERNEL.get(node.op, "")
    return bool(kinds) and node.operands[0].tensor.dtype.kind in kinds


def _folded(node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """Return the results of a node of known operands, if it computes without failing."""
    if not all(is_static(x) for x in operands) or node.op.effect is not Effect.NONE:
        return None
    is_tensor = all(isinstance(result.type, TensorType) for result in node.results)
    if not is_tensor or node.op.kernel is None or not operands:
        return None
    try:
        with np.errstate(all="ignore"):
            results = node.op.kernel(*operands, **node.attrs)
    except Exception:  # noqa: BLE001 - the run raises it, if it gets here
        return None
    results = results if isinstance(results, tuple) else (results,)
    if any(np.size(x) > _FOLDED for x in results):
        return None
    return [np.asarray(x, r.tensor.dtype)[()] for x, r in zip(results, node.results, strict=True)]


def _call_kernel(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """Call the NumPy kernel of a node from the program.

    Raises:
        UnsupportedError: it has operands or results that are no arrays of known shapes.
    """
    if any(x.type == HOST for x in (*node.operands, *node.results)):
        raise unsupported(node)
    arrays = [x for x in operands if not isinstance(x, (Maybe, Stacked)) and hasattr(x, "dtype")]
    if len(arrays) < len(operands) or node.op.effect is not Effect.NONE:
        raise unsupported(node)
    types = [tensor(np.dtype(x.dtype), *np.shape(x)) for x in arrays]
    inferred = node.op.infer(*types, **node.attrs)
    inferred = inferred if isinstance(inferred, tuple) else (inferred,)
    specs = []
    for type, result in zip(inferred, node.results, strict=True):
        shape = ctx.sizes(type.shape) if type.is_static else ctx.sizes(result.tensor.shape)
        if shape is None:
            raise ctx.data_dependent(node)
        specs.append(jax.ShapeDtypeStruct(shape, type.dtype))
    ctx.note_host_node(node)

    def run(*values: Any) -> Sequence[Any]:
        with np.errstate(all="ignore"):
            results = node.op.kernel(*values, **node.attrs)  # type: ignore[misc]
        return results if isinstance(results, tuple) else (results,)

    passed = [*map(jnp.asarray, arrays)]
    return call_host(jax.pure_callback, run, specs, passed, vmap_method="sequential")


def unsupported(node: Node) -> Exception:
    """Return the refusal of an operation that programs of XLA cannot contain."""
    return refusal(
        UnsupportedError(
            explain(
                f'backend="jax" does not run {node.op.name}{at(node.source)}.',
                cure='run this function with backend="native".',
            )
        )
    )
