"""`grad` and `value_and_grad`; signatures as in `jax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.autodiff.vjp import joint
from wend.base import trees
from wend.base.errors import NotDifferentiableError, explain
from wend.eager.promotion import tensor_type
from wend.function.derivatives.differentiated import (
    Differentiated,
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
    """A function that returns `fun`'s value and its gradient.

    Args:
        fun: returns a real scalar, or with `has_aux` a pair of that and a pytree.
        argnums: which positional arguments to differentiate with respect to; each a pytree of
            float arrays. Integer leaves in it get None.
        has_aux: whether `fun` returns more than its value.

    Returns:
        A function of the same arguments: `(value, gradient)`, or `((value, aux), gradient)`. The
        gradient has the structure of the argument, or is a tuple of those for a tuple of
        argnums.

    Raises:
        NotDifferentiableError: an argument of integers, or a value that is no real scalar.

    Example:
        >>> import wend
        >>> wend.value_and_grad(lambda x: x * x)(3.0)
        (np.float64(9.0), np.float64(6.0))
    """
    check_argnums(fun, "grad", argnums)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        return _record(fun, args, kwargs, argnums, has_aux)

    def eagerly(*args: Any, **kwargs: Any) -> Any:
        return _run(fun, args, kwargs, argnums, has_aux)

    return derived(fun, value_and_gradient, "grad", eagerly=eagerly)


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """A function that returns `fun`'s gradient; see `value_and_grad`.

    Returns:
        A function of the same arguments: the gradient, or `(gradient, aux)`.

    Example:
        >>> import wend
        >>> wend.grad(wend.grad(lambda x: x * x * x))(2.0)
        np.float64(12.0)
    """
    check_argnums(fun, "grad", argnums)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = _record(fun, args, kwargs, argnums, has_aux)
        return (found, value[1]) if has_aux else found

    def eagerly(*args: Any, **kwargs: Any) -> Any:
        value, found = _run(fun, args, kwargs, argnums, has_aux)
        return (found, value[1]) if has_aux else found

    return derived(fun, gradient, "grad", eagerly=eagerly)


def _record(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
) -> tuple[Any, Any]:
    """Value and gradient of one call, recorded into the trace that is under way."""
    recording = current()
    assert recording is not None
    what = f"grad of {getattr(fun, '__name__', 'function')}"
    call = Differentiated(what, fun, args, kwargs, argnums, has_aux)
    traced = call.trace()
    seed = _scalar(what, traced.result_tree, traced.result_types, has_aux)
    tidy, moving = run_passes(traced.graph, CANONICALIZE), tuple(call.moving)

    def differentiate() -> TransformResult:
        graph, connected = joint(tidy, moving, seed)
        return [graph], connected

    (graph,), connected = cached_transform("joint", tidy, (moving, seed), differentiate)
    node = traced.call_graph(recording, graph, call.arguments.arrays).results
    results = [recording.wrap(v) for v in node[: len(traced.result_types)]]
    cotangents = iter(node[len(traced.graph.results) :])
    grads = {
        k: recording.wrap(next(cotangents)) if found else _zeros(recording, call, k)
        for k, found in zip(call.moving, connected, strict=True)
    }
    return trees.unflatten(traced.result_tree, results), call.structured(grads)


def _run(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
) -> tuple[Any, Any]:
    """Value and gradient of one call, by running its Python on recorded arrays."""
    what = f"grad of {getattr(fun, '__name__', 'function')}"
    call = Differentiated(what, fun, args, kwargs, argnums, has_aux)
    run = RecordedRun(call.fun, call.arguments, call.moving)
    leaves, tree = run.leaves(call.name)
    seed = leaves[_scalar(what, tree, [leaf_type(leaf) for leaf in leaves], has_aux)]
    one = np.ones((), tensor_type(seed).dtype)[()]
    grads = run.pull_back([(seed, one)])
    value = trees.unflatten(tree, [as_value(leaf) for leaf in leaves])
    return value, call.structured(grads)


def _scalar(what: str, tree: trees.TreeDef, types: Sequence[LeafType], has_aux: bool) -> int:
    """Which result is to be differentiated.

    Raises:
        NotDifferentiableError: it is no real scalar.
    """
    wanted = differentiated_part(what, tree, len(types), has_aux)
    if not isinstance(wanted, int):
        raise NotDifferentiableError(
            explain(
                f"{what}: it returns a {type(wanted).__name__}, not a scalar.",
                cure="return one number; has_aux=True lets it return (value, anything).",
            )
        )
    found = types[wanted].type
    if found.shape != () or found.dtype.kind != "f":
        cures = {
            "c": "take the real part, or the absolute value.",
            "f": "sum it, or use wend.vjp with a cotangent of its shape.",
        }
        cure = "return a float; positions, orders and counts have no derivative."
        raise NotDifferentiableError(
            explain(
                f"{what}: it returns {found}, not a real scalar.",
                cure=cures.get(found.dtype.kind, cure),
            )
        )
    return wanted


def _zeros(recording: Recording, call: Differentiated, k: int) -> Tracer:
    value = recording.lift(call.arguments.arrays[k])
    return recording.wrap(recording.b.zeros_like(value))
