"""`jacfwd`, `jacrev` and `hessian`, with the signatures of `jax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.autodiff.jacobian import jacobian_by_columns, jacobian_by_rows
from wend.base import trees
from wend.base.errors import NotDifferentiableError, explain
from wend.function.derivatives.differentiated import (
    DifferentiatedCall,
    check_argnums,
    derived,
    differentiated_part,
    is_number,
)
from wend.function.function import Function
from wend.passes.pipeline import CANONICALIZE, run_passes
from wend.runtime.graph_cache import cached_transform
from wend.trace.recording.recording import current
from wend.trace.traced import Traced


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Return a function that returns `fun`'s Jacobian, column by column in forward mode.

    The function runs together with all columns at once, as by `vmap`, or else with one column in
    each trip of a loop. Nothing is recorded. Forward mode suits functions of few numbers.

    Args:
        fun: returns a pytree of floats, or with `has_aux` a pair of that and another pytree.
        argnums: the positional arguments to differentiate with respect to; each a pytree of real
            floats. Integer leaves in it get None.
        has_aux: whether `fun` returns auxiliary data after the differentiated value.

    Returns:
        A function of the same arguments: the Jacobian, or `(Jacobian, aux)`. It is the pytree of
        `fun`'s result with the pytree of the argument (a tuple of those for a tuple of argnums)
        in place of each array; an array has the shape of the result's followed by the
        argument's, and the result's dtype.

    Raises:
        NotDifferentiableError: an argument has integers or complex numbers, or a result has
            integers.

    Example:
        >>> import numpy as np, wend
        >>> wend.jacfwd(lambda x: x * x)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    return _jacobian("jacfwd", fun, argnums, has_aux)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Return a function that returns `fun`'s Jacobian, row by row in reverse mode.

    The forward pass runs once, the backward pass for all rows at once, as by `vmap`, or else for
    one row in each trip of a loop. Reverse mode suits functions that return few numbers. Arguments,
    results and errors are those of `jacfwd`, except that an array has the argument's dtype,
    arguments may be complex, and results must be real.

    Example:
        >>> import numpy as np, wend, wend.numpy as wnp
        >>> wend.jacrev(lambda x: wnp.sum(x * x))(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    return _jacobian("jacrev", fun, argnums, has_aux)


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Return a function that returns `fun`'s Hessian: `jacfwd` of `jacrev`.

    Returns:
        A function of the same arguments: the Hessian, or `(Hessian, aux)`. If `fun` returns a
        scalar, the Hessian is an array with the shape of the argument twice.

    Raises:
        NotDifferentiableError: arguments or results are not real floats.

    Example:
        >>> import numpy as np, wend, wend.numpy as wnp
        >>> wend.hessian(lambda x: wnp.prod(x))(np.array([1.0, 2.0]))
        array([[0., 1.],
               [1., 0.]])
    """
    of_gradient = _jacobian("jacrev", fun, argnums, has_aux, "hessian")
    return _jacobian("jacfwd", of_gradient, argnums, has_aux, "hessian", of=fun)


_BUILDERS = {"jacfwd": jacobian_by_columns, "jacrev": jacobian_by_rows}


def _jacobian(
    mode: str,
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    name: str | None = None,
    of: Callable[..., Any] | None = None,
) -> Function:
    fun_name = str(getattr(of or fun, "__name__", "function"))
    what = f"{name or mode} of {fun_name}"

    check_argnums(fun, name or mode, argnums)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        recording = current()
        assert recording is not None
        call = DifferentiatedCall(what, fun, args, kwargs, argnums, has_aux)
        if mode == "jacfwd":
            _check_real(call)
        traced = call.trace()
        count = len(traced.result_types)
        parts, tree = trees.flatten_deep(
            differentiated_part(what, traced.result_tree, has_aux), with_objects=True
        )
        outputs = [part for part in parts if is_number(part, count)]
        _check_results(what, traced, outputs, "fc" if mode == "jacfwd" else "f")
        canonical = run_passes(traced.graph, CANONICALIZE)
        options = tuple(call.wrt), tuple(outputs)
        (graph,), _ = cached_transform(
            mode, canonical, options, lambda: ([_BUILDERS[mode](canonical, *options)], None)
        )
        results = [
            recording.wrap(value)
            for value in traced.call_graph(recording, graph, call.arguments.arrays).results
        ]
        blocks = iter(results[len(traced.graph.results) :])
        rows = [
            call.unflatten_argnums({k: next(blocks) for k in call.wrt})
            if is_number(part, count)
            else None
            for part in parts
        ]
        matrix = trees.unflatten(tree, rows)
        if not has_aux:
            return matrix
        value = trees.unflatten(traced.result_tree, results[: len(traced.result_types)])
        return matrix, value[1]

    return derived(fun, jacobian, name or mode, fun_name)


def _check_real(call: DifferentiatedCall) -> None:
    for name, type in call.wrt_types():
        if type.dtype.kind == "c":
            cure = "use wend.jacrev, or give the real and the imaginary part as arguments."
            what = f"{call.what}: argument {name} is {type}, which is complex."
            raise NotDifferentiableError(explain(what, cure=cure))


def _check_results(what: str, traced: Traced, outputs: Sequence[int], kinds: str) -> None:
    for k, path in zip(outputs, _result_paths(traced), strict=False):
        type = traced.result_types[k].type
        if type.dtype.kind in kinds:
            continue
        cures = {"c": "return the real and the imaginary part, or use wend.jacfwd."}
        cure = cures.get(
            type.dtype.kind, "return floats; has_aux=True lets it return (value, anything)."
        )
        raise NotDifferentiableError(
            explain(f"{what}: {path} is {type}, which has no derivative here.", cure=cure)
        )


def _result_paths(traced: Traced) -> list[str]:
    return trees.paths(traced.result_tree, "result")
