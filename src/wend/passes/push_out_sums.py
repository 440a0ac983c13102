"""Sums of products over the trips of a loop become one product after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import copy_node, keep_names
from wend.ir.types import Dim, TensorType
from wend.ops import contracting, elementwise, shaping
from wend.ops.build import Axes, Build
from wend.ops.control import WhileParts
from wend.ops.creating import is_constant, is_zeros
from wend.passes.loop_sequences import Sequences

# A product of as many rows runs at the speed of a larger one (measured; AMD EPYC, OpenBLAS 0.3.31:
# at 64 units an outer product takes 2.1 µs alone and 0.35 µs as part of one product of 500; the
# gradient of an LSTM of 256 units takes 0.6 of the time at 8 rows, and as long at 16)
_MIN_GEMM_ROWS = 16
# Sums of as many elements stay in registers (a layer of 4 units: 41 ns a trip, recorded 51)
_MAX_REGISTER_ELEMENTS = 16
# Blocks of trips pay from here on, where a loop may end after a few trips
_MIN_BLOCKED_ELEMENTS = 1024
_MIN_BLOCK_TRIPS, _MAX_BLOCK_TRIPS = 8, 256  # at most as many as stay in the cache
_Pair: TypeAlias = tuple[Axes, Axes]
_Factor: TypeAlias = tuple[Value, Axes]  # a value, and its sizes other than 1


@dataclass(frozen=True, slots=True)
class _SummedProduct:
    """A product that each trip adds to a carry.

    Attributes:
        result: the value that holds the product in a trip.
        factors: what is multiplied; a vector may be a matrix of one row or column.
        contract: the axes of the factors that are summed over.
        batch: the axes that the factors share.
        perm: the order of the axes of the result, among those of the product.
        scaling: the nodes between the product and the addition, in order; they are linear in it,
            and their other operands are invariants.
    """

    result: Value
    factors: tuple[_Factor, _Factor]
    contract: _Pair = ((), ())
    batch: _Pair = ((), ())
    perm: Axes = ()
    scaling: tuple[Node, ...] = ()

    @property
    def values(self) -> list[Value]:
        """The factors, in the shapes that they have in a trip."""
        return [x for x, _ in self.factors]

    def of_all_trips(self, b: Build, x: Value, y: Value) -> Value:
        """Append the sum over all trips as one product, given the factors of all trips."""
        left, right = (tuple(axis + 1 for axis in axes) for axes in self.contract)
        batch = tuple(tuple(axis + 1 for axis in axes) for axes in self.batch)
        total = b.dot_general(x, y, contract=((0, *left), (0, *right)), batch=batch)  # type: ignore[arg-type]
        is_in_order = self.perm == tuple(sorted(self.perm))
        return total if is_in_order else b.transpose(total, perm=self.perm)


@dataclass(frozen=True, slots=True)
class _Sum:
    """A carry to which each trip adds products, and perhaps other values.

    Attributes:
        position: among the carry.
        products: the products.
        others: the other values.
    """

    position: int
    products: tuple[_SummedProduct, ...]
    others: tuple[Value, ...]


class SumsOfProducts:
    """The sums that a loop leaves to products after it.

    The trip count of the loop is known, or it is a block of another one, of at most so many trips.

    Attributes:
        loop: the loop without them, which records the factors; its inputs are appended, not it.
    """

    def __init__(self, b: Build, loop: Node, sums: Sequence[_Sum]) -> None:
        w = WhileParts.of(loop)
        self.w, self.loop, self.sums, self.size = w, loop, sums, len(loop.results)
        self.known: dict[Value, Mapping[Value, Value]] = {}  # of products, rows by counter
        sequences = Sequences.of(w) if sums else None
        self.trips = None if sequences is None else len(sequences.trips)
        recorded: dict[_Factor, None] = {}
        for product in (x for sum in sums for x in sum.products):
            rows = None if sequences is None else sequences.for_all_trips(b, product.values)
            if rows is None:
                recorded |= dict.fromkeys(product.factors)
            else:
                self.known[product.result] = rows
        self.recorded = [*recorded]  # the factors of other products, rows by trip
        if sums:
            self.loop = _recording(b, loop, sums, self.recorded)

    def finish(self, b: Build, results: Sequence[Value]) -> Sequence[Value]:
        """Append the products, given the results of the loop; return those of the old loop."""
        w, outer = self.w, dict(zip(self.w.after_invariants, self.w.invariants, strict=True))
        finished, stacks = [*results[: self.size]], dict[_Factor, Value]()
        count: Dim | None = self.trips
        for factor, list_ in zip(self.recorded, results[self.size :], strict=True):
            stack = b.list_stack(list_)
            count = stack.tensor.dims[0] if count is None else count
            type = stack.tensor.with_shape((count, *factor[1]))
            stacks[factor] = b.refine(stack, type)
        for sum in self.sums:
            position = w.forwarded.index(w.before_carry[sum.position])
            start = finished[position] if sum.others else w.carry[sum.position]
            total = None if is_zeros(start) else start
            for product in sum.products:
                summed = product.of_all_trips(b, *self._rows(b, product, stacks))
                if summed.node is not None:
                    summed.node.remark = Remark(loop=self.loop.source, is_for_all_trips=True)
                summed = _scaled(b, summed, product, outer)
                total = summed if total is None else b.add(total, summed)
            assert total is not None
            finished[position] = total
        return finished

    def _rows(
        self, b: Build, product: _SummedProduct, stacks: Mapping[_Factor, Value]
    ) -> Sequence[Value]:
        """Return the factors of all trips."""
        known = self.known.get(product.result)
        if known is None:
            return [stacks[factor] for factor in product.factors]
        assert self.trips is not None
        return [b.reshape(known[x], (self.trips, *dims)) for x, dims in product.factors]


def sums_of_products(w: WhileParts, max_bytes: int) -> Sequence[_Sum]:
    """Return the sums of a counted loop that are faster as products of all trips, if they fit."""
    sequences = Sequences.of(w)
    if sequences is None:
        return ()

    def is_faster(product: _SummedProduct) -> bool:
        are_known = all(x in sequences for x in product.values)
        return are_known or _is_long(product, _MAX_REGISTER_ELEMENTS + 1)

    sums = _sums(w, is_faster)
    return sums if len(sequences.trips) * _bytes(sums) <= max_bytes else ()


def sums_of_blocks(w: WhileParts, max_bytes: int) -> tuple[Sequence[_Sum], int]:
    """Return the sums that are faster as products of blocks of trips, and the trips of a block."""
    sums = _sums(w, lambda product: _is_long(product, _MIN_BLOCKED_ELEMENTS))
    trips = min(_MAX_BLOCK_TRIPS, max_bytes // max(_bytes(sums), 1))
    return (sums, trips) if trips >= _MIN_BLOCK_TRIPS else ((), 0)


def _bytes(sums: Sequence[_Sum]) -> int:
    """Return the bytes of the factors of sums in a trip; sums may share factors."""
    factors = {factor for x in sums for product in x.products for factor in product.factors}
    return sum(x.tensor.dtype.itemsize * prod(dims) for x, dims in factors)


def _is_long(product: _SummedProduct, least: int) -> bool:
    """Return whether a trip adds few rows to a sum of at least so many elements.

    What a number scales is added in one pass, and would have to be copied to be kept.
    """
    dims = product.factors[0][1]
    rows = prod(dims[axis] for axis in product.contract[0])
    return (
        all(dims for _, dims in product.factors)
        and rows < _MIN_GEMM_ROWS
        and prod(product.result.tensor.dims) >= least  # type: ignore[arg-type]
    )


def _sums(w: WhileParts, is_faster: Callable[[_SummedProduct], bool]) -> list[_Sum]:
    """Return the carries that are sums with at least one product that is faster outside."""
    reads = _Reads(w)
    sums = []
    for k in range(len(w.carry)):
        summands = reads.summands(k)
        products, others = list[_SummedProduct](), list[Value]()
        for x in summands:
            product = _summand(x, w, reads)
            if product is not None and is_faster(product):
                products.append(product)
            else:
                others.append(x)
        if products:
            sums.append(_Sum(k, tuple(products), tuple(others)))
    return sums


class _Reads:
    """How often the values of a loop are read, and by which node last."""

    def __init__(self, w: WhileParts) -> None:
        self.w = w
        nodes = (*w.before.nodes, *w.after.nodes)
        self.counts = Counter(x for node in nodes for x in node.operands)
        self.counts.update((*w.before.results, *w.next_carry))
        self.readers = {x: node for node in nodes for x in node.operands}

    def summands(self, k: int) -> list[Value]:
        """Return what a trip adds to carry k, if nothing else reads the sum."""
        w, param = self.w, self.w.before_carry[k]
        if not isinstance(param.type, TensorType) or not param.type.is_static:
            return []
        if param not in w.forwarded or self.counts[param] != 1:
            return []
        value, summands = w.after_forwarded[w.forwarded.index(param)], list[Value]()
        while self.counts[value] == 1:
            node = self.readers.get(value)
            if node is None:
                return summands if value is w.next_carry[k] else []
            if node.op is not elementwise.add:
                return []
            summands += self._parts(next(x for x in node.operands if x is not value))
            (value,) = node.results
            if value.type != param.type or summands[-1].type != param.type:
                return []
        return []

    def _parts(self, value: Value) -> list[Value]:
        """Return the summands of a sum that is read once."""
        node = value.node
        if node is None or node.op is not elementwise.add or self.counts[value] != 1:
            return [value]
        if any(x.type != value.type for x in node.operands):
            return [value]
        return [part for x in node.operands for part in self._parts(x)]


def _summand(value: Value, w: WhileParts, reads: _Reads) -> _SummedProduct | None:
    """Return a summand as a product that nothing else reads, perhaps scaled by invariants."""
    scaling = list[Node]()
    while (node := value.node) is not None and reads.counts[value] == 1:
        product = _product(node, w)
        if product is not None:
            return replace(product, scaling=tuple(reversed(scaling)))
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
        factors = (x, x.tensor.dims), (y, y.tensor.dims)
        (result,), attrs = node.results, node.attrs
        return _SummedProduct(result, factors, attrs["contract"], attrs["batch"])  # type: ignore[arg-type]
    return _outer_product(node, w) if node.op is elementwise.mul else None


def _outer_product(node: Node, w: WhileParts) -> _SummedProduct | None:
    """Return what a multiplication computes as an outer product of what it broadcasts."""
    (result,) = node.results
    sizes = result.tensor.dims
    rank = len(sizes)
    (x, left), (y, right) = (unbroadcast(operand) for operand in node.operands)
    if not left or not right or sorted((*left, *right)) != list(range(rank)):
        return None
    if _is_shared(x, w) or _is_shared(y, w):
        return None
    factors = tuple((z, tuple(sizes[k] for k in axes)) for z, axes in ((x, left), (y, right)))
    axes = (*left, *right)
    return _SummedProduct(result, factors, perm=tuple(axes.index(axis) for axis in range(rank)))  # type: ignore[arg-type]


def unbroadcast(x: Value) -> tuple[Value, Axes]:
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


def _recording(b: Build, loop: Node, sums: Sequence[_Sum], factors: Sequence[_Factor]) -> Node:
    """Return the loop without products and with lists of factors, which are its last results."""
    w = WhileParts.of(loop)
    types = [TensorType(x.tensor.dtype, dims) for x, dims in factors]
    starts = [b.list_new(type) for type in types]
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
    pushed = [
        inner.list_push(list, inner.reshape(x, dims))
        for list, (x, dims) in zip(after_lists, factors, strict=True)
    ]
    last = [*w.next_carry]
    for sum in sums:
        value = w.after_forwarded[w.forwarded.index(w.before_carry[sum.position])]
        for x in sum.others:
            value = inner.add(value, x)
        last[sum.position] = value
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


def _scaled(b: Build, total: Value, product: _SummedProduct, outer: Mapping[Value, Value]) -> Value:
    """Append the nodes between a product and the sum."""
    mapping = {**outer, product.result: total}
    for node in product.scaling:
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
