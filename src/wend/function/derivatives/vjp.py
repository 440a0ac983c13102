"""`vjp`: the value of a function, and a function that pulls cotangents back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import explain
from wend.eager.promotion import tensor_type
from wend.function.derivatives.differentiated import differentiated_part, refuse_objects
from wend.function.derivatives.primal_point import PrimalPoint, coerced_cotangents, zeros_like
from wend.function.eager import RecordedRun, as_value, runs_eagerly
from wend.function.function import Function
from wend.function.signature.signature import Signature
from wend.ir.types import is_differentiable
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the value of `fun` at `primals`, and a function that pulls cotangents back to them.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another pytree.
        *primals: pytrees of arrays.
        has_aux: whether `fun` returns auxiliary data after the differentiated value.

    Returns:
        `(value, pullback)`, or `(value, pullback, aux)`. `pullback(cotangent)` takes a pytree like
        the value, and returns a tuple with a cotangent for each primal: zeros where the value does
        not depend on it, None for integers. It may be called many times.

    Example:
        >>> import wend
        >>> value, pullback = wend.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pullback(1.0)
        (np.float64(3.0), np.float64(2.0))
    """
    if runs_eagerly():
        python_function = fun.python_function if isinstance(fun, Function) else fun
        return _EagerPullback(
            python_function, getattr(fun, "__name__", "fun"), primals
        ).result_and_pullback(has_aux)
    point = PrimalPoint("vjp", fun, primals, has_aux)
    refuse_objects(point.what, point.primals, range(len(point.primals.leaves)))
    run_apart = current() is None
    pair = point.concrete.compiled.vjp(point.wrt, point.seeded, run_apart=run_apart)
    value, residuals, aux = point.run_forward(pair.forward)
    pullback = _Pullback(point, pair.backward, pair.connected, residuals)
    return (value, pullback, aux) if has_aux else (value, pullback)


class _Pullback:
    """The backward graph of a function, with the residuals of one run."""

    def __init__(
        self, point: PrimalPoint, backward: Any, connected: tuple[bool, ...], residuals: list[Any]
    ) -> None:
        self.point, self.backward = point, backward
        self.connected, self.residuals = connected, residuals

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the value back to the primals."""
        point = self.point
        wrt_cts = iter(
            point.run_linear(self.backward, self.residuals, point.cotangent_leaves(cotangent))
        )
        arrays = point.primals.arrays
        cts = {
            k: next(wrt_cts) if is_connected else zeros_like(arrays[k])
            for k, is_connected in zip(point.wrt, self.connected, strict=True)
        }
        return point.primals.positional(cts)


class _EagerPullback:
    """The pullback of `vjp` in eager mode, through one recorded run."""

    def __init__(self, fun: Callable[..., Any], name: str, primals: Sequence[Any]) -> None:
        self.arguments = Signature(fun).bind(primals, {})
        refuse_objects(f"vjp of {name}", self.arguments, range(len(self.arguments.leaves)))
        wrt = [k for k, type in enumerate(self.arguments.types) if is_differentiable(type.type)]
        self.run = RecordedRun(fun, self.arguments, wrt)
        self.name = name

    def result_and_pullback(self, has_aux: bool) -> Any:
        """Return what `vjp` returns."""
        leaves, tree = self.run.leaves(self.name)
        result = self.run.result
        differentiated_part(f"vjp of {self.name}", tree, has_aux)
        self.outputs, self.output_tree = trees.flatten_deep(
            result[0] if has_aux else result, with_objects=True
        )
        value = trees.unflatten(tree, [as_value(leaf) for leaf in leaves])
        return (value[0], self, value[1]) if has_aux else (value, self)

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the value back to the primals."""
        recording = current()
        if recording is not None and not recording.runs_now():
            what = f"what vjp of {self.name} recorded in eager mode cannot enter {recording.role}."
            raise NotImplementedError(
                explain(what, cure="call wend.vjp inside the traced function.")
            )
        types = [tensor_type(x) if is_array_leaf(x) else None for x in self.outputs]
        cotangents = coerced_cotangents(self.output_tree, types, cotangent)
        seeds = [(self.outputs[k], leaf) for k, leaf in cotangents]
        return self.arguments.positional(self.run.pull_back(seeds))
