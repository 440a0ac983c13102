"""The stages of a loop: no trip of one depends on what a later one computes.

Each is a union of strongly connected components of what a trip computes, where a carry depends on
what the trip before made of it. Everything here takes time linear in the size of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate
from typing import TypeAlias

from wend.backends.native.fusion.concurrent_nodes import long_tasks
from wend.backends.native.fusion.op_classes import reduction_of
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ir.op import Effect
from wend.ir.types import ListType, TensorType, Type
from wend.ops import lists
from wend.ops.control import WhileParts
from wend.ops.frame_states import may_fail
from wend.passes.estimate_work import total_work

EFFECT = "it has an effect"
CHECK_IN_TEST = "its test may fail"
CHECK_IN_BOTH = "both stages may fail"
UNKNOWN_SIZES = "sizes are unknown"
LISTS = "it does more with a list than push to it"
ONE_STAGE = "all long operations are in one strongly connected stage"
LITTLE_WORK = "fewer than two operations take long enough"
INDEPENDENT = "its long operations do not need each other in a trip"
SUMS = "a sum would add in another order"


@dataclass(frozen=True, slots=True)
class Stages:
    """Two stages of a loop.

    Attributes:
        w: the loop.
        first: the nodes of the first stage, which has the test; others are the second.
        carried: the positions of the carries of the first stage.
    """

    w: WhileParts
    first: frozenset[Node]
    carried: frozenset[int]


def stages_of(w: WhileParts) -> Stages | str:
    """Return the stages of a loop that gains from running them at once, or why there are none.

    Of all cuts between components that hold long operations it is the one whose longer stage is
    the shortest.
    """
    reason = _why_not_split(w)
    if reason is not None:
        return reason
    heavy = long_tasks(w.after)
    if len(heavy) < 2:
        return LITTLE_WORK
    return _Levels(w, heavy).best_cut()


def _why_not_split(w: WhileParts) -> str | None:
    """Return what order but that of values would be lost where trips overlap."""
    if any(node.op.effect is not Effect.NONE for node in (*w.before.walk(), *w.after.walk())):
        return EFFECT
    if any(map(may_fail, w.before.nodes)):
        return CHECK_IN_TEST
    nodes = (*w.before.nodes, *w.after.nodes)
    for x in (*w.before_carry, *(x for node in nodes for x in node.results)):
        if isinstance(x.type, ListType):
            if x.node is not None and x.node.op is not lists.list_push:
                return LISTS
            is_known = _is_static(x.type.element)
        else:
            is_known = isinstance(x.type, TensorType) and (x.node is not None or x.type.is_static)
        if not is_known:
            return UNKNOWN_SIZES
    return None


def _is_static(type: Type) -> bool:
    return isinstance(type, TensorType) and type.is_static


# A node, or the position of a carry: what the trip before has made of it
_Part: TypeAlias = Node | int
_Dependencies: TypeAlias = Mapping[_Part, Sequence[_Part]]


class _Levels:
    """From which cut on each part of a loop is in the first stage.

    Cut `p` takes the first `p + 1` components that hold long operations, none of which depends on a
    later one.
    """

    def __init__(self, w: WhileParts, heavy: Sequence[Node]) -> None:
        self._w, self._heavy = w, frozenset(heavy)
        self._carry = {x: k for k, x in enumerate(w.before_carry)}
        self._forwarded = dict(zip(w.after_forwarded, w.forwarded, strict=True))
        parts: list[_Part] = [*w.before.nodes, *w.after.nodes, *range(len(w.carry))]
        dependencies = {part: [*self._dependencies(part)] for part in parts}
        components = strong_components(dependencies)
        cuts = self._cuts(components, _reached(dependencies, self._origins([w.predicate])))
        self._count = 1 + max((cuts[x] for x in self._heavy), default=-1)
        self._levels = _levels(components, dependencies, cuts, self._count)

    def best_cut(self) -> Stages | str:
        """Return the stages of the best cut, or why there is none."""
        if self._count < 2:
            return ONE_STAGE
        cuts = [*range(self._count - 1)]
        for allowed, reason in (
            (self._depends_within_a_trip(), INDEPENDENT),
            (self._fails_in_order(), CHECK_IN_BOTH),
            (self._keeps_sums(), SUMS),
        ):
            cuts = [p for p in cuts if allowed[p]]
            if not cuts:
                return reason
        work = [0.0] * self._count
        for node in self._heavy:
            work[self._levels[node]] += total_work(node)
        until = [*accumulate(work)]
        cut = min(cuts, key=lambda p: max(until[p], until[-1] - until[p]))
        first = [x for x, level in self._levels.items() if level <= cut]
        nodes = frozenset(x for x in first if isinstance(x, Node))
        return Stages(self._w, nodes, frozenset(x for x in first if isinstance(x, int)))

    def _dependencies(self, part: _Part) -> Iterator[_Part]:
        """Yield what a node depends on, or a carry of the next trip."""
        own = part.operands if isinstance(part, Node) else (self._w.next_carry[part],)
        return self._origins(own)

    def _origins(self, values: Iterable[Value]) -> Iterator[_Part]:
        for value in values:
            origin = self._forwarded.get(value, value)
            if origin.node is not None:
                yield origin.node
            elif origin in self._carry:
                yield self._carry[origin]

    def _cuts(self, components: Sequence[Sequence[_Part]], tested: Set[_Part]) -> dict[_Part, int]:
        """Number the components that hold long operations, each after those it depends on.

        What the test depends on is in the first stage of every cut, so all of that has number 0.
        """
        count = int(not tested.isdisjoint(self._heavy))
        cuts: dict[_Part, int] = dict.fromkeys(tested, 0)
        for component in components:
            if component[0] not in tested and not self._heavy.isdisjoint(component):
                cuts.update(dict.fromkeys(component, count))
                count += 1
        return cuts

    def _depends_within_a_trip(self) -> list[bool]:
        """Return at which cuts a long operation of the second stage depends on one of the first.

        In the same trip: otherwise they are at once already.
        """
        earliest: dict[Value, int] = {}
        spans = _Spans(self._count)
        for node in self._w.after.nodes:
            start = min((earliest.get(x, self._count) for x in node.operands), default=self._count)
            if node in self._heavy:
                spans.add(start, self._levels[node])
                start = min(start, self._levels[node])
            earliest.update(dict.fromkeys(node.results, start))
        return spans.covered()

    def _fails_in_order(self) -> list[bool]:
        """Return at which cuts nothing of the second stage may fail in a trip before the first."""
        latest, spans = 0, _Spans(self._count)
        for node in self._w.after.nodes:
            if may_fail(node):
                spans.add(self._levels[node], latest)
                latest = max(latest, self._levels[node])
        return [not x for x in spans.covered()]

    def _keeps_sums(self) -> list[bool]:
        """Return at which cuts the second stage sums nothing that it makes of the first's elements.

        In one loop with those, it may add them in another order.
        """
        earliest: dict[Value, int] = {}  # where the loop begins that may compute an array
        spans = _Spans(self._count)
        for node in self._w.before.nodes:
            if reduction_of(node) is not None:
                spans.add(0, self._levels[node])
        for node in self._w.after.nodes:
            level = self._levels[node]
            start = min((earliest.get(x, level) for x in node.operands), default=level)
            if node in self._heavy:
                start = level
            elif reduction_of(node) is not None:
                spans.add(start, level)
            arrays = (x for x in node.results if isinstance(x.type, TensorType))
            earliest.update((x, min(start, level)) for x in arrays if x.tensor.shape != ())
        return [not x for x in spans.covered()]


def _levels(
    components: Sequence[Sequence[_Part]],
    dependencies: _Dependencies,
    cuts: Mapping[_Part, int],
    last: int,
) -> dict[_Part, int]:
    """Return the level of each part: the lowest of what depends on it.

    Args:
        components: the strongly connected components, each after those it depends on.
        dependencies: what each part depends on.
        cuts: the levels of components that hold long operations, and of the test.
        last: the level of what none of these depends on.
    """
    levels = dict(cuts)
    for component in reversed(components):
        level = min(levels.get(x, last) for x in component)
        for x in component:
            levels[x] = level
            for other in dependencies[x]:
                levels[other] = min(levels.get(other, last), level)
    # What no long operation depends on is beside its operands: lists of what the trips compute
    for component in components:
        if levels[component[0]] == last:
            inside = {*component}
            near = [levels[y] for x in component for y in dependencies[x] if y not in inside]
            levels.update(dict.fromkeys(component, max(near, default=0)))
    return levels


class _Spans:
    """Ranges of cuts, as an array of differences: adding one takes constant time."""

    def __init__(self, count: int) -> None:
        self._changes = [0] * (count + 1)

    def add(self, start: int, stop: int) -> None:
        """Add the cuts from `start` to before `stop`."""
        if start < stop:
            self._changes[start] += 1
            self._changes[stop] -= 1

    def covered(self) -> list[bool]:
        """Return which cuts are in a range."""
        return [count > 0 for count in accumulate(self._changes)]


def _reached(dependencies: _Dependencies, starts: Iterable[_Part]) -> set[_Part]:
    """Return some parts and all that they depend on."""
    reached, pending = set[_Part](), [*starts]
    while pending:
        part = pending.pop()
        if part not in reached:
            reached.add(part)
            pending += dependencies[part]
    return reached


def strong_components(dependencies: _Dependencies) -> list[list[_Part]]:
    """Return the strongly connected components of a graph, each after those it depends on.

    By Tarjan's algorithm, in time linear in the size of the graph.
    """
    number: dict[_Part, int] = {}
    lowest: dict[_Part, int] = {}
    stack: list[_Part] = []
    open_parts: set[_Part] = set()
    components: list[list[_Part]] = []
    for start in dependencies:
        if start in number:
            continue
        path = [(start, iter(dependencies[start]))]
        number[start] = lowest[start] = len(number)
        stack.append(start)
        open_parts.add(start)
        while path:
            part, following = path[-1]
            for x in following:
                if x not in number:
                    number[x] = lowest[x] = len(number)
                    stack.append(x)
                    open_parts.add(x)
                    path.append((x, iter(dependencies[x])))
                    break
                if x in open_parts:
                    lowest[part] = min(lowest[part], number[x])
            else:
                path.pop()
                if path:
                    outer = path[-1][0]
                    lowest[outer] = min(lowest[outer], lowest[part])
                if lowest[part] == number[part]:
                    component: list[_Part] = []
                    while not component or component[-1] != part:
                        component.append(stack.pop())
                    open_parts.difference_update(component)
                    components.append(component)
    return components
