"""Binds the arguments of calls: finds the traced leaves, and the key of the trace for them."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.config import traced_settings
from wend.base.errors import NestingError, StructureError, explain, listed
from wend.base.keys import ByIdentity, NotKeyedError, key_of, shares_memory
from wend.base.lazy.dataclass import dataclass
from wend.base.refusals import refusal
from wend.capture.guards.outside import is_returned_whole
from wend.capture.state.paths import Decision, IntegerReached, Site
from wend.eager.dispatch import Staged
from wend.function.signature.bound_arguments import bound_arguments
from wend.function.signature.spec import TensorSpec
from wend.trace.aliasing.containers import aliases_of, unified
from wend.trace.aliasing.passed_containers import PassedContainers, tracing_containers
from wend.trace.control.container_states import ContainerStates
from wend.trace.control.returned_containers import with_changes, with_nodes
from wend.trace.recording import arguments as recorded
from wend.trace.recording.arguments import (
    LeafType,
    is_array_leaf,
    is_int64,
    leaf_type,
    to_native_byte_order,
)
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable
from wend.trace.trace_function import call_with


@dataclass(frozen=True, slots=True)
class Arguments:
    """The flattened arguments of one call.

    Attributes:
        leaves: all leaves of (args, kwargs), in order.
        treedef: the structure of (args, kwargs).
        traced_positions: the indices of the traced leaves.
        types: the types of the traced leaves.
        static_keys: the keys of the other leaves.
        metadata: what `treedef` compares too coarsely, such as dict keys that are no texts.
        aliases: for each list, dict or deque the number of the first that is the same; () if none
            is.
        parameters: the names of the positional parameters.
    """

    leaves: tuple[Any, ...]
    treedef: trees.TreeDef
    traced_positions: tuple[int, ...]
    types: tuple[LeafType, ...]
    static_keys: tuple[Hashable, ...]
    parameters: tuple[str, ...] = ()
    metadata: Hashable = ()
    aliases: tuple[int, ...] = ()
    path: tuple[tuple[Site, Decision], ...] = ()

    @property
    def key(self) -> Hashable:
        """The cache key: equal for calls that the same trace accepts."""
        structure = self.treedef, self.metadata, self.aliases, self.path
        return (
            *structure,
            self.traced_positions,
            self.types,
            self.static_keys,
            traced_settings(),
        )

    @property
    def family(self) -> Hashable:
        """A key that is equal for calls which differ only in sizes."""
        generic_types = tuple(
            type
            if type.variable is not None
            else (type.type.dtype, type.type.rank, type.weak, type.zero_dim)
            for type in self.types
        )
        return (
            self.treedef,
            self.traced_positions,
            generic_types,
            self.static_keys,
            self.metadata,
            self.aliases,
            self.path,
            traced_settings(),
        )

    def on_path(self, decisions: Mapping[Site, Decision]) -> Arguments:
        """Return these arguments for a trace in which tests and integers have these values."""
        return replace(self, path=tuple(decisions.items()))

    def with_types(self, types: Sequence[LeafType]) -> Arguments:
        """Return these arguments with other types of the traced leaves."""
        return replace(self, types=tuple(types))

    def specializable_positions(self) -> list[int]:
        """Return the positions of traced leaves whose values may become part of the key (D37)."""
        return [k for k in self.traced_positions if type(self.leaves[k]) in recorded.INTEGERS]

    def keys_by_position(self) -> dict[int, Hashable]:
        """Return the keys of the leaves that are not traced, by position."""
        traced = {*self.traced_positions}
        static = [k for k in range(len(self.leaves)) if k not in traced]
        return dict(zip(static, self.static_keys, strict=True))

    @property
    def arrays(self) -> list[Any]:
        """The traced leaves."""
        return [self.leaves[k] for k in self.traced_positions]

    def static_values(self) -> list[tuple[str, Any]]:
        """Return the leaves that are not traced, with their paths."""
        traced = {*self.traced_positions}
        return [
            (name, leaf)
            for k, (name, leaf) in enumerate(zip(self.all_names(), self.leaves, strict=True))
            if k not in traced
        ]

    def names(self) -> list[str]:
        """Return the path of each traced leaf from its parameter: `state['x']`."""
        paths = self.all_names()
        return [paths[k] for k in self.traced_positions]

    def all_names(self) -> list[str]:
        """Return the path of each leaf from its parameter."""
        return argument_paths(self.treedef, self.parameters)

    def call(self, fun: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """Call a function with `arrays` in place of the traced leaves.

        A list that is passed twice is two, since each has a derivative of its own.

        Raises:
            StructureError: it changes a list or dict of its arguments in place.
        """
        leaves, (args, kwargs) = self._rebuilt(arrays)
        result = call_with(fun, args, kwargs)
        self._check_unchanged(leaves, (args, kwargs))
        return with_nodes(result, lambda x: any(x is leaf for leaf in leaves))

    def call_for_caller(self, fun: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """Call a function in a trace whose results change lists and dicts of the caller, too."""
        leaves, (args, kwargs) = self._rebuilt(arrays)
        if self.aliases:
            args, kwargs = unified((args, kwargs), self.aliases, leaves)
        passed, recording = PassedContainers(args, kwargs, leaves), current()
        if recording is not None and passed.containers:
            recording.containers = ContainerStates(passed)
        try:
            with tracing_containers(passed):
                result = call_with(fun, args, kwargs)
        except IntegerReached as reached:  # the trace that returns an integer changes nothing
            if not reached.integer.is_reachable():
                raise refusal(reached.integer.leaked()) from None
            return reached.integer
        return with_changes(passed, result, is_returned_whole)

    def _rebuilt(self, arrays: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the leaves with `arrays` in place of the traced ones, and (args, kwargs)."""
        leaves = list(self.leaves)
        for k, array in zip(self.traced_positions, arrays, strict=True):
            leaves[k] = array
        return leaves, trees.unflatten(self.treedef, leaves)

    def _check_unchanged(self, leaves: Sequence[Any], passed: Any) -> None:
        """Refuse in-place changes of lists and dicts, which the caller would not see."""
        # Flattened again, since a static argument may be None or a tuple, which is not one leaf.
        original = trees.unflatten(self.treedef, list(leaves))
        (before_leaves, tree), (after_leaves, new_tree) = (
            trees.flatten_deep(original),
            trees.flatten_deep(passed),
        )
        if not trees.is_same_structure(tree, new_tree):
            path = _first_changed_path(original, passed, self.parameters)
        else:
            pairs = enumerate(zip(before_leaves, after_leaves, strict=True))
            changed_index = next((k for k, (old, new) in pairs if old is not new), None)
            if changed_index is None:
                return
            path = argument_paths(tree, self.parameters)[changed_index]
        name = re.split(r"\W", path)[0]
        raise StructureError(
            explain(
                f"argument {name} is changed in place, at {path}: the caller would not see it.",
                cure="change a copy of it, and return that.",
            )
        )

    def positional(self, by_index: Mapping[int, Any]) -> tuple[Any, ...]:
        """Return the positional arguments with `by_index` for traced leaves and None for others."""
        leaves: list[Any] = [None] * len(self.leaves)
        for k, value in by_index.items():
            leaves[self.traced_positions[k]] = value
        args, _ = trees.unflatten(self.treedef, leaves)
        return tuple(args)

    def numbered(self) -> tuple[Any, ...]:
        """Return the positional arguments with each leaf replaced by its index."""
        return tuple(trees.unflatten(self.treedef, range(len(self.leaves)))[0])


def argument_paths(treedef: trees.TreeDef, parameters: Sequence[str]) -> list[str]:
    """Return the path of every leaf of (args, kwargs), starting at the name of its parameter."""
    names = []
    for tree_path in trees.paths(treedef):
        parts = _PATH.fullmatch(tree_path)
        if parts is None:
            names.append(tree_path)
        elif parts["keyword"] is not None:
            names.append(parts["keyword"] + parts["rest"])
        else:
            position = int(parts["position"])
            name = parameters[position] if position < len(parameters) else str(position)
            names.append(name + parts["rest"])
    return names


def _first_changed_path(old: Any, new: Any, parameters: Sequence[str]) -> str:
    """Return the path of the first structural difference between two (args, kwargs)."""
    names = [*parameters, *map(str, range(len(parameters), len(old[0])))]
    before = {**dict(zip(names, old[0], strict=False)), **old[1]}
    after = {**dict(zip(names, new[0], strict=False)), **new[1]}
    for name, value in before.items():
        difference = trees.first_difference(value, after[name], name)
        if difference is not None:
            return re.split(": | is ", difference)[0]
    return listed(before)


_POSITIONAL_OR_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD
_PATH = re.compile(
    r"(\[0\]\[(?P<position>\d+)\]|\[1\]\['(?P<keyword>\w+)'\])(?P<rest>.*)", re.DOTALL
)


class Signature:
    """How calls of one Python function are bound; keywords are made positional where possible.

    Attributes:
        fun: the function.
        is_method: whether the first argument is `self`, which is keyed by identity and held weakly.
        inspected: its `inspect.Signature`, or None for builtins and ufuncs.
        static: the names of the static parameters.
        parameters: the names of the positional parameters.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
        is_method: bool = False,
    ) -> None:
        self.fun = fun
        self.is_method = is_method
        self.inspected = inspect_signature(fun)
        self.static = self._static_names(static_argnums, static_argnames)
        self.parameters = tuple(
            name
            for name, p in self._parameters()
            if p.kind in (p.POSITIONAL_ONLY, _POSITIONAL_OR_KEYWORD)
        )

    def _parameters(self) -> Iterable[tuple[str, inspect.Parameter]]:
        return () if self.inspected is None else self.inspected.parameters.items()

    def max_positional(self) -> int | None:
        """Return the number of positional parameters without `self`; None if unlimited."""
        if self.inspected is None or any(p.kind is p.VAR_POSITIONAL for _, p in self._parameters()):
            return None
        return len(self.parameters) - self._has_self()

    def _has_self(self) -> bool:
        return self.is_method or _is_in_class(self.fun)

    def required_after(self, count: int) -> list[str]:
        """Return the parameters without a default after the first `count`, not counting `self`."""
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        named = [(name, p) for name, p in self._parameters() if p.kind not in kinds]
        return [name for name, p in named[count + self._has_self() :] if p.default is p.empty]

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

    def bind(
        self, args: Sequence[Any], kwargs: dict[str, Any], specialized: Collection[str] = ()
    ) -> Arguments:
        """Flatten the arguments of a call.

        Args:
            args: the positional arguments.
            kwargs: the keyword arguments.
            specialized: the paths of leaves whose values, if integers, are part of the key (D37).

        Raises:
            TypeError: they do not fit the function, or a static one is not hashable.
        """
        args, kwargs, has_static = self.canonical(args, kwargs)
        leaves, treedef = self.flattened(args, kwargs)
        try:
            return self._bound(args, kwargs, leaves, treedef, has_static, specialized)
        except TypeError:
            whole, whole_treedef = self.flattened(args, kwargs, is_deep=False)
            if whole_treedef == treedef:
                raise
            # What an instance holds has no key, such as a set: the instance is known by identity.
            return self._bound(args, kwargs, whole, whole_treedef, has_static, specialized)

    def flattened(
        self, args: Sequence[Any], kwargs: dict[str, Any], *, is_deep: bool = True
    ) -> tuple[list[Any], trees.TreeDef]:
        """Return the leaves and structure of a call; the object of a method is one leaf.

        With `is_deep`, dataclasses and attrs classes are nodes, unless they contain themselves.
        """
        if self.is_method and args:
            args = (_MethodObject(args[0]), *args[1:])
        tree = (tuple(args), kwargs)
        flatten = trees.flatten_deep if is_deep else trees.flatten
        try:
            leaves, treedef = flatten(tree)
        except NestingError:
            leaves, treedef = trees.flatten(tree)
        if self.is_method and args:
            leaves[0] = leaves[0].value
        return leaves, treedef

    def _bound(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        leaves: list[Any],
        treedef: trees.TreeDef,
        has_static: bool,
        specialized: Collection[str],
    ) -> Arguments:
        """Return the arguments of a call that is flattened."""
        positions: list[int] = []
        types: list[LeafType] = []
        static_keys: list[Hashable] = []
        leaves = [to_native_byte_order(leaf) for leaf in leaves]
        variable_numbers: dict[int, int] = {}  # by id: equal for one variable passed twice
        fixed = self._specialized_positions(leaves, treedef, specialized)
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, _StaticArgument):
                static_keys.append(self._key(leaf.value, index, treedef))
            elif index in fixed or (type(leaf) is int and not is_int64(leaf)):
                static_keys.append(key_of(leaf))
            elif self.is_method and not index:
                static_keys.append(ByIdentity(leaf))
            elif isinstance(leaf, TensorSpec):
                positions.append(index)
                types.append(leaf.leaf_type())
            elif isinstance(leaf, Variable):
                positions.append(index)
                number = variable_numbers.setdefault(id(leaf), len(variable_numbers))
                types.append(LeafType(leaf.type, variable=number))
            elif is_array_leaf(leaf):
                positions.append(index)
                types.append(leaf_type(leaf))
            else:
                static_keys.append(self._key(leaf, index, treedef))
        if has_static:
            leaves = unmarked(leaves)
        # Besides the leaves there are (args, kwargs), args and kwargs.
        node_count = treedef.num_nodes - len(leaves) - 3
        return Arguments(
            tuple(leaves),
            treedef,
            tuple(positions),
            tuple(types),
            tuple(static_keys),
            self.parameters,
            trees.metadata_key(treedef) if node_count > 0 else (),
            aliases_of(args, kwargs, leaves) if node_count > 1 else (),
        )

    def _specialized_positions(
        self, leaves: Sequence[Any], treedef: trees.TreeDef, specialized: Collection[str]
    ) -> Collection[int]:
        """Return the positions of integers whose values are part of the key."""
        if not specialized:
            return ()
        names = argument_paths(treedef, self.parameters)
        return {
            k
            for k, (leaf, name) in enumerate(zip(leaves, names, strict=True))
            if type(leaf) in recorded.INTEGERS and name in specialized
        }

    def bound_leaves(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """Return the leaves of a call in the order of `bind`."""
        args, kwargs, _ = self.canonical(args, kwargs)
        return unmarked(self.flattened(args, kwargs)[0])

    def marked(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments of a call, as they are given, with static ones marked."""
        if not self.static or self.inspected is None:
            return args, kwargs
        kinds = {p.kind: name for name, p in self._parameters()}
        names = (*self.parameters, *[kinds.get(inspect.Parameter.VAR_POSITIONAL)] * len(args))
        others = kinds.get(inspect.Parameter.VAR_KEYWORD)
        known = self.inspected.parameters

        def mark(name: str | None, value: Any) -> Any:
            return _StaticArgument(value) if name in self.static else value

        return (
            tuple([mark(name, x) for name, x in zip(names, args, strict=False)]),
            {key: mark(key if key in known else others, x) for key, x in kwargs.items()},
        )

    def _key(self, value: Any, index: int, treedef: trees.TreeDef) -> Hashable:
        try:
            return key_of(value)
        except NotKeyedError as error:
            path = argument_paths(treedef, self.parameters)[index]
            if isinstance(value, Staged):
                what = f"argument {path} is static, but was given {value!r}."
                cure = "give it a concrete value, or leave it out of static_argnames."
                raise refusal(TypeError(explain(what, cure=cure))) from None
            is_hashable = isinstance(error.value, Hashable)
            why = "whose contents may change" if is_hashable else "which has no hash"
            what = f"argument {path} is {type(value).__name__}, {why}."
            cure = _cure_of_unkeyed(error.value, path)
            raise refusal(TypeError(explain(what, cure=cure))) from None

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """Bind arguments to parameter names; only for functions that can be inspected.

        Raises:
            TypeError: they do not fit.
        """
        assert self.inspected is not None
        try:
            return bound_arguments(self.inspected, args, kwargs)
        except TypeError as error:
            described = f"{getattr(self.fun, '__name__', 'the function')}{self.inspected}"
            described = _error_of_call(self.fun, args, kwargs) or f"{described}: {error}"
            raise TypeError(described) from None

    def canonical(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any], bool]:
        """Return (args, kwargs), positional where possible, with static ones marked."""
        if self.inspected is None:
            return args, kwargs, False
        bound = self.bound(args, kwargs)
        static_names = self.static & bound.arguments.keys()
        for name in static_names:
            bound.arguments[name] = self._mark_static(name, bound.arguments[name])
        return bound.args, bound.kwargs, bool(static_names)

    def _mark_static(self, name: str, value: Any) -> Any:
        """Mark a static argument; `*args` and `**kwargs` are marked item by item."""
        assert self.inspected is not None
        kind = self.inspected.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return tuple(map(_StaticArgument, value))
        if kind is inspect.Parameter.VAR_KEYWORD:
            return {key: _StaticArgument(item) for key, item in value.items()}
        return _StaticArgument(value)


def _error_of_call(fun: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """Return Python's message for arguments that do not fit a function, which it does not run."""
    if type(fun) is not types.FunctionType or hasattr(fun, "__wrapped__"):
        return ""
    code = fun.__code__
    stub = types.FunctionType(
        _EMPTY.replace(
            co_name=code.co_name,
            co_qualname=code.co_qualname,
            co_argcount=code.co_argcount,
            co_posonlyargcount=code.co_posonlyargcount,
            co_kwonlyargcount=code.co_kwonlyargcount,
            co_flags=_EMPTY.co_flags | code.co_flags & _TAKES_MORE,
            co_nlocals=len(_parameters(code)),
            co_varnames=_parameters(code),
        ),
        {},
        fun.__name__,
        fun.__defaults__,
    )
    stub.__kwdefaults__, stub.__qualname__ = fun.__kwdefaults__, fun.__qualname__
    try:
        stub(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


def _parameters(code: types.CodeType) -> tuple[str, ...]:
    extra = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + extra]


_EMPTY = (lambda: None).__code__
_TAKES_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _cure_of_unkeyed(value: Any, path: str) -> str:
    """Return what to pass in place of a value whose contents may change."""
    for kind in (list, dict, set):
        if isinstance(value, kind) and type(value) is not kind:
            plain = "frozenset" if kind is set else kind.__name__
            name = type(value).__name__
            return f"pass {plain}({path}): {name}, a subclass of {kind.__name__}, is no pytree."
    if type(value).__module__.startswith("jax."):
        if str(getattr(value, "dtype", "")).startswith("key<"):
            return (
                f"pass its words, jax.random.key_data({path}); or a key of wend.random.key(seed)."
            )
        return 'JAX is tracing this call: use wend.interop.jax.as_jax(f), or backend="jax".'
    if isinstance(value, set):
        return "pass a frozenset, whose items are part of the signature; or a list."
    if not isinstance(value, np.ndarray) and shares_memory(value):
        return f"pass np.asarray({path}), which is traced; or bytes or a tuple of its items."
    return "pass arrays, numbers, or hashable values; lists and dicts of these."


def inspect_signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function; None for a builtin or ufunc, which is called as it is."""
    if isinstance(fun, np.ufunc):
        return None
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def callable_name(fun: Callable[..., Any]) -> str:
    """Return the name of a callable for messages; that of the function for a partial one."""
    if isinstance(fun, functools.partial):
        return callable_name(fun.func)
    return str(getattr(fun, "__name__", None) or type(fun).__name__)


def _is_in_class(fun: Callable[..., Any]) -> bool:
    """Return whether a function was defined in a class body."""
    outer = getattr(fun, "__qualname__", "").rpartition(".")[0]
    return isinstance(fun, types.FunctionType) and bool(outer) and not outer.endswith("<locals>")


class _StaticArgument:
    """Marks an argument that is part of the key, whatever its type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def unmarked(leaves: Iterable[Any]) -> list[Any]:
    """Return leaves with static arguments in place of their marks."""
    return [leaf.value if isinstance(leaf, _StaticArgument) else leaf for leaf in leaves]


class _MethodObject:
    """Marks the object of a method, which is known by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
