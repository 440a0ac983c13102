"""Runs NumPy kernels for native code."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wend.backends.native.program import HostCall, Layout
from wend.backends.native.run.marshal import Carrier
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.target.loop_nest import loop_nest, run_body
from wend.ir.graph import Node
from wend.ir.op import Effect


class HostNode:
    """A node that Python runs: operands out of the frame, results into it."""

    def __init__(self, call: HostCall) -> None:
        self.node = node = call.node
        self._kernel = _kernel(node)
        self._operands = [Carrier(field) for field in call.operands]
        self._results = [Carrier(field) for field in call.results]
        self._given = struct.Struct("".join(carrier.format for carrier in self._operands))
        self._found = struct.Struct("".join(carrier.format for carrier in self._results))
        # What may keep an operand, or show it to the user's code, gets a copy.
        self._keeps = node.op.effect is not Effect.NONE or any(map(callable, node.attrs.values()))

    def run(self, space: Workspace, frame: int) -> None:
        slots = iter(self._given.unpack_from(space.block, frame))
        operands = [carrier.read(slots, space) for carrier in self._operands]
        if self._keeps:
            operands = [x.copy() if isinstance(x, np.ndarray) else x for x in operands]
        found = self._kernel(*operands)
        if not self._results:
            return
        values = (found,) if len(self._results) == 1 else found
        written: list[Any] = []
        for carrier, value in zip(self._results, values, strict=True):
            written += carrier.write(value, space)
        self._found.pack_into(space.block, frame + self._given.size, *written)


def _kernel(node: Node) -> Callable[..., Any]:
    """What runs a node on arrays."""
    if node.op is loop_nest:
        return partial(run_body, node)
    assert node.op.kernel is not None
    return partial(node.op.kernel, **node.attrs) if node.attrs else node.op.kernel


def host_runner(space: Workspace, nodes: Sequence[HostNode], layout: Layout) -> Callable[[], None]:
    """What one workspace's native code calls: runs the node that the block names."""
    here = weakref.ref(space)  # the workspace holds this
    number = struct.Struct("q")

    def run() -> None:
        space = here()
        assert space is not None
        (which,) = number.unpack_from(space.block, layout.number)
        with np.errstate(all="ignore"):
            nodes[which].run(space, layout.frame)

    return run
