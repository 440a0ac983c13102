"""Functions with the traces that a file holds, and no Python to trace for other arguments."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Collection, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.refusals import refusal
from wend.capture.convert import do_not_capture
from wend.eager.promotion import cast
from wend.function.concrete import ConcreteFunction
from wend.function.function import Function
from wend.function.report import summarize
from wend.function.signature.shape_relaxation import SPECIALIZED_SIZES
from wend.function.signature.signature import Arguments
from wend.ir.types import Dim, Symbol, accepts
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.recording import current
from wend.trace.traced import Traced


@dataclass(frozen=True, slots=True)
class FixedTrace:
    """One trace of a function with fixed traces.

    Attributes:
        traced: the graph with its calling convention.
        arguments: the arguments that it was made for, with types in place of arrays.
        accepts_zero_one: whether its symbolic sizes may be 0 or 1.
    """

    traced: Traced
    arguments: Arguments
    accepts_zero_one: bool = True


def function_of_traces(
    name: str,
    parameters: Sequence[inspect.Parameter],
    traces: Sequence[FixedTrace],
    *,
    origin: str,
    static: Collection[str] = (),
    input_signature: Sequence[Any] | None = None,
    backend: str | None = None,
    owned: Sequence[Any] = (),
) -> Function:
    """Return a function that has these traces only.

    Args:
        name: its name.
        parameters: its parameters; one with a default may be left out in the calls that were traced
            without it.
        traces: the traces.
        origin: where they come from, for `explain`.
        static: the names of the static parameters.
        input_signature: `TensorSpec`s for its arguments, to which calls cast.
        backend: the backend that runs it.
        owned: objects that live as long as the function: the variables that it uses.
    """
    dispatch = _Dispatch(traces)

    @do_not_capture
    def call(*args: Any, **kwargs: Any) -> Any:
        return dispatch(args, kwargs)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"A function of {origin}."
    function = Function(
        call,
        static_argnames=sorted(static),
        input_signature=input_signature,
        reduce_retracing=False,
        backend=backend,
        name=name,
    )
    dispatch.adopt(function, owned)
    for trace, concrete in zip(traces, dispatch.concrete, strict=True):
        function._cache.include(
            concrete,
            trace.arguments,
            keyed=input_signature is None,
            reason=origin,
            accepts_zero_one=trace.accepts_zero_one,
        )
    return function


class _Dispatch:
    """Finds the trace for arguments, and records a call of it."""

    def __init__(self, traces: Sequence[FixedTrace]) -> None:
        self.traces = traces
        self.concrete: list[ConcreteFunction] = []

    def adopt(self, function: Function, owned: Sequence[Any]) -> None:
        """Make the concrete functions of a function, which from now on owns the variables."""
        self._function = weakref.ref(function)
        function.__dict__["_owned"] = tuple(owned)
        self.concrete = [
            ConcreteFunction(
                function.name, trace.traced, trace.arguments, function._binding, function.backend
            )
            for trace in self.traces
        ]
        self._name, self._binding, self._owned = function.name, function._binding, tuple(owned)

    def __call__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        arguments = self._binding.bind(args, kwargs)
        concrete, arrays = self._find(arguments)
        recording = current()
        if recording is None:
            return concrete.run(concrete.backend or "native", arrays)
        return concrete.traced.call_in(recording, arrays, concrete.backend, inlined=True)

    def _find(self, arguments: Arguments) -> tuple[ConcreteFunction, list[Any]]:
        """Return the first trace that accepts the arguments, and the arrays cast to its types.

        Raises:
            TypeMismatchError: there is none; the message lists them.
        """
        for casts in (False, True):
            for trace, concrete in zip(self.traces, self.concrete, strict=True):
                if _accepts(trace, arguments, casts=casts):
                    pairs = zip(arguments.arrays, trace.arguments.types, strict=True)
                    return concrete, [_as_type(array, type) for array, type in pairs]
        signatures = [f"({summarize(trace.arguments)})" for trace in self.traces]
        raise refusal(
            TypeMismatchError(
                explain(
                    f"{self._name} has no trace for ({summarize(arguments)}).",
                    f"it was saved for {'; '.join(signatures) or 'nothing'}",
                    cure="cast the arguments to one of these, or save it again after a call with "
                    "such arguments.",
                )
            )
        )


def _accepts(trace: FixedTrace, arguments: Arguments, *, casts: bool) -> bool:
    """Return whether a trace accepts arguments, perhaps by a cast of Python numbers."""
    own = trace.arguments
    is_same = (
        trees.is_similar_structure(own.treedef, arguments.treedef)
        and own.traced_positions == arguments.traced_positions
        and own.static_keys == arguments.static_keys
    )
    if not is_same:
        return False
    sizes: dict[Symbol, Dim] = {}
    for type, actual in zip(own.types, arguments.types, strict=True):
        actual_type = actual.type
        if casts and actual.weak and _can_cast(actual, type):
            actual_type = actual_type.with_dtype(type.type.dtype)
        if actual.variable != type.variable or not accepts(type.type, actual_type, sizes):
            return False
    return trace.accepts_zero_one or not any(size in SPECIALIZED_SIZES for size in sizes.values())


def _can_cast(actual: LeafType, type: LeafType) -> bool:
    kinds = "biufc"
    return kinds.index(actual.type.dtype.kind) <= kinds.index(type.type.dtype.kind)


def _as_type(array: Any, type: LeafType) -> Any:
    return array if type.variable is not None else cast(array, type.type.dtype)
