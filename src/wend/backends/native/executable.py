"""Calls machine code: arguments into a block of memory, results out of it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native import exits, interpreter
from wend.backends.native.host import HostNode, host_runner
from wend.backends.native.llvm import Library, engine
from wend.backends.native.marshal import Carrier
from wend.backends.native.program import ENTRY, Field, Program, is_object
from wend.backends.native.slots import is_scalar
from wend.backends.native.workspace import Workspace
from wend.base.source import at
from wend.ir.graph import Node
from wend.ir.types import TensorType


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
        results = [Carrier(field) for field in program.results]
        self._results = struct.Struct("".join(carrier.format for carrier in results))
        self._readers = [carrier.read for carrier in results]
        self._take = engine().take if program.uses_pool else None
        self._host_calls = [HostNode(call) for call in program.host_calls]
        self._is_kept = not program.strides and not program.uses_pool
        self._idle: list[Workspace] = []

    @property
    def host_nodes(self) -> tuple[Node, ...]:
        return self._program.slow_nodes

    def kept_memory(self) -> Mapping[str, int]:
        """The bytes of idle workspaces."""
        spaces = [*self._idle]
        return {
            "lists": sum(space.arena_bytes() for space in spaces),
            "arrays": sum(len(space.pool) for space in spaces if space.pool is not None),
        }

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        try:
            space = self._idle.pop()
        except IndexError:
            space = self._new_space()
        try:
            kept: list[Any] = []  # what is made of arguments, until the call is over
            given = arguments if self._is_plain else self._slots(arguments, space, kept)
            self._arguments.pack_into(space.block, 0, *given)
            if self._host_calls:
                with np.errstate(all="ignore"):
                    status = self._enter(space.address)
            else:
                status = self._enter(space.address)
            if status:
                raise self._error(status, space)
            slots = iter(self._results.unpack_from(space.block, self._program.layout.results))
            found = [read(slots, space) for read in self._readers]
            # What was read lies in memory of the next call.
            return [x.copy() if isinstance(x, np.ndarray) else x for x in found]
        finally:
            space.objects.clear()
            if not self._is_kept:
                space.trim()
            self._idle.append(space)

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

    def _new_space(self) -> Workspace:
        program = self._program
        space = Workspace(program.layout, program.strides, self._take)
        if self._host_calls:
            space.run_host = host_runner(space, self._host_calls, program.layout)
        if program.uses_python:
            interpreter.prepare(space.block, program.layout.python, space.run_host)
        return space

    def _error(self, status: int, space: Workspace) -> BaseException:
        reason, node = self._program.exits[status - 1]
        if self._program.uses_python:
            try:
                interpreter.raise_kept(space.block, self._program.layout.python)
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                if node is not None:
                    error.add_note(f"in {node.op.name}{at(node.source)}")
                return error
        where = f"{self.name}{at(node.source)}" if node is not None else self.name
        match reason:
            case exits.NO_MEMORY:
                return MemoryError(f"{self.name}: no memory for the records of a loop")
            case exits.BAD_INDEX:
                return IndexError(f"{where}: a list was read, or a branch chosen, out of range")
            case exits.BAD_LENGTH:
                return ValueError(f"{where}: lists of different lengths were added")
        return ValueError(f"{where}: arrays whose sizes had to agree differ")


def _in_order(x: Any, dtype: Any) -> np.ndarray:
    """The array itself if its elements lie as native code reads them, else a copy."""
    if type(x) is np.ndarray and x.dtype == dtype and x.flags.c_contiguous and x.flags.aligned:
        return x
    array = np.asarray(x, dtype, order="C")
    return array if array.flags.aligned else array.copy()


class _Argument:
    """Gives values of one param: an array as the object that it is, others as their slots."""

    def __init__(self, field: Field) -> None:
        carrier = Carrier(field)
        self.is_object = is_object(field.type)
        self.is_plain = isinstance(field.type, TensorType) and is_scalar(field.type)
        self.dtype = field.type.dtype if isinstance(field.type, TensorType) else None
        self.format = "q" if self.is_object else carrier.format
        self.write = carrier.write
