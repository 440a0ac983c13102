"""The stages of a call of a `wend.function`: compiled code, a known trace, or a new trace."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wend.backends.fastcall import FALLBACK
from wend.backends.protocol import choose
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import ShapeError
from wend.base.keys import key_of, match_of
from wend.base.refusals import forget, is_refusal
from wend.capture.calls import call
from wend.capture.heap.locations import log_write_contents
from wend.capture.stage.guard import user_traceback, without_head
from wend.capture.state.paths import deciding_test
from wend.eager.dispatch import recorder
from wend.function.concrete import ConcreteFunction
from wend.function.eager import run_python, runs_eagerly
from wend.function.fast_path import ContainerPlan, FastPath, LeafPlan
from wend.function.outside.lifting import (
    call_lifted,
    changing_numbers,
    key_of_arrays,
    lifted_key,
    may_lift,
    refuse_numbers,
    take_numbers,
)
from wend.function.signature.defaults import EqualCall, default_checks, equal_calls
from wend.function.signature.signature import unmarked
from wend.trace.aliasing.containers import aliases_of, containers_in, whole
from wend.trace.aliasing.passed_containers import (
    CallerContainers,
    PassedContainers,
    caller_containers,
)
from wend.trace.failed_traces import take_arguments, take_recorded
from wend.trace.recording.recording import Recording, current

if TYPE_CHECKING:
    from wend.function.cache import Trace
    from wend.function.function import Function
    from wend.function.signature.signature import Arguments
    from wend.trace.traced import Traced


class CallPath:
    """The call of one function, in three stages.

    1. *fast*: the compiled code of a trace that has served calls checks the arguments itself.
    2. *by shape*: arguments that are all arrays and numbers are looked up by dtype and shape.
    3. *traced*: arguments are bound to the signature, and their trace is found or made.

    `Function.__call__` is an attribute of each instance: first a `CallPath`, later the compiled
    code itself, which falls back to the `CallPath` for arguments it does not accept. A Python
    method in front of it would double the time of a call.
    """

    __slots__ = ("_function", "_installed")

    def __init__(self, function: Function) -> None:
        self._function = weakref.ref(function)  # weak, since the function holds this object
        self._installed: FastPath | None = None  # the one that is the function's `__call__`

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        function = self._function()
        if function is None:
            raise ReferenceError(
                "the wend.function of this __call__ is gone: keep a reference to it"
            )
        try:
            return self._call_fast(function, args, kwargs)
        except Exception as error:
            error.__traceback__ = without_head(error.__traceback__)
            raise

    def _call_fast(self, function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call the first fast path that accepts the arguments; install the last one used."""
        fast_paths = function._cache.fast_paths
        if not fast_paths:
            return _call_by_shape(function, args, kwargs)
        try:
            result = fast_paths.call(args, kwargs)
        except ValueError:
            if fast_paths.failed is not None:
                _explain_shape_error(function, fast_paths.failed, args, kwargs)
            raise
        if result is FALLBACK:
            result = _call_by_shape(function, args, kwargs)
        if fast_paths.first is not self._installed:
            self._installed = fast_paths.first
            if self._installed is not None:
                function.__call__ = self._installed.call_or(self)  # type: ignore[method-assign]
        return result


def _call_by_shape(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run the trace known for arrays and numbers of these dtypes and shapes."""
    if kwargs or recorder.get() is not None or settings().eager:
        return _call_traced(function, args, kwargs)
    self_count = 1 if function.signature.is_method else 0
    arrays = args[self_count:]
    trace = function._cache.find_by_shape(arrays)
    if trace is None:
        return _call_traced(function, args, kwargs)
    backend = function.backend or settings().backend
    if function._cache.fast_paths.repays(trace, backend):
        plan = LeafPlan(range(self_count, len(args)), len(args))
        function._cache.install_fast_path(trace, plan, backend)
    try:
        return trace.concrete.run(backend, arrays)
    except ValueError:
        _explain_shape_error(function, trace, args, {})
        raise


def _call_traced(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Bind the arguments, find or make their trace, and run it or record a call of it."""
    if function.makes_generators:
        return _make_generator(function, args, kwargs)
    if function.eagerly is not None and runs_eagerly():
        if function.input_signature is not None:
            args, kwargs = function._binding.coerce(args, kwargs)
        return run_python(function.name, function.eagerly, args, kwargs)
    if current() is None and _is_in_foreign_trace(function, args, kwargs):
        from wend.interop.jax.traced_calls import call_in_trace  # which imports functions

        return call_in_trace(function, args, kwargs)
    if function._twins:
        result = _call_twin(function, args, kwargs, key_of_arrays(function, args, kwargs))
        if result is not FALLBACK:
            return result
    arguments = function._bind(args, kwargs)
    if function._twins:
        result = _call_twin(function, args, kwargs, lifted_key(arguments))
        if result is not FALLBACK:
            return result
    if current() is None and function._paths.has(arguments.key):
        return _call_on_path(function, args, kwargs, arguments)
    if current() is None and not function._cache.knows(arguments.key):
        equal = _known_equal(function, args, kwargs)
        if equal is not None:
            return _call_equal(function, arguments, args, kwargs, *equal)
    traces = function._cache.traces_of(arguments.key)
    if current() is None and (changing := changing_numbers(traces)):
        key = lifted_key(arguments)
        take_numbers(function, key, changing)
        result = _call_twin(function, args, kwargs, key)
        if result is not FALLBACK:
            return result
    failure = None
    try:
        trace, arguments = function._trace_or_specialize(arguments, args, kwargs)
    except Exception as error:
        if may_lift(function, error) or (current() is None and deciding_test(error) is not None):
            failure = error
        else:
            _run_recorded(function, error, arguments, args, kwargs)
            # Keep only the user's frames; those of wend do not help.
            error.__traceback__ = user_traceback(error.__traceback__)
            raise
    if failure is not None:  # not where it is handled: the user's code would see it as the context
        try:
            if may_lift(function, failure):
                result = _call_lifted(function, args, kwargs, lifted_key(arguments), failure)
            else:
                result = _call_on_path(function, args, kwargs, arguments, failure)
            failure.__traceback__ = None  # its frames hold objects of the user's
        finally:
            del failure
        return result
    concrete, recording = trace.concrete.for_call(), current()
    caller = _caller_of(function, concrete.traced, arguments, args, kwargs)
    if recording is not None:
        return _call_in(function, concrete.traced, arguments, recording, caller)
    self_count = 1 if function.signature.is_method else 0
    if not kwargs and _is_flat(arguments, args, self_count):
        function._cache.remember_by_shape(args[self_count:], trace)
    backend = function.backend or settings().backend
    if function._cache.fast_paths.repays(trace, backend):
        plan = _leaf_plan(function, args, kwargs, arguments)
        if plan is not None:
            function._cache.install_fast_path(trace, plan, backend)
    return _run(function, trace, concrete, arguments, backend, caller)


def _is_in_foreign_trace(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Return whether the system that the backend compiles by is tracing the call."""
    tracer_types = choose(function.backend or settings().backend).boundary.tracer_types
    if not tracer_types:
        return False
    return any(isinstance(leaf, tracer_types) for leaf in trees.flatten((args, kwargs))[0])


def _run(
    function: Function,
    trace: Trace,
    concrete: ConcreteFunction,
    arguments: Arguments,
    backend: str,
    caller: Callable[[], PassedContainers] | None = None,
) -> Any:
    """Run what a call of a trace runs, and explain the error of shapes that do not fit."""
    trace.is_used = True
    try:
        return concrete.run(backend, arguments.arrays, caller)
    except ValueError:
        if not trace.accepts_zero_one:
            _raise_static_shape_error(function, arguments)
        raise


def _known_equal(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[EqualCall, Trace, Arguments] | None:
    """Return an equal call that has a trace, with the trace, if there is one."""
    if function.input_signature is not None:
        return None
    for equal in equal_calls(function.signature, args, kwargs):
        call = equal.args, equal.kwargs
        arguments = function._bind(*call)
        if function._cache.knows(arguments.key):
            trace = function._cache.find(arguments.key)
            if trace is None or trace.concrete.traced.has_passed_containers:
                continue
            if _caller_of(function, trace.concrete.traced, arguments, *call) is None:
                return equal, trace, arguments
    return None


def _call_equal(
    function: Function,
    bound: Arguments,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    equal: EqualCall,
    trace: Trace,
    arguments: Arguments,
) -> Any:
    """Run the trace of an equal call, in which other arguments are omitted."""
    backend = function.backend or settings().backend
    if function._cache.fast_paths.repays(trace, backend):
        compared = equal.compared(bound)
        plan = _leaf_plan(function, args, kwargs, compared)
        if plan is None and _is_flat(compared, args, int(function.signature.is_method)):
            plan = LeafPlan(range(len(args))[function.signature.is_method :], len(args))
        if plan is not None:
            plan = _filled(plan, function, equal, arguments)
        if plan is not None and not (plan.defaults and trace.concrete.traced.written):
            function._cache.install_fast_path(trace, plan, backend)
    return _run(function, trace, trace.concrete.for_call(), arguments, backend)


def _filled(plan: LeafPlan, function: Function, equal: EqualCall, arguments: Arguments) -> LeafPlan:
    """Return the plan of a call for a trace that takes the defaults left out in it."""
    names, positions = arguments.all_names(), iter(plan.positions)
    filled = [k for k in arguments.traced_positions if names[k] in equal.filled]
    return replace(
        plan,
        positions=[None if k in filled else next(positions) for k in arguments.traced_positions],
        defaults=[arguments.leaves[k] for k in filled],
        checks=default_checks(function.python_function, equal.filled) if equal.filled else (),
    )


def _make_generator(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return a generator, which Python runs: its caller decides when it goes on, and when it ends.

    What it calls is compiled. In a trace, it is what the function that is not decorated makes.
    """
    make = function.python_function
    return (make if current() is None else call(make))(*args, **kwargs)


def _call_twin(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], key: Hashable
) -> Any:
    """Call the twin for a key; return `FALLBACK` if there is none, or none is needed after all."""
    twin = function._twins.get(key)
    if twin is None or (current() is not None and not twin.is_needed):
        return FALLBACK
    try:
        return _call_lifted(function, args, kwargs, key)
    except Exception as error:
        if twin.is_needed or not is_refusal(error):
            raise
    refuse_numbers(function, key)
    return FALLBACK


def _call_lifted(
    function: Function,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    key: Hashable,
    failure: Any = None,
) -> Any:
    """Call a function that changes state of outside; a trace around it takes that itself."""
    if current() is None:
        try:
            return call_lifted(function, key, args, kwargs, failure)
        except Exception as error:
            error.__traceback__ = user_traceback(error.__traceback__)
            raise
    if failure is not None:
        forget(failure)
    return call(function.python_function)(*args, **kwargs)


def _call_on_path(
    function: Function,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    arguments: Arguments,
    failure: Exception | None = None,
) -> Any:
    """Run a trace for the path that the call takes, since one for all paths was refused."""

    def trace_for(on_path: Arguments) -> Trace:
        try:
            return function._trace_for(on_path)
        except Exception as error:
            _run_recorded(function, error, on_path, args, kwargs)
            raise

    def run(trace: Trace) -> Any:
        concrete, recording = trace.concrete.for_call(), current()
        caller = _caller_of(function, concrete.traced, arguments, args, kwargs)
        if recording is not None and concrete.traced.has_passed_containers:
            return _call_in(function, concrete.traced, arguments, recording, caller)
        return concrete.run(function.backend or settings().backend, arguments.arrays, caller)

    try:
        return function._paths.run(arguments, trace_for, run, failure)
    except Exception as error:
        error.__traceback__ = user_traceback(error.__traceback__)
        raise


def _caller_of(
    function: Function,
    traced: Traced,
    arguments: Arguments,
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Callable[[], PassedContainers] | None:
    """Return what returns the containers of the caller; None if a trace leaves them alone."""
    if not traced.states and not traced.has_passed_containers:
        return None

    def caller() -> PassedContainers:
        positional, by_name, _ = function.signature.canonical(args, kwargs)
        return PassedContainers(positional, by_name, arguments.leaves)

    return caller


def _call_in(
    function: Function,
    traced: Traced,
    arguments: Arguments,
    recording: Recording,
    caller: Callable[[], PassedContainers] | None,
) -> Any:
    """Record a call of a trace, which may change or return containers of the caller."""
    passed = None if caller is None else caller()
    if passed is not None and traced.changes_containers:
        for container in passed.containers:
            read = _reader(container)
            log_write_contents(read, f"an argument of {function.name}.", is_nested=False)
    return traced.call_in(recording, arguments.arrays, function.backend, caller=passed)


def _reader(container: Any) -> Callable[[], Any]:
    return lambda: container


def _run_recorded(
    function: Function,
    error: Exception,
    arguments: Arguments,
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> None:
    """Run what a trace has recorded before an error has ended it; inside another, record a call."""
    traced, recording = take_recorded(error), current()
    if traced is None:
        return
    arguments = take_arguments(error) or arguments  # those of a trace for values of integers
    caller = _caller_of(function, traced, arguments, args, kwargs)
    if recording is not None:
        _call_in(function, traced, arguments, recording, caller)
        return
    concrete = ConcreteFunction(
        function.name, traced, arguments, function._binding, function.backend
    )
    concrete.run("numpy", arguments.arrays, caller)


def _leaf_plan(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], arguments: Arguments
) -> LeafPlan | None:
    """Return how to flatten calls structured like this one; None if flat, or declared."""
    signature = function.signature
    self_count = 1 if signature.is_method else 0
    if function.input_signature is not None:
        return None
    if not kwargs:
        has_variables = any(x.variable is not None for x in arguments.types)
        if _is_flat(arguments, args, self_count) and not has_variables:
            return None  # they are found by shape
        plan = _direct_plan(arguments, args, self_count)
        if plan is not None:
            return plan
    leaves, tree = signature.flattened(*signature.marked(args, kwargs))
    if len(leaves) != len(arguments.leaves):
        return None  # an instance of which the arguments are not told by parts
    leaves = unmarked(leaves)
    positions = signature.bound_leaves(*trees.unflatten(tree, range(len(leaves))))
    keys = arguments.keys_by_position()
    checks = {positions[k]: (leaves[positions[k]], keys[k]) for k in [*keys][self_count:]}

    def caller(args: Sequence[Any], kwargs: dict[str, Any]) -> CallerContainers:
        bound = signature.bound_leaves(args, kwargs)
        args, kwargs, _ = signature.canonical(args, kwargs)
        return caller_containers(args, kwargs, bound)

    traced_positions = [positions[k] for k in arguments.traced_positions]
    order = _container_order((args, kwargs), signature.canonical(args, kwargs)[:2], arguments)
    if order is None:
        return None  # another call of this structure may pass two containers, where this has one
    containers = ContainerPlan(order, positions)
    return LeafPlan(traced_positions, len(leaves), tree, checks, caller, containers)


def _container_order(call: Any, canonical: Any, arguments: Arguments) -> Sequence[int] | None:
    """Return where the containers of a canonical call are among those of the call.

    None if one of them is there twice.
    """
    args, kwargs = canonical
    if aliases_of(args, kwargs, arguments.leaves):
        return None
    places = {id(x): k for k, x in enumerate(containers_in(call, whole(arguments.leaves)))}
    # That of the keyword arguments, which is no other's, may be another dict.
    names = id(call[1])
    return [
        places.get(id(x), places[names]) for x in containers_in(canonical, whole(arguments.leaves))
    ]


def _direct_plan(arguments: Arguments, args: Sequence[Any], self_count: int) -> LeafPlan | None:
    """Return the plan of calls whose arguments compiled code takes or compares one by one."""
    keys, leaves = arguments.keys_by_position(), arguments.leaves
    indices: dict[int, int] = {}
    static: dict[int, tuple[Any, Hashable]] = {}
    k = self_count
    for index, argument in enumerate(args[self_count:], self_count):
        if k < len(leaves) and leaves[k] is argument:
            key = keys.get(k)
            if k not in keys:
                indices[k] = index
            elif match_of(argument, key) is None:
                return None
            else:
                static[index] = argument, key
            k += 1
        elif argument is None:  # part of the structure
            static[index] = None, key_of(None)
        else:
            return None
    if k != len(leaves):
        return None
    return LeafPlan([indices[k] for k in arguments.traced_positions], len(args), static=static)


def _is_flat(arguments: Arguments, args: Sequence[Any], self_count: int) -> bool:
    """Return whether the traced leaves are exactly the arguments after `self`."""
    arrays = arguments.arrays
    if len(arrays) != len(args) - self_count or len(arguments.leaves) != len(args):
        return False
    return all(array is arg for array, arg in zip(arrays, args[self_count:], strict=True))


def _explain_shape_error(
    function: Function, trace: Trace, args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Raise the error of a trace with static sizes, if this trace has symbolic ones."""
    if not trace.accepts_zero_one:
        _raise_static_shape_error(function, function._bind(args, kwargs))


def _raise_static_shape_error(function: Function, arguments: Arguments) -> None:
    """Trace with static sizes, and raise its error in place of the one at run time."""
    try:
        function._cache.build(arguments)
    except ShapeError as error:
        take_recorded(error)  # the run has changed the arguments
        error.__traceback__ = user_traceback(error.__traceback__)
        raise error from None
