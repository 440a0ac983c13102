"""One call of a function that has a rule of its own, taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.capture.convert import capture
from wend.eager.dispatch import Staged
from wend.function.signature.signature import native, signature_of
from wend.trace.recording.arguments import LeafType, is_array_leaf, leaf_type
from wend.trace.traced import Traced, trace_function


class CustomCall:
    """The arguments of one call: which are differentiable, and which of their leaves are traced.

    Keyword arguments and defaults are put in their positions. A default that the call omits stays
    a Python value, and so does a leaf that is no array or number; neither has a derivative.

    Args:
        fun: the function.
        name: its name, for messages.
        nondiff: positions of the arguments that the rule takes as they are.
        args: the positional arguments.
        kwargs: those by keyword.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        name: str,
        nondiff: Sequence[int],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> None:
        self.name = name
        self.where = f"{name}{at(user_source())}"
        self.args, self.parameters, omitted = _positional(fun, name, args, kwargs)
        self.nondiff = _positions(name, nondiff, len(self.args))
        self.numbers = [k for k in range(len(self.args)) if k not in self.nondiff]
        flat = [trees.flatten(self.args[k]) for k in self.numbers]
        self.trees = [treedef for _, treedef in flat]
        self.leaves = [native(leaf) for leaves, _ in flat for leaf in leaves]
        self.owners = [k for k, (leaves, _) in zip(self.numbers, flat, strict=True) for _ in leaves]
        self.places = [
            place
            for place, (leaf, owner) in enumerate(zip(self.leaves, self.owners, strict=True))
            if is_array_leaf(leaf) and owner not in omitted
        ]
        self.types = [leaf_type(self.leaves[place]) for place in self.places]

    @property
    def arrays(self) -> list[Any]:
        """The leaves that are traced."""
        return [self.leaves[place] for place in self.places]

    def filled(self, traced: Sequence[Any]) -> list[Any]:
        """All arguments, with other arrays in place of the traced leaves."""
        args = list(self.args)
        for number, arg in zip(self.numbers, self.differentiable(traced), strict=True):
            args[number] = arg
        return args

    def differentiable(self, traced: Sequence[Any], others: bool = True) -> tuple[Any, ...]:
        """The differentiable arguments likewise; without `others`, None for all other leaves."""
        leaves = list(self.leaves) if others else [None] * len(self.leaves)
        for place, array in zip(self.places, traced, strict=True):
            leaves[place] = array
        rest = iter(leaves)
        return tuple(
            trees.unflatten(treedef, [next(rest) for _ in range(treedef.num_leaves)])
            for treedef in self.trees
        )

    def kept_as_they_are(self) -> list[Any]:
        """The nondiff arguments."""
        return [self.args[k] for k in self.nondiff]

    def path(self, index: int) -> str:
        """How a traced leaf is reached from the arguments: `state['x']`."""
        place = self.places[index]
        number = self.owners[place]
        first = self.owners.index(number)
        paths = trees.paths(self.trees[self.numbers.index(number)], self.label(number))
        return paths[place - first]

    def label(self, number: int) -> str:
        """The name of an argument."""
        known = number < len(self.parameters)
        return self.parameters[number] if known else f"args[{number}]"

    def is_like(self, other: CustomCall) -> bool:
        """Whether one rule serves both calls."""
        mine, theirs = self._static(), other._static()
        return (
            self.trees == other.trees
            and self.places == other.places
            and self.types == other.types
            and len(mine) == len(theirs)
            and all(map(_is_same, mine, theirs))
        )

    def _static(self) -> list[Any]:
        """What is part of a trace as it is."""
        rest = [leaf for k, leaf in enumerate(self.leaves) if k not in self.places]
        return [*self.kept_as_they_are(), *rest]

    def trace(
        self,
        role: str,
        fun: Callable[..., Any],
        types: Sequence[LeafType],
        call: Callable[[Callable[..., Any], Sequence[Any]], Any],
        names: Sequence[str] = (),
    ) -> Traced:
        """Record the function, or a part of its rule.

        Raises:
            TypeMismatchError: it changes an argument in place, or assigns to a variable.
        """
        traced = trace_function(capture(fun), types, call, f"{self.name}{role}", names)
        if traced.assigned:
            what = f"{self.where}: {self.name}{role} assigns to {traced.assigned[0]!r:.60}."
            cure = "return the new value, and assign it where the function is called."
            raise TypeMismatchError(explain(what, cure=cure))
        if traced.written:
            raise TypeMismatchError(
                explain(
                    f"{self.where}: {self.name}{role} changes an argument in place.",
                    cure="change a copy of it: x = x.copy().",
                )
            )
        return traced


def _positional(
    fun: Callable[..., Any], name: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], list[str], set[int]]:
    """The arguments by position, the names of the positions, and which the call omitted."""
    inspected = signature_of(fun)
    if inspected is None:
        if kwargs:
            raise TypeError(f"{name} has no signature: give its arguments by position")
        return list(args), [], set()
    bound = inspected.bind(*args, **kwargs)
    given = {*bound.arguments}
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            explain(
                f"{name}: a rule takes its arguments by position, so they cannot be given by "
                f"keyword only: {', '.join(bound.kwargs)}.",
                cure="make them positional parameters.",
            )
        )
    kinds = [p for p in inspected.parameters.values() if p.kind is not p.VAR_POSITIONAL]
    omitted = {k for k, parameter in enumerate(kinds) if parameter.name not in given}
    return list(bound.args), [parameter.name for parameter in kinds], omitted


def _positions(name: str, nondiff: Sequence[int], count: int) -> list[int]:
    for number in nondiff:
        if not -count <= number < count:
            raise TypeError(f"{name}: nondiff_argnums={number}, but it has {count} arguments")
    return sorted({number % count for number in nondiff})


def _is_same(a: Any, b: Any) -> bool:
    """Whether two Python values are one for a trace; arrays only by identity."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, (Staged, np.ndarray)):
        return False
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
