"""The pass: what is done on arrays, one operation after the other, becomes loop nests.

Nodes are gone through in order. One joins the group that is open for the sizes it goes over. A
group is closed, and its nest placed, where something else wants a value of it, or may change what
it reads. What only moves elements is done wherever they are read, so it has no place of its own
unless something needs it in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.fusion.fusion_group import (
    FusionGroup,
    Source,
    identity,
    through,
)
from wend.backends.native.fusion.gemm_accumulate import sum_of, takes_product
from wend.backends.native.fusion.op_classes import (
    READS_PARTS,
    SUMS,
    WRITERS,
    Reduction,
    is_compute_bound,
    is_constant,
    is_join,
    is_layout,
    is_lookup,
    may_fail,
    may_miss_cache,
    reduction_of,
)
from wend.backends.native.fusion.subview_alias import (
    SUBVIEW_LOADS,
    SUBVIEW_STORES,
    must_alias,
    no_alias,
)
from wend.backends.native.target.small_arrays import is_small
from wend.backends.native.target.value_layout import is_array, is_scalar
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node
from wend.ir.types import Shape
from wend.ops import contracting, creating, shaping

# What is done again in nests though it is in memory, for it reads less
_AGAIN = {creating.constant, creating.iota, shaping.broadcast_to}


def fuse_loops(graph: Graph, computes: Callable[[Node], bool]) -> Graph:
    """Do in one go what is done on arrays of the same sizes.

    A graph that does nothing on arrays is returned as it is.

    Args:
        graph: what is to be written.
        computes: whether a node computes arrays element by element.
    """
    values = (v for node in graph.walk() for v in (*node.operands, *node.results))
    if not any(is_array(value.type) for value in values):
        return graph
    return _Grouping(graph, computes).run()


class _Grouping:
    """Goes through one graph or region."""

    def __init__(self, graph: Graph, computes: Callable[[Node], bool]) -> None:
        self._graph, self._computes = graph, computes
        self._nodes: list[Node] = []
        self._now: dict[Value, Value] = {param: param for param in graph.params}
        self._open: dict[Shape, FusionGroup] = {}
        self._owner: dict[Value, FusionGroup] = {}
        self._makers: dict[Value, Node] = {}
        self._uses = LastUses(graph)
        self._done: set[Node] = set()
        self._readers: dict[Value, list[Value]] = {}  # what only moves elements of a value

    def run(self) -> Graph:
        for node in self._graph.nodes:
            if is_constant(node) or is_layout(node):
                self._make_anywhere(node)
            elif not (self._join(node) or self._put_together(node)):
                self._place(node)
            self._done.add(node)
        results = tuple(map(self._placed, self._graph.results))
        graph = self._graph
        return Graph(graph.name, graph.params, tuple(self._nodes), results, graph.captures)

    def _make_anywhere(self, node: Node) -> None:
        """Note a node that has no place of its own."""
        value = node.results[0]
        sources = (v for x in node.operands for v, _ in through(x, self._makers, None))
        for source in dict.fromkeys(sources):
            self._readers.setdefault(source, []).append(value)
        self._makers[value] = node

    # Groups
    def _join(self, node: Node) -> bool:
        """Let a node be a member of a group, if it can be."""
        reduction = reduction_of(node)
        if reduction is not None:
            return self._join_reduction(node, reduction)
        if is_lookup(node):
            self._join_lookup(node, node.results[0].tensor.dims)
            return True
        if not self._computes(node) or takes_product(self._uses, node):
            return False
        shape = node.results[0].tensor.dims
        group = self._rows_of(node, shape)
        if group is not None:
            self._enter(group, node, is_row=True)
            return True
        self._enter(self._group(shape, node), node)
        return True

    def _join_lookup(self, node: Node, shape: Shape) -> None:
        group = self._open.get(shape)
        if group is not None and group.is_compute_bound and may_miss_cache(node):
            alone = FusionGroup(shape)
            self._enter(alone, node)
            self._close(alone)
        else:
            self._enter(self._group(shape, node), node)

    def _rows_of(self, node: Node, shape: Shape) -> FusionGroup | None:
        """The group to whose rows a node belongs, if all it wants of groups is of those."""
        sources = [*self._sources(node, shape)]
        groups = dict.fromkeys(self._owner[v] for v, _ in sources if v in self._owner)
        if len(groups) != 1:
            return None
        (group,) = groups
        if group.is_full or shape not in group.row_shapes():
            return None
        mine = [source for source in sources if source[0] in self._owner]
        is_row = all(v in group.row_values and group.takes_as_it_lies(v, a) for v, a in mine)
        return group if is_row else None

    def _join_reduction(self, node: Node, reduction: Reduction) -> bool:
        value = node.operands[0]
        dims = value.tensor.dims
        outer_rank = reduction.outer_rank(len(dims))
        if outer_rank is None and len(dims) - 1 in reduction.axes:
            return False
        if outer_rank is not None and value.tensor.dtype.kind == "f" and is_small(value.type):
            return False  # in the order that `scalars/` has where it takes arrays apart
        group = self._open.get(dims)
        if group is not None and not group.fits(reduction):
            self._close(group)
        group = self._group(dims, node)
        if outer_rank is not None and node.op in SUMS and value.tensor.dtype.kind == "f":
            # What lies in memory is added as NumPy does; of rows a nest can do that.
            in_memory = value not in group.made
            if in_memory and (outer_rank == 0 or value in self._makers):
                return False
        self._enter(group, node, reduction)
        return True

    def _group(self, iteration_space: Shape, node: Node) -> FusionGroup:
        """The open group of a space, which can take a node's operands."""
        group = self._open.get(iteration_space)
        if group is not None:
            mine = [
                s for s in self._sources(node, iteration_space) if self._owner.get(s[0]) is group
            ]
            fits = all(group.takes_as_it_lies(*source) for source in mine)
            if is_lookup(node):
                # Positions are looked at before anything is read there.
                fits = fits and all(group.computes_again(v, self._makers) for v, _ in mine)
            elif is_compute_bound(node):
                fits = fits and not group.has_cache_misses
            if group.is_full or not fits:
                self._close(group)
                group = None
        if group is None:
            group = self._open[iteration_space] = FusionGroup(iteration_space)
        return group

    def _enter(
        self,
        group: FusionGroup,
        node: Node,
        reduction: Reduction | None = None,
        *,
        is_row: bool = False,
    ) -> None:
        sources = (v for value in node.operands for v, _ in through(value, self._makers, None))
        for source in sources:
            owner = self._owner.get(source)
            if owner is None:
                group.reads.add(source)
            elif owner is not group:
                self._close(owner)
                group.reads.add(source)
        group.add(node, reduction, is_row=is_row)
        self._owner.update(dict.fromkeys(node.results, group))

    def _sources(self, node: Node, iteration_space: Shape) -> Iterator[Source]:
        """What a node that goes over a space reads, and how that lies to it."""
        for k, value in enumerate(node.operands):
            is_elsewhere = is_lookup(node) and (k == 0 or value.tensor.dims != iteration_space)
            yield from through(
                value, self._makers, None if is_elsewhere else identity(iteration_space)
            )

    def _close(self, group: FusionGroup) -> None:
        """Place the nest of a group."""
        self._forget(group)
        members = set(group.members)
        wanted = [v for n in group.members for v in n.results if self._is_wanted(v, members)]
        if not wanted:
            return
        if group.is_of_memory(self._makers):
            self._put(group.members[0])
            return
        self._put_nest(group, wanted)

    def _forget(self, group: FusionGroup) -> None:
        """A group is no longer open."""
        for value in group.made:
            self._owner.pop(value, None)
        for iteration_space, other in [*self._open.items()]:
            if other is group:
                del self._open[iteration_space]

    def _put_nest(self, group: FusionGroup, wanted: Sequence[Value]) -> None:
        made = group.close(self._placed, self._makers, wanted)
        self._nodes.append(made)
        self._now.update(zip(wanted, made.results, strict=True))

    def _is_wanted(self, value: Value, members: set[Node]) -> bool:
        """Whether somebody else than members of a group takes a value."""
        if self._uses.is_result(value):
            return True
        return any(
            not is_layout(taker) or self._is_wanted(taker.results[0], members)
            for taker in self._uses.users(value)
            if taker not in members
        )

    def _put_together(self, node: Node) -> bool:
        """Let what a node puts together be made where it is put, where nobody else wants it."""
        if not is_join(node):
            return False
        parts = node.operands if node.op is shaping.concat else node.operands[:1]
        sources = [self._without_ones(value) for value in parts]
        groups = dict.fromkeys(self._owner[v] for v in sources if v in self._owner)
        for value, source in zip(parts, sources, strict=True):
            for v, _ in through(value, self._makers, None):
                if v in self._owner and (v is not source or sources.count(v) > 1):
                    groups.pop(self._owner[v], None)
                    self._close(self._owner[v])
        for group in [*groups]:
            members = {*group.members, node}
            wanted = (v for n in group.members for v in n.results)
            if not group.is_plain or any(self._is_wanted(v, members) for v in wanted):
                del groups[group]
                self._close(group)
        if node.op is shaping.concat and not groups and self._makers.keys().isdisjoint(parts):
            return False
        made = FusionGroup(node.results[0].tensor.dims)
        for group in groups:
            made.members += group.members
            self._forget(group)
        made.members.append(node)
        self._put_nest(made, node.results)
        return True

    def _without_ones(self, value: Value) -> Value:
        """A value without what only puts axes of one element in it."""
        while value in self._makers and self._makers[value].op is shaping.reshape:
            value = self._makers[value].operands[0]
        return value

    # Other nodes
    def _place(self, node: Node) -> None:
        """Place a node that is in no group."""
        if node.regions or node.op.effect is not Effect.NONE:
            for group in [*self._open.values()]:
                self._close(group)
        putting = self._putting(node)
        if putting is not None and self._put_in_place(node, putting):
            return
        if node.op.effect is not Effect.NONE or any(r.has_effects() for r in node.regions):
            self._settle_before(node)
        if node.regions or node.op in WRITERS:
            self._settle(node)
        if self._is_of_parts(node):
            alone = FusionGroup(node.results[0].tensor.dims)
            alone.add(node)
            self._put_nest(alone, node.results)
        else:
            self._put(node)

    def _is_of_parts(self, node: Node) -> bool:
        """Whether a node reads parts of arrays in place, some of which are nowhere yet."""
        if node.op not in READS_PARTS or not any(v in self._makers for v in node.operands):
            return False
        if node.op is contracting.dot_general and sum_of(self._uses, node) is not None:
            return False
        return all(map(self._is_part, node.operands))

    def _is_part(self, value: Value) -> bool:
        """Whether a value is in memory, or a part of what is."""
        while value in self._makers:
            node = self._makers[value]
            if node.op not in SUBVIEW_LOADS and node.op is not shaping.reshape:
                return False
            value = node.operands[0]
        return is_array(value.type)

    # Parts that are changed
    def _putting(self, node: Node) -> FusionGroup | None:
        """The group that can put a part into its array itself, as it computes or moves it.

        It may read no other elements of the array that it changes.
        """
        if node.op not in SUBVIEW_STORES:
            return None
        whole, value, *positions = node.operands
        if not all(is_scalar(position.type) for position in positions):
            return None
        group = self._owner.get(value)
        if group is None:
            if value not in self._makers or not is_layout(self._makers[value]):
                return None
            group = FusionGroup(value.tensor.dims)
        elif self._uses.users(value) != [node] or self._uses.is_result(value):
            return None
        is_of_rows = (
            group.outer_rank is not None
            or group.memory_reductions
            or group.iteration_space != value.tensor.dims
        )
        if is_of_rows or group.is_full or whole in self._makers:
            return None
        if any(v in group.made for v in (whole, *positions)):
            return None
        read = [v for member in group.members for v in member.operands]
        return group if all(self._leaves(v, node) for v in (*read, value)) else None

    def _leaves(self, value: Value, put: Node) -> bool:
        """Whether what is read for a value is no element that is put, but for the same place."""
        source, take = value, None
        while source in self._makers and self._makers[source].operands:
            take = self._makers[source]
            source = take.operands[0]
        if source is not put.operands[0]:
            return True
        if take is None or take.op not in SUBVIEW_LOADS:
            return False
        is_same = value is take.results[0] and value.tensor.dims == put.operands[1].tensor.dims
        return no_alias(take, put) or (is_same and must_alias(take, put))

    def _put_in_place(self, node: Node, group: FusionGroup) -> bool:
        """Let a group put a part; false where it had to be closed before."""
        whole, value, *positions = node.operands
        for given in (whole, *positions):
            if given in self._owner:
                self._close(self._owner[given])
        self._settle(node, group)
        if value in self._owner:
            self._enter(group, node)
            self._close(group)
        elif not group.members:
            group.add(node)
            self._put_nest(group, node.results)
        else:
            return False
        return True

    def _settle(self, writer: Node, but: FusionGroup | None = None) -> None:
        """Let nothing that reads what a node may change be done after it, but for one group."""
        changed = set(writer.operands)
        for group in [*self._open.values()]:
            if group is not but and not changed.isdisjoint(group.reads):
                self._close(group)
        for operand in dict.fromkeys(writer.operands):
            for value in self._readers.pop(operand, ()):
                is_nowhere = value in self._makers and value not in self._now
                if is_nowhere and self._has_use_after(value, writer):
                    self._placed(value)

    def _settle_before(self, effect: Node) -> None:
        """Let nothing be refused after an effect that stands before it."""
        for value, maker in [*self._makers.items()]:
            is_nowhere = may_fail(maker) and value not in self._now
            if is_nowhere and self._has_use_after(value, effect):
                self._placed(value)

    def _has_use_after(self, value: Value, writer: Node) -> bool:
        """Whether something that is not yet placed reads what only moves elements."""
        if self._uses.is_result(value):
            return True
        return any(
            self._has_use_after(taker.results[0], writer)
            if is_layout(taker)
            else taker not in self._done and taker is not writer
            for taker in self._uses.users(value)
        )

    def _put(self, node: Node) -> None:
        operands = [self._placed(value) for value in node.operands]
        copy = copy_node(
            node, operands, [fuse_loops(region, self._computes) for region in node.regions]
        )
        self._nodes.append(copy)
        self._now.update(zip(node.results, copy.results, strict=True))

    def _placed(self, value: Value) -> Value:
        """A value in the new graph, made now if it is nowhere yet."""
        if value in self._owner:
            self._close(self._owner[value])
        if value not in self._now:
            node = self._makers[value]
            if node.op is shaping.transpose:
                alone = FusionGroup(value.tensor.dims)
                alone.add(node)
                self._put_nest(alone, [value])
            else:
                self._put(node)
            if node.op not in _AGAIN:
                del self._makers[value]  # it is in memory now
        return self._now[value]
