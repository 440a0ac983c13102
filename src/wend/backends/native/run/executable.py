"""Calls machine code: arguments into a block of memory, results out of it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallSignature,
    FastCall,
)
from wend.backends.native.jit.llvm import Library
from wend.backends.native.program import ENTRY, Field, Program, is_object
from wend.backends.native.run.entry import array_giver, entry
from wend.backends.native.run.host import HostNode
from wend.backends.native.run.list_buffers import (
    Lease,
    ListExporter,
    ListImporter,
    is_lent,
    sources,
)
from wend.backends.native.run.marshal import Carrier
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.run.workspace_pool import WorkspacePool
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    is_list,
    is_scalar,
    registers,
)
from wend.backends.protocol import FusedLoop
from wend.ir.graph import Node
from wend.ir.types import TensorType, TokenType

_SELDOM = 2  # calls


class NativeExecutable:
    """A compiled graph. Any number of threads may call it at once.

    Attributes:
        host_nodes: the nodes that run as NumPy kernels, for want of native code.
    """

    def __init__(self, name: str, program: Program, library: Library) -> None:
        self.name = name
        self._program, self._library = program, library  # the code lives as long as this
        self._enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(library.addresses[ENTRY])
        params = [_Argument(field) for field in program.params]
        self._arguments = struct.Struct("".join(param.format for param in params))
        self._is_plain = all(param.is_plain for param in params)
        self._params = params
        self._given = [k for k, field in enumerate(program.params) if is_list(field.type)]
        self._lends = any(map(is_lent, program.results))
        results = [
            ListExporter(field) if is_lent(field) else Carrier(field) for field in program.results
        ]
        self._results = struct.Struct("".join(carrier.format for carrier in results))
        self._readers: list[Callable[..., Any]] = [carrier.read for carrier in results]
        self._spaces = WorkspacePool(name, program, [HostNode(call) for call in program.host_calls])
        self._calls = 0
        self._call: Callable[..., Any] = _misses

    @property
    def host_nodes(self) -> tuple[Node, ...]:
        return self._program.slow_nodes

    @property
    def fused_loops(self) -> tuple[FusedLoop, ...]:
        return self._program.fused_loops

    def held_memory(self) -> Mapping[str, int]:
        """The bytes of idle workspaces."""
        spaces = self._spaces.all()
        return {
            "lists": sum(space.arena_bytes() for space in spaces),
            "arrays": sum(len(space.pool) for space in spaces if space.pool is not None),
        }

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        found = self._call(*arguments)
        return self._run(arguments) if found is FALLBACK else [*found]

    def _run(self, arguments: Sequence[Any]) -> list[Any]:
        self._calls += 1
        if self._calls == _SELDOM:  # the code for that is worth making
            self._call = self._direct_call()
            self._readers = self._fast_readers()
        space = self._spaces.take()
        try:
            kept: list[Any] = []  # what is made of arguments, until the call is over
            given = arguments if self._is_plain else self._slots(arguments, space, kept)
            self._arguments.pack_into(space.block, 0, *given)
            status = self._enter(space.address)
            if status:
                raise self._spaces.error(status, space)
            if self._lends:
                space.lease = Lease(space, self._spaces.idle, sources(arguments, self._given))
            slots = iter(self._results.unpack_from(space.block, self._program.layout.results))
            found = [read(slots, space) for read in self._readers]
            # What is not its own lies in memory of the next call.
            views = (isinstance(x, np.ndarray) and not x.flags.owndata for x in found)
            return [x.copy() if is_view else x for x, is_view in zip(found, views, strict=True)]
        finally:
            self._spaces.give_back(space)

    def _slots(self, arguments: Sequence[Any], space: Workspace, kept: list[Any]) -> list[Any]:
        given: list[Any] = []
        for param, argument in zip(self._params, arguments, strict=True):
            if param.is_object:
                array = _in_order(argument, param.dtype)
                kept.append(array)
                given.append(id(array))
            else:
                given += param.write(argument, space)
        return given

    def _direct_call(self) -> Callable[..., Any]:
        types = [field.type for field in self._program.params]
        takes = [None if isinstance(t, TokenType) else CallArgument(k) for k, t in enumerate(types)]
        made = self.fast_call(CallSignature(tuple(takes), len(types), len(self._readers)))
        return _misses if made is None else made.call

    def _fast_readers(self) -> list[Callable[..., Any]]:
        """What reads results, if large arrays are to keep their memory."""
        readers = []
        offset = self._program.layout.results
        for field, read in zip(self._program.results, self._readers, strict=True):
            giver = array_giver(field.type, offset)
            readers.append(read if giver is None else giver.read)
            offset += SLOT_BYTES * len(registers(field.type))
        return readers

    def fast_call(self, form: CallSignature) -> FastCall | None:
        """What calls it without Python between, if anything can."""
        return entry(form, self._program, self._library, self._spaces)


def _misses(*arguments: Any) -> Any:
    return FALLBACK


def _in_order(x: Any, dtype: Any) -> np.ndarray:
    """The array itself if its elements lie as native code reads them, else a copy."""
    if type(x) is np.ndarray and x.dtype == dtype and x.flags.c_contiguous and x.flags.aligned:
        return x
    array = np.asarray(x, dtype, order="C")
    return array if array.flags.aligned else array.copy()


class _Argument:
    """Gives values of one param: an array as the object that it is, others as their slots."""

    def __init__(self, field: Field) -> None:
        carrier = ListImporter(field.type) if is_list(field.type) else Carrier(field)
        self.is_object = is_object(field.type)
        self.is_plain = isinstance(field.type, TensorType) and is_scalar(field.type)
        self.dtype = field.type.dtype if isinstance(field.type, TensorType) else None
        self.format = "q" if self.is_object else carrier.format
        self.write = carrier.write
