"""Traps: the early exits of a compiled function, with the reason and the node that failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import Registers
from wend.backends.native.target.writer import Writer
from wend.ir.graph import Node, Value

# Reasons. HOST: Python raised an exception, which is stored. CHUNK: a chunk of a map has failed.
DONE, NO_MEMORY, BAD_INDEX, BAD_LENGTH, BAD_SHAPE, FAILED, HOST, CHUNK = range(8)
# Errors for which the NumPy kernel of the node raises the exception
_RAISED_BY_KERNEL = (BAD_INDEX, BAD_LENGTH, BAD_SHAPE, FAILED)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class FrameState:
    """A `frame_state` node, and the registers of its operands.

    Attributes:
        held: its operands that the region holds; their registers are valid as long as it does.
    """

    node: Node
    operands: Sequence[Registers]
    held: Set[Value]


@dataclass(eq=False, repr=False, slots=True)
class Traps:
    """Emits exits into `w`.

    Attributes:
        node: the node that is being lowered.
        operands: the registers of its operands, or None if some of them are not in memory.
        state: what its exits leave of the arguments that are changed in place.
        version: the number of the copy that is being lowered, of a loop that has two, else 0.
        blocks: the exit block for each reason, node and version; its number is the status that is
            returned.
    """

    w: Writer
    node: Node | None = None
    operands: Sequence[Registers] | None = ()
    state: FrameState | None = None
    version: int = 0
    blocks: dict[tuple[int, Node | None, int], str] = field(default_factory=dict)
    _operands: dict[str, Sequence[Registers] | None] = field(default_factory=dict)
    _states: dict[str, FrameState | None] = field(default_factory=dict)

    def check(self, flag: str, reason: int) -> None:
        """Trap unless a flag holds."""
        if flag != "true":
            self.w.branch_unless(flag, self.label(reason))

    def label(self, reason: int) -> str:
        """Return the exit block for a reason at the current node."""
        key = (reason, self.node, self.version)
        if key not in self.blocks:
            self.blocks[key] = f"exit{len(self.blocks) + 1}"
            self._operands[self.blocks[key]] = self.operands
            self._states[self.blocks[key]] = self.state
        return self.blocks[key]

    @property
    def reasons(self) -> tuple[tuple[int, Node | None, Node | None], ...]:
        """The reason, the node and the frame state of each status, the first being 1."""
        return tuple(
            (reason, node, None if (state := self._states[label]) is None else state.node)
            for (reason, node, _), label in self.blocks.items()
        )

    def write(
        self,
        done: str,
        pass_operands: Callable[[Node, Sequence[Registers]], None],
        run_kernel: Callable[[], object],
        save: Callable[[FrameState], None],
    ) -> str:
        """Emit the exit blocks and the block they lead to; return the status.

        Args:
            done: the block in which the function ends normally.
            pass_operands: emits what passes a node and its operands to Python.
            run_kernel: emits the call of the kernel of that node, which raises the exception. It is
                emitted once, since it stores back all arenas, of which there may be many.
            save: emits what passes a frame state to Python.
        """
        sources, failed = [("0", done)], []
        for number, ((reason, node, _), label) in enumerate(self.blocks.items(), 1):
            self.w.start(label)
            operands, state = self._operands[label], self._states[label]
            if state is not None:
                save(state)
            if reason in _RAISED_BY_KERNEL and _can_run(node) and operands is not None:
                assert node is not None
                pass_operands(node, operands)
                failed.append((str(number), self.w.block))
                self.w.jump("fail")
            else:
                sources.append((str(number), self.w.block))
                self.w.jump("leave")
        if failed:
            self.w.start("fail")
            status = self.w.phi("i32", *failed)
            run_kernel()
            sources.append((status, self.w.block))
            self.w.jump("leave")
        self.w.start("leave")
        return self.w.phi("i32", *sources)

    def write_with_messages(
        self, done: str, tell: Callable[[int, Node | None, Sequence[Registers] | None], None]
    ) -> str:
        """Emit exit blocks of code that runs without Python; return the status, the reason.

        Args:
            done: the block in which the function ends normally.
            tell: emits the message of a reason, a node and its operands, if they are in memory.
        """
        sources = [("0", done)]
        for (reason, node, _), label in self.blocks.items():
            self.w.start(label)
            tell(reason, node, self._operands[label])
            sources.append((str(reason), self.w.block))
            self.w.jump("leave")
        self.w.start("leave")
        return self.w.phi("i32", *sources)


def _can_run(node: Node | None) -> bool:
    """Return whether Python can run a node."""
    return node is not None and (node.op.kernel is not None or node.op is loop_nest)
