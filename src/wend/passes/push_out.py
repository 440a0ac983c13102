"""Work leaves counted loops: products of all trips become one (Theano: push-out; loop fission).

A product of what only the trip decides, such as `x @ w` for the rows x of an array, is computed
for all trips before the loop. A sum of products over the trips becomes one product after it, for
which the loop records the factors. Both move memory, so there is a cap on it. The order in which
sums are computed changes, as those of one product may (D21); `config(strict=True)` leaves this
pass out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from wend.ir.dtypes import INEXACT
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import copy_node, copy_nodes, rewrite_nodes, with_operands
from wend.ir.types import Dim, Symbol, TensorType, substitute
from wend.ops import contracting, elementwise, reducing, shaping
from wend.ops.build import Axes, Build
from wend.ops.control import WhileParts, while_
from wend.passes.dce import dce
from wend.passes.loop_sequences import Sequences, live_outs, reading_rows
from wend.passes.push_out_blocks import push_out_blocks
from wend.passes.push_out_sums import SumsOfProducts, sums_of_blocks, sums_of_products, unbroadcast
from wend.passes.strip_mine import can_strip_mine, strip_mine

# What leaves a loop occupies at most so many bytes, and a fourth of what the loop may record
MAX_BYTES = 64 << 20


def push_out(graph: Graph) -> Graph:
    """Move products out of the counted loops of a graph, inner ones first."""
    if while_ not in graph.ops:
        return graph

    def push(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [push_out(region) for region in node.regions])
        if copy.op is not while_ or not _may_have_products(copy):
            nodes.append(copy)
            return copy.results
        b = Build("")
        b.nodes, b.source = nodes, copy.source
        w, max_bytes = WhileParts.of(copy), _max_bytes(copy)
        chosen = sums_of_products(w, max_bytes)
        if not chosen:
            copy = _in_blocks(copy, w, max_bytes)
        sums = SumsOfProducts(b, copy, chosen)
        loop = _push_out_products(b, sums.loop)
        nodes.append(loop)
        return sums.finish(b, loop.results[: len(sums.loop.results)])

    pushed = rewrite_nodes(graph, push)
    return graph if pushed is graph else dce(pushed)


def _may_have_products(loop: Node) -> bool:
    """Return whether a loop carries an array, which may be a sum, or has products or sums."""
    types = [x.type for x in loop.results]
    has_arrays = any(isinstance(type, TensorType) and type.shape != () for type in types)
    ops = loop.regions[1].ops  # sums may be products of an array
    return has_arrays or contracting.dot_general in ops or reducing.reduce_sum in ops


def _in_blocks(loop: Node, w: WhileParts, max_bytes: int) -> Node:
    """Return a loop of blocks of trips, after each of which sums grow by products, if that pays."""
    if not can_strip_mine(w):
        return loop
    chosen, trips = sums_of_blocks(w, max_bytes)

    def append_block(b: Build, block: Node) -> Sequence[Value]:
        sums = SumsOfProducts(b, block, chosen)
        b.nodes.append(sums.loop)
        return sums.finish(b, sums.loop.results)

    return strip_mine(loop, trips, append_block) if chosen else loop


def _max_bytes(loop: Node) -> int:
    limit = WhileParts.of(loop).limit
    return min(MAX_BYTES, limit // 4) if limit else MAX_BYTES


def _push_out_products(b: Build, loop: Node) -> Node:
    """Return a loop that reads rows of products, whose computation is appended."""
    loop = _contracting(loop)
    sequences, most = Sequences.of(WhileParts.of(loop)), _max_bytes(loop)
    if sequences is None:
        return push_out_blocks(b, loop, _has_product, most, _peak_bytes) or loop
    count = len(sequences.trips)
    chosen = [x for x in live_outs(sequences) if _has_product(sequences, x)]
    if not chosen:
        return loop
    trial = Build("")
    trial.source = b.source
    is_small = count * sum(x.tensor.nbytes or 0 for x in chosen) <= most
    stacks = sequences.for_all_trips(trial, chosen) if is_small else None
    if stacks is None or _peak_bytes(trial.nodes, [*stacks.values()]) > most:
        return push_out_blocks(b, loop, _has_product, most, _peak_bytes) or loop
    for node in trial.nodes:
        node.remark = Remark(loop=loop.source, is_for_all_trips=True)
    b.nodes += trial.nodes
    return reading_rows(loop, sequences, stacks)


def _contracting(loop: Node) -> Node:
    """Return the loop with products in place of sums of an array times a row that is spread.

    The gradient of an outer product has such sums; the array is the same in each trip.
    """
    w = WhileParts.of(loop)
    replaced = {}
    for node in w.after.nodes:
        factors = _contracted(node, w) if node.op is reducing.reduce_sum else None
        if factors is not None:
            b = Build("")
            b.source, (result,) = node.source, node.results
            array, row, axes = factors
            row = b.reshape(row, tuple(array.tensor.dims[axis] for axis in axes))
            total = b.dot_general(
                array, row, contract=(axes, tuple(range(len(axes)))), batch=((), ())
            )
            b.reshape(total, result.tensor.dims)
            replaced[node] = b.nodes
    if not replaced:
        return loop
    mapping: dict[Value, Value] = {}
    nodes = copy_nodes(w.after.nodes, mapping, replaced)
    results = tuple(mapping.get(x, x) for x in w.after.results)
    after = Graph(w.after.name, w.after.params, tuple(nodes), results)
    return copy_node(loop, loop.operands, (w.before, after))


def _contracted(node: Node, w: WhileParts) -> tuple[Value, Value, Axes] | None:
    """Return the array and the row whose product a node sums, and the axes that it sums."""
    product, axes = node.operands[0].node, tuple(sorted(node.attrs["axes"]))
    if product is None or product.op is not elementwise.mul:
        return None
    type = product.results[0].tensor
    if not type.is_static or type.dtype not in INEXACT:
        return None
    for array, other in (product.operands, product.operands[::-1]):
        row, varying = unbroadcast(other)
        is_row = array in w.after_invariants and row not in w.after_invariants
        if is_row and row is not other and varying == axes:
            return array, row, axes
    return None


def _peak_bytes(nodes: Sequence[Node], live: Collection[Value], trips: Symbol | None = None) -> int:
    """Return the most bytes that the results of nodes occupy at a time, if each is freed early.

    `trips`, a size, is taken for one.
    """
    one: Mapping[Symbol, Dim] = {} if trips is None else {trips: 1}
    last_reads = {x: k for k, node in enumerate(nodes) for x in node.operands}
    freed: dict[int, list[Value]] = {}
    for k, node in enumerate(nodes):
        for x in node.results:
            if x not in live:
                freed.setdefault(last_reads.get(x, k), []).append(x)
    size = peak = 0
    for k, node in enumerate(nodes):
        size += sum(_array_bytes(x, one) for x in node.results)
        peak = max(peak, size)
        size -= sum(_array_bytes(x, one) for x in freed.get(k, ()))
    return peak


def _array_bytes(value: Value, one: Mapping[Symbol, Dim]) -> int:
    """Return the bytes of an array; views and broadcasts of others have none."""
    node = value.node
    if node is None or node.op.shares is not None or node.op.view_of is not None:
        return 0
    if node.op is shaping.broadcast_to or not isinstance(value.type, TensorType):
        return 0
    type = substitute(value.type, one)
    return (type.nbytes or 0) if isinstance(type, TensorType) else 0


def _has_product(sequences: Sequences, value: Value) -> bool:
    """Return whether products give a value, and no loop, which would carry arrays of all trips."""
    nodes = {sequences.nodes.get(x): None for x in sequences.slice_of(value)}
    known = [node for node in nodes if node is not None]
    return not any(node.regions for node in known) and any(
        node.op is contracting.dot_general and node.attrs["contract"] != ((), ()) for node in known
    )
