"""Errors of array operations in maps: that of the first element that fails, with its number."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallConstant,
    CallOperand,
    CallSignature,
    FastCall,
    FastCallWrapper,
)
from wend.backends.protocol import BufferCall, BufferCallable, Executable
from wend.backends.wrapper import FastExecutableWrapper
from wend.base.errors import UnsupportedError
from wend.base.lazy.cached_property import cached_property
from wend.ir.graph import Graph
from wend.ir.types import TensorType, Type
from wend.passes.number_elements import asks_python, number_elements
from wend.runtime.array_boundary import HOST, to_host
from wend.runtime.host_results import UnknownResultError, noting, replayed
from wend.runtime.partial_writes import attach_contents, take_contents


class ElementErrors(FastExecutableWrapper, BufferCallable):
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
        self._asks_python = asks_python(graph)
        self._run: Executable = self.noting(execute)

    def noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call whose errors carry what Python has given to it."""
        return noting(call, self.errors) if self._asks_python else call

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._run(arguments)
        except self.errors as error:
            failed = error
        raise self.in_order(failed, arguments)

    def in_order(self, error: BaseException, arguments: Sequence[Any]) -> BaseException:
        """Return the error of a run in the order of the elements; the same if it has none."""
        if type(error) not in self.errors or self._execute_in_order is None:
            return error
        try:
            with replayed(error):
                self._execute_in_order([*map(to_host, arguments)])
        except (MemoryError, UnknownResultError):  # of the second run
            return error
        except Exception as first:  # noqa: BLE001 - the caller raises it
            attach_contents(first, take_contents(error))
            return first.with_traceback(None)
        return error  # rounded in another way, no element fails

    @cached_property
    def _execute_in_order(self) -> Executable | None:
        with suppress(UnsupportedError):  # on the backend that runs them in order
            return self._compile(number_elements(self._graph))
        return None

    def _around(self, fast_call: FastCall, signature: CallSignature) -> FastCall:
        return _RepeatedFastCall(fast_call, self, signature.operands)

    def buffer_call(self, operands: Sequence[CallOperand], result_count: int) -> BufferCall | None:
        """Return a buffer call that repeats calls that fail, if there is one."""
        if not isinstance(self._execute, BufferCallable):
            return None
        call = self._execute.buffer_call(operands, result_count)
        if call is None:
            return None
        types = [x.type for x in self._graph.params]
        return _RepeatedBufferCall(call, self, operands, types)


class _RepeatedFastCall(FastCallWrapper):
    """A fast call that is repeated in the order of the elements where it fails."""

    def __init__(
        self, fast_call: FastCall, executable: ElementErrors, operands: Sequence[CallOperand]
    ) -> None:
        self._executable, self._operands = executable, operands
        super().__init__(fast_call)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        call = self._executable.noting(self._fast_call.call)
        errors, in_order = self._executable.errors, self._in_order

        def call_repeated_or(*args: Any, **kwargs: Any) -> Any:
            try:
                outcome = FALLBACK if kwargs else call(*args)
            except errors as error:
                failed = error
            else:
                return otherwise(*args, **kwargs) if outcome is FALLBACK else outcome
            raise in_order(failed, args)

        return call_repeated_or

    def _in_order(self, error: BaseException, args: Sequence[Any]) -> BaseException:
        arguments = [_argument(operand, args) for operand in self._operands]
        return self._executable.in_order(error, arguments)


class _RepeatedBufferCall:
    """A buffer call that is repeated in the order of the elements where it fails."""

    def __init__(
        self,
        call: BufferCall,
        executable: ElementErrors,
        operands: Sequence[CallOperand],
        types: Sequence[Type],
    ) -> None:
        self.entry, self.words, self.call = call.entry, call.words, self._run
        self._call, self._executable = call, executable
        self._operands, self._types = operands, types

    def _run(self, *addresses: int) -> int:
        try:
            return self._call.call(*addresses)
        except self._executable.errors as error:
            failed = error
        raise self._in_order(failed, addresses)

    def error(self, failed: int, status: int, inputs: Sequence[int]) -> BaseException:
        return self._in_order(self._call.error(failed, status, inputs), inputs)

    def _in_order(self, error: BaseException, addresses: Sequence[int]) -> BaseException:
        arguments = [
            _array_at(addresses[operand.index], type)
            if isinstance(operand, CallArgument)
            else _argument(operand, ())
            for operand, type in zip(self._operands, self._types, strict=True)
        ]
        return self._executable.in_order(error, arguments)


def _argument(operand: CallOperand, args: Sequence[Any]) -> Any:
    if isinstance(operand, CallArgument):
        return HOST.receive(args[operand.index])
    return HOST.receive(operand.array) if isinstance(operand, CallConstant) else None


def _array_at(address: int, type: Type) -> np.ndarray:
    """Return a copy of the array at an address."""
    assert isinstance(type, TensorType)
    shape = [n for n in type.dims if isinstance(n, int)]  # it is static
    data = ctypes.string_at(address, type.nbytes or 0)
    array: np.ndarray = np.frombuffer(data, type.dtype).reshape(shape)
    return array
