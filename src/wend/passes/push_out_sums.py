"""Sums of products over the trips of a counted loop become one product after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import copy_node, keep_names
from wend.ops import contracting, elementwise, shaping
from wend.ops.build import Axes, Build
from wend.ops.control import WhileParts
from wend.ops.creating import is_constant
from wend.passes.loop_sequences import Sequences

# A product of as many rows runs at the speed of a larger one (measured; AMD EPYC, OpenBLAS 0.3.31:
# at 64 units an outer product takes 2.1 µs alone and 0.35 µs as part of one product of 500)
_ENOUGH_ROWS = 8
# Sums of as many elements stay in registers (a layer of 4 units: 41 ns a trip, recorded 51)
_MOST_IN_REGISTERS = 16
_Pair: TypeAlias = tuple[Axes, Axes]


@dataclass(frozen=True, slots=True)
class _SummedProduct:
    """A product of two values; what is a vector in it may have axes of size one.

    Attributes:
        factors: the values.
        dims: their sizes, without such axes.
        contract: the axes that are summed over.
        batch: the axes that the factors share.
        perm: the order of the axes of the result, among those of the product.
    """

    factors: tuple[Value, Value]
    dims: _Pair
    contract: _Pair = ((), ())
    batch: _Pair = ((), ())
    perm: Axes = ()

    @property
    def bytes(self) -> int:
        """The size of the factors."""
        pairs = zip(self.factors, self.dims, strict=True)
        return sum(x.tensor.dtype.itemsize * prod(sizes) for x, sizes in pairs)

    def of_all_trips(self, b: Build, stacks: Mapping[Value, Value], count: int) -> Value:
        """Append the sum over all trips, as one product."""
        x, y = (
            b.reshape(stacks[factor], (count, *dims))
            for factor, dims in zip(self.factors, self.dims, strict=True)
        )
        left, right = (tuple(axis + 1 for axis in axes) for axes in self.contract)
        batch = tuple(tuple(axis + 1 for axis in axes) for axes in self.batch)
        total = b.dot_general(x, y, contract=((0, *left), (0, *right)), batch=batch)  # type: ignore[arg-type]
        is_in_order = self.perm == tuple(sorted(self.perm))
        return total if is_in_order else b.transpose(total, perm=self.perm)


@dataclass(frozen=True, slots=True)
class _Sum:
    """A carry to which each trip adds a product.

    Attributes:
        position: among the carry.
        product: what is added.
        result: the value that holds the product in a trip.
        scaling: the nodes between it and the addition; they are linear in it, and their other
            operands are invariants.
    """

    position: int
    product: _SummedProduct
    result: Value
    scaling: tuple[Node, ...]


class SumsOfProducts:
    """The sums that a loop leaves to products after it.

    Attributes:
        loop: the loop without them, which records the factors; its inputs are appended, not it.
    """

    def __init__(self, b: Build, loop: Node, most_bytes: int) -> None:
        self.w = WhileParts.of(loop)
        self.loop, self.sums = loop, list[_Sum]()
        self.known: dict[int, Mapping[Value, Value]] = {}  # of sums of sequences, rows by counter
        self.recorded: list[Value] = []  # the factors of other sums, rows by trip
        self.size = len(loop.results)
        sequences = Sequences.of(self.w)
        if sequences is None:
            return
        self.trips = len(sequences.trips)
        self.sums = _chosen(sequences, most_bytes)
        for sum in self.sums:
            known = sequences.for_all_trips(b, sum.product.factors)
            if known is None:
                self.recorded += [x for x in sum.product.factors if x not in self.recorded]
            else:
                self.known[sum.position] = known
        if self.sums:
            self.loop = _recording(b, loop, self.sums, self.recorded)

    def finish(self, b: Build, results: Sequence[Value]) -> Sequence[Value]:
        """Append the products, given the results of the loop; return those of the old loop."""
        finished, stacks = [*results[: self.size]], dict[Value, Value]()
        for factor, list_ in zip(self.recorded, results[self.size :], strict=True):
            type = factor.tensor.with_shape((self.trips, *factor.tensor.dims))
            stacks[factor] = b.refine(b.list_stack(list_), type)
        w, outer = self.w, dict(zip(self.w.after_invariants, self.w.invariants, strict=True))
        for sum in self.sums:
            rows = self.known.get(sum.position, stacks)
            product = sum.product.of_all_trips(b, rows, self.trips)
            if product.node is not None:
                product.node.remark = Remark(loop=self.loop.source)
            total, start = _scaled(b, product, sum, outer), w.carry[sum.position]
            position = w.forwarded.index(w.before_carry[sum.position])
            finished[position] = total if _is_zero(start) else b.add(start, total)
        return finished


def _chosen(sequences: Sequences, most_bytes: int) -> list[_Sum]:
    """Return the sums that are faster as one product, as far as their factors fit into memory."""
    count, chosen = len(sequences.trips), []
    for k in range(len(sequences.w.carry)):
        sum = _sum_of(sequences.w, k)
        if sum is None:
            continue
        product = sum.product
        are_known = all(x in sequences for x in product.factors)
        rows = prod(product.dims[0][axis] for axis in product.contract[0])
        is_small = prod(sum.result.tensor.dims) <= _MOST_IN_REGISTERS  # type: ignore[arg-type]
        bytes = count * product.bytes
        if (are_known or (rows < _ENOUGH_ROWS and not is_small)) and bytes <= most_bytes:
            most_bytes -= bytes
            chosen.append(sum)
    return chosen


def _sum_of(w: WhileParts, k: int) -> _Sum | None:
    """Return carry k as a sum of products that nothing else reads."""
    param, last = w.before_carry[k], w.next_carry[k]
    if w.forwarded.count(param) != 1 or last.node is None or last.node.op is not elementwise.add:
        return None
    received = w.after_forwarded[w.forwarded.index(param)]
    summands = [x for x in last.node.operands if x is not received]
    if len(summands) != 1 or summands[0].type != param.type or not param.tensor.is_static:
        return None
    others = [node for node in (*w.before.nodes, *w.after.nodes) if node is not last.node]
    read = {x for node in others for x in node.operands}
    if not read.isdisjoint((param, received, last)) or received in w.next_carry:
        return None
    if w.next_carry.count(last) != 1:
        return None
    value, scaling = summands[0], list[Node]()
    while (node := value.node) is not None:
        product = _product(node, w)
        if product is not None:
            return _Sum(k, product, value, tuple(reversed(scaling)))
        varying = _scaled_operand(node, w)
        if varying is None:
            return None
        scaling.append(node)
        value = varying
    return None


def _product(node: Node, w: WhileParts) -> _SummedProduct | None:
    """Return what a node computes as a product of values that vary from trip to trip."""
    if node.op is contracting.dot_general:
        x, y = node.operands
        if not (x.tensor.is_static and y.tensor.is_static) or _is_shared(x, w) or _is_shared(y, w):
            return None
        contract, batch = node.attrs["contract"], node.attrs["batch"]
        return _SummedProduct((x, y), (x.tensor.dims, y.tensor.dims), contract, batch)  # type: ignore[arg-type]
    return _outer_product(node, w) if node.op is elementwise.mul else None


def _outer_product(node: Node, w: WhileParts) -> _SummedProduct | None:
    """Return what a multiplication computes as an outer product of what it broadcasts."""
    rank = len(node.results[0].tensor.dims)
    (x, left), (y, right) = (_unbroadcast(operand) for operand in node.operands)
    if not left or not right or sorted((*left, *right)) != list(range(rank)):
        return None
    if _is_shared(x, w) or _is_shared(y, w):
        return None
    sizes = node.results[0].tensor.dims
    dims = tuple(tuple(sizes[axis] for axis in axes) for axes in (left, right))
    axes = (*left, *right)
    return _SummedProduct((x, y), dims, perm=tuple(axes.index(axis) for axis in range(rank)))  # type: ignore[arg-type]


def _unbroadcast(x: Value) -> tuple[Value, Axes]:
    """Return what a value is broadcast from, and the axes along which that varies."""
    node = x.node
    if node is None or node.op is not shaping.broadcast_to or not x.tensor.is_static:
        return x, ()
    (inner,) = node.operands
    offset = len(x.tensor.dims) - len(inner.tensor.dims)
    axes = tuple(offset + axis for axis, size in enumerate(inner.tensor.dims) if size != 1)
    is_reshaped = inner.node is not None and inner.node.op is shaping.reshape
    if is_reshaped and inner.node is not None and inner.node.operands[0].tensor.is_static:
        (inner,) = inner.node.operands
    return inner, axes


def _scaled_operand(node: Node, w: WhileParts) -> Value | None:
    """Return the operand that a node is linear in, if its other operands are invariants."""
    if node.op in (shaping.transpose, shaping.reshape, elementwise.neg) and len(node.operands) == 1:
        return node.operands[0]
    if node.op is not elementwise.mul:
        return None
    varying = [x for x in node.operands if not _is_shared(x, w)]
    return varying[0] if len(varying) == 1 else None


def _is_shared(value: Value, w: WhileParts) -> bool:
    return is_constant(value) or value in w.after_invariants


def _recording(b: Build, loop: Node, sums: Sequence[_Sum], factors: Sequence[Value]) -> Node:
    """Return the loop without the sums and with lists of factors, which are its last results."""
    w = WhileParts.of(loop)
    starts = [b.list_new(factor.type) for factor in factors]
    before_lists, after_lists = ([Value(list.type) for list in starts] for _ in range(2))
    before = Graph(
        w.before.name,
        (*w.before_carry, *before_lists, *w.before_invariants),
        w.before.nodes,
        (*w.before.results, *before_lists),
    )
    inner = Build("")
    inner.nodes += w.after.nodes
    inner.source = loop.source
    pushed = [inner.list_push(list, x) for list, x in zip(after_lists, factors, strict=True)]
    last = [*w.next_carry]
    for sum in sums:
        position = w.forwarded.index(w.before_carry[sum.position])
        last[sum.position] = w.after_forwarded[position]
    after = Graph(
        w.after.name,
        (*w.after_forwarded, *after_lists, *w.after_invariants),
        tuple(inner.nodes),
        (*last, *pushed),
    )
    node = Node(
        loop.op,
        (*w.carry, *starts, *w.invariants),
        {**loop.attrs, "carry": len(w.carry) + len(starts)},
        (before, after),
        [*(result.type for result in loop.results), *(list.type for list in starts)],
        loop.source,
    )
    node.remark = loop.remark
    keep_names(loop.results, node.results[: len(loop.results)])
    return node


def _scaled(b: Build, total: Value, sum: _Sum, outer: Mapping[Value, Value]) -> Value:
    """Append the nodes between a product and the sum."""
    mapping = {**outer, sum.result: total}
    for node in sum.scaling:
        for x in node.operands:
            if x not in mapping and x.node is not None:
                constant = copy_node(x.node, ())
                b.nodes.append(constant)
                (mapping[x],) = constant.results
        copy = copy_node(node, [mapping[x] for x in node.operands])
        b.nodes.append(copy)
        (total,) = copy.results
        mapping[node.results[0]] = total
    return total


def _is_zero(value: Value) -> bool:
    node = value.node
    return node is not None and is_constant(value) and not node.attrs["value"].any()
