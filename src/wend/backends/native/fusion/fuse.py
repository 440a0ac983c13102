"""The loop fusion pass: array operations become loop nests.

Nodes are visited in order. A node joins the open group of its iteration space. A group is closed,
and its nest placed, when another node needs one of its values or may overwrite what it reads.
A full group waits for nodes that read what it computes and hardly anything else: the steps of a
program that makes each for a thousand arrays before the next are in one nest for an array.
Layout operations are redone wherever they are read, so they are placed only if something needs
their result in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.fusion.fusion_group import (
    AxesOfValue,
    FusionGroup,
    identity_axes,
    layout_sources,
)
from wend.backends.native.fusion.gemm_accumulate import accumulates_product, accumulator_of
from wend.backends.native.fusion.op_classes import (
    READS_SUBVIEWS,
    SUMS,
    Reduction,
    is_compute_bound,
    is_constant,
    is_fusible_concat,
    is_layout,
    is_lookup,
    may_miss_cache,
    may_trap,
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

_MAX_WAITING = 64  # full groups keep alive what they read

# Operations that nests redo even if the result is in memory, since that reads less
_RECOMPUTED_OPS = {creating.constant, creating.iota, shaping.broadcast_to}


def fuse_loops(graph: Graph, computes: Callable[[Node], bool]) -> Graph:
    """Fuse operations on arrays of the same sizes into loop nests.

    A graph without arrays is returned unchanged.

    Args:
        graph: the graph to lower.
        computes: whether a node computes arrays element by element.
    """
    if not any(map(is_array, graph.types)):
        return graph
    return _FusionPass(graph, computes).run()


class _FusionPass:
    """Fusion of one graph or region."""

    def __init__(self, graph: Graph, computes: Callable[[Node], bool]) -> None:
        self._graph, self._computes = graph, computes
        self._nodes: list[Node] = []
        self._new_values: dict[Value, Value] = {param: param for param in graph.params}
        self._open_groups: dict[Shape, FusionGroup] = {}
        self._waiting: dict[FusionGroup, None] = {}  # those that are full
        self._group_of: dict[Value, FusionGroup] = {}
        self._layout_nodes: dict[Value, Node] = {}
        self._last_uses = LastUses(graph)
        self._visited: set[Node] = set()
        self._views: dict[Value, list[Value]] = {}  # deferred layout results by source

    def run(self) -> Graph:
        for node in self._graph.nodes:
            if is_constant(node) or is_layout(node):
                self._defer_layout(node)
            elif not (self._add_to_group(node) or self._fuse_concat(node)):
                self._place(node)
            self._visited.add(node)
        results = tuple(map(self._materialize, self._graph.results))
        graph = self._graph
        return Graph(graph.name, graph.params, tuple(self._nodes), results, graph.captures)

    def _defer_layout(self, node: Node) -> None:
        """Record a node that is redone wherever it is read."""
        value = node.results[0]
        sources = (v for x in node.operands for v, _ in layout_sources(x, self._layout_nodes, None))
        for source in dict.fromkeys(sources):
            self._views.setdefault(source, []).append(value)
        self._layout_nodes[value] = node

    # Groups
    def _add_to_group(self, node: Node) -> bool:
        """Add a node to a group, if possible."""
        reduction = reduction_of(node)
        if reduction is not None:
            return self._add_reduction(node, reduction)
        if is_lookup(node):
            self._add_lookup(node, node.results[0].tensor.dims)
            return True
        if not self._computes(node) or accumulates_product(self._last_uses, node):
            return False
        shape = node.results[0].tensor.dims
        group = self._row_group(node, shape)
        if group is not None:
            self._add_member(group, node, is_row=True)
            return True
        group = self._waiting_group(shape, node) or self._open_group(shape, node)
        self._add_member(group, node)
        return True

    def _add_lookup(self, node: Node, shape: Shape) -> None:
        group = self._open_groups.get(shape)
        if group is not None and group.is_compute_bound and may_miss_cache(node):
            new_group = FusionGroup(shape)
            self._add_member(new_group, node)
            self._close(new_group)
        else:
            self._add_member(self._open_group(shape, node), node)

    def _row_group(self, node: Node, shape: Shape) -> FusionGroup | None:
        """Return the group that a node joins as a row node, reading only its row values, if any."""
        sources = [*self._sources(node, shape)]
        groups = dict.fromkeys(self._group_of[v] for v, _ in sources if v in self._group_of)
        if len(groups) != 1:
            return None
        (group,) = groups
        if group.is_full or shape not in group.row_shapes():
            return None
        group_sources = [source for source in sources if source[0] in self._group_of]
        reads_rows = all(
            v in group.row_values and group.reads_elementwise(v, a) for v, a in group_sources
        )
        return group if reads_rows else None

    def _add_reduction(self, node: Node, reduction: Reduction) -> bool:
        value = node.operands[0]
        dims = value.tensor.dims
        outer_rank = reduction.outer_rank(len(dims))
        if outer_rank is None and len(dims) - 1 in reduction.axes:
            return False
        if outer_rank is not None and value.tensor.dtype.kind == "f" and is_small(value.type):
            return False  # summed in the order of `scalarize/`, which splits small arrays
        group = self._open_groups.get(dims)
        if group is not None and not group.fits(reduction):
            self._close(group)
        group = self._open_group(dims, node)
        if outer_rank is not None and node.op in SUMS and value.tensor.dtype.kind == "f":
            # Sums of arrays in memory follow NumPy's order; a nest can do that for rows.
            in_memory = value not in group.defined
            if in_memory and (outer_rank == 0 or value in self._layout_nodes):
                return False
        self._add_member(group, node, reduction)
        return True

    def _open_group(self, iteration_space: Shape, node: Node) -> FusionGroup:
        """Return the open group of an iteration space, which can take a node's operands."""
        group = self._open_groups.get(iteration_space)
        if group is not None:
            group_sources = [
                s for s in self._sources(node, iteration_space) if self._group_of.get(s[0]) is group
            ]
            fits = all(group.reads_elementwise(*source) for source in group_sources)
            if is_lookup(node) and not node.attrs.get("in_bounds"):
                # Index arrays are checked before any lookup.
                fits = fits and all(
                    group.can_recompute(v, self._layout_nodes) for v, _ in group_sources
                )
            elif is_compute_bound(node):
                fits = fits and not group.has_cache_misses
            if not fits:
                self._close(group)
                group = None
            elif group.is_full:
                self._wait(group)
                group = None
        if group is None:
            group = self._open_groups[iteration_space] = FusionGroup(iteration_space)
        return group

    def _wait(self, group: FusionGroup) -> None:
        """Make room for another group, and keep a full one open."""
        del self._open_groups[group.iteration_space]
        self._waiting[group] = None
        if len(self._waiting) > _MAX_WAITING:
            self._close(next(iter(self._waiting)))

    def _waiting_group(self, shape: Shape, node: Node) -> FusionGroup | None:
        """Return the full group whose values and arrays a node reads, and hardly any others."""
        if not self._waiting:
            return None
        sources = [*self._sources(node, shape)]
        group = next((x for v, _ in sources if (x := self._group_of.get(v)) in self._waiting), None)
        if group is None or group.iteration_space != shape:
            return None
        if is_compute_bound(node) and group.has_cache_misses:
            return None
        others = {v for v, _ in sources if v not in group.defined}
        fits = self._group_of.keys().isdisjoint(others) and not group.is_overfull(others)
        is_elementwise = all(
            group.reads_elementwise(v, axes) for v, axes in sources if v in group.defined
        )
        return group if fits and is_elementwise else None

    def _add_member(
        self,
        group: FusionGroup,
        node: Node,
        reduction: Reduction | None = None,
        *,
        is_row: bool = False,
    ) -> None:
        sources = (
            v for value in node.operands for v, _ in layout_sources(value, self._layout_nodes, None)
        )
        for source in sources:
            source_group = self._group_of.get(source)
            if source_group is None:
                group.reads.add(source)
            elif source_group is not group:
                self._close(source_group)
                group.reads.add(source)
        group.add(node, reduction, is_row=is_row)
        self._group_of.update(dict.fromkeys(node.results, group))

    def _sources(self, node: Node, iteration_space: Shape) -> Iterator[AxesOfValue]:
        """Yield what a node reads, and the axes of each source in an iteration space."""
        for k, value in enumerate(node.operands):
            is_random_access = is_lookup(node) and (k == 0 or value.tensor.dims != iteration_space)
            yield from layout_sources(
                value,
                self._layout_nodes,
                None if is_random_access else identity_axes(iteration_space),
            )

    def _all_open(self) -> Sequence[FusionGroup]:
        return [*self._waiting, *self._open_groups.values()]

    def _close(self, group: FusionGroup) -> None:
        """Close a group and place its nest."""
        self._remove(group)
        members = set(group.members)
        live_results = [
            v for n in group.members for v in n.results if self._is_used_outside(v, members)
        ]
        if not live_results:
            return
        if group.has_runtime_kernel(self._layout_nodes):
            self._emit_copy(group.members[0])
            return
        self._emit_nest(group, live_results)

    def _remove(self, group: FusionGroup) -> None:
        """Remove a group from the open ones."""
        self._waiting.pop(group, None)
        for value in group.defined:
            self._group_of.pop(value, None)
        for iteration_space, other in [*self._open_groups.items()]:
            if other is group:
                del self._open_groups[iteration_space]

    def _emit_nest(self, group: FusionGroup, live_results: Sequence[Value]) -> None:
        nest = group.close(self._materialize, self._layout_nodes, live_results)
        self._nodes.append(nest)
        self._new_values.update(zip(live_results, nest.results, strict=True))

    def _is_used_outside(self, value: Value, members: set[Node]) -> bool:
        """Return whether a value is used by other nodes than members of a group."""
        if self._last_uses.is_result(value):
            return True
        return any(
            not is_layout(user) or self._is_used_outside(user.results[0], members)
            for user in self._last_uses.users(value)
            if user not in members
        )

    def _fuse_concat(self, node: Node) -> bool:
        """Compute the operands of a concat in place, if they have no other use."""
        if not is_fusible_concat(node):
            return False
        operands = node.operands if node.op is shaping.concat else node.operands[:1]
        sources = [self._skip_reshapes(value) for value in operands]
        groups = dict.fromkeys(self._group_of[v] for v in sources if v in self._group_of)
        for value, source in zip(operands, sources, strict=True):
            for v, _ in layout_sources(value, self._layout_nodes, None):
                if v in self._group_of and (v is not source or sources.count(v) > 1):
                    groups.pop(self._group_of[v], None)
                    self._close(self._group_of[v])
        for group in [*groups]:
            members = {*group.members, node}
            results = (v for n in group.members for v in n.results)
            if not group.is_elementwise or any(self._is_used_outside(v, members) for v in results):
                del groups[group]
                self._close(group)
        if (
            node.op is shaping.concat
            and not groups
            and self._layout_nodes.keys().isdisjoint(operands)
        ):
            return False
        merged = FusionGroup(node.results[0].tensor.dims)
        for group in groups:
            merged.members += group.members
            self._remove(group)
        merged.members.append(node)
        self._emit_nest(merged, node.results)
        return True

    def _skip_reshapes(self, value: Value) -> Value:
        """Return a value without the reshapes that only insert axes of size one."""
        while value in self._layout_nodes and self._layout_nodes[value].op is shaping.reshape:
            value = self._layout_nodes[value].operands[0]
        return value

    # Nodes outside groups
    def _place(self, node: Node) -> None:
        """Place a node that is in no group.

        What may fail leaves groups open, but for those that may fail too: errors are in order.
        """
        has_effects = node.op.effect is not Effect.NONE or any(r.effects() for r in node.regions)
        is_failing = _may_fail(node)
        is_check = not node.regions and node.op.effect in (Effect.NONE, Effect.CHECK)
        if node.regions or is_failing or node.op.effect is not Effect.NONE:
            for group in self._all_open():
                if not is_check or self._may_trap(group):
                    self._close(group)
        store_group = self._storing_group(node)
        if store_group is not None and self._fuse_store(node, store_group):
            return
        if has_effects or is_failing:
            self._place_traps_before(node)
        if node.regions or node.op.updates is not None:
            self._place_readers_before(node)
        if self._reads_subviews(node):
            single = FusionGroup(node.results[0].tensor.dims)
            single.add(node)
            self._emit_nest(single, node.results)
        else:
            self._emit_copy(node)

    def _reads_subviews(self, node: Node) -> bool:
        """Return whether a node reads subviews in place, some of which are not materialized."""
        if node.op not in READS_SUBVIEWS or not any(v in self._layout_nodes for v in node.operands):
            return False
        if node.op is contracting.dot_general and accumulator_of(self._last_uses, node) is not None:
            return False
        return all(map(self._is_subview, node.operands))

    def _is_subview(self, value: Value) -> bool:
        """Return whether a value is in memory, or a subview of an array in memory."""
        while value in self._layout_nodes:
            node = self._layout_nodes[value]
            if node.op not in SUBVIEW_LOADS and node.op is not shaping.reshape:
                return False
            value = node.operands[0]
        return is_array(value.type)

    # Stores to subviews
    def _storing_group(self, node: Node) -> FusionGroup | None:
        """Return the group that can store a subview itself, as it computes or moves the elements.

        It must not read other elements of the array that it updates.
        """
        if node.op not in SUBVIEW_STORES:
            return None
        target, value, *positions = node.operands
        if not all(is_scalar(position.type) for position in positions):
            return None
        group = self._group_of.get(value)
        if group is None:
            if value not in self._layout_nodes or not is_layout(self._layout_nodes[value]):
                return None
            group = FusionGroup(value.tensor.dims)
        elif self._last_uses.users(value) != [node] or self._last_uses.is_result(value):
            return None
        has_other_shape = (
            group.outer_rank is not None
            or group.memory_reductions
            or group.iteration_space != value.tensor.dims
        )
        if has_other_shape or group.is_full or target in self._layout_nodes:
            return None
        if any(v in group.defined for v in (target, *positions)):
            return None
        operands = [v for member in group.members for v in member.operands]
        return group if all(self._is_safe_read(v, node) for v in (*operands, value)) else None

    def _is_safe_read(self, value: Value, store: Node) -> bool:
        """Return whether a read does not overlap the stored subview, except at equal positions."""
        source, load = value, None
        while source in self._layout_nodes and self._layout_nodes[source].operands:
            load = self._layout_nodes[source]
            source = load.operands[0]
        if source is not store.operands[0]:
            return True
        if load is None or load.op not in SUBVIEW_LOADS:
            return False
        is_same = value is load.results[0] and value.tensor.dims == store.operands[1].tensor.dims
        return no_alias(load, store) or (is_same and must_alias(load, store))

    def _fuse_store(self, node: Node, group: FusionGroup) -> bool:
        """Fuse a subview store into a group; return False if the group had to be closed."""
        target, value, *positions = node.operands
        for operand in (target, *positions):
            if operand in self._group_of:
                self._close(self._group_of[operand])
        self._place_readers_before(node, group)
        if value in self._group_of:
            self._add_member(group, node)
            self._close(group)
        elif not group.members:
            group.add(node)
            self._emit_nest(group, node.results)
        else:
            return False
        return True

    def _place_readers_before(self, writer: Node, exempt: FusionGroup | None = None) -> None:
        """Place all readers of what a node may overwrite before it, except for one group."""
        overwritten = set(writer.operands)
        for group in self._all_open():
            if group is not exempt and not overwritten.isdisjoint(group.reads):
                self._close(group)
        for operand in dict.fromkeys(writer.operands):
            for value in self._views.pop(operand, ()):
                is_deferred = value in self._layout_nodes and value not in self._new_values
                if is_deferred and self._has_use_after(value, writer):
                    self._materialize(value)

    def _place_traps_before(self, effect: Node) -> None:
        """Place deferred nodes that may trap before an effect that follows them."""
        for value, node in [*self._layout_nodes.items()]:
            is_deferred = may_trap(node) and value not in self._new_values
            if is_deferred and self._has_use_after(value, effect):
                self._materialize(value)

    def _may_trap(self, group: FusionGroup) -> bool:
        return any(
            is_lookup(member) or any(map(self._is_read_by_trap, member.operands))
            for member in group.members
        )

    def _is_read_by_trap(self, value: Value) -> bool:
        """Return whether reading a value redoes a layout operation that may trap."""
        node = self._layout_nodes.get(value)
        return node is not None and (
            may_trap(node) or any(map(self._is_read_by_trap, node.operands))
        )

    def _has_use_after(self, value: Value, writer: Node) -> bool:
        """Return whether a node that is not yet visited reads a layout result."""
        if self._last_uses.is_result(value):
            return True
        return any(
            self._has_use_after(user.results[0], writer)
            if is_layout(user)
            else user not in self._visited and user is not writer
            for user in self._last_uses.users(value)
        )

    def _emit_copy(self, node: Node) -> None:
        operands = [self._materialize(value) for value in node.operands]
        copy = copy_node(
            node, operands, [fuse_loops(region, self._computes) for region in node.regions]
        )
        self._nodes.append(copy)
        self._new_values.update(zip(node.results, copy.results, strict=True))

    def _materialize(self, value: Value) -> Value:
        """Return a value in the new graph, placing its producer if needed."""
        if value in self._group_of:
            self._close(self._group_of[value])
        if value not in self._new_values:
            node = self._layout_nodes[value]
            if node.op is shaping.transpose:
                single = FusionGroup(value.tensor.dims)
                single.add(node)
                self._emit_nest(single, [value])
            else:
                self._emit_copy(node)
            if node.op not in _RECOMPUTED_OPS:
                del self._layout_nodes[value]  # in memory from now on
        return self._new_values[value]


def _may_fail(node: Node) -> bool:
    """Return whether a node may raise another error than that of a position out of range."""
    if not {*node.op.errors_of(node)} <= {IndexError}:
        return True
    return any(_may_fail(inner) for region in node.regions for inner in region.nodes)
