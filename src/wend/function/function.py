"""`wend.function`: traces a Python function once per signature, and runs the graph."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from wend.base import trees
from wend.base.config import settings
from wend.base.errors import TypeMismatchError, explain, listed
from wend.base.source import is_own
from wend.capture.convert import capture
from wend.capture.guard import user_traceback
from wend.eager.dispatch import Staged
from wend.function.concrete import ConcreteFunction
from wend.function.eager import run_python, runs_eagerly
from wend.function.signature import Arguments, Signature
from wend.function.spec import TensorSpec
from wend.trace.arguments import LeafType, leaf_type
from wend.trace.recording import Recording, current
from wend.trace.traced import trace_function
from wend.trace.tracer import Tracer


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

    def __init__(
        self,
        python_function: Callable[..., Any],
        *,
        input_signature: Sequence[Any] | None = None,
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
        capture: bool = True,
        backend: str | None = None,
        name: str | None = None,
        eagerly: Callable[..., Any] | None = None,
    ) -> None:
        if not callable(python_function):
            raise TypeError(f"wend.function takes a function, not {python_function!r}")
        self.python_function = python_function
        self.name = name or str(getattr(python_function, "__name__", "function"))
        self.backend = backend
        self.capture = capture
        self.signature = Signature(
            python_function,
            (static_argnums,) if isinstance(static_argnums, int) else static_argnums,
            (static_argnames,) if isinstance(static_argnames, str) else static_argnames,
        )
        # What runs in eager mode; functions that wend makes are traced unless they say.
        self.eagerly = eagerly or (None if _is_own(python_function) else python_function)
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._traces: dict[Hashable, ConcreteFunction] = {}
        self._lock = threading.RLock()
        functools.update_wrapper(self, python_function, updated=())

    def __repr__(self) -> str:
        return f"<wend.function {self.name}>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def trace_count(self) -> int:
        """How many signatures have been traced."""
        return len(self._traces)

    def concrete_functions(self) -> list[ConcreteFunction]:
        """Every trace there is."""
        return list(self._traces.values())

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
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        return self._find(self._bind(args, kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.eagerly is not None and runs_eagerly():
            if self.input_signature is not None:
                args, kwargs = self._fit(args, kwargs)
            return run_python(self.name, self.eagerly, args, kwargs)
        arguments = self._bind(args, kwargs)
        try:
            concrete = self._find(arguments)
        except Exception as error:
            # The user's own lines only; those of wend that are left out are no help.
            error.__traceback__ = user_traceback(error.__traceback__)
            raise
        recording = current()
        if recording is not None:
            return concrete.traced.call_in(recording, arguments.arrays, self.backend)
        return concrete.run(self.backend or settings().backend, arguments.arrays)

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        if self.input_signature is not None:
            args, kwargs = self._fit(args, kwargs)
        return self.signature.bind(args, kwargs)

    def _find(self, arguments: Arguments) -> ConcreteFunction:
        """The trace that serves these arguments, made now if there is none."""
        key = arguments.key
        if self.input_signature is not None:
            key = None  # one signature, one trace
        with self._lock:
            found = self._traces.get(key)
            if found is not None and _is_alive(found):
                return found
            concrete = self._trace(arguments)
            self._traces[key] = concrete
            return concrete

    def _trace(self, arguments: Arguments) -> ConcreteFunction:
        if self.input_signature is not None:
            specs, _ = trees.flatten(self.input_signature)
            given = self.signature.bind(trees.unflatten(_, specs), {})
            arguments = given
        traced = trace_function(
            capture(self.python_function) if self.capture else self.python_function,
            arguments.types,
            arguments.call,
            self.name,
            [f"argument {name}" for name in arguments.names()],
        )
        return ConcreteFunction(self.name, traced, arguments, self._bind, self.backend)

    def _fit(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments cast to the input signature.

        Raises:
            TypeMismatchError: one of them does not fit, by name.
        """
        assert self.input_signature is not None
        count = len(self.input_signature)
        if self.signature.inspected is not None:
            bound = self.signature.inspected.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        if len(args) != count or kwargs:
            given = listed([f"{len(args)} positional", *map(repr, kwargs)])
            raise TypeError(
                f"{self.name}: its input_signature is for {count} arguments, given {given}"
            )
        specs, spec_tree = trees.flatten(self.input_signature)
        leaves = trees.flatten_up_to(spec_tree, tuple(args))
        fitted = []
        for spec, leaf, path in zip(specs, leaves, trees.paths(spec_tree, "args"), strict=True):
            fitted.append(_fit_leaf(self.name, spec, leaf, path))
        return tuple(trees.unflatten(spec_tree, fitted)), {}


def _is_own(fun: Callable[..., Any]) -> bool:
    code = getattr(fun, "__code__", None)
    return code is not None and is_own(code.co_filename)


def _fit_leaf(name: str, spec: Any, leaf: Any, path: str) -> Any:
    if isinstance(leaf, TensorSpec):
        return leaf
    array = leaf if isinstance(leaf, Staged) or np.isscalar(leaf) else np.asarray(leaf)
    given = leaf_type(array)
    if isinstance(leaf, (list, tuple)):
        given = LeafType(given.type, weak=True)  # numbers of Python, as NumPy takes them
    if not spec.accepts(given):
        cure = f"cast it, or reshape it, to fit {spec}."
        raise TypeMismatchError(
            explain(f"{name}: {path} is {given}, its signature says {spec}.", cure=cure)
        )
    return array if isinstance(array, Staged) else np.asarray(array, spec.dtype)


def _is_alive(concrete: ConcreteFunction) -> bool:
    """Whether what a trace captures of outer traces can still be reached from here."""
    recording = current()
    for binding in concrete.traced.bindings:
        if isinstance(binding, Tracer):
            if recording is None or binding.read() is not binding:
                return False
            outer: Recording | None = recording
            while outer is not None and outer is not binding.recording:
                outer = outer.parent
            if outer is None or not outer.is_open:
                return False
    return True


class Options(TypedDict, total=False):
    """The options of `function`, by keyword."""

    input_signature: Sequence[Any] | None
    static_argnums: int | Sequence[int]
    static_argnames: str | Sequence[str]
    capture_by_value: bool
    reduce_retracing: str
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
    reduce_retracing: str = "auto",
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
        capture_by_value: not built yet.
        reduce_retracing: "auto"; other policies are not built yet.
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
    if capture_by_value:
        raise NotImplementedError("function(capture_by_value=True) is not built yet")
    if reduce_retracing != "auto":
        raise NotImplementedError(
            f"function(reduce_retracing={reduce_retracing!r}) is not built yet"
        )
    options: dict[str, Any] = {
        "input_signature": input_signature,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "capture": capture,
        "backend": backend,
        "name": name,
    }
    if fun is None:
        return lambda fun: Function(fun, **options)
    return Function(fun, **options)


jit = function  # the name that JAX and Numba use
