"""`config(eager=True)`: functions run as Python at every call, gradients on recorded values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.config import settings
from wend.base.errors import ShapeError, StructureError, TypeMismatchError
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast, is_weak, tensor_type
from wend.function.signature import Arguments, Signature
from wend.ir.graph import Value
from wend.ir.types import TensorType, is_differentiable
from wend.numpy import creating
from wend.trace.arguments import is_array_leaf, leaf_type
from wend.trace.eager_tape import EagerTape
from wend.trace.recording import current
from wend.trace.traced import check_results, owned


def runs_eagerly() -> bool:
    """Whether Python is to run here; inside a trace functions are traced all the same."""
    here = current()
    return settings().eager and (here is None or here.runs_now())


def run_python(name: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Call a function, and return what it returns as a compiled one does."""
    result = fun(*args, **kwargs)
    leaves, tree = trees.flatten(result)
    check_results(name, leaves, trees.paths(tree, "result"))
    found = [as_array(leaf) if isinstance(leaf, Staged) else leaf for leaf in leaves]
    found = [x if isinstance(x, (Staged, np.ndarray)) else np.asarray(x)[()] for x in found]
    found = [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in found]
    return trees.unflatten(tree, owned(found, trees.flatten((list(args), kwargs))[0]))


class Run:
    """One run of a function on recorded arguments.

    Args:
        fun: the Python function.
        arguments: its arguments, taken apart.
        wrt: which of the traced leaves are differentiated.

    Attributes:
        result: what it returned, a pytree of recorded and plain arrays.
    """

    def __init__(self, fun: Callable[..., Any], arguments: Arguments, wrt: Sequence[int]) -> None:
        self.tape = EagerTape(watches_variables=False)
        arrays = arguments.arrays
        self.tape.enter()
        try:
            for k in wrt:
                type = arguments.types[k]
                arrays[k] = self.tape.watch_apart(arrays[k], weak=type.weak)
            self.sources = [arrays[k].value for k in wrt]
            self.result = arguments.call(fun, arrays)
        finally:
            self.tape.leave()

    def leaves(self, name: str) -> tuple[list[Any], trees.TreeDef]:
        """The leaves of the result, which must be arrays."""
        leaves, tree = trees.flatten(self.result)
        check_results(name, leaves, trees.paths(tree, "result"))
        return leaves, tree

    def pull_back(self, seeds: Sequence[tuple[Any, Any]]) -> list[Any | None]:
        """The cotangents of the sources, from pairs of a result and its cotangent."""
        known: list[tuple[Value, Any]] = []
        for leaf, ct in seeds:
            value = self.tape.value_of(leaf)
            if value is not None:
                known.append((value, ct))
        return self.tape.pull_back(known, self.sources)


def as_value(leaf: Any) -> Any:
    """A result as it is returned: recorded where an outer tape follows it, else plain."""
    found = as_array(leaf)
    return found if isinstance(found, Staged) else np.array(found)[()]


def zeros_of(array: Any) -> Any:
    """Zeros like an argument."""
    found = creating.zeros_like(array)
    return found[()] if isinstance(found, np.ndarray) else found


def gradient_now(call: Any) -> tuple[Any, Any]:
    """The value and the gradient of a call, by running its Python function (see `gradients`)."""
    wrt = call._differentiated()
    run = Run(call.fun, call.arguments, wrt)
    leaves, tree = run.leaves(call.name)
    seed = call._check_value(tree, [leaf_type(leaf) for leaf in leaves])
    one = np.ones((), tensor_type(leaves[seed]).dtype)[()]
    found = run.pull_back([(leaves[seed], one)])
    arrays = call.arguments.arrays
    grads = {
        k: zeros_of(arrays[k]) if grad is None else grad for k, grad in zip(wrt, found, strict=True)
    }
    value = trees.unflatten(tree, [as_value(leaf) for leaf in leaves])
    return value, call._structured(grads)


class EagerPullback:
    """What `vjp` gives in eager mode: pulls cotangents back through one recorded run."""

    def __init__(self, fun: Callable[..., Any], name: str, primals: Sequence[Any]) -> None:
        self.arguments = Signature(fun).bind(primals, {})
        types = self.arguments.types
        self.wrt = [k for k, type in enumerate(types) if is_differentiable(type.type)]
        self.run = Run(fun, self.arguments, self.wrt)
        self.name = name

    def start(self, has_aux: bool) -> Any:
        leaves, tree = self.run.leaves(self.name)
        result = self.run.result
        if has_aux and (not isinstance(result, tuple) or len(result) != 2):
            raise StructureError("vjp: has_aux=True takes a function that returns (value, aux)")
        self.outputs, self.output_tree = trees.flatten(result[0] if has_aux else result)
        value = trees.unflatten(tree, [as_value(leaf) for leaf in leaves])
        return (value[0], self, value[1]) if has_aux else (value, self)

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the value back to the primals."""
        leaves, tree = trees.flatten(cotangent)
        if tree != self.output_tree:
            raise StructureError(
                f"pullback: the cotangent is {trees.described(cotangent)}, the value is "
                f"{trees.described(trees.unflatten(self.output_tree, self.outputs))}"
            )
        seeds = [
            (output, _seed(as_array(leaf), tensor_type(output)))
            for output, leaf in zip(self.outputs, leaves, strict=True)
            if is_array_leaf(output) and is_differentiable(tensor_type(output))
        ]
        found = self.run.pull_back(seeds)
        filled: list[Any] = [None] * len(self.arguments.leaves)
        for k, ct in zip(self.wrt, found, strict=True):
            place = self.arguments.places[k]
            filled[place] = zeros_of(self.arguments.leaves[place]) if ct is None else ct
        args, _ = trees.unflatten(self.arguments.treedef, filled)
        return tuple(args)


def _seed(leaf: Any, wanted: TensorType) -> Any:
    if is_weak(leaf):
        leaf = cast(leaf, wanted.dtype)
    found = tensor_type(leaf)
    if found.dtype != wanted.dtype:
        raise TypeMismatchError(f"pullback: the cotangent is {found}, the value is {wanted}")
    if found.shape != wanted.shape:
        raise ShapeError(f"pullback: the cotangent is {found}, the value is {wanted}")
    return leaf
