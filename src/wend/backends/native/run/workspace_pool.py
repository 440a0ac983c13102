"""The workspaces of one executable: one for each concurrent call."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence

from wend.backends.native.codegen import traps
from wend.backends.native.jit.llvm import engine
from wend.backends.native.program import ChunkProgram, Program
from wend.backends.native.rt import python_callbacks
from wend.backends.native.run.host import HostNode, host_runner, read_contents
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.target.loop_nest import loop_nest
from wend.base.source import at
from wend.ir.graph import Node
from wend.ir.types import ListType
from wend.ops import lists
from wend.ops.effects import error_note
from wend.runtime.partial_writes import attach_contents

NODE_WORDS = 3  # of a node of the stack, before what its user adds


class WorkspacePool:
    """The idle workspaces of an executable, and those in use.

    The trampoline (`fastcall/trampoline.py`) has a stack of its own, which `more` fills on demand.
    A node of the stack holds the next node, a block and a pool. `run/buffer_call.py` has stacks
    too.

    Attributes:
        idle: the workspaces available to calls from Python.
        top: the address of the pointer to the first node of the stack.
    """

    def __init__(self, name: str, program: Program, host_nodes: Sequence[HostNode]) -> None:
        self.name, self.program, self._host_nodes = name, program, host_nodes
        self._pool_take = engine().pool_take if program.uses_pool else None
        self._chunks = [_Chunks(name, chunk) for chunk in program.chunks]
        self.idle: list[Workspace] = []
        self._nodes: dict[int, tuple[Workspace, ctypes.Array[ctypes.c_int64]]] = {}
        self._top = ctypes.c_int64(0)
        self.top = ctypes.addressof(self._top)

    def take(self) -> Workspace:
        """Take an idle workspace for a call, or make one."""
        try:
            return self.idle.pop()
        except IndexError:
            return self.new_workspace()

    def give_back(self, workspace: Workspace) -> None:
        """Take a workspace back at the end of a call."""
        workspace.objects.clear()
        if workspace.lease is not None:
            workspace.lease = None  # the lists it returned hold it, and return the workspace
        elif self.program.strides or self.program.uses_pool:
            workspace.give_back(self.idle)
        else:
            self.idle.append(workspace)

    def all(self) -> list[Workspace]:
        """Return the workspaces that no call from Python is using."""
        return [*self.idle, *(workspace for workspace, _ in self._nodes.values())]

    def more(self, words: int = 0) -> int:
        """Give machine code another workspace; return the address of its node, with more words."""
        workspace = self.take()
        pool = 0 if workspace.pool is None else workspace.pool.address
        node = (ctypes.c_int64 * (NODE_WORDS + words))(0, workspace.address, pool)
        address = ctypes.addressof(node)
        self._nodes[address] = workspace, node
        return address

    def trim(self, address: int) -> None:
        """Take a workspace back from the trampoline because it holds much memory."""
        workspace, _ = self._nodes.pop(address)
        self.give_back(workspace)

    def fail(self, address: int, status: int) -> None:
        """Take a workspace back from the trampoline, and raise the error of a status."""
        raise self.failure(address, status)

    def failure(self, address: int, status: int) -> BaseException:
        """Take a workspace back from machine code; return the error of a status."""
        workspace, _ = self._nodes.pop(address)
        try:
            return self.error(status, workspace)
        finally:
            self.give_back(workspace)

    def new_workspace(self) -> Workspace:
        """Make a workspace."""
        program = self.program
        workspace = Workspace(program.layout, program.strides, self._pool_take)
        if self._host_nodes:
            workspace.run_host = host_runner(workspace, self._host_nodes, program.layout)
        if program.uses_python:
            python_callbacks.prepare(workspace.block, program.layout.python, workspace.run_host)
        for chunk in self._chunks:
            chunk.add_workspaces(workspace)
        return workspace

    def error(self, status: int, workspace: Workspace) -> BaseException:
        """Return the exception for the status of a call, with the contents of its frame state."""
        reason, node, number = self.program.traps[status - 1]
        error = self._error(reason, node, workspace)
        if number is not None:
            attach_contents(error, read_contents(self.program.states, number, workspace))
        return error

    def _error(self, reason: int, node: Node | None, workspace: Workspace) -> BaseException:
        if reason == traps.CHUNK:
            failed = [error for chunk in self._chunks for error in chunk.errors(workspace)]
            if failed:
                return failed[0]
        if self.program.uses_python:
            try:
                python_callbacks.raise_pending(workspace.block, self.program.layout.python)
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                # The body of a loop nest has noted the op already.
                if node is not None and node.op is not loop_nest:
                    error.add_note(error_note(node))
                return error
        where = f"{self.name}{at(node.source)}" if node is not None else self.name
        match reason:
            case traps.NO_MEMORY:
                return MemoryError(f"{where}: no memory for an array, or for the records of a loop")
            case traps.BAD_INDEX:
                if node is None or not isinstance(node.operands[0].type, ListType):
                    return IndexError(f"{where}: a branch was chosen out of range")
                missing = IndexError(lists.text_of_bad_position(node.op))
                missing.add_note(error_note(node))
                return missing
            case traps.BAD_LENGTH:
                return ValueError(f"{where}: lists of different lengths were added")
        return ValueError(f"{where}: arrays whose sizes had to agree differ")


class _Chunks:
    """The workspaces of a function that is called for chunks, and the errors that it leaves."""

    def __init__(self, name: str, chunk: ChunkProgram) -> None:
        program = chunk.program
        self._chunk, self._python = chunk, program.layout.python
        self._pool = WorkspacePool(name, program, [HostNode(call) for call in program.host_calls])

    def add_workspaces(self, caller: Workspace) -> None:
        """Make the workspaces of the threads that run chunks for a caller."""
        limit = caller.address + self._chunk.limit
        spaces = [self._pool.new_workspace() for _ in range(self._chunk.threads)]
        for space in spaces:
            struct.pack_into("P", space.block, self._python + python_callbacks.LIMIT, limit)
        addresses = [space.address for space in spaces]
        struct.pack_into(f"{len(spaces)}P", caller.block, self._chunk.blocks, *addresses)
        caller.chunks += spaces
        self._first = len(caller.chunks) - len(spaces)

    def errors(self, caller: Workspace) -> Iterator[BaseException]:
        """Yield the error of the first chunk that has failed, or that of a signal handler."""
        (limit,) = struct.unpack_from("q", caller.block, self._chunk.limit)
        for space in caller.chunks[self._first : self._first + self._chunk.threads]:
            place = self._python + python_callbacks.CHUNK
            number, status = struct.unpack_from("2q", space.block, place)
            struct.pack_into("q", space.block, self._python + python_callbacks.STATUS, 0)
            if status:
                has_error = python_callbacks.is_pending(space.block, self._python)
                error = self._pool.error(status, space)
                if number == limit or (limit < 0 and has_error):
                    yield error
