"""Host calls: NumPy kernels run on behalf of native code."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from wend.backends.native.program import HostCall, Layout, SavedState
from wend.backends.native.run.marshal import Marshaller
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.target.loop_nest import loop_nest, run_body
from wend.ir.graph import Node
from wend.ir.op import Effect
from wend.ops.frame_states import contents_in, contents_of


class HostNode:
    """A node that Python runs: reads its operands from the frame, writes its results there."""

    def __init__(self, call: HostCall) -> None:
        self.node = node = call.node
        self._kernel = _kernel(node)
        self._operands = [Marshaller(field) for field in call.operands]
        self._results = [Marshaller(field) for field in call.results]
        self._operand_struct = struct.Struct(
            "".join(marshaller.format for marshaller in self._operands)
        )
        self._result_struct = struct.Struct(
            "".join(marshaller.format for marshaller in self._results)
        )
        # A kernel that may keep an operand, or show it to the user's code, gets a copy.
        self._copies_operands = node.op.effect is not Effect.NONE or any(
            map(callable, node.attrs.values())
        )

    def run(self, workspace: Workspace, frame: int) -> None:
        slots = iter(self._operand_struct.unpack_from(workspace.block, frame))
        operands = [marshaller.read(slots, workspace) for marshaller in self._operands]
        if self._copies_operands:
            operands = [x.copy() if isinstance(x, np.ndarray) else x for x in operands]
        outcome = self._kernel(*operands)
        if not self._results:
            return
        values = (outcome,) if len(self._results) == 1 else outcome
        result_slots: list[Any] = []
        for marshaller, value in zip(self._results, values, strict=True):
            result_slots += marshaller.write(value, workspace)
        self._result_struct.pack_into(
            workspace.block, frame + self._operand_struct.size, *result_slots
        )


def read_contents(
    states: Sequence[SavedState], number: int, workspace: Workspace
) -> Mapping[int, Any]:
    """Return the contents of the changed arguments that a trap has left in the block."""
    chain: list[tuple[Node, Callable[[int], Any]]] = []
    next_number: int | None = number
    while next_number is not None:
        state = states[next_number]
        chain.append((state.call.node, partial(_read_operand, _places(state), workspace)))
        next_number = state.base
    contents = contents_of(chain)
    return {k: x.copy() if isinstance(x, np.ndarray) else x for k, x in contents.items()}


def _places(state: SavedState) -> Sequence[tuple[Marshaller, struct.Struct, int]]:
    """Return how, and where in the block, the contents in a frame state are read."""
    places, offset = [], state.offset
    for field in state.call.operands:
        marshaller = Marshaller(field)
        slots = struct.Struct(marshaller.format)
        places.append((marshaller, slots, offset))
        offset += slots.size
    return places[len(places) - len(contents_in(state.call.node)) :]


def _read_operand(
    places: Sequence[tuple[Marshaller, struct.Struct, int]], workspace: Workspace, position: int
) -> Any:
    marshaller, slots, offset = places[position]
    return marshaller.read(iter(slots.unpack_from(workspace.block, offset)), workspace)


def _kernel(node: Node) -> Callable[..., Any]:
    """Return the function that computes a node on arrays."""
    if node.op is loop_nest:
        return partial(run_body, node)
    assert node.op.kernel is not None
    return partial(node.op.kernel, **node.attrs) if node.attrs else node.op.kernel


def host_runner(
    workspace: Workspace, nodes: Sequence[HostNode], layout: Layout
) -> Callable[[], None]:
    """Return the callback of one workspace: it runs the host call whose number is in the block."""
    workspace_ref = weakref.ref(workspace)  # weak, as the workspace holds this callback
    number = struct.Struct("q")

    def run() -> None:
        workspace = workspace_ref()
        assert workspace is not None
        (index,) = number.unpack_from(workspace.block, layout.host_call_number)
        with np.errstate(all="ignore"):
            nodes[index].run(workspace, layout.frame)

    return run
