"""`checkpoint`: functions that a backward pass recomputes instead of keeping residuals."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.capture.convert import capture
from wend.function.host.check_pure import refuse_effects, without_effects
from wend.function.signature.signature import Signature
from wend.trace.recording.recording import Recording, current
from wend.trace.trace_function import trace_function


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: Any = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Return a function like `fun` that keeps no residuals for the backward pass.

    The backward pass runs it again, from its arguments and closure. That trades time for memory: a
    loop whose body is checkpointed records only the carry of each trip. It never changes a result.
    Called with plain arrays it is just `fun`.

    Args:
        fun: the function; it must not have effects, since those would be repeated. What it asserts
            is checked in the forward pass.
        prevent_cse: accepted as in JAX; no pass of wend ever merges the two runs.
        policy: which residuals to keep after all; not built yet.
        static_argnums: arguments, by position, that stay Python values.

    Raises:
        NotDifferentiableError: it prints, calls Python, or assigns to a variable.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.grad(wend.checkpoint(lambda x: wnp.exp(wnp.sin(x))))(0.0)
        np.float64(1.0)
    """
    if not callable(fun):
        raise TypeError(f"checkpoint takes a function, not {fun!r}")
    if policy is not None:
        raise NotImplementedError("checkpoint(policy=…) is not built yet")
    argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    signature = Signature(fun, argnums)

    @functools.wraps(fun, updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        outer = current()
        if outer is None:
            return fun(*args, **kwargs)
        return _record_call(fun, signature, args, kwargs, outer)

    return checkpointed


def _record_call(
    fun: Callable[..., Any],
    signature: Signature,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    outer: Recording,
) -> Any:
    """Record a call that is recomputed in the backward pass."""
    name = str(getattr(fun, "__name__", "function"))
    where = f"checkpoint of {name}{at(user_source())}"
    arguments = signature.bind(args, kwargs)
    names = [f"argument {path}" for path in arguments.names()]
    with without_effects():
        traced = trace_function(capture(fun), arguments.types, arguments.call, name, names)
    refuse_effects(
        traced,
        where,
        "it would happen again in the backward pass",
        "do it outside of the checkpointed function.",
    )
    if traced.written:
        cure = "change a copy of it: x = x.copy()."
        what = f"{where}: argument {arguments.names()[traced.written[0]]} is changed in place."
        raise TypeMismatchError(explain(what, cure=cure))
    outer.notes.update(dict.fromkeys(traced.notes))
    traced.prepare_call(outer)
    operands = [outer.lift(x) for x in arguments.arrays]
    operands += [outer.world()] if traced.has_world else []
    operands += [outer.lift(x) for x in traced.bindings]
    graph, contents = traced.with_writes_of(outer, traced.graph, arguments.arrays)
    node = outer.b.call(graph, [*operands, *contents], recompute=True)
    if traced.has_world:
        outer.set_world(node.results[-1])
    results = [
        outer.wrap(value, weak=type.weak)
        for value, type in zip(node.results, traced.result_types, strict=False)
    ]
    return trees.unflatten(traced.result_tree, results)
