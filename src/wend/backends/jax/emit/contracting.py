"""Products of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.emit.indexing import array
from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import contracting


def _dot_general(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, y = (array(v, node, k) for k, v in enumerate(operands))
    contract, batch = node.attrs["contract"], node.attrs["batch"]
    axes = zip(contract[0] + batch[0], contract[1] + batch[1], strict=True)
    if any(x.shape[a] != y.shape[b] for a, b in axes):
        shapes, kernel, attrs = (x.shape, y.shape), node.op.kernel, node.attrs

        def fail(values: Sequence[Any]) -> None:
            kernel(*(np.broadcast_to(np.float64(0), shape) for shape in shapes), **attrs)  # type: ignore[misc]

        ctx.check(node, np.bool_(True), fail)
        sizes = ctx.sizes(node.results[0].tensor.dims)
        if sizes is None:
            raise ctx.data_dependent(node)
        return jnp.zeros(sizes, x.dtype)
    return jax.lax.dot_general(
        x, y, (contract, batch), precision="highest", preferred_element_type=x.dtype
    )


def _convolve(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, y = (array(v, node, k) for k, v in enumerate(operands))
    return jnp.convolve(x, y, precision="highest").astype(x.dtype)


EMITTERS: dict[Op, Emitter] = {
    contracting.dot_general: _dot_general,
    contracting.convolve: _convolve,
}
