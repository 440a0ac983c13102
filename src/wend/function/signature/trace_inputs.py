"""The inputs of one trace, and the check of calls against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import LeakedValueError, StructureError, TypeMismatchError, explain
from wend.base.keys import ByIdentity
from wend.eager.promotion import PYTHON_SCALARS
from wend.function.signature.binding import Binding
from wend.function.signature.signature import Arguments, argument_paths
from wend.ir.types import accepts
from wend.trace.recording.arguments import LeafType

_CALL_FUNCTION_INSTEAD = "call the function itself, which traces for what it is given."


class TraceInputs:
    """The abstract arguments of a trace.

    Values that are part of the trace (static arguments, strings, objects) are bound: a call may
    omit them or pass them again.
    """

    def __init__(self, name: str, arguments: Arguments, binding: Binding) -> None:
        self.name, self.binding = name, binding
        self.treedef, self.types = arguments.treedef, arguments.types
        self.traced_positions, self.static_keys = arguments.traced_positions, arguments.static_keys
        self.names, self.parameters = arguments.names(), arguments.parameters
        self._leaves = _abstract_leaves(arguments)
        self._static_names = self._static_parameters(arguments.parameters)

    def _static_parameters(self, parameters: Sequence[str]) -> list[str]:
        """Return the parameters without traced leaves, whose values a call may omit."""
        args, kwargs = trees.unflatten(self.treedef, list(range(len(self._leaves))))
        traced = {*self.traced_positions}
        named = [*zip(parameters, args, strict=False), *kwargs.items()]
        if self.binding.declared is not None or self.binding.signature.inspected is None:
            return []
        known = self.binding.signature.inspected.parameters
        return [
            name
            for name, part in named
            if name in known and traced.isdisjoint(trees.flatten_deep(part)[0])
        ]

    def structured(self) -> Any:
        """Return (args, kwargs) with types in place of arrays, and None for collected objects."""
        leaves = [x.reference() if isinstance(x, ByIdentity) else x for x in self._leaves]
        return trees.unflatten(self.treedef, leaves)

    def static_values(self) -> list[tuple[str, Any]]:
        """Return the values that are part of the trace, with their paths; None for what is gone."""
        traced = {*self.traced_positions}
        names = argument_paths(self.treedef, self.parameters)
        return [
            (names[k], x.reference() if isinstance(x, ByIdentity) else x)
            for k, x in enumerate(self._leaves)
            if k not in traced
        ]

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        """Flatten the arguments of a call.

        Raises:
            StructureError: they have another structure.
            TypeMismatchError: one has another type, or another value, than the trace was made for.
        """
        arguments = self.binding.bind(*self._with_static_values(args, kwargs))
        if not trees.is_same_structure(arguments.treedef, self.treedef):
            expected = trees.described(trees.unflatten(self.treedef, self._leaves))
            actual = trees.described(trees.unflatten(arguments.treedef, list(arguments.leaves)))
            what = f"{self.name} was traced for arguments {expected}, given {actual}."
            raise StructureError(explain(what, cure=_CALL_FUNCTION_INSTEAD))
        if (
            arguments.static_keys != self.static_keys
            or arguments.traced_positions != self.traced_positions
        ):
            self._check_static_values(arguments)
        return self._with_types(arguments)

    def _with_static_values(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments completed by the values that the trace has bound."""
        signature = self.binding.signature
        if signature.is_method:
            instance = self.structured()[0][0]
            if instance is None:
                what = f"the object of the method {self.name} is gone."
                raise LeakedValueError(explain(what, cure="keep the object."))
            if not args or args[0] is not instance:
                args = (instance, *args)
        if not self._static_names or signature.inspected is None:
            return args, kwargs
        partial = signature.inspected.bind_partial(*args, **kwargs)
        if all(name in partial.arguments for name in self._static_names):
            return args, kwargs
        static_args, static_kwargs = self.structured()
        static_values = {
            **dict(zip(signature.parameters, static_args, strict=False)),
            **static_kwargs,
        }
        for name in self._static_names:
            partial.arguments.setdefault(name, static_values[name])
        return partial.args, partial.kwargs

    def _check_static_values(self, arguments: Arguments) -> None:
        """Raise the error for another value of a bound argument, or for an array in its place."""
        traced, traced_now = {*self.traced_positions}, {*arguments.traced_positions}
        keys, other_keys = iter(self.static_keys), iter(arguments.static_keys)
        for k, name in enumerate(arguments.all_names()):
            key = None if k in traced else next(keys)
            other_key = None if k in traced_now else next(other_keys)
            if key != other_key:
                expected = "an array" if k in traced else f"{self._leaves[k]!r:.60}"
                actual = f"{arguments.leaves[k]!r:.60}"
                what = f"{self.name} was traced for {name}: {expected}, given {actual}."
                is_static = k not in traced and k not in traced_now
                cure = ("leave it out, or " if is_static else "") + _CALL_FUNCTION_INSTEAD
                raise TypeMismatchError(explain(what, cure=cure))

    def _with_types(self, arguments: Arguments) -> Arguments:
        """Return the arguments with Python numbers cast to the traced types; refuse others."""
        leaves: list[Any] | None = None
        for position, name, actual, type in zip(
            self.traced_positions, self.names, arguments.types, self.types, strict=True
        ):
            is_same = actual.variable == type.variable
            if is_same and accepts(type.type, actual.type):
                continue
            cast = actual.type.with_dtype(type.type.dtype)
            leaf = arguments.leaves[position]
            is_number = is_same and isinstance(leaf, PYTHON_SCALARS)
            if not is_number or not _can_cast(type, actual) or not accepts(type.type, cast):
                what = f"{self.name} was traced for {name}: {type}, given {actual}."
                raise TypeMismatchError(explain(what, cure=f"cast it, or {_CALL_FUNCTION_INSTEAD}"))
            leaves = leaves or [*arguments.leaves]
            leaves[position] = np.asarray(leaf, type.type.dtype)[()]
        return arguments if leaves is None else replace(arguments, leaves=tuple(leaves))


def _can_cast(type: LeafType, actual: LeafType) -> bool:
    """Return whether a Python number can become this type by NumPy's "same_kind" rule."""
    return np.can_cast(actual.type.dtype, type.type.dtype, "same_kind")


def _abstract_leaves(arguments: Arguments) -> list[Any]:
    """Return the leaves with types in place of arrays; weakly keyed objects stay weak."""
    types, static_keys = iter(arguments.types), iter(arguments.static_keys)
    traced = {*arguments.traced_positions}
    leaves: list[Any] = []
    for k, leaf in enumerate(arguments.leaves):
        key: Any = None if k in traced else next(static_keys)
        if isinstance(key, tuple) and len(key) == 2:
            key = key[1]
        leaves.append(next(types) if k in traced else key if isinstance(key, ByIdentity) else leaf)
    return leaves
