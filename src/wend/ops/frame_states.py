"""Frame states: contents of changed arguments, for the error that ends a run (D36).

A frame state stands before the operations that may fail. It costs a run nothing: a backend reads
its operands where such an operation has failed, and the caller writes them back. It takes the token
of the frame state before it in its region, if there is one, and then only what has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect, Op, no_gradient
from wend.ir.types import TOKEN, Shape, TokenType, Type
from wend.ops import control, creating


def _infer_frame_state(
    token: Type, *contents: Type, written: Sequence[int], shapes: Sequence[Shape | None] = ()
) -> TokenType:
    if token != TOKEN:
        raise TypeMismatchError(f"the first operand must be a token, not {token}")
    return TOKEN


# The contents of the arguments numbered `written`, after the tokens of the world and, if there is
# one, of the state that it continues. Where there are `shapes`, an array that has one is passed by
# its elements.
frame_state = Op(
    "frame_state",
    _infer_frame_state,
    lambda token, *contents, **attrs: token,
    no_gradient(),
    effect=Effect.CHECK,
)


def base_of(state: Node) -> Value | None:
    """Return the token of the state that a frame state continues."""
    has_base = len(state.operands) > 1 and state.operands[1].type == TOKEN
    return state.operands[1] if has_base else None


def contents_in(state: Node) -> Sequence[Value]:
    """Return the operands of a frame state that are contents of arguments."""
    return state.operands[1 if base_of(state) is None else 2 :]


def operands_by_number(state: Node) -> Mapping[int, Sequence[Value]]:
    """Return the contents of the arguments in a frame state; arrays may be several elements."""
    values = contents_in(state)
    return {k: values[first:stop] for k, _, first, stop in _places(state)}


def contents_of(chain: Iterable[tuple[Node, Callable[[int], Any]]]) -> Mapping[int, Any]:
    """Return the contents of the changed arguments, by number; later changes stand later.

    Args:
        chain: a frame state and those that it continues, the latest first, each with a function
            that returns what an operand holds by its position among the contents.
    """
    parts: list[dict[int, Any]] = []
    known: set[int] = set()
    for state, read in chain:
        places = [place for place in _places(state) if place[0] not in known]
        parts.append({k: _content(state, read, shape, *bounds) for k, shape, *bounds in places})
        known.update(parts[-1])
    return {k: x for part in reversed(parts) for k, x in part.items()}


def _places(state: Node) -> Iterator[tuple[int, Shape | None, int, int]]:
    """Yield the number of each changed argument, its shape, and the range of its operands."""
    written = state.attrs["written"]
    shapes = state.attrs.get("shapes") or [None] * len(written)
    position = 0
    for k, shape in zip(written, shapes, strict=True):
        count = 1 if shape is None else int(np.prod(shape))
        yield k, shape, position, position + count
        position += count


def _content(
    state: Node, read: Callable[[int], Any], shape: Shape | None, first: int, stop: int
) -> Any:
    """Return an operand of a frame state, or an array made of the elements that are operands."""
    if shape is None:
        return read(first)
    dtype = contents_in(state)[first].tensor.dtype
    elements = [read(k) for k in range(first, stop)]
    return np.array(elements, dtype).reshape(shape)


def chain_of(state: Node) -> Iterator[Node]:
    """Yield a frame state and those that it continues, the latest first."""
    node: Node | None = state
    while node is not None:
        yield node
        base = base_of(node)
        node = None if base is None else base.node


def may_fail(node: Node) -> bool:
    """Return whether a run of a node, or of its regions, may end with an error."""
    if _ends_runs(node):
        return True
    return any(may_fail(inner) for region in node.regions for inner in region.nodes)


def _ends_runs(node: Node) -> bool:
    return node.op.may_fail(node) or node.op.effect is Effect.WORLD


def needs_state_before(node: Node) -> bool:
    """Return whether a run that ends in a node, or in its regions, needs the state before it.

    A region that begins with a state of its own does not, nor does a loop that is interrupted
    between two trips, where its body begins with one.
    """
    if _ends_runs(node):
        return True
    if node.op is control.while_ and trip_state(control.WhileParts.of(node)) is None:
        return True
    firsts = map(_first_state_or_end, node.regions)
    return any(first is not None and first.op is not frame_state for first in firsts)


def _first_state_or_end(region: Graph) -> Node | None:
    """Return the first node that is a state or needs one before it, if there is one."""
    nodes = (x for x in region.nodes if x.op is frame_state or needs_state_before(x))
    return next(nodes, None)


@dataclass(frozen=True, slots=True)
class TripState:
    """The contents of arguments between two trips of a loop.

    Attributes:
        state: the state with which the body begins.
        sources: for each of its contents, whether it is a carry or an invariant, and its index;
            None: it is a constant.
    """

    state: Node
    sources: Sequence[tuple[Literal["carry", "invariant"], int] | None]


def trip_state(loop: control.WhileParts) -> TripState | None:
    """Return the contents of arguments between two trips; None if they are not known.

    They are known where the body begins with a state, and the test changes nothing of it.
    """
    state = _first_state_or_end(loop.after)
    if state is None or state.op is not frame_state:
        return None
    positions = {param: k for k, param in enumerate(loop.before_carry)}
    places: dict[Value, tuple[Literal["carry", "invariant"], int]] = {}
    for param, value in zip(loop.after_forwarded, loop.forwarded, strict=True):
        if value in positions and param.type == value.type:
            places[param] = "carry", positions[value]
    places |= {param: ("invariant", k) for k, param in enumerate(loop.after_invariants)}
    contents = contents_in(state)
    if not all(x in places or _is_constant(x) for x in contents):
        return None
    return TripState(state, tuple(map(places.get, contents)))


def _is_constant(value: Value) -> bool:
    return value.node is not None and value.node.op is creating.constant


def values_of(state: Node) -> Mapping[int, Value]:
    """Return the values of the contents in a frame state and in those that it continues."""
    return contents_of((x, contents_in(x).__getitem__) for x in chain_of(state))


def last_needs(
    graph: Graph, may_end: Callable[[Node], bool] = needs_state_before
) -> Mapping[int, Sequence[Value]]:
    """Return contents of frame states by the last node of a region that may need them.

    The nodes are given by their positions.

    Args:
        graph: the region.
        may_end: whether a run may end at a node, with the contents of the state before it.
    """
    ends: dict[Value, int] = {}
    by_tip: dict[Node, _Chain] = {}
    current = _Chain()
    for position, node in enumerate(graph.nodes):
        if node.op is frame_state:
            base = base_of(node)
            previous = None if base is None else base.node
            chain = _Chain() if previous is None else by_tip.pop(previous, None)
            if chain is None:  # another state continues that one as well
                chain = _Chain()
                for state in reversed([*chain_of(node)][1:]):
                    chain.extend(state, position, ends)
            chain.extend(node, position, ends)
            by_tip[node] = current = chain
        elif may_end(node):
            current.last_failing = position
    for chain in by_tip.values():
        chain.end(chain.entries, ends)
    needs: dict[int, list[Value]] = {}
    for value, position in ends.items():
        needs.setdefault(position, []).append(value)
    return needs


class _Chain:
    """The contents in a chain of frame states, as a region goes on."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[Sequence[Value], int]] = {}  # with positions of the states
        self.last_failing = -1

    def extend(self, state: Node, position: int, ends: dict[Value, int]) -> None:
        for k, values in operands_by_number(state).items():
            if k in self.entries:
                self.end([k], ends)
            self.entries[k] = values, position

    def end(self, numbers: Iterable[int], ends: dict[Value, int]) -> None:
        """Note until where contents are needed."""
        for k in numbers:
            values, start = self.entries[k]
            if self.last_failing > start:
                ends.update({x: max(self.last_failing, ends.get(x, -1)) for x in values})
