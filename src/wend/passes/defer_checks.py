"""Deferred checks: a graph that tells whether a check fails, and goes on, instead of raising.

The elements of a map run side by side, so an error may not end a run: it must be that of the first
element that fails. In the body each token becomes a flag: whether a check before it has failed.
Loops behind a failed check end at once, for what is computed there may be anything. Who runs the
graph throws its results away then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, keep_names
from wend.ir.types import TOKEN
from wend.ops import creating, effects, elementwise, indexing, lists, reducing
from wend.ops.build import Build
from wend.ops.control import PREDICATE, IfParts, WhileParts, call, if_, while_
from wend.ops.frame_states import frame_state
from wend.ops.loop_counters import trip_count
from wend.ops.parallel_map import parallel_map
from wend.passes.dce import dce
from wend.passes.in_bounds import mark_in_bounds
from wend.passes.lane_maps import backward_counter

_REGIONS = (while_, if_, call)


def defer_checks(graph: Graph) -> Graph | None:
    """Return a graph without tokens that tells, as its last result, whether a check fails.

    It is None where something else has an effect, or may fail: an operation other than a check, or
    a loop that runs trips again.
    """
    graph = dce(mark_in_bounds(graph))
    if not _may_be_deferred(graph):
        return None
    b = Build(graph.name)
    mapping = {x: b.param(x.type, x.name) for x in graph.params if x.type != TOKEN}
    b.source = graph.nodes[0].source if graph.nodes else None
    flag = _Deferred(b, mapping).append(graph.nodes, None)
    results = [mapping[x] for x in graph.results if x.type != TOKEN]
    return dce(b.finish([*results, flag or b.constant(False)]))


def _may_be_deferred(graph: Graph, *, reads_records: bool = False) -> bool:
    """Return whether nothing but checks, and reads of arrays of known sizes, may fail in a graph.

    Args:
        graph: the graph, or a region.
        reads_records: whether it lies in a backward loop, which reads existing records only.
    """
    for node in graph.nodes:
        op = node.op
        if op in (effects.raise_if, frame_state, effects.checked) or _is_read(node):
            continue
        if op.effect is not Effect.NONE or op in (effects.token, effects.after):
            return False
        if op.may_fail(node) and not (reads_records and op is lists.list_get):
            return False
        reads = reads_records
        if op is while_:
            w = WhileParts.of(node)
            if w.memory != "keep" or w.applied:
                return False
            reads = reads or _is_backward(w)
        elif op not in _REGIONS and any(_may_fail(region) for region in node.regions):
            return False
        if not all(_may_be_deferred(region, reads_records=reads) for region in node.regions):
            return False
    return True


def _may_fail(graph: Graph) -> bool:
    return any(x.op.may_fail(x) for x in graph.walk())


def has_checks(graph: Graph) -> bool:
    """Return whether a graph has checks."""
    return not graph.ops.isdisjoint((effects.raise_if, effects.checked))


def _is_read(node: Node) -> bool:
    """Return whether a node reads an array at positions whose range is known."""
    if node.op is not indexing.gather:
        return False
    x, *positions = node.operands
    sizes = (x.tensor.shape or ())[: len(positions)]
    return len(sizes) == len(positions) and all(isinstance(n, int) and n > 0 for n in sizes)


@dataclass(slots=True)
class _Deferred:
    """A graph under construction whose checks are flags.

    Attributes:
        b: the builder.
        mapping: the new values for those of the old graph, but for tokens.
    """

    b: Build
    mapping: dict[Value, Value]

    def append(self, nodes: Iterable[Node], flag: Value | None) -> Value | None:
        """Append nodes; return whether a check in or before them has failed (None: none has)."""
        for node in nodes:
            self.b.source = node.source
            if node.op is effects.raise_if:
                flag = self._or(flag, self.mapping[node.operands[1]])
            elif node.op is effects.checked:
                for predicate in node.operands[1:]:
                    flag = self._or(flag, self.mapping[predicate])
                self.mapping[node.results[0]] = self.mapping[node.operands[0]]
            elif node.op is indexing.gather and not node.attrs.get("in_bounds"):
                flag = self._append_read(node, flag)
            elif node.op in _REGIONS and (
                _has_checks_inside(node) or (flag is not None and _may_not_end(node))
            ):
                flag = self._append_regions(node, flag)
            elif node.op is parallel_map and flag is not None and _may_not_end(node):
                self._append_map(node, flag)
            elif node.op is not frame_state:
                self._copy(node)
        return flag

    def _or(self, flag: Value | None, other: Value) -> Value:
        if flag is None or _is_true(other):
            return other
        return flag if _is_true(flag) else self.b.emit(elementwise.bit_or, flag, other)

    def _copy(self, node: Node) -> None:
        """Append a node that has no check; tokens that it passes on are dropped."""
        if any(x.type == TOKEN for x in node.operands):
            self._append_regions(node, None)
            return
        copy = copy_node(node, [self.mapping[x] for x in node.operands])
        self.b.nodes.append(copy)
        self.mapping.update(zip(node.results, copy.results, strict=True))

    def _append_read(self, node: Node, flag: Value | None) -> Value:
        """Append a read whose positions are checked, and are in range then."""
        b = self.b
        x, *positions = (self.mapping[operand] for operand in node.operands)
        inside: list[Value] = []
        for position, size in zip(positions, x.tensor.dims, strict=False):
            assert isinstance(size, int)
            dtype = position.tensor.dtype
            least = b.broadcast_like(b.constant(0 if dtype.kind == "u" else -size, dtype), position)
            most = b.broadcast_like(b.constant(size - 1, dtype), position)
            low = b.emit(elementwise.maximum, position, least)
            inside.append(b.emit(elementwise.minimum, low, most))
            differs = b.emit(elementwise.ne, inside[-1], position)
            axes = tuple(range(len(differs.tensor.dims)))
            if axes:
                differs = b.emit(reducing.reduce_any, differs, axes=axes, keepdims=False)
            flag = self._or(flag, differs)
        copy = Node(
            node.op, [x, *inside], {"in_bounds": True}, (), [node.results[0].type], b.source
        )
        keep_names(node.results, copy.results)
        b.nodes.append(copy)
        self.mapping[node.results[0]] = copy.results[0]
        assert flag is not None
        return flag

    def _append_map(self, node: Node, flag: Value) -> None:
        """Append a map without checks, whose elements get the flag so that their loops end."""
        body = _region(node.regions[0], len(node.regions[0].params))
        region = Graph(body.name, body.params, body.nodes, body.results[:-1])
        copy = copy_node(node, [*self._mapped(node.operands), flag], [region])
        self.b.nodes.append(copy)
        self.mapping.update(zip(node.results, copy.results, strict=True))

    def _append_regions(self, node: Node, flag: Value | None) -> Value | None:
        """Append a loop, branches or a call, which take the flag and give it."""
        if node.op is if_ and (certain := _certain_branch(node)) is not None:
            selector = self.mapping[node.operands[0]]
            chosen = selector if certain else self.b.emit(elementwise.bit_not, selector)
            return self._or(flag, chosen)
        regions: Sequence[Graph]
        if node.op is while_:
            w = WhileParts.of(node)
            regions = [
                _region(w.before, len(w.carry), is_test=_may_continue(node)),
                _region(w.after, len(w.forwarded)),
            ]
            carry = [*self._mapped(w.carry), flag or self.b.constant(False)]
            operands = [*carry, *self._mapped(w.invariants)]
            attrs = {**node.attrs, "carry": len(carry)}
        else:
            first = len(node.operands) - len(node.regions[0].params)
            at = None if flag is None else 0
            regions = [_region(region, at) for region in node.regions]
            operands = self._mapped(node.operands)
            operands[first:first] = [] if flag is None else [flag]
            attrs = {**node.attrs}
        results = [x for x in node.results if x.type != TOKEN]
        types = [*(x.type for x in results), PREDICATE]
        copy = Node(node.op, operands, attrs, regions, types, node.source)
        copy.remark = node.remark
        self.b.nodes.append(copy)
        keep_names(results, copy.results[:-1])
        self.mapping.update(zip(results, copy.results, strict=False))
        return copy.results[-1]

    def _mapped(self, values: Iterable[Value]) -> list[Value]:
        return [self.mapping[x] for x in values if x.type != TOKEN]


def _region(region: Graph, at: int | None, *, is_test: bool = False) -> Graph:
    """Return a region that also gives, as its last result, whether a check has failed.

    Args:
        region: the region.
        at: how many values it takes before the flag of those before; None: it takes none.
        is_test: whether its first result, the test of a loop, fails with the flag.
    """
    b = Build(region.name)
    mapping: dict[Value, Value] = {}
    flag: Value | None = None
    for k, x in enumerate([*region.params, None]):
        if k == at:
            flag = b.param(PREDICATE)
        if x is not None and x.type != TOKEN:
            mapping[x] = b.param(x.type, x.name)
    flag = _Deferred(b, mapping).append(region.nodes, flag) or b.constant(False)
    results = [mapping[x] for x in region.results if x.type != TOKEN]
    if is_test:
        passes = b.emit(elementwise.bit_not, flag)
        results[0] = b.emit(elementwise.bit_and, results[0], passes)
    return b.finish([*results, flag])


def _certain_branch(node: Node) -> int | None:
    """Return which of two branches fails in any case, if all that they do is to check."""
    p = IfParts.of(node)
    if p.selector.type != PREDICATE or any(x.type != TOKEN for x in node.results):
        return None
    fails = [
        any(x.op is effects.raise_if and _is_true(x.operands[1]) for x in branch.nodes)
        for branch in p.branches
    ]
    passes = [not has_checks(branch) for branch in p.branches]
    return next((k for k in (0, 1) if fails[k] and passes[1 - k]), None)


def _is_true(value: Value) -> bool:
    node = value.node
    if node is None or node.op is not creating.constant or value.type != PREDICATE:
        return False
    return bool(node.attrs["value"][()])


def _has_checks_inside(node: Node) -> bool:
    return any(
        has_checks(region)
        or any(x.op is indexing.gather and x.op.may_fail(x) for x in region.walk())
        for region in node.regions
    )


def _may_not_end(node: Node) -> bool:
    """Return whether a node is a loop that might not end on any numbers, or has one inside."""
    inner = (x for region in node.regions for x in region.walk())
    return any(x.op is while_ and _may_continue(x) for x in (node, *inner))


def _may_continue(loop: Node) -> bool:
    """Return whether a loop might not end on any numbers.

    A backward loop makes as many trips as its forward loop has made.
    """
    w = WhileParts.of(loop)
    return trip_count(w) is None and not _is_backward(w)


def _is_backward(w: WhileParts) -> bool:
    """Return whether a loop counts down the trips that another has made."""
    k = backward_counter(w)
    start = None if k is None else w.carry[k].node
    return start is not None and start.op in (while_, lists.list_get)
