"""What one trace takes: the arguments that it was made for, and the check of calls against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import LeakedValueError, StructureError, TypeMismatchError, explain
from wend.eager.promotion import PYTHON_SCALARS
from wend.function.signature.binding import Binding
from wend.function.signature.keys import ByIdentity
from wend.function.signature.signature import Arguments
from wend.ir.types import accepts
from wend.trace.recording.arguments import LeafType

_CALL = "call the function itself, which traces for what it is given."


class TraceInputs:
    """The arguments that a trace was made for, without their arrays.

    Values that are part of the trace (static arguments, strings, objects) are bound: a call may
    leave them out, or give them again.

    Args:
        name: the function's name, for messages.
        arguments: what it was traced for.
        binding: how calls of the function are bound.
    """

    def __init__(self, name: str, arguments: Arguments, binding: Binding) -> None:
        self.name, self.binding = name, binding
        self.treedef, self.types = arguments.treedef, arguments.types
        self.places, self.rest = arguments.places, arguments.rest
        self.names = arguments.names()
        self._leaves = _typed(arguments)
        self._bound = self._bound_parameters(arguments.parameters)

    def _bound_parameters(self, parameters: Sequence[str]) -> list[str]:
        """The parameters in which no array is traced; their values are looked up by name."""
        numbered = trees.unflatten(self.treedef, list(range(len(self._leaves))))
        traced = {*self.places}
        args, kwargs = numbered
        named = [*zip(parameters, args, strict=False), *kwargs.items()]
        if self.binding.declared is not None or self.binding.signature.inspected is None:
            return []
        known = self.binding.signature.inspected.parameters
        return [
            name
            for name, part in named
            if name in known and traced.isdisjoint(trees.flatten(part)[0])
        ]

    def structured(self) -> Any:
        """(args, kwargs), with types in place of arrays; None for an object that is gone."""
        leaves = [x.reference() if isinstance(x, ByIdentity) else x for x in self._leaves]
        return trees.unflatten(self.treedef, leaves)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        """Take a call's arguments apart.

        Raises:
            StructureError: they are structured otherwise.
            TypeMismatchError: one is not of the type, or not the value, that this was traced for.
        """
        arguments = self.binding.bind(*self._completed(args, kwargs))
        if arguments.treedef != self.treedef:
            wanted = trees.described(trees.unflatten(self.treedef, self._leaves))
            given = trees.described(trees.unflatten(arguments.treedef, list(arguments.leaves)))
            what = f"{self.name} was traced for arguments {wanted}, given {given}."
            raise StructureError(explain(what, cure=_CALL))
        if arguments.rest != self.rest or arguments.places != self.places:
            self._check_bound(arguments)
        return self._with_types(arguments)

    def _completed(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments with what the trace has bound."""
        signature = self.binding.signature
        if signature.is_method:
            instance = self.structured()[0][0]
            if instance is None:
                what = f"the object whose method {self.name} is is gone."
                raise LeakedValueError(explain(what, cure="keep the object."))
            if not args or args[0] is not instance:
                args = (instance, *args)
        if not self._bound or signature.inspected is None:
            return args, kwargs
        given = signature.inspected.bind_partial(*args, **kwargs)
        if all(name in given.arguments for name in self._bound):
            return args, kwargs
        bound_args, bound_kwargs = self.structured()
        known = {**dict(zip(signature.parameters, bound_args, strict=False)), **bound_kwargs}
        for name in self._bound:
            given.arguments.setdefault(name, known[name])
        return given.args, given.kwargs

    def _check_bound(self, arguments: Arguments) -> None:
        """Refuse another value of what the trace has bound, or an array in its place."""
        traced, given = {*self.places}, {*arguments.places}
        keys, others = iter(self.rest), iter(arguments.rest)
        for k, name in enumerate(arguments.all_names()):
            key = None if k in traced else next(keys)
            other = None if k in given else next(others)
            if key != other:
                wanted = "an array" if k in traced else f"{self._leaves[k]!r:.60}"
                what = f"{self.name} was traced for {name}: {wanted}, given "
                what += f"{arguments.leaves[k]!r:.60}."
                is_array = k in traced or k in given
                cure = _CALL if is_array else f"leave it out, or {_CALL}"
                raise TypeMismatchError(explain(what, cure=cure))

    def _with_types(self, arguments: Arguments) -> Arguments:
        """The arguments, Python's numbers cast to what was traced.

        Raises:
            TypeMismatchError: one is of another type.
        """
        leaves: list[Any] | None = None
        for k, name, given, type in zip(
            self.places, self.names, arguments.types, self.types, strict=True
        ):
            is_same = given.variable == type.variable
            if is_same and accepts(type.type, given.type):
                continue
            cast = given.type.with_dtype(type.type.dtype)
            leaf = arguments.leaves[k]
            is_number = is_same and isinstance(leaf, PYTHON_SCALARS)
            if not is_number or not _takes(type, given) or not accepts(type.type, cast):
                what = f"{self.name} was traced for {name}: {type}, given {given}."
                raise TypeMismatchError(explain(what, cure=f"cast it, or {_CALL}"))
            leaves = leaves or [*arguments.leaves]
            leaves[k] = np.asarray(leaf, type.type.dtype)[()]
        return arguments if leaves is None else replace(arguments, leaves=tuple(leaves))


def _takes(type: LeafType, given: LeafType) -> bool:
    """Whether an array of this type takes a Python number, as NumPy does: an int no float."""
    return np.can_cast(given.type.dtype, type.type.dtype, "same_kind")


def _typed(arguments: Arguments) -> list[Any]:
    """The leaves, types in place of arrays; objects that the key holds weakly are held so here."""
    types, rest = iter(arguments.types), iter(arguments.rest)
    traced = {*arguments.places}
    found: list[Any] = []
    for k, leaf in enumerate(arguments.leaves):
        key: Any = None if k in traced else next(rest)
        if isinstance(key, tuple) and len(key) == 2:
            key = key[1]
        found.append(next(types) if k in traced else key if isinstance(key, ByIdentity) else leaf)
    return found
