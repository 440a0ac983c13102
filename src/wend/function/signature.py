"""Binds a call's arguments: which leaves are traced, and the key that decides which trace serves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from wend.base import trees
from wend.base.errors import explain
from wend.function.spec import TensorSpec
from wend.trace.arguments import LeafType, is_array_leaf, leaf_type


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, taken apart.

    Attributes:
        leaves: all leaves of (args, kwargs), in order.
        treedef: their structure.
        places: which leaves are traced.
        types: the types of those.
        key: equal for calls that one trace serves.
    """

    leaves: tuple[Any, ...]
    treedef: trees.TreeDef
    places: tuple[int, ...]
    types: tuple[LeafType, ...]
    key: Hashable

    @property
    def arrays(self) -> list[Any]:
        return [self.leaves[k] for k in self.places]

    def names(self) -> list[str]:
        """How each traced leaf is reached from the arguments: `[0]['x']`."""
        found = trees.paths(self.treedef)
        return [found[k] for k in self.places]

    def call(self, fun: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """Call a function with other arrays in place of the traced leaves."""
        leaves = list(self.leaves)
        for k, array in zip(self.places, arrays, strict=True):
            leaves[k] = array
        args, kwargs = trees.unflatten(self.treedef, leaves)
        return fun(*args, **kwargs)


class Signature:
    """How calls of one Python function are bound; positional and keyword calls are the same."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
    ) -> None:
        self.fun = fun
        try:
            self.inspected: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):
            self.inspected = None  # a builtin: only as it is called
        self.static = self._static_names(static_argnums, static_argnames)

    def _static_names(self, numbers: Sequence[int], names: Sequence[str]) -> set[str]:
        if not numbers and not names:
            return set()
        if self.inspected is None:
            raise TypeError(f"{self.fun!r} has no signature: its arguments cannot be static")
        params = list(self.inspected.parameters)
        for name in names:
            if name not in params:
                raise ValueError(f"static_argnames: {name!r} is no argument; there are {params}")
        if any(not -len(params) <= number < len(params) for number in numbers):
            raise ValueError(f"static_argnums {tuple(numbers)}: there are {len(params)} arguments")
        return {*names, *(params[number] for number in numbers)}

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        """Take a call's arguments apart.

        Raises:
            TypeError: they do not fit the function, or one that is part of the key has no hash.
        """
        args, kwargs, static = self._canonical(args, kwargs)
        leaves, treedef = trees.flatten((tuple(args), kwargs))
        places, types, rest = [], [], []
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, _Static):
                rest.append((type(leaf.value), leaf.value))
            elif isinstance(leaf, TensorSpec):
                places.append(k)
                types.append(leaf.leaf_type())
            elif is_array_leaf(leaf):
                places.append(k)
                types.append(leaf_type(leaf))
            else:
                rest.append((type(leaf), leaf))
        key = (treedef, tuple(places), tuple(types), tuple(rest))
        _check_hash(key, leaves, treedef)
        if static:
            leaves = [leaf.value if isinstance(leaf, _Static) else leaf for leaf in leaves]
        return Arguments(tuple(leaves), treedef, tuple(places), tuple(types), key)

    def _canonical(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any], bool]:
        """Positional where possible, defaults filled in, static ones marked."""
        if self.inspected is None:
            return args, kwargs, False
        bound = self.inspected.bind(*args, **kwargs)
        bound.apply_defaults()
        for name in self.static:
            bound.arguments[name] = _Static(bound.arguments[name])
        return bound.args, bound.kwargs, bool(self.static)


class _Static:
    """Marks an argument that is part of the key, whatever it is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _check_hash(key: Hashable, leaves: Sequence[Any], treedef: trees.TreeDef) -> None:
    try:
        hash(key)
    except TypeError:
        for leaf, path in zip(leaves, trees.paths(treedef), strict=True):
            value = leaf.value if isinstance(leaf, _Static) else leaf
            if is_array_leaf(value) and not isinstance(leaf, _Static):
                continue
            try:
                hash(value)
            except TypeError:
                what = f"argument {path} is {type(value).__name__}, which has no hash."
                cure = "pass arrays, numbers, or hashable values; lists and dicts of these."
                raise TypeError(explain(what, cure=cure)) from None
        raise
