"""`grad` and `value_and_grad`, with the signatures of `jax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.autodiff.vjp import joint
from wend.base import trees
from wend.base.errors import NotDifferentiableError, explain
from wend.eager.promotion import tensor_type
from wend.function.derivatives.differentiated import (
    DifferentiatedCall,
    check_argnums,
    derived,
    differentiated_part,
)
from wend.function.eager import RecordedRun, as_value
from wend.function.function import Function
from wend.passes.pipeline import CANONICALIZE, run_passes
from wend.runtime.graph_cache import TransformResult, cached_transform
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import LeafType, leaf_type
from wend.trace.recording.recording import Recording, current


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Return a function that returns `fun`'s value and its gradient.

    Args:
        fun: returns a real scalar, or with `has_aux` a pair of that and a pytree.
        argnums: the positional arguments to differentiate with respect to; each a pytree of float
            arrays. Integer leaves in it get None.
        has_aux: whether `fun` returns auxiliary data after its value.

    Returns:
        A function of the same arguments: `(value, gradient)`, or `((value, aux), gradient)`. The
        gradient has the structure of the argument, or is a tuple of those for a tuple of
        argnums.

    Raises:
        NotDifferentiableError: an argument consists of integers, or the value is not a real scalar.

    Example:
        >>> import wend
        >>> wend.value_and_grad(lambda x: x * x)(3.0)
        (np.float64(9.0), np.float64(6.0))
    """
    return _gradient_function(fun, argnums, has_aux, lambda value, gradient: (value, gradient))


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Return a function that returns `fun`'s gradient; see `value_and_grad`.

    Returns:
        A function of the same arguments: the gradient, or `(gradient, aux)`.

    Example:
        >>> import wend
        >>> wend.grad(wend.grad(lambda x: x * x * x))(2.0)
        np.float64(12.0)
    """
    return _gradient_function(
        fun, argnums, has_aux, lambda value, gradient: (gradient, value[1]) if has_aux else gradient
    )


def _gradient_function(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    select: Callable[[Any, Any], Any],
) -> Function:
    """Return a function that returns what `select` makes of `fun`'s value and gradient."""
    check_argnums(fun, "grad", argnums)
    what = f"grad of {getattr(fun, '__name__', 'function')}"

    def record(*args: Any, **kwargs: Any) -> Any:
        call = DifferentiatedCall(what, fun, args, kwargs, argnums, has_aux)
        return select(*_record_grad(call))

    def run(*args: Any, **kwargs: Any) -> Any:
        call = DifferentiatedCall(what, fun, args, kwargs, argnums, has_aux)
        return select(*_run_grad(call))

    return derived(fun, record, "grad", eagerly=run)


def _record_grad(call: DifferentiatedCall) -> tuple[Any, Any]:
    """Record the value and gradient of one call in the current trace."""
    recording = current()
    assert recording is not None
    traced = call.trace()
    seeded = _scalar_result(call, traced.result_tree, traced.result_types)
    canonical, wrt = run_passes(traced.graph, CANONICALIZE), tuple(call.wrt)

    def differentiate() -> TransformResult:
        graph, connected = joint(canonical, wrt, seeded)
        return [graph], connected

    (graph,), connected = cached_transform("joint", canonical, (wrt, seeded), differentiate)
    outputs = traced.call_graph(recording, graph, call.arguments.arrays).results
    results = [recording.wrap(v) for v in outputs[: len(traced.result_types)]]
    cotangents = iter(outputs[len(traced.graph.results) :])
    grads = {
        k: recording.wrap(next(cotangents)) if is_connected else _zeros(recording, call, k)
        for k, is_connected in zip(call.wrt, connected, strict=True)
    }
    return trees.unflatten(traced.result_tree, results), call.unflatten_argnums(grads)


def _run_grad(call: DifferentiatedCall) -> tuple[Any, Any]:
    """Return the value and gradient of one call by running its Python on recorded arrays."""
    run = RecordedRun(call.fun, call.arguments, call.wrt)
    leaves, tree = run.leaves(call.name)
    seed = leaves[_scalar_result(call, tree, [leaf_type(leaf) for leaf in leaves])]
    grads = run.pull_back([(seed, np.ones((), tensor_type(seed).dtype)[()])])
    value = trees.unflatten(tree, [as_value(leaf) for leaf in leaves])
    return value, call.unflatten_argnums(grads)


def _scalar_result(call: DifferentiatedCall, tree: trees.TreeDef, types: Sequence[LeafType]) -> int:
    """Return the index of the result to differentiate, which must be a real scalar."""
    index = differentiated_part(call.what, tree, call.has_aux)
    if not isinstance(index, int):
        raise NotDifferentiableError(
            explain(
                f"{call.what}: it returns a {type(index).__name__}, not a scalar.",
                cure="return one number; has_aux=True lets it return (value, anything).",
            )
        )
    result_type = types[index].type
    if result_type.shape != () or result_type.dtype.kind != "f":
        cures = {
            "c": "take the real part, or the absolute value.",
            "f": "sum it, or use wend.vjp with a cotangent of its shape.",
        }
        cure = "return a float; positions, orders and counts have no derivative."
        raise NotDifferentiableError(
            explain(
                f"{call.what}: it returns {result_type}, not a real scalar.",
                cure=cures.get(result_type.dtype.kind, cure),
            )
        )
    return index


def _zeros(recording: Recording, call: DifferentiatedCall, k: int) -> Tracer:
    """Return the gradient of an input that no path reaches (D3)."""
    return recording.wrap(recording.b.zeros_like(recording.lift(call.arguments.arrays[k])))
