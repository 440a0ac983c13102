"""Calls of a function that enter compiled code directly, after a trace has served some calls."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from wend.backends.build import kind
from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallConstant,
    CallOperand,
    CallSignature,
    CallStatic,
    FastCall,
    Guard,
    GuardCheck,
)
from wend.backends.protocol import Explains, FastCallable
from wend.base import trees
from wend.base.config import Settings, settings, settings_storage
from wend.base.errors import VariableError
from wend.base.keys import check_of, key_of, match_of
from wend.base.lazy.dataclass import dataclass
from wend.base.pytree_codegen import Flatten, Unflatten, compile_flatten
from wend.eager.dispatch import recorder
from wend.ir.op import Effect
from wend.ops.effects import only_draws
from wend.runtime.partial_writes import attach_contents, take_contents
from wend.runtime.storage import Storage, StorageOwner, bind_variables
from wend.trace.aliasing.passed_containers import CallerContainers
from wend.trace.control.returned_containers import unflatten_compiled
from wend.trace.recording.arguments import LeafType

if TYPE_CHECKING:
    from wend.function.cache import Trace
    from wend.trace.traced import Traced

_MAX_FAST_PATHS = 8  # they are tried one after another, so many would slow down every miss
Caller = Callable[[Sequence[Any], dict[str, Any]], CallerContainers]
_NOT_RECORDED = Guard(recorder, None, None)


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """How the containers of a call map to those of a trace, each of which is another one.

    Attributes:
        positions: for each container of the trace, the index of that of the call.
        leaves: for each leaf of the trace, the index of that of the call.
    """

    positions: Sequence[int]
    leaves: Sequence[int]

    def of(self, leaves: Sequence[Any], containers: Sequence[Any]) -> CallerContainers | None:
        """Return the containers of a call; None if one is there twice."""
        if len({*map(id, containers)}) < len(containers):
            return None
        return CallerContainers(
            [containers[k] for k in self.positions], [leaves[k] for k in self.leaves]
        )


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """How the leaves of a call map to the inputs of a trace.

    Attributes:
        positions: for each traced array, the index of its argument, or of its leaf; None: it is a
            default that the call leaves out.
        leaf_count: the number of arguments or leaves.
        tree: the structure of (args, kwargs); None if the arguments are the leaves.
        static: the arguments or leaves that are part of the trace's key, with their keys, by index.
            Compiled code can compare them if they are arguments.
        caller: returns the containers among (args, kwargs).
        containers: how to find them among those of (args, kwargs).
        defaults: the numbers that the call leaves out, in order.
        checks: hold while these are the defaults.
    """

    positions: Sequence[int | None]
    leaf_count: int
    tree: trees.TreeDef | None = None
    static: Mapping[int, tuple[Any, Hashable]] = field(default_factory=dict)
    caller: Caller | None = None
    containers: ContainerPlan | None = None
    defaults: Sequence[Any] = ()
    checks: Sequence[GuardCheck] = ()


@dataclass(slots=True)
class FastPath:
    """A trace with a callable into its compiled code.

    Attributes:
        trace: the trace.
        fast_call: the fast call of its executable.
        call: takes the leaves; returns `FALLBACK` where the trace does not accept them.
        flatten: returns the leaves of (args, kwargs); None if the arguments are the leaves.
        is_direct: whether no Python runs around the compiled code, not even after an error.
        settings: the settings under which it serves calls.
        checks: checks besides the guards of the trace.
        direct_call: the callable that `call_or` has built.
        caller: returns the containers among (args, kwargs).
        containers: how to find them if they change, or are part of the result; else None.
    """

    trace: Trace
    fast_call: FastCall
    call: Callable[..., Any]
    flatten: Flatten | None = None
    is_direct: bool = False
    settings: Settings | None = None
    checks: Sequence[GuardCheck] = ()
    direct_call: Callable[..., Any] | None = None
    caller: Caller | None = None
    containers: ContainerPlan | None = None

    def write_containers(
        self, error: BaseException, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        """Write what a failed call has left in lists and dicts of the arguments."""
        traced = self.trace.concrete.traced
        if self.caller is not None and traced.states:
            traced.write_containers(take_contents(error), self.caller(args, kwargs))

    def rebuild(self, results: Sequence[Any], caller: CallerContainers) -> Any:
        """Return the result of a call; the containers of its caller change."""
        return self.trace.concrete.traced.rebuild(results, caller)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callable for calls: the compiled code itself if possible, else `otherwise`."""
        if not self.is_direct:
            return otherwise
        if self.direct_call is None:
            self.direct_call = self.fast_call.call_or(otherwise)
        return self.direct_call


class FastPaths:
    """The fast paths of one function.

    Attributes:
        first: the last one that served a call, among those whose arguments are the leaves.
        failed: the trace whose run raised last.
    """

    def __init__(self) -> None:
        self.first: FastPath | None = None
        self.failed: Trace | None = None
        self._by_key: dict[Hashable, FastPath] = {}
        # Each time there are too many, traces have to serve more calls before their next one: what
        # is compiled for a list of each length that a program comes by would never pay.
        self._min_requests = 1

    def __len__(self) -> int:
        return len(self._by_key)

    def clear(self) -> None:
        """Stop all fast paths."""
        self.first = None
        for fast_path in self._by_key.values():
            fast_path.fast_call.stop()
        self._by_key = {}

    def remove(self, trace: Trace) -> None:
        """Stop the fast paths of a trace that was dropped."""
        for key, fast_path in self._by_key.copy().items():
            if fast_path.trace is trace:
                fast_path.fast_call.stop()
                self._by_key.pop(key, None)
                if self.first is fast_path:
                    self.first = None

    def call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call the first fast path that accepts the arguments; return `FALLBACK` if there is none.

        Raises:
            ValueError: from the run of the trace `failed`.
        """
        first = self.first
        if first is not None and not kwargs:
            result = self._call(first, args)
            if result is not FALLBACK:
                return result
        if recorder.get() is not None:
            return FALLBACK
        for fast_path in (*self._by_key.values(),):
            leaves: Sequence[Any] | None = None
            caller: CallerContainers | None = None
            if fast_path.flatten is not None:
                leaves = fast_path.flatten((args, kwargs))
            elif not kwargs and fast_path is not first:
                leaves = args
            if leaves is None:
                continue
            if fast_path.containers is not None:
                leaves, containers = leaves
                caller = fast_path.containers.of(leaves, containers)
                if caller is None:
                    continue
            try:
                result = self._call(fast_path, leaves)
            except BaseException as error:
                fast_path.write_containers(error, args, kwargs)
                raise
            if result is not FALLBACK:
                self.first = fast_path if fast_path.flatten is None else self.first
                return result if caller is None else fast_path.rebuild(result, caller)
        return FALLBACK

    def _call(self, fast_path: FastPath, leaves: Sequence[Any]) -> Any:
        try:
            return fast_path.call(*leaves)
        except ValueError:
            self.failed = fast_path.trace
            raise

    def repays(self, trace: Trace, backend: str) -> bool:
        """Note a call of a trace by way of Python; return whether a fast path is worth making."""
        if not trace.is_used or backend in trace.slow_backends:
            return False
        trace.slow_calls += 1
        return trace.slow_calls >= self._min_requests

    def install(self, trace: Trace, plan: LeafPlan, backend: str, counter: ctypes.c_int64) -> None:
        """Allow direct calls into the code of a trace, while its guards hold.

        Args:
            trace: the trace, whose guards hold.
            plan: how leaves of calls map to its inputs.
            backend: the backend that runs it.
            counter: counts the direct calls.
        """
        static_keys = tuple([(k, key) for k, (_, key) in plan.static.items()])
        structure = plan.tree, plan.leaf_count, tuple(plan.positions)
        key = id(trace), kind(backend), *structure, static_keys, tuple(map(key_of, plan.defaults))
        fast_path = self._by_key.get(key)
        if fast_path is None:
            run = trace.concrete.compiled.executable(backend)
            if isinstance(run, FastCallable) and not run.repays_fast_calls(trace.slow_calls):
                return
            fast_path = _build_fast_path(trace, plan, backend, counter)
            if fast_path is None:
                trace.slow_backends.add(backend)
                return
            if len(self._by_key) >= _MAX_FAST_PATHS:
                self.clear()
                self._min_requests *= 4
            self._by_key[key] = fast_path
        if [*map(_expected_id, fast_path.checks)] != [*map(_expected_id, plan.checks)]:
            fast_path.checks, fast_path.settings = plan.checks, None  # to be set below
        if _set_guards(fast_path) and plan.tree is None:
            self.first = fast_path


def _expected_id(check: GuardCheck) -> int:
    return id(check.expected)


def _set_guards(fast_path: FastPath) -> bool:
    """Make a fast path serve under the settings in force; return whether its guards hold."""
    fast_call, before, in_force = fast_path.fast_call, fast_path.settings, settings()
    if before is None or before.guards != in_force.guards or fast_call.has_stale_checks:
        checks = fast_path.trace.guards.checks() if in_force.guards else []
        if checks is None:
            return False
        fast_call.set_checks([*checks, *fast_path.checks])
    if before is not in_force:
        fast_call.set_guard(1, in_force)
        fast_path.settings = in_force
    return True


def _build_fast_path(
    trace: Trace, plan: LeafPlan, backend: str, counter: ctypes.c_int64
) -> FastPath | None:
    """Return the fast path of a trace; None if each call needs some work in Python."""
    concrete = trace.concrete
    traced = concrete.traced
    takes_containers = traced.has_passed_containers
    has_python_work = traced.pending or (takes_containers and plan.containers is None)
    has_effects = traced.has_world and Effect.WORLD in traced.graph.effects()
    has_python_effects = has_effects and not only_draws(traced.graph)
    if has_python_work or has_python_effects or not traced.is_closed():
        return None
    passed = _passed_variables(traced, plan, concrete.input_types)
    if passed is None:
        return None
    defaults = iter(plan.defaults)
    operands: list[CallOperand] = [
        CallConstant(type.type.dtype.type(next(defaults)))
        if position is None
        else CallArgument(position, type.weak, trace.accepts_zero_one, bool(type.zero_dim))
        for position, type in zip(plan.positions, concrete.input_types, strict=True)
    ]
    operands += [None] if traced.has_world else []
    count = plan.leaf_count
    variables = [x for x in traced.captured if isinstance(x, Storage)]
    variable_positions = iter(range(count, count + len(variables)))
    operands += [
        CallArgument(next(variable_positions)) if isinstance(x, Storage) else CallConstant(x)
        for x in traced.captured
    ]
    tree = traced.rebuilt_tree
    guards = (_NOT_RECORDED, Guard(*settings_storage(), None))  # until `_set_guards`
    is_single = tree.is_leaf() and not traced.written
    result_count = len(traced.result_types) + len(traced.written)
    signature = CallSignature(
        tuple(operands),
        count + len(variables),
        result_count,
        is_single,
        guards,
        _compared(plan) if plan.tree is None else (),
        counter,
        copies_arrays=not traced.written,
    )
    run = concrete.compiled.executable(backend)
    if has_effects and isinstance(run, Explains) and run.host_nodes:
        return None  # Python makes draws
    fast_call = run.fast_call(signature) if isinstance(run, FastCallable) else None
    if fast_call is None:
        return None
    call = fast_call.call
    if variables:
        call = _with_variables(call, variables)
    if passed:
        call = _with_passed_variables(call, passed)
    if traced.written:
        call = _with_writes(call, traced, [k for k in plan.positions if k is not None])
    is_flat = tree.is_leaf() or tree == trees.flatten_deep((0,) * tree.num_leaves)[1]
    if tree.is_leaf() and traced.written:
        call = _with_structure(call, operator.itemgetter(0))
    elif not is_flat and not takes_containers:  # for those, `FastPath.rebuild` builds the result
        call = _with_structure(call, unflatten_compiled(tree))
    if plan.tree is None:
        return FastPath(
            trace, fast_call, call, is_direct=call is fast_call.call and trace.accepts_zero_one
        )
    checks = {k: check_of(leaf, key) for k, (leaf, key) in plan.static.items()}
    flatten = compile_flatten(trees.numbered(plan.tree), checks, with_containers=takes_containers)
    if flatten is None:
        return None
    containers = plan.containers if takes_containers else None
    return FastPath(trace, fast_call, call, flatten, caller=plan.caller, containers=containers)


def _compared(plan: LeafPlan) -> tuple[CallStatic, ...]:
    """Return the arguments that compiled code compares."""
    return tuple(
        CallStatic(k, value, match)
        for k, (value, key) in plan.static.items()
        if (match := match_of(value, key)) is not None
    )


def _passed_variables(
    traced: Traced, plan: LeafPlan, types: Sequence[LeafType]
) -> Mapping[int, Storage | None] | None:
    """Return the positions of arguments that are variables, with their storages in the trace.

    None if Python has to tell whether two of them, or one and a captured one, are the same.
    """
    numbers = [x.variable for x in types if x.variable is not None]
    is_captured = any(isinstance(x, Storage) for x in traced.captured)
    if len({*numbers}) < len(numbers) or (traced.passed and is_captured):
        return None
    storages = {k: storage for storage, k in traced.passed}
    return {
        position: storages.get(k)
        for k, (position, x) in enumerate(zip(plan.positions, types, strict=True))
        if x.variable is not None and position is not None
    }


def _with_passed_variables(
    call: Callable[..., Any], passed: Mapping[int, Storage | None]
) -> Callable[..., Any]:
    """Return a callable that takes variables in the place of their values."""
    bound = {storage: k for k, storage in passed.items() if storage is not None}

    def call_with_passed_variables(*args: Any) -> Any:
        variables = [args[k] for k in passed]
        if not all(isinstance(x, StorageOwner) for x in variables):
            return FALLBACK
        if len(variables) > 1 and len({*map(id, variables)}) < len(variables):
            return FALLBACK
        values = [*args]
        try:
            for k in passed:
                values[k] = args[k].concrete
        except VariableError:
            return FALLBACK
        if not bound:
            return call(*values)
        with bind_variables({storage: args[k] for storage, k in bound.items()}):
            return call(*values)

    return call_with_passed_variables


def _with_variables(call: Callable[..., Any], storages: Sequence[Storage]) -> Callable[..., Any]:
    def call_with_variables(*args: Any) -> Any:
        try:
            values = [storage.owner.concrete for storage in storages]
        except VariableError:  # one is gone: an error, unless its name now refers to another
            return FALLBACK
        return call(*args, *values)

    return call_with_variables


def _with_writes(
    call: Callable[..., Any], traced: Traced, positions: Sequence[int]
) -> Callable[..., Any]:
    """Return a callable that also writes to the arguments that the function mutates."""

    def call_with_writes(*args: Any) -> Any:
        try:
            results = call(*args)
        except BaseException as error:
            told = traced.write_contents([args[position] for position in positions], error)
            if told:
                attach_contents(error, told)
            raise
        if results is FALLBACK:
            return FALLBACK
        leaves = [args[position] for position in positions]
        traced.check_no_alias(leaves)
        return traced.write_results(leaves, results)

    return call_with_writes


def _with_structure(call: Callable[..., Any], build: Unflatten) -> Callable[..., Any]:
    def call_with_structure(*args: Any) -> Any:
        leaves = call(*args)
        return leaves if leaves is FALLBACK else build(leaves)

    return call_with_structure
