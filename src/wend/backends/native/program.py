"""The interface of a graph's machine code: its inputs, its results, its requests to Python.

The code is a function, `i32 @wend_run(ptr block)`. The block is memory shared with Python, laid
out as `Layout` says. It returns 0, or the number of the trap that ended the run.
"""

from __future__ import annotations

from typing import Any

from wend.backends.native.analysis.list_classes import ListClass
from wend.backends.native.codegen.instrument import Instrumentation
from wend.backends.native.rt import python_callbacks, redzones
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
)
from wend.backends.protocol import FusedLoop
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node
from wend.ir.types import Type

ENTRY = "wend_run"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Field:
    """The type of a value that crosses between native code and Python, and its list class."""

    type: Type
    list_class: ListClass | None = None


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class HostCall:
    """A node whose kernel Python runs; `results` is empty where none of them is used."""

    node: Node
    operands: tuple[Field, ...]
    results: tuple[Field, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Layout:
    """The layout of the block: byte offsets of its sections."""

    results: int
    arenas: int
    pool: int
    frame: int
    contents: int
    headers: int
    chunks: int
    size: int

    @property
    def python(self) -> int:
        """The offset of the words shared with the interpreter."""
        return self.pool + SLOT_BYTES

    @property
    def guards(self) -> dict[str, int]:
        """The offsets of the redzones, by the section that precedes each."""
        return {
            "arguments and results": self.arenas - redzones.BYTES,
            "what is known of lists": self.pool - redzones.BYTES,
            "what Python shares": self.frame - redzones.BYTES,
            "operands of Python's calls": self.size - redzones.BYTES,
        }

    @property
    def host_call_number(self) -> int:
        """The offset of the number of the host call that Python is to run."""
        return self.python + python_callbacks.NUMBER


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class SavedState:
    """A frame state in the block.

    Attributes:
        call: its node, and the fields of its operands.
        offset: where they are.
        base: the index in `Program.states` of the state that it continues.
    """

    call: HostCall
    offset: int
    base: int | None


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class ChunkProgram:
    """A function that is called for chunks of elements.

    Attributes:
        program: its interface.
        limit: the offset, in the block of the caller, of the number of the first chunk that has
            failed; functions that run at once share it.
        blocks: the offset there of the addresses of its blocks, one for each thread.
        threads: how many those are.
    """

    program: Program
    limit: int
    blocks: int
    threads: int


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Program:
    """An LLVM module and its interface.

    Attributes:
        text: the LLVM IR of the module.
        params: the fields of the arguments.
        results: the fields of the results.
        layout: the layout of the block.
        strides: for each arena the bytes of a record; 0 for the records of an argument.
        constants: the arrays that the module refers to as `const0`, `const1`, …
        host_calls: the nodes that Python may have to run.
        slow_nodes: those of `host_calls` that have no native code.
        fused_loops: the operations of each fused loop, for `explain`.
        traps: for each status from 1 on, the reason, the node, and the index of the frame state.
        states: the frame states.
        uses_pool: whether it allocates arrays from a pool.
        uses_python: whether it calls the interpreter.
        may_take_long: whether its running time is unbounded by the sizes of its arguments.
        measures: the instrumentation, if the program is profiled.
        is_split: whether it has loops that several threads may run.
        chunks: the functions that it calls for chunks of elements, or at once; their text is part
            of this one.
        remarks: what `explain` says of it besides, a line each.
    """

    text: str
    params: tuple[Field, ...]
    results: tuple[Field, ...]
    layout: Layout
    strides: tuple[int, ...]
    constants: tuple[Any, ...]
    host_calls: tuple[HostCall, ...]
    slow_nodes: tuple[Node, ...]
    fused_loops: tuple[FusedLoop, ...]
    traps: tuple[tuple[int, Node | None, int | None], ...]
    states: tuple[SavedState, ...]
    uses_pool: bool
    uses_python: bool
    may_take_long: bool
    measures: Instrumentation | None
    is_split: bool
    chunks: tuple[ChunkProgram, ...] = ()
    remarks: tuple[str, ...] = ()
