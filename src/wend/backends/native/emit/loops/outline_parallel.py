"""Outlining of parallel loops: the outermost loop becomes a function of a range of its trips.

The function reads the values of its caller from a context on the stack, under the same names.
`parallel.py` calls it once for all trips, or for ranges of them on several threads.

Only loops with independent trips are outlined, so every element is the same to the last bit,
whatever the number of threads and their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.loops.index_maps import IndexMap
from wend.backends.native.emit.loops.loops import Axis, Offsets, advance
from wend.backends.native.fusion.symbolic_strides import Extent
from wend.backends.native.rt.parallel import MIN_PARALLEL_COST
from wend.backends.native.target.value_layout import SLOT_BYTES

_THREAD_BUFFER_MULTIPLE = 64  # elements; keeps threads out of each other's cache lines


@dataclass(eq=False, repr=False, slots=True)
class ParallelOutline:
    """Outlines the loops of one nest.

    Attributes:
        low: The lowering of the function.
        element_cost: The cost of one element.
        iteration_space: The sizes of the iteration space.
    """

    low: Lowering
    element_cost: int
    iteration_space: Sequence[Extent]

    @property
    def is_profitable(self) -> bool:
        """Whether outlining may be worth its cost.

        Inside a sequential loop of the program it must be certain, because there a call for a few
        elements would be noticeable.
        """
        if self.low.threads <= 1:
            return False
        if any(registers for _, registers in self.iteration_space):
            return not self.low.loop_depth
        return (
            self.element_cost * int(np.prod([float(size) for size, _ in self.iteration_space]))
            >= MIN_PARALLEL_COST
        )

    def thread_buffer(self, dtype: np.dtype, dims: Sequence[str]) -> tuple[Array, str]:
        """Allocate a buffer per thread; also return how many elements separate two of them."""
        sizes = self.low.sizes
        count = sizes.add(sizes.product(dims), str(2 * _THREAD_BUFFER_MULTIPLE - 1))
        stride = sizes.mul(
            sizes.div(count, str(_THREAD_BUFFER_MULTIPLE)), str(_THREAD_BUFFER_MULTIPLE)
        )
        return self.low.arrays.new(dtype, (str(self.low.threads), stride)), stride

    def emit(
        self,
        axes: Sequence[Axis],
        offsets: Offsets,
        inner_dims: Sequence[str],
        thread_strides: Mapping[IndexMap, str],
        emit_loops: Callable[[Sequence[Axis], Offsets], object],
    ) -> None:
        """Emit loops, of which the first may be outlined.

        Args:
            axes: The loops.
            offsets: Their initial offsets.
            inner_dims: The sizes of the loops inside of them.
            thread_strides: The index maps of per-thread buffers, and how far these are apart.
            emit_loops: Emits loops along axes from initial offsets.
        """
        if not self.is_profitable or not axes:
            emit_loops(axes, offsets)
            return
        w, first = self.low.w, axes[0]
        label, start, size, thread = (
            w.new_label(hint) for hint in ("part", "from", "size", "thread")
        )
        line_count, block_before = len(w.lines), w.block
        w.start(label)
        thread_offsets = dict(advance(self.low, first, offsets, f"%{start}"))
        for index_map, stride in thread_strides.items():
            thread_offset = self.low.sizes.mul(f"%{thread}", stride)
            thread_offsets[index_map] = self.low.sizes.add(thread_offsets[index_map], thread_offset)
        emit_loops([Axis(f"%{size}", first.steps), *axes[1:]], thread_offsets)
        block_after = w.block
        lines = w.extract_lines(line_count, block_before)
        params = {f"%{name}" for name in (start, size, thread)}
        captured = w.live_ins(lines, params)
        if captured is None:
            for name, value in ((start, "0"), (size, first.count), (thread, "0")):
                w.do(f"%{name} = add i64 {value}, 0")
            w.jump(label)
            w.lines += lines
            w.block = block_after
            return
        trip_elements = self.low.sizes.product([*(axis.count for axis in axes[1:]), *inner_dims])
        cost = self.low.sizes.mul(str(self.element_cost), trip_elements)
        self._emit_call(first.count, cost, captured, (label, start, size, thread), lines)

    def _emit_call(
        self,
        count: str,
        cost: str,
        captured: Mapping[str, str],
        names: Sequence[str],
        lines: Sequence[str],
    ) -> None:
        """Emit the outlined function, and the call that runs it in parallel."""
        low, w = self.low, self.low.w
        label, start, size, thread = names
        name = f"@wend_part{len(low.outlined_functions)}"
        context = w.allocate(f"[{max(len(captured), 1)} x i64]")
        loads = []
        for k, (value, type) in enumerate(captured.items()):
            address = w.define(f"getelementptr i8, ptr {context}, i64 {SLOT_BYTES * k}")
            w.do(f"store {type} {value}, ptr {address}")
            loads.append(f"  {value}.at = getelementptr i8, ptr %context, i64 {SLOT_BYTES * k}")
            loads.append(f"  {value} = load {type}, ptr {value}.at")
        w.do(
            "call void @wend.parallel"
            f"(ptr {name}, ptr {context}, i64 {count}, i64 {cost}, i64 {low.threads})"
        )
        head = f"{name}(ptr %context, i64 %{start}, i64 %{size}, i64 %{thread})"
        low.outlined_functions.append(
            (head, ["enter:", *loads, f"  br label %{label}", *lines, "  ret void"])
        )
