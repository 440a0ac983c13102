"""`wend.function`: traces a Python function once per signature, and runs the graph."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from wend.backends.protocol import check_backend
from wend.base import trees
from wend.base.config import traced_settings
from wend.base.errors import RetraceWarning, listed
from wend.base.source import is_wend_file, warn
from wend.capture.guards.guards import include_guards
from wend.capture.lookups.traced_keys import allow_stores
from wend.function.cache import Trace, TraceCache
from wend.function.call_path import CallPath
from wend.function.concrete import ConcreteFunction
from wend.function.outside.lifting import may_lift
from wend.function.outside.twins import Twin
from wend.function.path_traces import PathTraces
from wend.function.report import Explanation
from wend.function.signature.binding import Binding
from wend.function.signature.shardings import ShardedFunction
from wend.function.signature.signature import Arguments, Signature, callable_name
from wend.function.specialization import trace_specialized
from wend.function.tracing import Tracing
from wend.trace.control.listed_texts import allow_later_texts
from wend.trace.failed_traces import attach_arguments
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current


class Function:
    """A function that is traced once per signature of its arguments; made by `wend.function`.

    Arrays and numbers are keyed by dtype and shape, so other values do not trace again. Everything
    else (strings, objects, static arguments) is part of the signature by value.

    Example:
        >>> import wend
        >>> scaled = wend.function(lambda x, unit: x * {"m": 1.0, "km": 1000.0}[unit])
        >>> scaled(2.0, "km"), scaled(3.0, "km"), scaled(2.0, "m")
        (np.float64(2000.0), np.float64(3000.0), np.float64(2.0))
        >>> scaled.trace_count
        2
    """

    # `__call__` is an attribute of each function (see `CallPath`).
    __slots__ = ("__call__", "__dict__", "__weakref__")
    if TYPE_CHECKING:

        def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
            """Run the trace for these arguments, made now if there is none."""

    def __init__(
        self,
        python_function: Callable[..., Any],
        *,
        input_signature: Sequence[Any] | None = None,
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
        capture: bool = True,
        capture_by_value: bool = False,
        reduce_retracing: bool | str = "auto",
        backend: str | None = None,
        name: str | None = None,
        eagerly: Callable[..., Any] | None = None,
        is_method: bool = False,
        is_users: bool = False,
    ) -> None:
        if not callable(python_function):
            raise TypeError(f"wend.function takes a function, not {python_function!r}")
        if reduce_retracing not in (True, False, "auto"):
            raise ValueError(f"reduce_retracing is 'auto', True or False, not {reduce_retracing!r}")
        if backend is not None:
            check_backend(backend)
        self.python_function = python_function
        self.name = name or callable_name(python_function)
        self.backend = backend
        self.capture = capture
        self.capture_by_value = capture_by_value
        self.reduce_retracing = reduce_retracing
        self.signature = Signature(
            python_function,
            (static_argnums,) if isinstance(static_argnums, int) else static_argnums,
            (static_argnames,) if isinstance(static_argnames, str) else static_argnames,
            is_method,
        )
        # Runs in eager mode; functions that wend makes are traced there, too, unless they pass one.
        self.eagerly = eagerly or (None if _is_wend_code(python_function) else python_function)
        self.makes_generators = inspect.isgeneratorfunction(python_function)
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._binding = Binding(self.name, self.signature, self.input_signature)
        self._tracing = Tracing(
            python_function, self.name, capture, capture_by_value, self._binding, backend
        )
        policy = reduce_retracing if input_signature is None else False
        # Functions that derivatives make for one call deserve no redefinition warning.
        owner = python_function if is_users else None
        self._cache = TraceCache(self.name, self._tracing, policy, owner)
        self._paths = PathTraces()
        self.foreign_traces: Any = None  # of calls that another system has traced
        self.__call__ = CallPath(self)  # type: ignore[method-assign]
        self._specialized: frozenset[str] = frozenset()  # paths of leaves (D37)
        self._instance_functions: dict[int, tuple[Any, Function]] = {}
        self._refused_numbers: set[Hashable] = set()  # places of numbers that no twin takes
        self._twins: dict[Hashable, Twin] = {}  # that take state of outside (`outside/`)
        self._options: dict[str, Any] = {
            "input_signature": self.input_signature,
            "static_argnames": sorted(self.signature.static),
            "capture": capture,
            "capture_by_value": capture_by_value,
            "reduce_retracing": reduce_retracing,
            "backend": backend,
            "name": self.name,
            "eagerly": eagerly,
            "is_method": is_method,
            "is_users": is_users,
        }
        functools.update_wrapper(self, python_function, updated=())

    def __repr__(self) -> str:
        return f"<wend.function {self.name}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name if that refers to this function, otherwise rebuild it without traces.

        A function from a file has traces only: they are pickled as the bytes of `wend.save`.
        """
        if self.__dict__.get("_owned") is not None:
            from wend.saving.pickled import reduce_function  # which imports this module

            return reduce_function(self)
        name, module = getattr(self, "__qualname__", ""), getattr(self, "__module__", "")
        resolved: Any = sys.modules.get(module)
        for part in name.split("."):
            resolved = getattr(resolved, part, None)
        if resolved is self and not (module == "__main__" and _is_pickled_by_value()):
            return name
        return _rebuild, (self.python_function, self._options)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        entry = self._instance_functions.get(id(instance))
        if entry is not None and entry[0]() is instance:
            return BoundFunction(entry[1], instance)
        leaves, _ = trees.flatten(instance)
        if len(leaves) != 1 or leaves[0] is not instance or is_array_leaf(instance):
            return functools.partial(self, instance)  # a pytree: its arrays are traced
        return BoundFunction(self._for_instance(instance), instance)

    def _for_instance(self, instance: Any) -> Function:
        """Make the function of one instance, with traces that live as long as the instance."""
        instance_functions = self._instance_functions
        instance_id = id(instance)
        try:
            reference = weakref.ref(instance, lambda _: instance_functions.pop(instance_id, None))
        except TypeError:  # not weakly referenceable: instances share traces
            return self
        instance_function = Function(self.python_function, **{**self._options, "is_method": True})
        return instance_functions.setdefault(instance_id, (reference, instance_function))[1]

    @property
    def trace_count(self) -> int:
        """How many traces have been made, for a method over all living instances.

        A trace that made variables counts, although it is dropped and the function traced again.
        """
        instance_entries = self._instance_functions.copy().values()
        return (
            self._cache.count()
            + self._tracing.dropped
            + sum(twin.function.trace_count for twin in self._twins.copy().values())
            + sum(fun.trace_count for _, fun in instance_entries)
        )

    def current_traces(self) -> list[Trace]:
        """Return the traces that serve calls now: nothing that they have read has changed."""
        return self._cache.valid_traces()

    def concrete_functions(self) -> list[ConcreteFunction]:
        """Return all traces."""
        concrete = [trace.concrete for trace in self._cache.traces.copy().values()]
        for _, fun in self._instance_functions.copy().values():
            concrete += fun.concrete_functions()
        for twin in self._twins.copy().values():
            concrete += twin.function.concrete_functions()
        return concrete

    def explain(self) -> str:
        """Return a text on every trace, why it was made, and the loops that Python unrolled in it.

        Example:
            >>> import wend
            >>> scaled = wend.function(lambda x, unit: x * {"m": 1.0, "km": 1000.0}[unit])
            >>> scaled(2.0, "km"), scaled(2.0, "m")
            (np.float64(2000.0), np.float64(2.0))
            >>> scaled.explain()
            <lambda>: 2 traces
            1. x float, unit 'km'
               the first trace, at <doctest explain[2]>:1
            2. x float, unit 'm'
               unlike trace 1: unit is 'm', not 'km', at <doctest explain[2]>:1
        """
        count = self._cache.count()
        lines = [f"{self.name}: {count} trace{'' if count == 1 else 's'}", *self._cache.lines()]
        for reference, fun in self._instance_functions.copy().values():
            lines.append(f"of {reference()!r:.60}, {fun.explain()}")
        for twin in self._twins.copy().values():
            labels = listed(f"`{label}`" for label in twin.places.current())
            lines.append(f"with {labels} as arguments, {twin.function.explain()}")
        return Explanation("\n".join(lines))

    def get_concrete_function(self, /, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for these arguments; a `TensorSpec` may take the place of an array.

        Example:
            >>> import wend
            >>> square = wend.function(lambda x: x * x)
            >>> print(square.get_concrete_function(wend.TensorSpec([], "float64")).graph)
            graph '<lambda>'(%0: f64[]) {
              %1: f64[] = mul(%0, %0)
              return %1
            }
        """
        passes_none = len(args) == int(self.signature.is_method) and not kwargs
        if self.input_signature is not None and passes_none:
            args = (*args, *self.input_signature)
        return self._find(args, kwargs)[0]

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        return self._binding.bind(args, kwargs, self._specialized)

    def _find(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[ConcreteFunction, Arguments]:
        """Return the concrete function for a call, and the arguments that it takes."""
        arguments = self._bind(args, kwargs)
        trace, arguments = self._trace_or_specialize(arguments, args, kwargs)
        return trace.concrete, arguments

    def _trace_or_specialize(
        self, arguments: Arguments, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Trace, Arguments]:
        """Return the trace for a call, specialized on ints where tracing them is refused (D37)."""
        return allow_stores(
            lambda: allow_later_texts(lambda: self._specialized_trace(arguments, args, kwargs))
        )

    def _specialized_trace(
        self, arguments: Arguments, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Trace, Arguments]:
        if self.input_signature is not None or self.capture_by_value:
            return self._trace_for(arguments), arguments

        def rebind(names: frozenset[str]) -> Arguments:
            return self._binding.bind(args, kwargs, self._specialized | names)

        trace, arguments, names = trace_specialized(
            self._trace_for, arguments, rebind, functools.partial(may_lift, self)
        )
        if names:
            self._specialized |= names
            trace.notes += (f"specialized on {listed(sorted(names))}: Python needs the value",)
        return trace, arguments

    def _trace_for(self, arguments: Arguments) -> Trace:
        # An input signature has a single trace for each of the settings that traces read.
        key = arguments.key if self.input_signature is None else traced_settings()
        trace = self._cache.find(key)
        if trace is None:
            try:
                trace, warning = self._cache.find_or_trace(
                    key,
                    self._binding.with_declared_types(arguments),
                    self if current() is None else None,
                )
            except Exception as error:
                attach_arguments(error, arguments)
                raise
            if warning is not None:
                warn(warning, RetraceWarning)
        if current() is not None:
            include_guards(trace.guards)
        return trace


class BoundFunction:
    """A method that is a `wend.function`, bound to one instance, with its own traces.

    Attributes:
        function: the function of that instance.
        instance: the instance; the traces live as long as it does.
    """

    def __init__(self, function: Function, instance: Any) -> None:
        self.function, self.instance = function, instance
        self.__name__, self.__doc__ = function.name, function.__doc__
        self.__wrapped__ = functools.partial(function, instance)

    def __repr__(self) -> str:
        return f"<wend.function {self.function.name} of {self.instance!r:.60}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.instance, self.function.python_function.__name__)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.instance, *args, **kwargs)

    @property
    def python_function(self) -> Any:
        """The bound Python method."""
        return types.MethodType(self.function.python_function, self.instance)

    @property
    def trace_count(self) -> int:
        """How many traces have been made for this instance."""
        return self.function.trace_count

    def concrete_functions(self) -> list[ConcreteFunction]:
        """Return all traces of this instance."""
        return self.function.concrete_functions()

    def explain(self) -> str:
        """Return a text on every trace of this instance and why it was made."""
        return self.function.explain()

    def get_concrete_function(self, /, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for these arguments; a `TensorSpec` may take the place of an array."""
        return self.function.get_concrete_function(self.instance, *args, **kwargs)


def _rebuild(fun: Callable[..., Any], options: dict[str, Any]) -> Function:
    """Rebuild a pickled function that cannot be found by name."""
    return Function(fun, **options)


def _is_pickled_by_value() -> bool:
    """Return whether `cloudpickle` asks: it sends functions of a script or notebook by value."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__") == "cloudpickle.cloudpickle":
            return True
        frame = frame.f_back
    return False


def _is_wend_code(fun: Callable[..., Any]) -> bool:
    code = getattr(fun, "__code__", None)
    return code is not None and is_wend_file(code.co_filename)


class Options(TypedDict, total=False):
    """The keyword options of `function`."""

    input_signature: Sequence[Any] | None
    static_argnums: int | Sequence[int]
    static_argnames: str | Sequence[str]
    capture_by_value: bool
    reduce_retracing: bool | str
    backend: str | None
    name: str | None
    in_shardings: Any
    out_shardings: Any


@overload
def function(fun: Callable[..., Any], **options: Unpack[Options]) -> Function: ...
@overload
def function(
    fun: None = None, **options: Unpack[Options]
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    fun: Callable[..., Any] | None = None,
    *,
    input_signature: Sequence[Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    capture: bool = True,
    capture_by_value: bool = False,
    reduce_retracing: bool | str = "auto",
    backend: str | None = None,
    name: str | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Function | Callable[[Callable[..., Any]], Function]:
    """Trace a Python function over NumPy arrays once per signature, and run it compiled.

    A generator function makes generators that Python runs; what they call is compiled.

    Args:
        fun: the function; without it, a decorator is returned.
        input_signature: `TensorSpec`s for the arguments, for exactly one trace.
        static_argnums: arguments, by position, whose values are part of the signature.
        static_argnames: the same, by name.
        capture: whether Python's own `while`, `for` and `if` are recorded.
        capture_by_value: whether arrays and variables that it reads from outside are constants with
            the values at the time of tracing. Later assignments to them are not seen, and they have
            no gradients. The same holds for the functions that it calls.
        reduce_retracing: "auto": when an argument has another shape of equal rank, the sizes that
            differ become unknown, and further ones do not trace again; a function that cannot be
            traced so is traced for each shape. Sizes 0 and 1 stay known. True: sizes are unknown
            from the first trace, and ranks from the third of different rank, where the function
            does not need them. False: one trace per shape.
        backend: the backend that runs it, `"numpy"` or `"native"`; None: that of `wend.config`.
        name: a name for graphs and messages.
        in_shardings: with `backend="jax"`, where positional arguments lie on several devices, as in
            `jax.jit`: a `jax.sharding.Sharding` or None for all of them, or a tuple of one for each
            but static ones, which may hold containers that the argument begins with. None: where
            the argument is. Gradients lie where their arguments do.
        out_shardings: the same for the result.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> @wend.function
        ... def norm(x):
        ...     return wnp.sqrt(wnp.sum(x * x))
        >>> norm(wnp.asarray([3.0, 4.0]))
        np.float64(5.0)
    """
    make: Callable[..., Function] = functools.partial(
        Function,
        input_signature=input_signature,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        capture=capture,
        capture_by_value=capture_by_value,
        reduce_retracing=reduce_retracing,
        backend=backend,
        name=name,
        is_users=True,
    )
    if in_shardings is not None or out_shardings is not None:
        static = static_argnums, static_argnames
        make = _sharding(make, in_shardings, out_shardings, *static, capture, backend)
    return make if fun is None else make(fun)


def _sharding(
    make: Callable[..., Function],
    in_shardings: Any,
    out_shardings: Any,
    static_argnums: int | Sequence[int],
    static_argnames: str | Sequence[str],
    capture: bool,
    backend: str | None,
) -> Callable[..., Function]:
    """Return what makes functions whose arguments or results have shardings."""
    numbers = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames

    def make_sharded(fun: Callable[..., Any]) -> Function:
        signature, shardings = Signature(fun, numbers, names), (in_shardings, out_shardings)
        sharded = ShardedFunction(fun, *shardings, signature, backend, captures=capture)
        return make(sharded, eagerly=fun)

    return make_sharded


jit = function  # the name in JAX and Numba
