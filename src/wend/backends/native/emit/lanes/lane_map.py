"""Maps in lanes: the elements of arrays, side by side in vectors.

Where the body is one loop without records, lanes whose elements are done take the next elements,
so the cost is about the sum of the trips. Other bodies are computed for groups of elements, each
loop until the last lane of the group has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.lanes.regions import VectorRegions, as_register, memory_text
from wend.backends.native.emit.lanes.vectors import count_from, numbers, splat
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.lane_map import ElementProgram, lane_map
from wend.backends.native.target.value_layout import Registers
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ops import lists
from wend.ops.control import WhileParts, while_

# One in so many lanes may wait for a refill
_WAITING_SHARE = 4


def emit_lane_map(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit the loop over the elements."""
    body: ElementProgram = node.attrs["body"]
    mapped = node.attrs["mapped"]
    low.calls.vectorizable_count += 1
    pairs = zip(node.operands[:mapped], operands, strict=False)
    arrays = [low.arrays.of(x.tensor, slots) for x, slots in pairs]
    count = arrays[0].dims[0]
    outs = [low.arrays.new(x.tensor.dtype, (count,)) for x in node.results]
    emitter = _LaneMap(low, body, arrays, outs, count)
    emitter.set_invariants(operands[mapped:])
    loop = _only_loop(body.graph)
    if loop is None:
        emitter.emit_groups()
    else:
        emitter.emit_refilled(loop)
    return [low.array_result(node, out, k) for k, out in enumerate(outs)]


def _only_loop(body: Graph) -> Node | None:
    """Return the loop of a body that has one, which keeps no records."""
    if any(node.op is lists.list_new for node in body.nodes):
        return None
    nodes = [node for node in body.nodes if any(x.op is while_ for x in _with_inner(node))]
    return nodes[0] if len(nodes) == 1 and nodes[0].op is while_ else None


def _with_inner(node: Node) -> list[Node]:
    return [node, *(x for region in node.regions for x in region.walk())]


class _LaneMap:
    """The loop over elements that is being emitted."""

    def __init__(
        self,
        low: Lowering,
        body: ElementProgram,
        arrays: Sequence[Array],
        outs: Sequence[Array],
        count: str,
    ) -> None:
        self.low, self.body, self.arrays, self.outs = low, body.graph, arrays, outs
        self.count, self.lanes = count, body.lanes
        self.regions = VectorRegions(low, body.lanes)
        self.word = Kind(WORD.dtype, body.lanes)

    def set_invariants(self, registers: Sequence[Registers]) -> None:
        """Emit the vectors of what all elements share."""
        for x, (number, *_) in zip(self.body.params[len(self.arrays) :], registers, strict=True):
            self.regions.values[x] = splat(self.low, self.regions.kind(x), number)

    @property
    def _columns(self) -> tuple[Value, ...]:
        return self.body.params[: len(self.arrays)]

    def emit_groups(self) -> None:
        """Emit the body for one group of elements after the other."""
        sizes = self.low.sizes
        groups = sizes.div(sizes.add(self.count, str(self.lanes - 1)), str(self.lanes))

        def group(k: str) -> None:
            first = sizes.mul(k, str(self.lanes))
            mask = self._in_range(count_from(self.low, self.lanes, first))
            self._set_columns(self._loaded(first, mask, None))
            self.regions.emit_nodes(self.body.nodes, mask)
            for out, x in zip(self.outs, self.body.results, strict=True):
                kind = self.regions.kind(x)
                vector = self._in_memory(kind, self.regions.values[x])
                address = self.low.arrays.address(out, first)
                align, flags = kind.dtype.itemsize, f"{self.regions.flags.text} {mask}"
                name = f"@llvm.masked.store.{_memory_suffix(kind)}.p0"
                operands = f"{memory_text(kind)} {vector}, ptr {address}, i32 {align}, {flags}"
                self.low.w.do(f"call void {name}({operands})")

        self.low.w.loop(groups, group)
        self.regions.release_tapes()

    def emit_refilled(self, loop: Node) -> None:
        """Emit one loop for all elements, whose lanes take the next element when one is done."""
        w, regions, p = self.low.w, self.regions, WhileParts.of(loop)
        at = self.body.nodes.index(loop)
        before, after = self.body.nodes[:at], self.body.nodes[at + 1 :]
        mask = self._in_range(numbers(self.lanes))
        self._set_columns(self._loaded("0", mask, None))
        regions.emit_nodes(before, mask)
        starts = [regions.values[x] for x in loop.operands]
        entry, head, refill, again, done = (
            w.block,
            *map(w.new_label, ("head", "refill", "again", "done")),
        )
        w.branch(w.define(f"icmp sgt i64 {self.count}, 0"), head, done)
        w.start(head)
        state = [*self._columns, *p.before_carry, *p.before_invariants]
        phis = [w.open_phi(self.word.text, numbers(self.lanes), entry)]
        phis.append(w.open_phi("i64", str(self.lanes), entry))
        firsts = [*(regions.values[x] for x in self._columns), *starts]
        phis += [
            w.open_phi(regions.kind(x).text, first, entry)
            for x, first in zip(state, firsts, strict=True)
        ]
        index, following, *values = (name for name, _ in phis)
        columns, carry = values[: len(self.arrays)], values[len(self.arrays) :]
        carry, invariants = carry[: len(p.carry)], carry[len(p.carry) :]
        active = self._in_range(index)
        test, *forwarded = regions.emit(p.before, [*carry, *invariants], active)
        goes_on = regions.both(active, test)
        is_done = w.define(f"xor {regions.flags.text} {active}, {goes_on}")
        next_carry = regions.emit(p.after, [*forwarded, *invariants], goes_on)
        next_carry = regions.choose(goes_on, p.next_carry, next_carry, carry)
        done_count = self._count(is_done)
        waiting = w.define(f"mul i64 {done_count}, {_WAITING_SHARE}")
        is_time = w.define(f"icmp sge i64 {waiting}, {self.lanes}")
        some = regions.any(goes_on)
        none = w.define(f"xor i1 {some}, true")
        from_trip = w.block
        w.branch(w.define(f"or i1 {is_time}, {none}"), refill, again)
        w.start(refill)
        self._set_columns(columns)
        regions.emit_nodes(before, active)
        regions.values.update(zip(loop.results, forwarded, strict=True))
        regions.emit_nodes(after, is_done)
        self._scatter(index, is_done)
        rank = self._expanded(
            self.low.constant(np.arange(self.lanes)).pointer,
            self.word,
            is_done,
            self.word.literal(0),
        )
        taken = w.define(f"add {self.word.text} {rank}, {splat(self.low, self.word, following)}")
        new_index = regions.select(self.word, is_done, taken, index)
        in_range = self._in_range(new_index)
        fresh = regions.both(is_done, in_range)
        new_columns = self._loaded(following, fresh, columns)
        self._set_columns(new_columns)
        regions.emit_nodes(before, fresh)
        operands = [regions.values[x] for x in loop.operands]
        new_carry = regions.choose(fresh, p.carry, operands[: len(p.carry)], next_carry)
        new_following = w.define(f"add i64 {following}, {done_count}")
        refilled = [new_index, new_following, *new_columns, *new_carry, *operands[len(p.carry) :]]
        from_refill = w.block
        w.branch(regions.any(in_range), again, done)
        w.start(again)
        stayed = [index, following, *columns, *next_carry, *invariants]
        types = [self.word.text, "i64", *(regions.kind(x).text for x in state)]
        merged = w.merge(types, [(stayed, from_trip), (refilled, from_refill)])
        regions.end_trip()
        for (_, close), value in zip(phis, merged, strict=True):
            close(value)
        w.jump(head)
        w.start(done)

    def _in_range(self, index: str) -> str:
        count = splat(self.low, self.word, self.count)
        return self.low.w.define(f"icmp slt {self.word.text} {index}, {count}")

    def _count(self, mask: str) -> str:
        w, bits = self.low.w, f"i{self.lanes}"
        number = w.define(f"bitcast {self.regions.flags.text} {mask} to {bits}")
        return w.define(
            f"zext {bits} {w.define(f'call {bits} @llvm.ctpop.{bits}({bits} {number})')} to i64"
        )

    def _set_columns(self, vectors: Sequence[str]) -> None:
        self.regions.values.update(zip(self._columns, vectors, strict=True))

    def _loaded(self, first: str, mask: str, old: Sequence[str] | None) -> list[str]:
        """Emit the elements from one on for the lanes of a mask, in the order of these."""
        vectors = []
        for k, (array, x) in enumerate(zip(self.arrays, self._columns, strict=True)):
            kind = self.regions.kind(x)
            address = self.low.arrays.address(array, first)
            before = "zeroinitializer" if old is None else self._in_memory(kind, old[k])
            vectors.append(as_register(self.low, kind, self._expanded(address, kind, mask, before)))
        return vectors

    def _expanded(self, address: str, kind: Kind, mask: str, before: str) -> str:
        """Emit a load of consecutive elements into the lanes of a mask."""
        text, flags = memory_text(kind), f"{self.regions.flags.text} {mask}"
        name = f"@llvm.masked.expandload.{_memory_suffix(kind)}"
        return self.low.w.define(f"call {text} {name}(ptr {address}, {flags}, {text} {before})")

    def _scatter(self, index: str, mask: str) -> None:
        """Store the results of the lanes of a mask."""
        w, lanes = self.low.w, self.lanes
        for out, x in zip(self.outs, self.body.results, strict=True):
            kind = self.regions.kind(x)
            vector = self._in_memory(kind, self.regions.values[x])
            element = "i8" if kind.is_bool else kind.element
            places = w.define(
                f"getelementptr {element}, ptr {out.pointer}, {self.word.text} {index}"
            )
            name = f"@llvm.masked.scatter.{_memory_suffix(kind)}.v{lanes}p0"
            flags = f"{self.regions.flags.text} {mask}"
            align = kind.dtype.itemsize
            operands = (
                f"{memory_text(kind)} {vector}, <{lanes} x ptr> {places}, i32 {align}, {flags}"
            )
            w.do(f"call void {name}({operands})")

    def _in_memory(self, kind: Kind, vector: str) -> str:
        if not kind.is_bool:
            return vector
        return self.low.w.define(f"zext {kind.text} {vector} to {memory_text(kind)}")


def _memory_suffix(kind: Kind) -> str:
    return f"v{kind.lanes}i8" if kind.is_bool else kind.suffix


EMITTERS: Mapping[Op, Emit] = {lane_map: emit_lane_map}
