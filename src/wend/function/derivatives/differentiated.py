"""A call of a function with what a derivative is taken with respect to: `argnums` of `jax`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import (
    NotDifferentiableError,
    StructureError,
    TypeMismatchError,
    explain,
)
from wend.capture.convert import capture
from wend.eager.promotion import tensor_type
from wend.function.function import Function
from wend.function.signature.signature import Signature
from wend.ir.types import TensorType, is_differentiable
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current
from wend.trace.traced import Traced, trace_function


def derived(
    fun: Callable[..., Any],
    run: Callable[..., Any],
    prefix: str,
    name: str | None = None,
    eagerly: Callable[..., Any] | None = None,
) -> Function:
    """A `Function` of the same arguments as `fun` that is traced by running `run`.

    `eagerly`: what runs in eager mode; None: it is traced then too.
    """
    name = name or getattr(fun, "__name__", "function")
    return Function(
        functools.wraps(fun, updated=())(run),
        input_signature=fun.input_signature if isinstance(fun, Function) else None,
        static_argnames=sorted(signature_of(fun).static),
        capture_by_value=isinstance(fun, Function) and fun.capture_by_value,
        backend=fun.backend if isinstance(fun, Function) else None,
        name=f"{prefix}_{name}",
        eagerly=eagerly,
        reduce_retracing=fun.reduce_retracing if isinstance(fun, Function) else "auto",
    )


def signature_of(fun: Callable[..., Any]) -> Signature:
    """How calls of a function are bound."""
    return fun.signature if isinstance(fun, Function) else Signature(fun)


def check_argnums(fun: Callable[..., Any], what: str, argnums: Any) -> None:
    """Positions are ints; a name is told the position that it has.

    Raises:
        TypeMismatchError: one is no int.
    """
    for number in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        if isinstance(number, (int, np.integer)) and not isinstance(number, bool):
            continue
        known = list(getattr(signature_of(fun).inspected, "parameters", ()))
        cure = "count the arguments from 0: argnums=0, or argnums=(0, 2) for several."
        if number in known:
            cure = f"write argnums={known.index(number)}, where {number} stands."
        name = getattr(fun, "__name__", "function")
        found = f"{what} of {name}: argnums must be positions, not {number!r}."
        raise TypeMismatchError(explain(found, cure=cure))


class Differentiated:
    """A call to be differentiated in the trace that is under way.

    Args:
        what: which derivative, for messages: "grad of f".
        fun: the function.
        args: its positional arguments.
        kwargs: its keyword arguments.
        argnums: which positional arguments to differentiate with respect to.
        has_aux: whether it returns a pair of what is differentiated and something else.
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
        numbers = argnums if isinstance(argnums, Sequence) else (argnums,)
        self.name = str(getattr(fun, "__name__", "function"))
        self.numbers = [self._position(number, len(args)) for number in numbers]
        self.fun = fun.python_function if isinstance(fun, Function) else fun
        self.captures = not isinstance(fun, Function) or fun.capture
        chosen = set(self.numbers)
        args = [self._floating(a, k) if k in chosen else a for k, a in enumerate(args)]
        self.arguments = signature_of(fun).bind(args, kwargs)

    def _position(self, number: int, count: int) -> int:
        if not -count <= number < count:
            given = "1 positional argument" if count == 1 else f"{count} positional arguments"
            found = f"{self.what}: argnums={number}, but it was called with {given}."
            cure = "pass what is differentiated by position, and count from 0."
            raise TypeMismatchError(explain(found, cure=cure))
        return number % count

    def _floating(self, argument: Any, number: int) -> Any:
        """An argument to differentiate: Python ints become floats, integer arrays are refused."""
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
        """Record the function.

        Raises:
            NotDifferentiableError: it changes in place what it is differentiated in.
        """
        traced = trace_function(
            capture(self.fun) if self.captures else self.fun,
            self.arguments.types,
            self.arguments.call,
            self.name,
            [f"argument {name}" for name in self.arguments.names()],
        )
        outer = current()
        if outer is not None:
            outer.notes.update(dict.fromkeys(traced.notes))
        for k in sorted({*self.moving} & {*traced.written}):
            found = f"{self.what}: argument {self.arguments.names()[k]} is changed in place."
            raise NotDifferentiableError(explain(found, cure="change a copy of it: x = x.copy()."))
        return traced

    @functools.cached_property
    def moving(self) -> list[int]:
        """Positions, among the traced leaves, of the float leaves of the chosen arguments."""
        args = self.arguments.numbered()
        chosen = {place for number in self.numbers for place in trees.flatten(args[number])[0]}
        places = zip(self.arguments.places, self.arguments.types, strict=True)
        return [
            k
            for k, (place, type) in enumerate(places)
            if place in chosen and is_differentiable(type.type)
        ]

    def types(self) -> list[tuple[str, TensorType]]:
        """What those are called, and their types."""
        names = self.arguments.names()
        return [(names[k], self.arguments.types[k].type) for k in self.moving]

    def structured(self, found: Mapping[int, Any]) -> Any:
        """One thing for each of those leaves in the structure of the chosen arguments."""
        args = self.arguments.positional(found)
        chosen = tuple(args[number] for number in self.numbers)
        return chosen[0] if self.is_single else chosen


def differentiated_part(what: str, tree: trees.TreeDef, count: int, has_aux: bool) -> Any:
    """What a function returns, its `count` leaves numbered, without the aux.

    Raises:
        StructureError: there is to be an aux, and it returns no pair.
    """
    numbered = trees.unflatten(tree, list(range(count)))
    if not has_aux:
        return numbered
    if not isinstance(numbered, tuple) or len(numbered) != 2:
        raise StructureError(f"{what}: has_aux=True takes a pair (value, aux)")
    return numbered[0]


def weak_float(x: Any) -> Any:
    """A Python int, perhaps traced, as a float."""
    if not isinstance(x, Tracer):
        return float(x)
    recording = current()
    assert recording is not None
    return Tracer(recording.b.cast(recording.lift(x), np.float64), recording, weak=True)
