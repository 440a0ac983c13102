"""Outlining of parallel loops: the outermost loop becomes a function of a range of its trips.

The function reads the values of its caller from a context on the stack, under the same names.
`parallel.py` calls it once for all trips, or for ranges of them on several threads.

Only loops with independent trips are outlined, so every element is the same to the last bit,
whatever the number of threads and their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.loops.index_maps import IndexMap
from wend.backends.native.emit.loops.loops import Axis, Offsets, advance
from wend.backends.native.fusion.symbolic_strides import Extent
from wend.backends.native.rt.parallel import MIN_PARALLEL_COST
from wend.backends.native.target.value_layout import SLOT_BYTES
from wend.base.lazy.dataclass import dataclass

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
        low, first = self.low, axes[0]

        def emit_range(start: str, size: str, thread: str) -> None:
            thread_offsets = dict(advance(low, first, offsets, start))
            for index_map, stride in thread_strides.items():
                thread_offset = low.sizes.mul(thread, stride)
                thread_offsets[index_map] = low.sizes.add(thread_offsets[index_map], thread_offset)
            emit_loops([Axis(size, first.steps), *axes[1:]], thread_offsets)

        part = outlined(low, first.count, emit_range)
        if part is None:
            return
        trip_elements = low.sizes.product([*(axis.count for axis in axes[1:]), *inner_dims])
        cost = low.sizes.mul(str(self.element_cost), trip_elements)
        name, context = call_part(low, part)
        low.w.do(
            "call void @wend.parallel"
            f"(ptr {name}, ptr {context}, i64 {first.count}, i64 {cost}, i64 {low.threads})"
        )


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class OutlinedRange:
    """Code for a range of trips, taken out of a function.

    Attributes:
        names: the label of its first block, and the names of the first trip, of the number of trips
            and of the thread.
        lines: its lines.
        captured: the values of the function that it uses, with their types.
    """

    names: Sequence[str]
    lines: Sequence[str]
    captured: Mapping[str, str]


def outlined(
    low: Lowering, count: str, emit_range: Callable[[str, str, str], None]
) -> OutlinedRange | None:
    """Take code for a range of trips out of the function.

    Args:
        low: the lowering of the function.
        count: the number of all trips.
        emit_range: emits the code, given the first trip, their number, and the thread.

    Returns:
        The code; None where it cannot leave the function, which then runs all trips.
    """
    w = low.w
    names = [w.new_label(hint) for hint in ("part", "from", "size", "thread")]
    label, *numbers = names
    line_count, block_before = len(w.lines), w.block
    w.start(label)
    start, size, thread = (f"%{name}" for name in numbers)
    emit_range(start, size, thread)
    block_after = w.block
    lines = w.extract_lines(line_count, block_before)
    captured = w.live_ins(lines, {start, size, thread})
    if captured is not None:
        return OutlinedRange(names, lines, captured)
    for name, value in zip((start, size, thread), ("0", count, "0"), strict=True):
        w.do(f"{name} = add i64 {value}, 0")
    w.jump(label)
    w.lines += lines
    w.block = block_after
    return None


def call_part(low: Lowering, part: OutlinedRange) -> tuple[str, str]:
    """Define the function of a range; return its name, and the address of the values it reads."""
    w = low.w
    label, start, size, thread = part.names
    name = f"@wend_part{len(low.outlined_functions)}"
    context = w.allocate(f"[{max(len(part.captured), 1)} x i64]")
    loads = []
    for k, (value, type) in enumerate(part.captured.items()):
        address = w.define(f"getelementptr i8, ptr {context}, i64 {SLOT_BYTES * k}")
        w.do(f"store {type} {value}, ptr {address}")
        loads.append(f"  {value}.at = getelementptr i8, ptr %context, i64 {SLOT_BYTES * k}")
        loads.append(f"  {value} = load {type}, ptr {value}.at")
    head = f"{name}(ptr %context, i64 %{start}, i64 %{size}, i64 %{thread})"
    low.outlined_functions.append(
        (head, ["enter:", *loads, f"  br label %{label}", *part.lines, "  ret void"])
    )
    return name, context
