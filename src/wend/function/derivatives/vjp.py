"""`vjp`: the value of a function, and a function that pulls cotangents back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import explain
from wend.eager.promotion import tensor_type
from wend.function.derivatives.differentiated import differentiated_part
from wend.function.derivatives.primal_point import PrimalPoint, zeros_like
from wend.function.eager import RecordedRun, as_value, runs_eagerly
from wend.function.function import Function
from wend.function.signature.match_structure import fitted, subtrees
from wend.function.signature.signature import Signature
from wend.ir.types import is_differentiable
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and a function that pulls cotangents back to them.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another.
        *primals: pytrees of arrays.
        has_aux: whether `fun` returns more than what is differentiated.

    Returns:
        `(value, pullback)`, or `(value, pullback, aux)`. `pullback(cotangent)` takes a pytree like
        the value, and gives a tuple with a cotangent for each primal: zeros where nothing
        depends on it, None for integers. It may be called many times.

    Example:
        >>> import wend
        >>> value, pullback = wend.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pullback(1.0)
        (np.float64(3.0), np.float64(2.0))
    """
    if runs_eagerly():
        plain = fun.python_function if isinstance(fun, Function) else fun
        return _EagerPullback(plain, getattr(fun, "__name__", "fun"), primals).start(has_aux)
    point = PrimalPoint("vjp", fun, primals, has_aux)
    forms = point.concrete.compiled.vjp(point.moving, point.seeded)
    value, residuals, aux = point.start(forms.forward)
    pullback = _Pullback(point, forms.backward, forms.connected, residuals)
    return (value, pullback, aux) if has_aux else (value, pullback)


class _Pullback:
    """One run of a forward graph, with what its backward graph needs."""

    def __init__(
        self, point: PrimalPoint, backward: Any, connected: tuple[bool, ...], residuals: list[Any]
    ) -> None:
        self.point, self.backward = point, backward
        self.connected, self.residuals = connected, residuals

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the value back to the primals."""
        point = self.point
        found = iter(point.apply(self.backward, self.residuals, point.seeds(cotangent)))
        arrays = point.primals.arrays
        cts = {
            k: next(found) if is_connected else zeros_like(arrays[k])
            for k, is_connected in zip(point.moving, self.connected, strict=True)
        }
        return point.primals.positional(cts)


class _EagerPullback:
    """What `vjp` gives in eager mode: pulls cotangents back through one recorded run."""

    def __init__(self, fun: Callable[..., Any], name: str, primals: Sequence[Any]) -> None:
        self.arguments = Signature(fun).bind(primals, {})
        types = self.arguments.types
        wrt = [k for k, type in enumerate(types) if is_differentiable(type.type)]
        self.run = RecordedRun(fun, self.arguments, wrt)
        self.name = name

    def start(self, has_aux: bool) -> Any:
        leaves, tree = self.run.leaves(self.name)
        result = self.run.result
        differentiated_part(f"vjp of {self.name}", tree, len(leaves), has_aux)
        self.outputs, self.output_tree = trees.flatten(result[0] if has_aux else result)
        value = trees.unflatten(tree, [as_value(leaf) for leaf in leaves])
        return (value[0], self, value[1]) if has_aux else (value, self)

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the value back to the primals."""
        here = current()
        if here is not None and not here.runs_now():
            what = f"what vjp of {self.name} recorded in eager mode cannot enter {here.role}."
            raise NotImplementedError(
                explain(what, cure="call wend.vjp inside the traced function.")
            )
        what, of = "pullback: the cotangent", "the value"
        leaves = subtrees(what, of, self.output_tree, cotangent)
        places = trees.paths(self.output_tree)
        seeds = [
            (output, fitted(f"{what}{path}", f"{of}{path}", tensor_type(output), leaf))
            for output, leaf, path in zip(self.outputs, leaves, places, strict=True)
            if is_array_leaf(output) and is_differentiable(tensor_type(output))
        ]
        return self.arguments.positional(self.run.pull_back(seeds))
