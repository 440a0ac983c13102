"""`wend.function`: traces a Python function once per signature, and runs the graph."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from wend.base import trees
from wend.base.errors import RetraceWarning
from wend.base.source import is_wend_file
from wend.capture.guards.reads import include_guards
from wend.function.cache import Trace, TraceCache
from wend.function.call_path import CallPath
from wend.function.concrete import ConcreteFunction
from wend.function.guard_checks import warn
from wend.function.report import Explanation
from wend.function.signature.binding import Binding
from wend.function.signature.signature import Arguments, Signature
from wend.function.tracing import Tracing
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current


class Function:
    """A function that is traced once per signature of its arguments; made by `wend.function`.

    Arrays and numbers are traced by dtype and shape, so other values of them do not trace again;
    anything else (strings, objects, static arguments) is part of the signature by value.

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

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
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
        self.python_function = python_function
        self.name = name or _name_of(python_function)
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
        # What runs in eager mode; functions that wend makes are traced unless they say.
        self.eagerly = eagerly or (None if _is_own(python_function) else python_function)
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._binding = Binding(self.name, self.signature, self.input_signature)
        self._tracing = Tracing(
            python_function, self.name, capture, capture_by_value, self._binding, backend
        )
        policy = reduce_retracing if input_signature is None else False
        # Those that derivatives make for a call are not the user's to keep.
        owner = python_function if is_users else None
        self._cache = TraceCache(self.name, self._tracing, policy, owner)
        self.__call__ = CallPath(self)  # type: ignore[method-assign]
        self._of_instances: dict[int, tuple[Any, Function]] = {}
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
        """By name where it is what its name stands for; else anew, without traces."""
        name, module = getattr(self, "__qualname__", ""), getattr(self, "__module__", "")
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (_remade, (self.python_function, self._options))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        leaves, _ = trees.flatten(instance)
        if len(leaves) != 1 or leaves[0] is not instance or is_array_leaf(instance):
            return functools.partial(self, instance)  # it holds arrays, which are traced
        return BoundFunction(self._for_instance(instance), instance)

    def _for_instance(self, instance: Any) -> Function:
        """The function of one instance, with traces of its own, as long as the instance lives."""
        found = self._of_instances.get(id(instance))
        if found is not None and found[0]() is instance:
            return found[1]
        made = self._of_instances
        number = id(instance)
        try:
            reference = weakref.ref(instance, lambda _: made.pop(number, None))
        except TypeError:  # it cannot be held weakly: its traces are with those of all
            return self
        own = Function(self.python_function, **{**self._options, "is_method": True})
        return made.setdefault(number, (reference, own))[1]

    @property
    def trace_count(self) -> int:
        """How many traces have been made; of a method those of all instances there are.

        A trace that made variables counts: it is dropped, and the function traced again.
        """
        own = self._of_instances.copy().values()
        return self._cache.count() + self._tracing.dropped + sum(fun.trace_count for _, fun in own)

    def concrete_functions(self) -> list[ConcreteFunction]:
        """Every trace there is."""
        found = [trace.concrete for trace in self._cache.traces.copy().values()]
        for _, fun in self._of_instances.copy().values():
            found += fun.concrete_functions()
        return found

    def explain(self) -> str:
        """Every trace with the reason why it was made, and the loops that Python ran in it.

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
        for reference, fun in self._of_instances.copy().values():
            lines.append(f"of {reference()!r:.60}, {fun.explain()}")
        return Explanation("\n".join(lines))

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments; `TensorSpec`s may stand for arrays.

        Example:
            >>> import wend
            >>> square = wend.function(lambda x: x * x)
            >>> print(square.get_concrete_function(wend.TensorSpec([], "float64")).graph)
            graph '<lambda>'(%0: f64[]) {
              %1: f64[] = mul(%0, %0)
              return %1
            }
        """
        if self.input_signature is not None and not kwargs:
            own = 1 if self.signature.is_method else 0
            if len(args) == own:
                args = (*args, *self.input_signature)
        return self._find(self._bind(args, kwargs))

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        return self._binding.bind(args, kwargs)

    def _find(self, arguments: Arguments) -> ConcreteFunction:
        """The trace that serves these arguments, made now if there is none."""
        return self._trace_for(arguments).concrete

    def _trace_for(self, arguments: Arguments) -> Trace:
        key = arguments.key if self.input_signature is None else None  # one signature, one trace
        within = current() is not None
        found = self._cache.find(key)
        while found is None or self._cache.is_outdated(found, look=within):
            found, warning = self._cache.find_or_make(key, self._binding.as_declared(arguments))
            if warning is not None:
                warn(RetraceWarning, warning)
            self._cache.tell_of_changes()
        if within:
            include_guards(found.watch.reads)
        return found


class BoundFunction:
    """A method that is a `wend.function`, of one instance, which has traces of its own.

    Attributes:
        function: the function of that instance.
        instance: the instance; as long as it lives, so do its traces.
    """

    def __init__(self, function: Function, instance: Any) -> None:
        self.function, self.instance = function, instance
        functools.update_wrapper(self, functools.partial(function, instance), ("__doc__",), ())
        self.__name__ = function.name

    def __repr__(self) -> str:
        return f"<wend.function {self.function.name} of {self.instance!r:.60}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.instance, self.function.python_function.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.instance, *args, **kwargs)

    @property
    def python_function(self) -> Any:
        """The method in Python."""
        return types.MethodType(self.function.python_function, self.instance)

    @property
    def trace_count(self) -> int:
        """How many traces have been made for this instance."""
        return self.function.trace_count

    def concrete_functions(self) -> list[ConcreteFunction]:
        """Every trace of this instance."""
        return self.function.concrete_functions()

    def explain(self) -> str:
        """Every trace of this instance with the reason why it was made."""
        return self.function.explain()

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments; `TensorSpec`s may stand for arrays."""
        return self.function.get_concrete_function(self.instance, *args, **kwargs)


def _name_of(fun: Callable[..., Any]) -> str:
    if isinstance(fun, functools.partial):
        return _name_of(fun.func)
    return str(getattr(fun, "__name__", None) or type(fun).__name__)


def _remade(fun: Callable[..., Any], options: dict[str, Any]) -> Function:
    """What a pickled function becomes that no name stands for."""
    return Function(fun, **options)


def _is_own(fun: Callable[..., Any]) -> bool:
    code = getattr(fun, "__code__", None)
    return code is not None and is_wend_file(code.co_filename)


class Options(TypedDict, total=False):
    """The options of `function`, by keyword."""

    input_signature: Sequence[Any] | None
    static_argnums: int | Sequence[int]
    static_argnames: str | Sequence[str]
    capture_by_value: bool
    reduce_retracing: bool | str
    backend: str | None
    name: str | None


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
) -> Function | Callable[[Callable[..., Any]], Function]:
    """Trace a Python function over NumPy arrays once per signature, and run it compiled.

    Args:
        fun: the function; without it, a decorator is returned.
        input_signature: `TensorSpec`s for the arguments, for exactly one trace.
        static_argnums: arguments, by position, whose values are part of the signature.
        static_argnames: the same, by name.
        capture: let Python's own `while`, `for` and `if` be recorded.
        capture_by_value: let arrays and variables that it reads from outside be constants, as they
            are when it is traced: what is assigned to them later is not seen, and there are no
            gradients with respect to them. Functions that it calls read constants too.
        reduce_retracing: "auto": where a second shape of equal rank comes, the sizes that differ
            become unknown, and others do not trace again; a function that cannot be traced so is
            traced for each shape. Sizes 0 and 1 stay what they are. True: sizes are unknown from
            the first trace. False: a trace for each shape.
        backend: what runs it: `"numpy"` or `"native"`; None: `wend.config`'s.
        name: a name for graphs and messages.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> @wend.function
        ... def norm(x):
        ...     return wnp.sqrt(wnp.sum(x * x))
        >>> norm(wnp.asarray([3.0, 4.0]))
        np.float64(5.0)
    """
    options: dict[str, Any] = {
        "input_signature": input_signature,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "capture": capture,
        "capture_by_value": capture_by_value,
        "reduce_retracing": reduce_retracing,
        "backend": backend,
        "name": name,
        "is_users": True,
    }
    if fun is None:
        return lambda fun: Function(fun, **options)
    return Function(fun, **options)


jit = function  # the name that JAX and Numba use
