"""Dataflow graphs: cyclic, with loops and branches made of six primitives (D41).

Nodes run when their inputs have arrived. A value on an edge carries a tag: the iteration of each
loop around it. On the ways that a run does not take edges carry a dead value.

    Enter         into a loop: gives its input to iteration 0, or to all where it is constant
    Merge         gives the one input that is alive: at the head of a loop, at the end of branches
    Switch        gives its input on the output that the second one selects, a dead value on others
    NextIteration gives its input to the next iteration
    LoopCond      gives the predicate of a loop to the switches of the loop
    Exit          out of a loop: gives its input to the graph around it
    Identity      gives its input: the selector of a branch, whose switches it tells apart

An edge whose type is `token` is a control edge: it orders two nodes and carries nothing. Further
control edges of a node are its `controls`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from wend.base.source import Source, at
from wend.ir.op import Op
from wend.ir.types import TensorType, Type


class Primitive(enum.Enum):
    """The operations of control flow in a dataflow graph."""

    ENTER = "Enter"
    EXIT = "Exit"
    SWITCH = "Switch"
    MERGE = "Merge"
    NEXT_ITERATION = "NextIteration"
    LOOP_COND = "LoopCond"
    IDENTITY = "Identity"


class Output:
    """An output of a node, or a param of the graph, whose `node` is None."""

    __slots__ = ("index", "name", "node", "type")

    def __init__(
        self, type: Type, node: DataflowNode | None = None, index: int = 0, name: str | None = None
    ) -> None:
        self.type, self.node, self.index, self.name = type, node, index, name

    @property
    def tensor(self) -> TensorType:
        """The type, of an output that is a tensor."""
        assert isinstance(self.type, TensorType)
        return self.type

    def __repr__(self) -> str:
        origin = f"{self.node.name}.{self.index}" if self.node else "param"
        return f"<output {self.name or origin}: {self.type}>"


class DataflowNode:
    """A primitive or an operation, applied to inputs.

    Attributes:
        op: what it does.
        inputs: the outputs that it takes. Those of the merge that begins a loop are two: an entry
            and a next iteration, which is added when the loop is closed.
        controls: outputs that it waits for and does not take.
        attrs: those of the operation; of `Enter` the name of its `frame`, `is_constant` and
            `parallel_iterations`.
        outputs: the outputs that it gives.
        source: the user's line.
        state: the frame state that tells the contents of changed arguments where it fails.
    """

    __slots__ = ("attrs", "controls", "inputs", "op", "outputs", "source", "state")

    def __init__(
        self,
        op: Op | Primitive,
        inputs: Sequence[Output],
        types: Sequence[Type],
        controls: Sequence[Output] = (),
        attrs: Mapping[str, Any] | None = None,
        source: Source | None = None,
    ) -> None:
        self.op, self.inputs, self.controls = op, tuple(inputs), tuple(controls)
        self.attrs: Mapping[str, Any] = attrs or {}
        self.source = source
        self.state: DataflowNode | None = None
        self.outputs = tuple([Output(type, self, i) for i, type in enumerate(types)])

    @property
    def name(self) -> str:
        """The name of its operation."""
        return self.op.value if isinstance(self.op, Primitive) else self.op.name

    @property
    def operands(self) -> tuple[Output, ...]:
        """Its inputs: facts about operations are asked of it as of a node of a graph."""
        return self.inputs

    @property
    def results(self) -> tuple[Output, ...]:
        """Its outputs; see `operands`."""
        return self.outputs

    @property
    def is_loop_head(self) -> bool:
        """Whether it is the merge that begins the iterations of a loop."""
        origins = [x.node.op for x in self.inputs if x.node is not None]
        return self.op is Primitive.MERGE and (
            Primitive.ENTER in origins or Primitive.NEXT_ITERATION in origins
        )

    def __repr__(self) -> str:
        return f"<dataflow node {self.name}{at(self.source)}>"


def is_back_edge(x: Output, node: DataflowNode) -> bool:
    """Return whether an input of a node closes a loop."""
    is_next = x.node is not None and x.node.op is Primitive.NEXT_ITERATION
    return is_next and node.op is Primitive.MERGE


def origins(node: DataflowNode) -> Iterator[DataflowNode]:
    """Return the nodes that a node waits for, but for where a loop closes."""
    return (
        x.node
        for x in (*node.inputs, *node.controls)
        if x.node is not None and not is_back_edge(x, node)
    )


def post_order(
    roots: Iterable[DataflowNode], origins: Callable[[DataflowNode], Iterator[DataflowNode]]
) -> list[DataflowNode]:
    """Return the nodes that roots depend on, those after their origins except on a cycle."""
    seen: set[DataflowNode] = set()
    ordered: list[DataflowNode] = []
    for root in roots:
        path = [] if root in seen else [(root, origins(root))]
        seen.add(root)
        while path:
            node, pending = path[-1]
            origin = next((origin for origin in pending if origin not in seen), None)
            if origin is None:
                path.pop()
                ordered.append(node)
            else:
                seen.add(origin)
                path.append((origin, origins(origin)))
    return ordered
