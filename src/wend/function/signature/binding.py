"""Binds the arguments of calls, cast to an `input_signature` if there is one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import StructureError, TypeMismatchError, explain, listed
from wend.eager.dispatch import Staged, read
from wend.function.signature.signature import Arguments, Signature
from wend.function.signature.spec import TensorSpec
from wend.trace.recording.arguments import LeafType, leaf_type


class Binding:
    """How calls of one function are bound.

    `declared` is its `input_signature`, without `self` for a method.
    """

    def __init__(
        self, name: str, signature: Signature, declared: tuple[Any, ...] | None = None
    ) -> None:
        self.name, self.signature, self.declared = name, signature, declared
        if declared is not None:
            self._check_declared(declared)

    def _check_declared(self, declared: tuple[Any, ...]) -> None:
        """Check that an `input_signature` has a `TensorSpec` for each required argument."""
        specs, tree = trees.flatten_deep(declared)
        for spec, path in zip(specs, trees.paths(tree, "input_signature"), strict=True):
            if not isinstance(spec, TensorSpec):
                what = f"{self.name}: {path} is {spec!r:.60}, not a TensorSpec."
                cure = "give a wend.TensorSpec(shape, dtype); a variable is found without one."
                raise TypeError(explain(what, cure=cure))
        max_count = self.signature.max_positional()
        if max_count is not None and len(declared) > max_count:
            problem = f"its input_signature is for {len(declared)} arguments"
            cure = "leave out the last ones."
            raise TypeError(explain(f"{self.name}: {problem}, it takes {max_count}.", cure=cure))
        missing = self.signature.required_after(len(declared))
        if missing:
            what = f"{self.name}: its input_signature has nothing for {listed(missing)}."
            cure = "give a wend.TensorSpec for each, or let them have defaults."
            raise TypeError(explain(what, cure=cure))

    def bind(
        self, args: Sequence[Any], kwargs: dict[str, Any], specialized: Collection[str] = ()
    ) -> Arguments:
        """Flatten the arguments of a call."""
        if self.declared is not None:
            args, kwargs = self.coerce(args, kwargs)
        return self.signature.bind(args, kwargs, specialized)

    def with_declared_types(self, arguments: Arguments) -> Arguments:
        """Return the arguments to trace with, which have the declared unknown sizes."""
        if self.declared is None:
            return arguments
        self_args = arguments.leaves[:1] if self.signature.is_method else ()
        return self.signature.bind((*self_args, *self.declared), {})

    def coerce(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Cast arguments to the input signature.

        Raises:
            TypeMismatchError: one of them does not fit; it is named.
            StructureError: the keys of a dict are in another order.
        """
        assert self.declared is not None
        if self.signature.inspected is not None:
            bound = self.signature.bound(args, kwargs)
            args, kwargs = bound.args, bound.kwargs
        self_args = tuple(args[:1]) if self.signature.is_method else ()
        args = args[len(self_args) :]
        if len(args) != len(self.declared) or kwargs:
            counts = listed([f"{len(args)} positional", *map(repr, kwargs)])
            problem = f"its input_signature is for {len(self.declared)} arguments, given {counts}"
            raise TypeError(f"{self.name}: {problem}")
        specs, spec_tree = trees.flatten_deep(self.declared)
        reordered = trees.first_reordered(self.declared, tuple(args), "args")
        if reordered is not None:
            cure = "pass the dict in the order of the signature."
            raise StructureError(explain(f"{self.name}: {reordered}.", cure=cure))
        leaves = trees.flatten_up_to(spec_tree, tuple(args))
        paths = trees.paths(spec_tree, "args")
        coerced = [
            _coerce_leaf(self.name, spec, leaf, path)
            for spec, leaf, path in zip(specs, leaves, paths, strict=True)
        ]
        return (*self_args, *trees.unflatten(spec_tree, coerced)), {}


def _coerce_leaf(name: str, spec: Any, leaf: Any, path: str) -> Any:
    if isinstance(leaf, TensorSpec):
        return leaf
    leaf = read(leaf)  # the value of a variable
    array = leaf if isinstance(leaf, Staged) or np.isscalar(leaf) else np.asarray(leaf)
    actual = leaf_type(array)
    if isinstance(leaf, (list, tuple)):
        # A list of Python numbers is as weak as one of them.
        actual = LeafType(actual.type, weak=True)
    if not spec.accepts(actual):
        cure = f"cast it, or reshape it, to fit {spec}."
        raise TypeMismatchError(
            explain(f"{name}: {path} is {actual}, its signature says {spec}.", cure=cure)
        )
    return array if isinstance(array, Staged) else np.asarray(array, spec.dtype)
