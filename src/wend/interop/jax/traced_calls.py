"""Calls of functions with `backend="jax"` that JAX is tracing: they are a part of its program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from wend.function.function import Function
from wend.function.signature.signature import unmarked
from wend.interop.bridged import SignatureTraces, StaticLeaf
from wend.interop.jax.as_jax import BRIDGE
from wend.interop.jax.pytrees import Structure, flatten


def call_in_trace(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function of which an argument is traced by JAX."""
    if function.foreign_traces is None:
        function.foreign_traces = SignatureTraces(_BRIDGE, function)
    trace, arrays = function.foreign_traces.find(*function.signature.marked(args, kwargs))
    return trace(arrays)


def _flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a pytree and its structure; static arguments are no arrays."""
    leaves, structure = flatten(tree)
    pairs = zip(leaves, unmarked(leaves), strict=True)
    return [leaf if leaf is value else StaticLeaf(value) for leaf, value in pairs], structure


def _unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    return structure.unflatten([x.value if isinstance(x, StaticLeaf) else x for x in leaves])


_BRIDGE = dataclasses.replace(BRIDGE, name="JAX's trace", flatten=_flatten, unflatten=_unflatten)
