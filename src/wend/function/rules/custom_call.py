"""The arguments of one call of a function with a custom rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.keys import is_equal
from wend.base.source import at, user_source
from wend.capture.convert import capture
from wend.eager.dispatch import Staged
from wend.function.signature.signature import inspect_signature
from wend.trace.recording.arguments import LeafType, is_array_leaf, leaf_type, to_native_byte_order
from wend.trace.trace_function import trace_function
from wend.trace.traced import Traced


class CustomCall:
    """The flattened arguments of one call: which are differentiable, and which leaves are traced.

    Keyword arguments and defaults are put in their positions. A default that the call omits stays a
    Python value, and so does a leaf that is not an array or number; neither has a derivative. The
    rule gets the arguments at `nondiff_argnums` unchanged.

    Attributes:
        diff_argnums: the positions of the differentiable arguments.
        trees: the structures of those.
        leaves: their leaves.
        argnum_of_leaf: the position of the argument that each leaf belongs to.
        traced_positions: the indices of the traced leaves.
        types: the types of the traced leaves.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        name: str,
        nondiff_argnums: Sequence[int],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> None:
        self.name = name
        self.where = f"{name}{at(user_source())}"
        self.args, self.parameters, omitted = _positional_args(fun, name, args, kwargs)
        self.nondiff_argnums = _normalized_argnums(name, nondiff_argnums, len(self.args))
        self.diff_argnums = [k for k in range(len(self.args)) if k not in self.nondiff_argnums]
        flattened = [trees.flatten_deep(self.args[k]) for k in self.diff_argnums]
        self.trees = [treedef for _, treedef in flattened]
        self.leaves = [to_native_byte_order(leaf) for leaves, _ in flattened for leaf in leaves]
        self.argnum_of_leaf = [
            k for k, (leaves, _) in zip(self.diff_argnums, flattened, strict=True) for _ in leaves
        ]
        self.traced_positions = [
            position
            for position, (leaf, number) in enumerate(
                zip(self.leaves, self.argnum_of_leaf, strict=True)
            )
            if is_array_leaf(leaf) and number not in omitted
        ]
        self.types = [leaf_type(self.leaves[position]) for position in self.traced_positions]

    @property
    def arrays(self) -> list[Any]:
        """The traced leaves."""
        return [self.leaves[position] for position in self.traced_positions]

    def all_args(self, traced: Sequence[Any]) -> list[Any]:
        """Return all arguments, with these arrays for the traced leaves."""
        args = list(self.args)
        for number, value in zip(self.diff_argnums, self.diff_args(traced), strict=True):
            args[number] = value
        return args

    def diff_args(self, traced: Sequence[Any], with_untraced: bool = True) -> tuple[Any, ...]:
        """Return the differentiable arguments with these arrays for the traced leaves.

        The other leaves are None unless `with_untraced`.
        """
        leaves = list(self.leaves) if with_untraced else [None] * len(self.leaves)
        for position, array in zip(self.traced_positions, traced, strict=True):
            leaves[position] = array
        remaining = iter(leaves)
        return tuple(
            trees.unflatten(treedef, [next(remaining) for _ in range(treedef.num_leaves)])
            for treedef in self.trees
        )

    def nondiff_args(self) -> list[Any]:
        """Return the non-differentiable arguments."""
        return [self.args[k] for k in self.nondiff_argnums]

    def path(self, index: int) -> str:
        """Return the path of a traced leaf from its argument: `state['x']`."""
        position = self.traced_positions[index]
        number = self.argnum_of_leaf[position]
        first = self.argnum_of_leaf.index(number)
        paths = trees.paths(self.trees[self.diff_argnums.index(number)], self.label(number))
        return paths[position - first]

    def label(self, number: int) -> str:
        """Return the name of an argument."""
        return self.parameters[number] if number < len(self.parameters) else f"args[{number}]"

    def has_same_trace(self, other: CustomCall) -> bool:
        """Return whether the recorded rule of another call serves this one."""
        values, other_values = self._static_values(), other._static_values()
        return (
            len(self.trees) == len(other.trees)
            and all(map(trees.is_same_structure, self.trees, other.trees))
            and self.traced_positions == other.traced_positions
            and self.types == other.types
            and len(values) == len(other_values)
            and all(map(_is_same_value, values, other_values))
        )

    def _static_values(self) -> list[Any]:
        """Return the values that are part of a trace."""
        untraced = [leaf for k, leaf in enumerate(self.leaves) if k not in self.traced_positions]
        return [*self.nondiff_args(), *untraced]

    def trace(
        self,
        role: str,
        fun: Callable[..., Any],
        types: Sequence[LeafType],
        call: Callable[[Callable[..., Any], Sequence[Any]], Any],
        names: Sequence[str] = (),
    ) -> Traced:
        """Trace the function, or a part of its rule.

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


def _positional_args(
    fun: Callable[..., Any], name: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], list[str], set[int]]:
    """Return the arguments by position, the parameter names, and the omitted positions."""
    signature = inspect_signature(fun)
    if signature is None:
        if kwargs:
            raise TypeError(f"{name} has no signature: give its arguments by position")
        return list(args), [], set()
    bound = signature.bind(*args, **kwargs)
    passed = {*bound.arguments}
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            explain(
                f"{name}: a rule takes its arguments by position, so they cannot be given by "
                f"keyword only: {', '.join(bound.kwargs)}.",
                cure="make them positional parameters.",
            )
        )
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_POSITIONAL]
    omitted = {k for k, parameter in enumerate(parameters) if parameter.name not in passed}
    return list(bound.args), [parameter.name for parameter in parameters], omitted


def _normalized_argnums(name: str, nondiff: Sequence[int], count: int) -> list[int]:
    for number in nondiff:
        if not -count <= number < count:
            raise TypeError(f"{name}: nondiff_argnums={number}, but it has {count} arguments")
    return sorted({number % count for number in nondiff})


def _is_same_value(a: Any, b: Any) -> bool:
    """Return whether two Python values are equal for a trace; arrays only by identity."""
    return a is b or (not isinstance(a, (Staged, np.ndarray)) and is_equal(a, b))
