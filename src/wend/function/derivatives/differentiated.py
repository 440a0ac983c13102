"""Calls to be differentiated, with `argnums` as in `jax`."""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import NotDifferentiableError, StructureError, TypeMismatchError, explain
from wend.base.lazy.cached_property import cached_property
from wend.capture.convert import capture
from wend.capture.state.paths import IntegerReached
from wend.eager.promotion import tensor_type
from wend.function.function import Function
from wend.function.signature.signature import Arguments, Signature
from wend.function.specialization import trace_specialized
from wend.ir.types import TensorType, is_differentiable
from wend.trace.aliasing.rebuilt_containers import numbered
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current
from wend.trace.trace_function import trace_function
from wend.trace.traced import Traced


def derived(
    fun: Callable[..., Any],
    body: Callable[..., Any],
    prefix: str,
    name: str | None = None,
    eagerly: Callable[..., Any] | None = None,
) -> Function:
    """Return a `Function` with the arguments of `fun` that is traced by running `body`.

    `eagerly` runs in eager mode; if None, the function is traced then, too.
    """
    name = name or getattr(fun, "__name__", "function")
    return Function(
        functools.wraps(fun, updated=())(body),
        input_signature=fun.input_signature if isinstance(fun, Function) else None,
        static_argnames=sorted(signature_of(fun).static),
        capture_by_value=isinstance(fun, Function) and fun.capture_by_value,
        backend=fun.backend if isinstance(fun, Function) else None,
        name=f"{prefix}_{name}",
        eagerly=eagerly,
        reduce_retracing=fun.reduce_retracing if isinstance(fun, Function) else "auto",
    )


def signature_of(fun: Callable[..., Any]) -> Signature:
    """Return how calls of a function are bound."""
    return fun.signature if isinstance(fun, Function) else Signature(fun)


def check_argnums(fun: Callable[..., Any], what: str, argnums: Any) -> None:
    """Check that `argnums` are ints; for a name the error tells its position.

    Raises:
        TypeMismatchError: one is not an int.
    """
    for number in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        if isinstance(number, (int, np.integer)) and not isinstance(number, bool):
            continue
        parameter_names = list(getattr(signature_of(fun).inspected, "parameters", ()))
        cure = "count the arguments from 0: argnums=0, or argnums=(0, 2) for several."
        if number in parameter_names:
            cure = f"write argnums={parameter_names.index(number)}, where {number} stands."
        name = getattr(fun, "__name__", "function")
        problem = f"{what} of {name}: argnums must be positions, not {number!r}."
        raise TypeMismatchError(explain(problem, cure=cure))


class DifferentiatedCall:
    """A call to be differentiated in the current trace.

    `what` is the derivative for messages: "grad of f". With `has_aux` the function returns a pair
    of the differentiated value and auxiliary data.
    """

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: int | Sequence[int],
        has_aux: bool,
    ) -> None:
        self.what, self.has_aux = what, has_aux
        self.is_single = not isinstance(argnums, Sequence)
        argnum_list = argnums if isinstance(argnums, Sequence) else (argnums,)
        self.name = str(getattr(fun, "__name__", "function"))
        self.argnums = [self._position(number, len(args)) for number in argnum_list]
        self.fun = fun.python_function if isinstance(fun, Function) else fun
        self.capture = not isinstance(fun, Function) or fun.capture
        args = [self._as_float(a, k) if k in self.argnums else a for k, a in enumerate(args)]
        self._bind = functools.partial(signature_of(fun).bind, args, kwargs)
        self.arguments = self._bind()
        refuse_objects(self.what, self.arguments, self._chosen_positions())

    def _position(self, number: int, count: int) -> int:
        if not -count <= number < count:
            call_text = "1 positional argument" if count == 1 else f"{count} positional arguments"
            problem = f"{self.what}: argnums={number}, but it was called with {call_text}."
            cure = "pass what is differentiated by position, and count from 0."
            raise TypeMismatchError(explain(problem, cure=cure))
        return number % count

    def _as_float(self, argument: Any, number: int) -> Any:
        """Convert a Python int to a float; refuse arrays of integers."""
        is_weak = type(argument) is int or (isinstance(argument, Tracer) and argument.weak)
        if is_weak and tensor_type(argument).dtype.kind == "i":
            return weak_float(argument)
        if is_array_leaf(argument) and tensor_type(argument).dtype.kind not in "fc":
            raise NotDifferentiableError(
                explain(
                    f"{self.what}: argument {number} is {tensor_type(argument)}, "
                    "which has no derivative.",
                    cure="pass floats (x.astype(float)), or choose another argument by argnums.",
                )
            )
        return argument

    def trace(self) -> Traced:
        """Trace the function.

        Raises:
            NotDifferentiableError: it changes a differentiated argument in place.
        """
        traced, self.arguments, _ = trace_specialized(self._trace, self.arguments, self._bind)
        outer = current()
        if outer is not None:
            outer.notes.update(dict.fromkeys(traced.notes))
        for k in sorted({*self.wrt} & {*traced.written}):
            problem = f"{self.what}: argument {self.arguments.names()[k]} is changed in place."
            raise NotDifferentiableError(
                explain(problem, cure="change a copy of it: x = x.copy().")
            )
        return traced

    def _trace(self, arguments: Arguments) -> Traced:
        reached: list[IntegerReached] = []

        def call(fun: Callable[..., Any], arrays: Sequence[Any]) -> Any:
            try:
                return arguments.call(fun, arrays)
            except IntegerReached as integer:
                reached.append(integer)
                return integer.integer

        traced = trace_function(
            capture(self.fun) if self.capture else self.fun,
            arguments.types,
            call,
            self.name,
            [f"argument {name}" for name in arguments.names()],
        )
        recording = current()
        if reached and recording is not None:  # the trace around this one returns the integer
            raise IntegerReached(traced.call_in(recording, arguments.arrays))
        return traced

    def _chosen_positions(self) -> set[int]:
        """Return the indices, among all leaves, of those of the chosen arguments."""
        args = self.arguments.numbered()
        return {
            position for number in self.argnums for position in trees.flatten_deep(args[number])[0]
        }

    @cached_property
    def wrt(self) -> list[int]:
        """The indices, among the traced leaves, of the float leaves of the chosen arguments."""
        chosen_positions = self._chosen_positions()
        typed_positions = zip(self.arguments.traced_positions, self.arguments.types, strict=True)
        return [
            k
            for k, (position, type) in enumerate(typed_positions)
            if position in chosen_positions and is_differentiable(type.type)
        ]

    def wrt_types(self) -> list[tuple[str, TensorType]]:
        """Return the names and types of those leaves."""
        names = self.arguments.names()
        return [(names[k], self.arguments.types[k].type) for k in self.wrt]

    def unflatten_argnums(self, by_index: Mapping[int, Any]) -> Any:
        """Return values for these leaves in the structure of the chosen arguments."""
        args = self.arguments.positional(by_index)
        chosen = tuple(args[number] for number in self.argnums)
        return chosen[0] if self.is_single else chosen


# What holds no arrays, so that None in place of its derivative says all
_PLAIN = (
    *(str, bytes, int, float, complex, range, slice, type, types.EllipsisType, enum.Enum),
    *(
        types.FunctionType,
        types.BuiltinFunctionType,
        types.ModuleType,
        np.ufunc,
        np.dtype,
        Function,
    ),
)


def refuse_objects(what: str, arguments: Arguments, positions: Collection[int]) -> None:
    """Refuse to differentiate with respect to objects, whose arrays no derivative would have.

    Raises:
        NotDifferentiableError: a leaf at one of the positions is an object that is no pytree.
    """
    traced = {*arguments.traced_positions}
    for k in sorted({*positions} - traced):
        if isinstance(leaf := arguments.leaves[k], _PLAIN):
            continue
        kind, name = type(leaf).__name__, arguments.all_names()[k]
        cure = (
            f"pass the arrays of the {kind}, such as a dict of them, or register the class by "
            f"wend.register_pytree_node({kind}, …)."
        )
        problem = f"{what}: argument {name} is an object of class {kind}, which is no pytree."
        raise NotDifferentiableError(explain(problem, cure=cure))


def differentiated_part(what: str, tree: trees.TreeDef, has_aux: bool) -> Any:
    """Return the structure of the value without the aux, with its leaves numbered.

    Raises:
        StructureError: there is an aux, and the value is not a pair.
    """
    value = numbered(tree)
    if not has_aux:
        return value
    if not isinstance(value, tuple) or len(value) != 2:
        raise StructureError(f"{what}: has_aux=True takes a pair (value, aux)")
    return value[0]


def is_number(part: Any, count: int) -> bool:
    """Return whether a part of a numbered structure is the number of a leaf, and no constant."""
    return type(part) is int and 0 <= part < count


def weak_float(x: Any) -> Any:
    """Convert a Python int, which may be traced, to a float."""
    if not isinstance(x, Tracer):
        return float(x)
    recording = current()
    assert recording is not None
    return Tracer(recording.b.cast(recording.lift(x), np.float64), recording, weak=True)
