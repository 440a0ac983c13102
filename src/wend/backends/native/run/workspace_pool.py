"""The workspaces of one executable: as many as there are calls at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from wend.backends.native.codegen import traps
from wend.backends.native.jit.llvm import engine
from wend.backends.native.program import Program
from wend.backends.native.rt import python_callbacks
from wend.backends.native.run.host import HostNode, host_runner
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.target.loop_nest import loop_nest
from wend.base.source import at


class WorkspacePool:
    """Workspaces that wait for a call, and those that calls have.

    Compiled code (`entry_code.py`) has a stack of its own, which it is given workspaces for as it
    asks. There each is a node: the node below it, its block, its pool.

    Attributes:
        idle: those that wait for a call of Python's.
        top: the address of what points to the first node of that stack.
    """

    def __init__(self, name: str, program: Program, host_nodes: Sequence[HostNode]) -> None:
        self.name, self.program, self._host_nodes = name, program, host_nodes
        self._take = engine().take if program.uses_pool else None
        self.idle: list[Workspace] = []
        self._nodes: dict[int, tuple[Workspace, ctypes.Array[ctypes.c_int64]]] = {}
        self._top = ctypes.c_int64(0)
        self.top = ctypes.addressof(self._top)

    def take(self) -> Workspace:
        """One for a call."""
        try:
            return self.idle.pop()
        except IndexError:
            return self._made()

    def give_back(self, space: Workspace) -> None:
        """A call is over."""
        space.objects.clear()
        if space.lease is not None:
            space.lease = None  # whoever has a list holds it, or else it gives back the space
        elif self.program.strides or self.program.uses_pool:
            space.give_back(self.idle)
        else:
            self.idle.append(space)

    def all(self) -> list[Workspace]:
        """Those that no call of Python's has."""
        return [*self.idle, *(space for space, _ in self._nodes.values())]

    def more(self) -> int:
        """One for compiled code to keep: the address of its node."""
        space = self.take()
        pool = 0 if space.pool is None else space.pool.address
        node = (ctypes.c_int64 * 3)(0, space.address, pool)
        address = ctypes.addressof(node)
        self._nodes[address] = space, node
        return address

    def trim(self, address: int) -> None:
        """Take one back from compiled code: it holds much memory."""
        space, _ = self._nodes.pop(address)
        self.give_back(space)

    def fail(self, address: int, status: int) -> None:
        """Take one back from compiled code, and raise what a status says."""
        space, _ = self._nodes.pop(address)
        try:
            raise self.error(status, space)
        finally:
            self.give_back(space)

    def _made(self) -> Workspace:
        program = self.program
        space = Workspace(program.layout, program.strides, self._take)
        if self._host_nodes:
            space.run_host = host_runner(space, self._host_nodes, program.layout)
        if program.uses_python:
            python_callbacks.prepare(space.block, program.layout.python, space.run_host)
        return space

    def error(self, status: int, space: Workspace) -> BaseException:
        """What to raise for the status of a call."""
        reason, node = self.program.traps[status - 1]
        if self.program.uses_python:
            try:
                python_callbacks.raise_kept(space.block, self.program.layout.python)
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                if node is not None and node.op is not loop_nest:  # of those it is said already
                    error.add_note(f"in {node.op.name}{at(node.source)}")
                return error
        where = f"{self.name}{at(node.source)}" if node is not None else self.name
        match reason:
            case traps.NO_MEMORY:
                return MemoryError(f"{where}: no memory for an array, or for the records of a loop")
            case traps.BAD_INDEX:
                return IndexError(f"{where}: a list was read, or a branch chosen, out of range")
            case traps.BAD_LENGTH:
                return ValueError(f"{where}: lists of different lengths were added")
        return ValueError(f"{where}: arrays whose sizes had to agree differ")
