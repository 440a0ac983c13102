"""Errors of array operations in maps: that of the first element that fails, with its number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallConstant,
    CallOperand,
    CallSignature,
    FastCall,
    GuardCheck,
)
from wend.backends.protocol import BufferCall, BufferCallable, Executable, FastCallable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.cached_property import cached_property
from wend.base.errors import UnsupportedError
from wend.ir.graph import Graph
from wend.passes.number_elements import number_elements
from wend.runtime.array_boundary import HOST, to_host
from wend.runtime.partial_writes import attach_contents, take_contents


class ElementErrors(ExecutableWrapper, FastCallable, BufferCallable):
    """An executable whose failed runs are repeated in the order of the elements.

    Args:
        execute: runs the graph.
        graph: the graph.
        errors: what the operations in its maps may raise.
        compile: compiles a graph that runs them in order.
    """

    def __init__(
        self,
        execute: Executable,
        graph: Graph,
        errors: tuple[type[BaseException], ...],
        compile: Callable[[Graph], Executable],
    ) -> None:
        super().__init__(execute)
        self.errors = errors
        self._graph, self._compile = graph, compile

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._execute(arguments)
        except self.errors as error:
            failed = error
        raise self.in_order(failed, arguments)

    def in_order(self, error: BaseException, arguments: Sequence[Any]) -> BaseException:
        """Return the error of a run in the order of the elements; the same if it has none."""
        if type(error) not in self.errors or self._execute_in_order is None:
            return error
        try:
            self._execute_in_order([*map(to_host, arguments)])
        except MemoryError:  # of the second run
            return error
        except Exception as first:  # noqa: BLE001 - the caller raises it
            attach_contents(first, take_contents(error))
            return first.with_traceback(None)
        return error  # rounded in another way, no element fails

    @cached_property
    def _execute_in_order(self) -> Executable | None:
        graph = number_elements(self._graph)
        with suppress(UnsupportedError):  # on the backend that runs them in order
            return None if graph is None else self._compile(graph)
        return None

    def repays_fast_calls(self, calls: int) -> bool:
        """Return whether a fast call of what it wraps is worth its setup."""
        return isinstance(self._execute, FastCallable) and self._execute.repays_fast_calls(calls)

    def fast_call(self, signature: CallSignature) -> FastCall | None:
        """Return a fast call that repeats calls that fail."""
        if not isinstance(self._execute, FastCallable):
            return None
        fast = self._execute.fast_call(signature)
        if fast is None:
            return None
        return _RepeatedCall(fast, self, signature.operands)

    def buffer_call(self, operands: Sequence[CallOperand], result_count: int) -> BufferCall | None:
        """Return that of what it wraps: its calls are not repeated."""
        if not isinstance(self._execute, BufferCallable):
            return None
        return self._execute.buffer_call(operands, result_count)


@dataclass(frozen=True, slots=True)
class _RepeatedCall:
    """A fast call that is repeated in the order of the elements where it fails."""

    fast_call: FastCall
    executable: ElementErrors
    operands: Sequence[CallOperand]

    @property
    def has_stale_checks(self) -> bool:
        return self.fast_call.has_stale_checks

    def call(self, *args: Any) -> Any:
        try:
            return self.fast_call.call(*args)
        except self.executable.errors as error:
            failed = error
        raise self._in_order(failed, args)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        call, errors, in_order = self.fast_call.call, self.executable.errors, self._in_order

        def call_repeated_or(*args: Any, **kwargs: Any) -> Any:  # one frame, as calls are many
            try:
                outcome = FALLBACK if kwargs else call(*args)
            except errors as error:
                failed = error
            else:
                return otherwise(*args, **kwargs) if outcome is FALLBACK else outcome
            raise in_order(failed, args)

        return call_repeated_or

    def _in_order(self, error: BaseException, args: Sequence[Any]) -> BaseException:
        arguments = [_argument(operand, args) for operand in self.operands]
        return self.executable.in_order(error, arguments)

    def stop(self) -> None:
        self.fast_call.stop()

    def set_checks(self, checks: Sequence[GuardCheck]) -> None:
        self.fast_call.set_checks(checks)

    def set_guard(self, number: int, value: Any) -> None:
        self.fast_call.set_guard(number, value)


def _argument(operand: CallOperand, args: Sequence[Any]) -> Any:
    if isinstance(operand, CallArgument):
        return HOST.receive(args[operand.index])
    return HOST.receive(operand.array) if isinstance(operand, CallConstant) else None
