"""Binds a call's arguments: which leaves are traced, and the key that says which trace serves."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import StructureError, TypeMismatchError, explain, listed
from wend.eager.dispatch import Staged
from wend.function.signature.keys import ByIdentity, key_of
from wend.function.signature.spec import TensorSpec
from wend.ir.dtypes import is_supported
from wend.trace.recording.arguments import LeafType, is_array_leaf, leaf_type
from wend.trace.state.variable import Variable
from wend.trace.traced import call_with


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, taken apart.

    Attributes:
        leaves: all leaves of (args, kwargs), in order.
        treedef: their structure.
        places: which leaves are traced.
        types: the types of those.
        rest: the keys of the others.
        parameters: the names of the positional ones.
    """

    leaves: tuple[Any, ...]
    treedef: trees.TreeDef
    places: tuple[int, ...]
    types: tuple[LeafType, ...]
    rest: tuple[Hashable, ...]
    parameters: tuple[str, ...] = ()

    @property
    def key(self) -> Hashable:
        """Equal for calls that one trace serves."""
        return self.treedef, self.places, self.types, self.rest

    @property
    def family(self) -> Hashable:
        """Equal for calls that differ in sizes only."""
        kinds = tuple(
            (type.type.dtype, type.type.rank, type.weak) if type.variable is None else type
            for type in self.types
        )
        return self.treedef, self.places, kinds, self.rest

    def with_types(self, types: Sequence[LeafType]) -> Arguments:
        """The same with other types of the traced leaves."""
        return replace(self, types=tuple(types))

    @property
    def arrays(self) -> list[Any]:
        return [self.leaves[k] for k in self.places]

    def objects(self) -> dict[str, Any]:
        """The arguments that are objects, by name: neither traced nor made of other things."""
        traced = {*self.places}
        return {
            name: leaf
            for k, (name, leaf) in enumerate(zip(self.all_names(), self.leaves, strict=True))
            if k not in traced and name.isidentifier()
        }

    def names(self) -> list[str]:
        """How each traced leaf is reached from the arguments: `state['x']`."""
        found = self.all_names()
        return [found[k] for k in self.places]

    def all_names(self) -> list[str]:
        """How each leaf is reached from the arguments."""
        return argument_paths(self.treedef, self.parameters)

    def call(self, fun: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """Call a function with other arrays in place of the traced leaves."""
        leaves = list(self.leaves)
        for k, array in zip(self.places, arrays, strict=True):
            leaves[k] = array
        args, kwargs = trees.unflatten(self.treedef, leaves)
        result = call_with(fun, args, kwargs)
        self._check_unchanged(leaves, (args, kwargs))
        return result

    def _check_unchanged(self, leaves: Sequence[Any], given: Any) -> None:
        """Refuse changes of lists and dicts: the function has copies, so the caller sees none.

        Raises:
            StructureError: the function has changed one, by name.
        """
        # Not the leaves themselves: a static argument may be None or a tuple.
        mine = trees.unflatten(self.treedef, list(leaves))
        (before, tree), (after, new_tree) = trees.flatten(mine), trees.flatten(given)
        if tree != new_tree:
            where = _first_changed(mine, given, self.parameters)
        else:
            pairs = enumerate(zip(before, after, strict=True))
            changed = next((k for k, (old, new) in pairs if old is not new), None)
            if changed is None:
                return
            where = argument_paths(tree, self.parameters)[changed]
        name = re.split(r"\W", where)[0]
        raise StructureError(
            explain(
                f"argument {name} is changed in place, at {where}: the caller would not see it.",
                cure="change a copy of it, and return that.",
            )
        )

    def positional(self, found: Mapping[int, Any]) -> tuple[Any, ...]:
        """The positional arguments with other things for traced leaves; None for all the rest."""
        leaves: list[Any] = [None] * len(self.leaves)
        for k, item in found.items():
            leaves[self.places[k]] = item
        args, _ = trees.unflatten(self.treedef, leaves)
        return tuple(args)

    def numbered(self) -> tuple[Any, ...]:
        """The positional arguments, each leaf by its number among all."""
        args, _ = trees.unflatten(self.treedef, list(range(len(self.leaves))))
        return tuple(args)


def argument_paths(treedef: trees.TreeDef, parameters: Sequence[str]) -> list[str]:
    """Name every leaf of (args, kwargs) by the parameter it belongs to and its path from there."""
    found = []
    for path in trees.paths(treedef):
        parts = _PATH.fullmatch(path)
        if parts is None:
            found.append(path)
        elif parts["keyword"] is not None:
            found.append(parts["keyword"] + parts["rest"])
        else:
            position = int(parts["position"])
            name = parameters[position] if position < len(parameters) else str(position)
            found.append(name + parts["rest"])
    return found


def _first_changed(old: Any, new: Any, parameters: Sequence[str]) -> str:
    """Where arguments differ in their structure, by name."""
    names = [*parameters, *map(str, range(len(parameters), len(old[0])))]
    before = {**dict(zip(names, old[0], strict=False)), **old[1]}
    after = {**dict(zip(names, new[0], strict=False)), **new[1]}
    for name, value in before.items():
        difference = trees.first_difference(value, after[name], name)
        if difference is not None:
            return re.split(": | is ", difference)[0]
    return listed(before)


_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_PATH = re.compile(
    r"(\[0\]\[(?P<position>\d+)\]|\[1\]\['(?P<keyword>\w+)'\])(?P<rest>.*)", re.DOTALL
)


class Signature:
    """How calls of one Python function are bound; positional and keyword calls are the same."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
        is_method: bool = False,
    ) -> None:
        self.fun = fun
        self.is_method = is_method  # the first argument is told by identity, and held weakly
        self.inspected = signature_of(fun)
        self.static = self._static_names(static_argnums, static_argnames)
        self.parameters = tuple(
            name for name, p in self._parameters() if p.kind in (p.POSITIONAL_ONLY, _EITHER)
        )

    def _parameters(self) -> Iterable[tuple[str, inspect.Parameter]]:
        return () if self.inspected is None else self.inspected.parameters.items()

    def most_positional(self) -> int | None:
        """How many arguments it takes by position, `self` of a method aside; None: any number."""
        if self.inspected is None or any(p.kind is p.VAR_POSITIONAL for _, p in self._parameters()):
            return None
        return len(self.parameters) - self._has_self()

    def _has_self(self) -> bool:
        return self.is_method or _is_in_class(self.fun)

    def without_default(self, count: int) -> list[str]:
        """The arguments after so many that every call has to give; `self` of a method is none."""
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        found = [(name, p) for name, p in self._parameters() if p.kind not in kinds]
        rest = found[count + self._has_self() :]
        return [name for name, p in rest if p.default is p.empty]

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
        places: list[int] = []
        types: list[LeafType] = []
        rest: list[Hashable] = []
        leaves = [native(leaf) for leaf in leaves]
        variables: dict[int, int] = {}  # passed: id -> which of them
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, _Static):
                rest.append(self._key(leaf.value, k, treedef))
            elif self.is_method and not k:
                rest.append(ByIdentity(leaf))
            elif isinstance(leaf, TensorSpec):
                places.append(k)
                types.append(leaf.leaf_type())
            elif isinstance(leaf, Variable):
                places.append(k)
                number = variables.setdefault(id(leaf), len(variables))
                types.append(LeafType(leaf.type, variable=number))
            elif is_array_leaf(leaf):
                places.append(k)
                types.append(leaf_type(leaf))
            else:
                rest.append(self._key(leaf, k, treedef))
        if static:
            leaves = [leaf.value if isinstance(leaf, _Static) else leaf for leaf in leaves]
        return Arguments(
            tuple(leaves), treedef, tuple(places), tuple(types), tuple(rest), self.parameters
        )

    def bound_leaves(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of a call in the order of `bind`."""
        args, kwargs, _ = self._canonical(args, kwargs)
        leaves, _ = trees.flatten((tuple(args), kwargs))
        return leaves

    def _key(self, value: Any, place: int, treedef: trees.TreeDef) -> Hashable:
        try:
            return key_of(value)
        except TypeError:
            path = argument_paths(treedef, self.parameters)[place]
            if isinstance(value, Staged):
                what = f"argument {path} is static, given {value!r}."
                cure = "give it a value that Python knows, or leave it out of static_argnames."
                raise TypeError(explain(what, cure=cure)) from None
            what = f"argument {path} is {type(value).__name__}, which has no hash."
            cure = "pass arrays, numbers, or hashable values; lists and dicts of these."
            raise TypeError(explain(what, cure=cure)) from None

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """The arguments by the names of parameters; for functions that say what these are.

        Raises:
            TypeError: they do not fit.
        """
        assert self.inspected is not None
        try:
            return self.inspected.bind(*args, **kwargs)
        except TypeError as error:
            takes = f"{getattr(self.fun, '__name__', 'the function')}{self.inspected}"
            raise TypeError(f"{takes}: {error}") from None

    def _canonical(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any], bool]:
        """Positional where possible, static ones marked; defaults stay with the function."""
        if self.inspected is None:
            return args, kwargs, False
        bound = self.bound(args, kwargs)
        given = self.static & bound.arguments.keys()
        for name in given:
            bound.arguments[name] = self._marked(name, bound.arguments[name])
        return bound.args, bound.kwargs, bool(given)

    def _marked(self, name: str, value: Any) -> Any:
        """A static argument, marked; of `*args` and `**kwargs` each by itself."""
        assert self.inspected is not None
        kind = self.inspected.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return tuple(map(_Static, value))
        if kind is inspect.Parameter.VAR_KEYWORD:
            return {key: _Static(one) for key, one in value.items()}
        return _Static(value)


def native(leaf: Any) -> Any:
    """An array in this machine's byte order; a copy is read-only: the caller has not got it.

    Raises:
        TypeMismatchError: its dtype is none that graphs know, or it has a mask.
    """
    if not isinstance(leaf, np.ndarray):
        return leaf
    # `np.ma` is loaded by its name: for subclasses only.
    if type(leaf) is not np.ndarray and isinstance(leaf, np.ma.MaskedArray):
        cure = "pass x.filled(0.0) and np.ma.getmaskarray(x), as two arrays."
        raise TypeMismatchError(explain("masked arrays are not traced.", cure=cure))
    if is_supported(leaf.dtype):
        return leaf
    dtype = leaf.dtype.newbyteorder("=")
    if not is_supported(dtype):
        cure = "use numbers or bools; make strings and objects static arguments."
        raise TypeMismatchError(explain(f"arrays of dtype {leaf.dtype} are not traced.", cure=cure))
    copy = leaf.astype(dtype)
    copy.flags.writeable = False
    return copy


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The signature; None of a builtin or a ufunc, which is called just as the user calls it."""
    if isinstance(fun, np.ufunc):
        return None
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def _is_in_class(fun: Callable[..., Any]) -> bool:
    """Whether a function was written in the body of a class."""
    outer = getattr(fun, "__qualname__", "").rpartition(".")[0]
    return isinstance(fun, types.FunctionType) and bool(outer) and not outer.endswith("<locals>")


class _Static:
    """Marks an argument that is part of the key, whatever it is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
