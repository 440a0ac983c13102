"""The executable of a compiled graph: packs arguments into a block, unpacks results."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np

from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallOperand,
    CallSignature,
    FastCall,
    FastCallWrapper,
)
from wend.backends.native.jit.llvm import Library, engine
from wend.backends.native.program import ENTRY, Field, Program
from wend.backends.native.run.buffer_call import NativeBufferCall, native_buffer_call
from wend.backends.native.run.entry import array_reader, native_fast_call
from wend.backends.native.run.host import HostNode
from wend.backends.native.run.list_buffers import (
    Lease,
    ListExporter,
    ListImporter,
    is_exported,
    source_buffers,
)
from wend.backends.native.run.marshal import Marshaller
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.run.workspace_pool import WorkspacePool
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    is_list,
    is_object,
    is_scalar,
    registers,
)
from wend.backends.protocol import BufferCallable, Explains, FastCallable, FusedLoop, HoldsMemory
from wend.ir.graph import Node
from wend.ir.types import TensorType, TokenType

# Calls before fast ones: the first does not repay their setup, nor do a few that of compiling the
# trampoline, which takes 25 ms once on each machine.
_MIN_CALLS, _MIN_CALLS_TO_COMPILE = 1, 9


class NativeExecutable(FastCallable, BufferCallable, Explains, HoldsMemory):
    """A compiled graph. Any number of threads may call it at once.

    Args:
        name: the name of the graph.
        program: its program.
        library: the machine code.
        locks: what each call holds.

    Attributes:
        host_nodes: the nodes that run as NumPy kernels, because they have no native code.
    """

    def __init__(
        self, name: str, program: Program, library: Library, locks: Sequence[Any] = ()
    ) -> None:
        self.name, self._locks = name, locks
        self._program, self._library = program, library  # the code lives as long as this
        self._enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(library.addresses[ENTRY])
        params = [_ParamWriter(field) for field in program.params]
        self._arguments = struct.Struct("".join(param.format for param in params))
        self._is_plain = all(param.is_plain for param in params)
        self._params = params
        self._list_params = [k for k, field in enumerate(program.params) if is_list(field.type)]
        self._exports_lists = any(map(is_exported, program.results))
        results = [
            ListExporter(field) if is_exported(field) else Marshaller(field)
            for field in program.results
        ]
        self._results = struct.Struct("".join(marshaller.format for marshaller in results))
        self._readers: list[Callable[..., Any]] = [marshaller.read for marshaller in results]
        self._workspaces = WorkspacePool(
            name, program, [HostNode(call) for call in program.host_calls]
        )
        self._calls, self._calls_fast = 0, False
        self._call: Callable[..., Any] = _always_fall_back

    @property
    def host_nodes(self) -> tuple[Node, ...]:
        return self._program.slow_nodes

    @property
    def fused_loops(self) -> tuple[FusedLoop, ...]:
        return self._program.fused_loops

    @property
    def remarks(self) -> Sequence[str]:
        return self._program.remarks

    def held_memory(self) -> Mapping[str, int]:
        """Return the bytes that idle workspaces hold."""
        workspaces = self._workspaces.all()
        return {
            "lists": sum(workspace.arena_bytes() for workspace in workspaces),
            "arrays": sum(workspace.pool_bytes() for workspace in workspaces),
        }

    def peak_memory(self) -> int:
        """Return the most bytes of lists and arrays that a call has needed, as far as is known."""
        return max((workspace.peak() for workspace in self._workspaces.all()), default=0)

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        if not self._locks:
            return self._execute(arguments)
        with _holding(self._locks):
            return self._execute(arguments)

    def _execute(self, arguments: Sequence[Any]) -> list[Any]:
        results = self._call(*arguments)
        return self._run(arguments) if results is FALLBACK else [*results]

    def _run(self, arguments: Sequence[Any]) -> list[Any]:
        if not self._calls_fast and self.repays_fast_calls(self._calls):
            self._calls_fast = True
            self._call = self._make_fast_call()
            self._readers = self._fast_readers()
        self._calls += 1
        workspace = self._workspaces.take()
        try:
            keepalive: list[Any] = []  # converted arguments, alive until the call is over
            argument_slots = (
                arguments if self._is_plain else self._slots(arguments, workspace, keepalive)
            )
            self._arguments.pack_into(workspace.block, 0, *argument_slots)
            status = self._enter(workspace.address)
            if status:
                raise self._workspaces.error(status, workspace)
            if self._exports_lists:
                workspace.lease = Lease(
                    workspace, self._workspaces.idle, source_buffers(arguments, self._list_params)
                )
            slots = iter(self._results.unpack_from(workspace.block, self._program.layout.results))
            results = [read(slots, workspace) for read in self._readers]
            # A view is of memory that the next call reuses.
            views = (isinstance(x, np.ndarray) and not x.flags.owndata for x in results)
            return [x.copy() if is_view else x for x, is_view in zip(results, views, strict=True)]
        finally:
            self._workspaces.give_back(workspace)

    def _slots(
        self, arguments: Sequence[Any], workspace: Workspace, keepalive: list[Any]
    ) -> list[Any]:
        packed: list[Any] = []
        for param, argument in zip(self._params, arguments, strict=True):
            if param.is_object:
                array = _as_contiguous(argument, param.dtype)
                keepalive.append(array)
                packed.append(id(array))
            else:
                packed += param.write(argument, workspace)
        return packed

    def _make_fast_call(self) -> Callable[..., Any]:
        types = [field.type for field in self._program.params]
        operands = [
            None if isinstance(t, TokenType) else CallArgument(k) for k, t in enumerate(types)
        ]
        fast = self._fast_call(CallSignature(tuple(operands), len(types), len(self._readers)))
        return _always_fall_back if fast is None else fast.call

    def _fast_readers(self) -> list[Callable[..., Any]]:
        """Return the readers of results that hand over the memory of large arrays."""
        readers = []
        offset = self._program.layout.results
        for field, read in zip(self._program.results, self._readers, strict=True):
            fast_reader = array_reader(field.type, offset)
            readers.append(read if fast_reader is None else fast_reader.read)
            offset += SLOT_BYTES * len(registers(field.type))
        return readers

    def repays_fast_calls(self, calls: int) -> bool:
        """Return whether a fast call is worth its setup after so many calls."""
        return calls >= _MIN_CALLS and (calls >= _MIN_CALLS_TO_COMPILE or engine().has_trampoline)

    def fast_call(self, signature: CallSignature) -> FastCall | None:
        """Return a callable that runs no Python code, if the signature allows one."""
        fast_call = self._fast_call(signature)
        if fast_call is None or not self._locks:
            return fast_call
        return _LockingFastCall(fast_call, self._locks)

    def _fast_call(self, signature: CallSignature) -> FastCall | None:
        return native_fast_call(signature, self._program, self._library, self._workspaces)

    def buffer_call(
        self, operands: Sequence[CallOperand], result_count: int
    ) -> NativeBufferCall | None:
        """Return the buffer call for these operands, or None where there can be none."""
        if self._locks:
            return None
        return native_buffer_call(
            operands, result_count, self._program, self._library, self._workspaces
        )


class _LockingFastCall(FastCallWrapper):
    """A fast call that holds locks."""

    def __init__(self, fast_call: FastCall, locks: Sequence[Any]) -> None:
        self._locks = locks
        super().__init__(fast_call)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        call, locks = self._fast_call.call, self._locks

        def call_holding_or(*args: Any, **kwargs: Any) -> Any:
            results: Any = FALLBACK
            if not kwargs:
                with _holding(locks):
                    results = call(*args)
            return otherwise(*args, **kwargs) if results is FALLBACK else results

        return call_holding_or


def _holding(locks: Sequence[Any]) -> AbstractContextManager[Any]:
    """Return what holds locks in a block; one is held by itself, which is quick."""
    return locks[0] if len(locks) == 1 else _all_of(locks)


@contextmanager
def _all_of(locks: Sequence[Any]) -> Iterator[None]:
    """Hold locks in a block; those that are taken are released if another one cannot be."""
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(lock)
        yield


def _always_fall_back(*arguments: Any) -> Any:
    return FALLBACK


def _as_contiguous(x: Any, dtype: Any) -> np.ndarray:
    """Return `x` if it is a C-contiguous, aligned array of `dtype`, else a copy that is."""
    if type(x) is np.ndarray and x.dtype == dtype and x.flags.c_contiguous and x.flags.aligned:
        return x
    array = np.asarray(x, dtype, order="C")
    return array if array.flags.aligned else array.copy()


class _ParamWriter:
    """The conversion of one param: an array is passed as its object, other values in slots."""

    def __init__(self, field: Field) -> None:
        marshaller = ListImporter(field.type) if is_list(field.type) else Marshaller(field)
        self.is_object = is_object(field.type)
        self.is_plain = isinstance(field.type, TensorType) and is_scalar(field.type)
        self.dtype = field.type.dtype if isinstance(field.type, TensorType) else None
        self.format = "q" if self.is_object else marshaller.format
        self.write = marshaller.write
