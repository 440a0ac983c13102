"""Traps: the early exits of a compiled function, with the reason and the node that failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field

from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import SLOT_BYTES, Registers
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ops.frame_states import contents_in, operands_by_number

# Reasons. HOST: Python raised an exception, which is stored. CHUNK: a chunk of a map has failed.
DONE, NO_MEMORY, BAD_INDEX, BAD_LENGTH, BAD_SHAPE, FAILED, HOST, CHUNK = range(8)
# Errors for which the NumPy kernel of the node raises the exception
_RAISED_BY_KERNEL = (BAD_INDEX, BAD_LENGTH, BAD_SHAPE, FAILED)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class FrameState:
    """A `frame_state` node, and the registers of its operands.

    Attributes:
        base: the state that it continues.
        depth: how many those are.
        offset: where in the contents of the block its own are, in bytes.
        contents: what it and those that it continues hold, by the numbers of the arguments.
        held: contents that the region holds; their registers are valid as long as it does.
    """

    node: Node
    operands: Sequence[Registers]
    base: FrameState | None
    depth: int
    offset: int
    contents: Mapping[int, Sequence[Value]]
    held: Set[Value]

    @classmethod
    def of(
        cls,
        node: Node,
        operands: Sequence[Registers],
        base: FrameState | None,
        region_holds: Set[Value],
    ) -> FrameState:
        """Return the state of a node, and of what a region holds there."""
        contents = operands_by_number(node)
        held = region_holds & {*contents_in(node)}
        if base is None:
            return cls(node, operands, None, 0, 0, contents, held)
        offset = base.offset + SLOT_BYTES * sum(map(len, base.operands))
        outdated = {x for k in contents for x in base.contents.get(k, ())}
        contents = {**base.contents, **contents}
        held_before = base.held
        if not held_before.isdisjoint(outdated):
            held_before = held_before & {x for values in contents.values() for x in values}
        return cls(node, operands, base, base.depth + 1, offset, contents, held_before | held)


# The status, whether a kernel raises the exception, and the block that jumps to a common one
_Entry = tuple[str, str, str]


@dataclass(eq=False, repr=False, slots=True)
class Traps:
    """Emits exits into `w`.

    Attributes:
        node: the node that is being lowered.
        operands: the registers of its operands, or None if some of them are not in memory.
        state: what its exits leave of the arguments that are changed in place.
        states: the states so far, the last of each node.
        version: the number of the copy that is being lowered, of a loop that has two, else 0.
        blocks: the exit block for each reason, node and version; its number is the status that is
            returned.
    """

    w: Writer
    node: Node | None = None
    operands: Sequence[Registers] | None = ()
    state: FrameState | None = None
    states: dict[Node, FrameState] = field(default_factory=dict)
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
    def reasons(self) -> tuple[tuple[int, Node | None, FrameState | None], ...]:
        """The reason, the node and the frame state of each status, the first being 1."""
        return tuple(
            (reason, node, self._states[label]) for (reason, node, _), label in self.blocks.items()
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
            save: emits what passes the contents in a frame state to Python. It is emitted once for
                all exits; the block then jumps to that of the state which it continues.
        """
        sources, failed = [("0", done)], []
        entries: dict[FrameState, list[_Entry]] = {state: [] for state in self._with_bases()}
        labels = {state: f"save{k}" for k, state in enumerate(entries)}

        def leave(status: str, is_raised: str, state: FrameState | None) -> None:
            if state is not None:
                entries[state].append((status, is_raised, self.w.block))
                self.w.jump(labels[state])
                return
            if is_raised != "true":
                sources.append((status, self.w.block))
            if is_raised != "false":
                failed.append((status, self.w.block))
            match is_raised:
                case "true":
                    self.w.jump("fail")
                case "false":
                    self.w.jump("leave")
                case _:
                    self.w.branch(is_raised, "fail", "leave")

        for number, ((reason, node, _), label) in enumerate(self.blocks.items(), 1):
            self.w.start(label)
            operands, is_raised = self._operands[label], "false"
            if reason in _RAISED_BY_KERNEL and _can_run(node) and operands is not None:
                assert node is not None
                pass_operands(node, operands)
                is_raised = "true"
            leave(str(number), is_raised, self._states[label])
        for state, own in entries.items():
            self.w.start(labels[state])
            status, is_raised = self._joined("i32", own, 0), self._joined("i1", own, 1)
            save(state)
            leave(status, is_raised, state.base)
        if failed:
            self.w.start("fail")
            status = self.w.phi("i32", *failed)
            run_kernel()
            sources.append((status, self.w.block))
            self.w.jump("leave")
        self.w.start("leave")
        return self.w.phi("i32", *sources)

    def _with_bases(self) -> list[FrameState]:
        """Return the states of the exits and those that they continue, the latest first."""
        states: dict[FrameState, None] = {}
        for exit_state in self._states.values():
            state = exit_state
            while state is not None and state not in states:
                states[state] = None
                state = state.base
        return sorted(states, key=lambda state: -state.depth)

    def _joined(self, type: str, entries: Sequence[_Entry], part: int) -> str:
        """Return the status, or whether a kernel raises, where blocks meet."""
        values = [entry[part] for entry in entries]
        if len({*values}) == 1:
            return values[0]
        return self.w.phi(type, *zip(values, (block for *_, block in entries), strict=True))

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
