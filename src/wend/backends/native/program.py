"""What is known of a graph's machine code: what it takes, what it gives, what it asks of Python.

The code is a function, `i32 @wend_run(ptr block)`. The block is memory that it shares with Python;
`Layout` says where what lies in it. It returns 0, or a number that says which of its exits it took.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wend.backends.native.analysis.list_classes import ListClass
from wend.backends.native.codegen.instrument import Instrumentation
from wend.backends.native.rt import python_callbacks, redzones
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    is_array,
    registers,
    where_size,
)
from wend.backends.protocol import FusedLoop
from wend.ir.graph import Node
from wend.ir.types import TensorType, Type

ENTRY = "wend_run"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Field:
    """A value that crosses between native code and Python: its type, and where its lists lie."""

    type: Type
    place: ListClass | None = None


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class HostCall:
    """A node whose kernel Python runs; without results where nobody asks for them."""

    node: Node
    operands: tuple[Field, ...]
    results: tuple[Field, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Layout:
    """Where things lie in the block, in bytes from its start."""

    results: int
    arenas: int
    pool: int
    frame: int
    size: int

    @property
    def python(self) -> int:
        """What it shares with the interpreter."""
        return self.pool + SLOT_BYTES

    @property
    def guards(self) -> dict[str, int]:
        """Words between the parts that nobody is to write to, behind which each is."""
        return {
            "arguments and results": self.arenas - redzones.BYTES,
            "what is known of lists": self.pool - redzones.BYTES,
            "what Python shares": self.frame - redzones.BYTES,
            "operands of Python's calls": self.size - redzones.BYTES,
        }

    @property
    def number(self) -> int:
        """Which of the host calls Python is to run."""
        return self.python + python_callbacks.NUMBER


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Program:
    """A module, and what it takes.

    Attributes:
        text: the module.
        params: what the arguments are.
        results: what the results are.
        layout: of the block.
        strides: for each arena the bytes of a record; 0 where records are an argument's.
        constants: arrays that it refers to, as `const0`, `const1`, …
        host_calls: the nodes that Python may have to run.
        slow_nodes: those of them that have no code of their own.
        fused_loops: what is done in one loop over memory each.
        traps: for each status from 1 on, what is wrong, and the node.
        uses_pool: whether arrays live in memory of its own.
        uses_python: whether it calls the interpreter.
        may_take_long: whether it may run for long whatever it is given.
        measures: what it measures itself with, if it does.
        is_split: whether it has loops that several threads may run.
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
    traps: tuple[tuple[int, Node | None], ...]
    uses_pool: bool
    uses_python: bool
    may_take_long: bool
    measures: Instrumentation | None
    is_split: bool


def param_size(type: Type) -> int:
    """How many bytes of the block an argument takes."""
    if is_object(type):
        return SLOT_BYTES
    return SLOT_BYTES * len(registers(type)) + where_size(type)


def is_object(type: Type) -> bool:
    """Whether an argument is given as the Python object that it is, not as its slots."""
    return isinstance(type, TensorType) and is_array(type) and type.shape is not None
