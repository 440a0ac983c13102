"""Takes the arguments of a call apart, cast to what an `input_signature` declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain, listed
from wend.eager.dispatch import Staged, read
from wend.function.signature.signature import Arguments, Signature
from wend.function.signature.spec import TensorSpec
from wend.trace.recording.arguments import LeafType, leaf_type


class Binding:
    """How calls of one function are bound.

    Args:
        name: the function's name, for messages.
        signature: that of its Python function.
        declared: its `input_signature`; for a method without `self`.
    """

    def __init__(
        self, name: str, signature: Signature, declared: tuple[Any, ...] | None = None
    ) -> None:
        self.name, self.signature, self.declared = name, signature, declared
        if declared is not None:
            self._check_declared(declared)

    def _check_declared(self, declared: tuple[Any, ...]) -> None:
        """Refuse a signature that no call fits.

        Raises:
            TypeError: it holds something else than `TensorSpec`s, or leaves out an argument that
                has no default.
        """
        specs, tree = trees.flatten(declared)
        for spec, path in zip(specs, trees.paths(tree, "input_signature"), strict=True):
            if not isinstance(spec, TensorSpec):
                what = f"{self.name}: {path} is {spec!r:.60}, no TensorSpec."
                cure = "give a wend.TensorSpec(shape, dtype); a variable is found without one."
                raise TypeError(explain(what, cure=cure))
        most = self.signature.most_positional()
        if most is not None and len(declared) > most:
            given = f"its input_signature is for {len(declared)} arguments"
            cure = "leave out the last ones."
            raise TypeError(explain(f"{self.name}: {given}, it takes {most}.", cure=cure))
        missing = self.signature.without_default(len(declared))
        if missing:
            what = f"{self.name}: its input_signature has nothing for {listed(missing)}."
            cure = "give a wend.TensorSpec for each, or let them have defaults."
            raise TypeError(explain(what, cure=cure))

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        """Take a call's arguments apart."""
        if self.declared is not None:
            args, kwargs = self.fit(args, kwargs)
        return self.signature.bind(args, kwargs)

    def as_declared(self, arguments: Arguments) -> Arguments:
        """The arguments to trace with: where sizes are declared unknown they are."""
        if self.declared is None:
            return arguments
        specs, tree = trees.flatten(self.declared)
        given = trees.unflatten(tree, specs)
        own = arguments.leaves[:1] if self.signature.is_method else ()
        return self.signature.bind((*own, *given), {})

    def fit(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments cast to the input signature.

        Raises:
            TypeMismatchError: one of them does not fit, by name.
        """
        assert self.declared is not None
        if self.signature.inspected is not None:
            bound = self.signature.bound(args, kwargs)
            args, kwargs = bound.args, bound.kwargs
        own = tuple(args[:1]) if self.signature.is_method else ()
        args = args[len(own) :]
        if len(args) != len(self.declared) or kwargs:
            given = listed([f"{len(args)} positional", *map(repr, kwargs)])
            wanted = f"its input_signature is for {len(self.declared)} arguments, given {given}"
            raise TypeError(f"{self.name}: {wanted}")
        specs, spec_tree = trees.flatten(self.declared)
        leaves = trees.flatten_up_to(spec_tree, tuple(args))
        paths = trees.paths(spec_tree, "args")
        fitted = [
            _fit_leaf(self.name, spec, leaf, path)
            for spec, leaf, path in zip(specs, leaves, paths, strict=True)
        ]
        return (*own, *trees.unflatten(spec_tree, fitted)), {}


def _fit_leaf(name: str, spec: Any, leaf: Any, path: str) -> Any:
    if isinstance(leaf, TensorSpec):
        return leaf
    leaf = read(leaf)  # of a variable what it holds
    array = leaf if isinstance(leaf, Staged) or np.isscalar(leaf) else np.asarray(leaf)
    given = leaf_type(array)
    if isinstance(leaf, (list, tuple)):
        given = LeafType(given.type, weak=True)  # numbers of Python, as NumPy takes them
    if not spec.accepts(given):
        cure = f"cast it, or reshape it, to fit {spec}."
        raise TypeMismatchError(
            explain(f"{name}: {path} is {given}, its signature says {spec}.", cure=cure)
        )
    return array if isinstance(array, Staged) else np.asarray(array, spec.dtype)
