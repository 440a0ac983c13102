"""Splits large loops: the outermost loop becomes a function that is given a part of its steps.

What the function reads of the one around it is handed over in a context on the stack, and has the
same names on both sides. `parallel.py` calls it, once for all steps, or for parts on several
threads.

Only loops whose trips share nothing are split. So what an element is does not depend on how many
threads there are, or which is faster: it is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.loops.index_maps import IndexMap
from wend.backends.native.emit.loops.loops import Axis, Offsets, further
from wend.backends.native.fusion.symbolic_strides import Extent
from wend.backends.native.rt.parallel import WORTH
from wend.backends.native.target.value_layout import SLOT_BYTES

_APART = 64  # elements: so that threads do not write to one line of the cache


@dataclass(eq=False, repr=False, slots=True)
class ParallelOutline:
    """Splits the loops of one nest.

    Attributes:
        low: what writes.
        work: what an element costs.
        iteration_space: the sizes that are gone over.
    """

    low: Lowering
    work: int
    iteration_space: Sequence[Extent]

    @property
    def is_wanted(self) -> bool:
        """Whether it may be worth it.

        In a loop of the program of whose trips one waits for the other, only if it is for certain:
        there a call for few elements would be felt.
        """
        if self.low.threads <= 1:
            return False
        if any(registers for _, registers in self.iteration_space):
            return not self.low.trips
        return self.work * int(np.prod([float(size) for size, _ in self.iteration_space])) >= WORTH

    def room(self, dtype: np.dtype, dims: Sequence[str]) -> tuple[Array, str]:
        """Memory for each thread, and how many elements lie between those of two."""
        sizes = self.low.sizes
        count = sizes.add(sizes.product(dims), str(2 * _APART - 1))
        apart = sizes.mul(sizes.div(count, str(_APART)), str(_APART))
        return self.low.arrays.new(dtype, (str(self.low.threads), apart)), apart

    def write(
        self,
        axes: Sequence[Axis],
        offsets: Offsets,
        inside: Sequence[str],
        apart: Mapping[IndexMap, str],
        write: Callable[[Sequence[Axis], Offsets], object],
    ) -> None:
        """Write loops, of which the first may be split.

        Args:
            axes: the loops.
            offsets: where they start.
            inside: sizes of what there is in each of their places.
            apart: what each thread has for itself, and how far one's is from another's.
            write: writes loops along axes that start somewhere.
        """
        if not self.is_wanted or not axes:
            write(axes, offsets)
            return
        w, first = self.low.w, axes[0]
        label, start, size, thread = (w.new_label(x) for x in ("part", "from", "size", "thread"))
        mark, before = len(w.lines), w.block
        w.start(label)
        begin = dict(further(self.low, first, offsets, f"%{start}"))
        for access, far in apart.items():
            mine = self.low.sizes.mul(f"%{thread}", far)
            begin[access] = self.low.sizes.add(begin[access], mine)
        write([Axis(f"%{size}", first.steps), *axes[1:]], begin)
        after = w.block
        lines = w.cut(mark, before)
        given = {f"%{name}" for name in (start, size, thread)}
        captured = w.captured(lines, given)
        if captured is None:
            for name, value in ((start, "0"), (size, first.count), (thread, "0")):
                w.do(f"%{name} = add i64 {value}, 0")
            w.jump(label)
            w.lines += lines
            w.block = after
            return
        rest = self.low.sizes.product([*(axis.count for axis in axes[1:]), *inside])
        cost = self.low.sizes.mul(str(self.work), rest)
        self._call(first.count, cost, captured, (label, start, size, thread), lines)

    def _call(
        self,
        count: str,
        cost: str,
        captured: Mapping[str, str],
        names: Sequence[str],
        lines: Sequence[str],
    ) -> None:
        """The function, and the call of what calls it."""
        low, w = self.low, self.low.w
        label, start, size, thread = names
        name = f"@wend_part{len(low.parts)}"
        context = w.allocate(f"[{max(len(captured), 1)} x i64]")
        loads = []
        for k, (value, type) in enumerate(captured.items()):
            place = w.define(f"getelementptr i8, ptr {context}, i64 {SLOT_BYTES * k}")
            w.do(f"store {type} {value}, ptr {place}")
            loads.append(f"  {value}.at = getelementptr i8, ptr %context, i64 {SLOT_BYTES * k}")
            loads.append(f"  {value} = load {type}, ptr {value}.at")
        w.do(
            "call void @wend.parallel"
            f"(ptr {name}, ptr {context}, i64 {count}, i64 {cost}, i64 {low.threads})"
        )
        head = f"{name}(ptr %context, i64 %{start}, i64 %{size}, i64 %{thread})"
        low.parts.append((head, ["enter:", *loads, f"  br label %{label}", *lines, "  ret void"]))
