"""Calls of Python: prints, host actions, `py_function` and its pullbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from wend.backends.jax.emit.host_calls import call_host
from wend.backends.jax.lowering import Emitter, GraphLowering, Progress
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import HostType, TensorType
from wend.ops import effects, hosting


def _call(
    ctx: GraphLowering,
    node: Node,
    run: Callable[[Sequence[Any]], Sequence[Any]],
    values: Sequence[Any],
) -> Sequence[Any]:
    """Call Python in program order; return its results but tokens.

    The call is not made after a check has failed. An error of its own ends the run like a check.
    """
    specs = [_spec(ctx, node, r.type) for r in node.results if isinstance(r.type, _PASSED)]
    log = ctx.host
    make = log.compute if node.op in _PULLS else log.call
    if node.op not in _PULLS:
        _stop_if_incomplete(ctx)

    def callback(code: Any, *received: Any) -> Sequence[Any]:
        zeros = [np.zeros(s.shape, s.dtype) for s in specs]
        if code:
            return [np.bool_(False), *zeros]
        outcome = make(lambda: run(received))
        return [np.bool_(outcome is None), *(zeros if outcome is None else outcome)]

    flag = jax.ShapeDtypeStruct((), np.bool_)
    arrays = [jnp.asarray(x) for x in (ctx.progress.code, *values)]
    failed, *results = call_host(io_callback, callback, [flag, *specs], arrays, ordered=True)

    def fail(_: Sequence[Any]) -> None:
        assert log.error is not None
        raise log.error

    ctx.check(node, failed, fail)
    ctx.note_host_node(node)
    return results


_PASSED = (TensorType, HostType)
_PULLS = {hosting.py_pull, hosting.py_pull_forward}
_INCOMPLETE = -1


def _stop_if_incomplete(ctx: GraphLowering) -> None:
    """End a run that has lost elements of lists before it shows wrong values to Python."""
    code, words, lengths = ctx.progress
    for number in sorted(ctx.noted):
        is_lost = ~jnp.asarray(ctx.has_room(number, ctx.progress))
        code = jnp.where(is_lost & (code == 0), jnp.int32(_INCOMPLETE), code)
    ctx.progress = Progress(code, words, lengths)


def _spec(ctx: GraphLowering, node: Node, type: Any) -> jax.ShapeDtypeStruct:
    if isinstance(type, HostType):
        return jax.ShapeDtypeStruct((), np.int32)
    shape = ctx.sizes(type.shape)
    if shape is None:
        raise ctx.data_dependent(node)
    return jax.ShapeDtypeStruct(shape, type.dtype)


def _print(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    kernel, attrs = node.op.kernel, node.attrs

    def run(values: Sequence[Any]) -> Sequence[Any]:
        kernel(None, *values, **attrs)  # type: ignore[misc]
        return ()

    return [None, *_call(ctx, node, run, operands[1:])]


def _host_action(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    action, result = node.attrs["action"], node.attrs["result"]

    def run(values: Sequence[Any]) -> Sequence[Any]:
        x = action.run(values)
        return () if result is None else (x,)

    return [None, *_call(ctx, node, run, operands[1:])]


def _py_function(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    function = node.attrs["function"]
    return [None, *_call(ctx, node, function.call, operands[1:])]


def _py_function_forward(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    function, handles = node.attrs["function"], ctx.host

    def run(values: Sequence[Any]) -> Sequence[Any]:
        outputs, handle = function.call_recorded(values)
        handles.handles.append(handle)
        return (*outputs, len(handles.handles) - 1)

    return [None, *_call(ctx, node, run, operands[1:])]


def _py_pull(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    sources, seeded, wrt = (node.attrs[name] for name in ("sources", "seeded", "wrt"))
    log = ctx.host

    def run(values: Sequence[Any]) -> Sequence[Any]:
        handle, *arrays = values
        cotangents: Sequence[Any] = log.handles[int(handle)].pull(seeded, wrt, arrays[sources:])
        return cotangents

    return _call(ctx, node, run, operands)


def _py_pull_forward(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    sources, seeded, wrt = (node.attrs[name] for name in ("sources", "seeded", "wrt"))
    log = ctx.host

    def run(values: Sequence[Any]) -> Sequence[Any]:
        handle, *arrays = values
        pulled = log.handles[int(handle)].pull_recorded(seeded, wrt, arrays[sources:])
        cotangents, recorded = pulled
        log.handles.append(recorded)
        return (*cotangents, len(log.handles) - 1)

    return _call(ctx, node, run, operands)


EMITTERS: dict[Op, Emitter] = {
    effects.print_: _print,
    effects.host_action: _host_action,
    hosting.py_function: _py_function,
    hosting.py_function_forward: _py_function_forward,
    hosting.py_pull: _py_pull,
    hosting.py_pull_forward: _py_pull_forward,
}
