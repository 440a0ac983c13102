"""The ways in which a compiled function ends before its end: what is wrong, and at which node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import Registers
from wend.backends.native.target.writer import Writer
from wend.ir.graph import Node

# What can be wrong. HOST: Python raised an exception, which is kept.
DONE, NO_MEMORY, BAD_INDEX, BAD_LENGTH, BAD_SHAPE, FAILED, HOST = range(7)
# What the NumPy kernel of the node says best
_RAISED = (BAD_INDEX, BAD_LENGTH, BAD_SHAPE, FAILED)


@dataclass(eq=False, repr=False, slots=True)
class Traps:
    """Writes exits into `w`.

    Attributes:
        node: what is being written; `operands` are the slots of its operands, None
            where they are not all in memory.
        found: the block that leaves with a reason at a node; its number is the status that the
            function returns.
    """

    w: Writer
    node: Node | None = None
    operands: Sequence[Registers] | None = ()
    found: dict[tuple[int, Node | None], str] = field(default_factory=dict)
    _operands: dict[str, Sequence[Registers] | None] = field(default_factory=dict)

    def check(self, flag: str, reason: int) -> None:
        """Leave the function unless a flag holds."""
        if flag != "true":
            self.w.unless(flag, self.label(reason))

    def label(self, reason: int) -> str:
        """The block to go to for leaving at the present node."""
        key = (reason, self.node)
        if key not in self.found:
            self.found[key] = f"exit{len(self.found) + 1}"
            self._operands[self.found[key]] = self.operands
        return self.found[key]

    @property
    def reasons(self) -> tuple[tuple[int, Node | None], ...]:
        """What each status says, the first being 1."""
        return tuple(self.found)

    def write(
        self,
        done: str,
        give: Callable[[Node, Sequence[Registers]], None],
        run: Callable[[], object],
    ) -> str:
        """Write the blocks that leave, and the one they lead to; return the status.

        Args:
            done: the block in which the function has come to its end.
            give: writes what hands a node and its operands over to Python.
            run: writes the call of the kernel of that node, which raises what there is to raise.
                It is written once: it gives all arenas back, of which there may be many.
        """
        sources, failed = [("0", done)], []
        for number, ((reason, node), label) in enumerate(self.found.items(), 1):
            self.w.start(label)
            operands = self._operands[label]
            if reason in _RAISED and _can_run(node) and operands is not None:
                assert node is not None
                give(node, operands)
                failed.append((str(number), self.w.block))
                self.w.jump("fail")
            else:
                sources.append((str(number), self.w.block))
                self.w.jump("leave")
        if failed:
            self.w.start("fail")
            status = self.w.phi("i32", *failed)
            run()
            sources.append((status, self.w.block))
            self.w.jump("leave")
        self.w.start("leave")
        return self.w.phi("i32", *sources)


def _can_run(node: Node | None) -> bool:
    """Whether Python can run what a node does."""
    return node is not None and (node.op.kernel is not None or node.op is loop_nest)
