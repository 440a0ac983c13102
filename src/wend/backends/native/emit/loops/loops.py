"""The loops of a nest, with the most contiguous axis innermost, and their accumulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.loops.index_maps import Gather, IndexMap, coalesced_axes
from wend.backends.native.fusion.symbolic_strides import (
    ONE_EXTENT,
    ZERO_EXTENT,
    Extent,
    materialize,
)
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.sizes import is_literal
from wend.base.lazy.dataclass import dataclass

# Blocks of this many terms are summed in an order that suits vectors. The sums of blocks are added
# with compensation, so that the error does not grow with the number of terms.
SUM_BLOCK_TERMS = 512
# From this many trips on, interleaving several vectors pays off: for sums, and for math functions,
# where four vectors take twice as long to compile.
_MIN_INTERLEAVED_SUM_TRIPS, _MIN_INTERLEAVED_MATH_TRIPS = 128, 4096
# Shorter loops are unrolled: LLVM would vectorize them with masks, and a processor without AVX-512
# takes tens of cycles for a store with a mask.
_MIN_VECTOR_TRIPS = 4
# The side of the square tiles of loops over arrays that are contiguous along different axes
TILE_SIDE = 64

# The offset of the current element of each index map, and the gathered positions
Offsets: TypeAlias = Mapping[IndexMap | Gather, str]
Body: TypeAlias = Callable[[Offsets, Sequence[str]], Sequence[str]]
# Emits, in front of a loop, the gathers that are invariant in it
HoistGathers: TypeAlias = Callable[["Axis", Offsets], Offsets]


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A number that a loop carries from element to element.

    Attributes:
        kind: Its kind.
        initial: Its initial value.
        is_sum: Whether it is a sum of floats.
    """

    kind: Kind
    initial: str
    is_sum: bool


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop: its trip count, and the step of each index map."""

    count: str
    steps: Mapping[IndexMap, str]


def loop_axes(
    low: Lowering,
    sizes: Sequence[Extent],
    axes: Sequence[int],
    index_maps: Sequence[IndexMap],
    must_advance: Sequence[IndexMap] = (),
) -> list[Axis]:
    """Return the loops over axes of the iteration space: coalesced, the most contiguous innermost.

    Args:
        low: The lowering of the function.
        sizes: The sizes of the iteration space.
        axes: The axes to loop over.
        index_maps: The index maps that the loops read and write.
        must_advance: Those that must advance along the innermost loop.
    """
    pairs = [(sizes[k], [index_map.steps[k] for index_map in index_maps]) for k in axes]
    merged = coalesced_axes(pairs)
    required = [index_maps.index(index_map) for index_map in must_advance]
    if len(merged) > 1:
        position_maps = [
            [
                index_maps.index(gather.index_map)
                for gather, _ in index_map.gathers
                if gather.index_map
            ]
            for index_map in index_maps
        ]
        innermost = max(
            range(len(merged)),
            key=lambda k: _innermost_score(merged[k], required, position_maps, k),
        )
        merged.append(merged.pop(innermost))
    return [
        Axis(
            materialize(low.sizes, size),
            {
                a: materialize(low.sizes, s)
                for a, s in zip(index_maps, steps, strict=True)
                if s != ZERO_EXTENT
            },
        )
        for size, steps in merged
    ]


def _innermost_score(
    axis: tuple[Extent, Sequence[Extent]],
    required: Sequence[int],
    position_maps: Sequence[Sequence[int]],
    k: int,
) -> tuple[int, ...]:
    """Return how well an axis suits the innermost loop: contiguous or invariant accesses do.

    `position_maps` has, for each index map, the numbers of the maps that its gathers read.
    """
    size, steps = axis
    is_possible = all(steps[k] != ZERO_EXTENT for k in required)
    has_enough_trips = bool(size[1]) or size[0] >= 4
    is_contiguous = [
        step in (ZERO_EXTENT, ONE_EXTENT) and all(steps[j] == ZERO_EXTENT for j in others)
        for step, others in zip(steps, position_maps, strict=True)
    ]
    return is_possible, has_enough_trips, sum(is_contiguous), k


def for_each_index(low: Lowering, axes: Sequence[Axis], offsets: Offsets, body: Body) -> None:
    """Emit a loop nest that runs a body at each index of axes."""
    if not axes:
        body(offsets, ())
        return
    first, *inner_axes = axes

    def each(index: str) -> None:
        for_each_index(low, inner_axes, advance(low, first, offsets, index), body)

    low.w.loop(first.count, each)


def fold(
    low: Lowering,
    axes: Sequence[Axis],
    offsets: Offsets,
    accumulators: Sequence[Accumulator],
    body: Body,
    hoist: HoistGathers = lambda _, offsets: offsets,
) -> list[str]:
    """Emit loops that carry accumulators; return their final values.

    The body takes the values so far and returns the next ones. The innermost loop may run in any
    order.
    """
    innermost_count = axes[-1].count if axes else "1"
    exceeds_block = (
        len(axes) > 1 or not is_literal(innermost_count) or int(innermost_count) > SUM_BLOCK_TERMS
    )
    is_compensated = exceeds_block and any(accumulator.is_sum for accumulator in accumulators)
    emitter = _FoldEmitter(low, accumulators, body, is_compensated, hoist)
    return emitter.finish(emitter.emit_axes(axes, offsets, emitter.initial_state()))


@dataclass(eq=False, repr=False, slots=True)
class _FoldEmitter:
    """Emits one fold.

    If `is_compensated`, a sum is carried as two numbers: the sum and its compensation.
    """

    low: Lowering
    accumulators: Sequence[Accumulator]
    body: Body
    is_compensated: bool
    hoist: HoistGathers

    def initial_state(self) -> list[str]:
        """Return the initial values of the carried numbers."""
        return [
            value
            for accumulator in self.accumulators
            for value in (
                (accumulator.initial, accumulator.initial)
                if self._is_compensated_sum(accumulator)
                else (accumulator.initial,)
            )
        ]

    def _is_compensated_sum(self, accumulator: Accumulator) -> bool:
        return self.is_compensated and accumulator.is_sum

    def _state_types(self) -> list[str]:
        return [
            accumulator.kind.text
            for accumulator in self.accumulators
            for _ in range(1 + self._is_compensated_sum(accumulator))
        ]

    def emit_axes(self, axes: Sequence[Axis], offsets: Offsets, state: Sequence[str]) -> list[str]:
        """Emit the loops over axes; return the state after them."""
        if len(axes) <= 1:
            return self._emit_innermost(axes[0] if axes else None, offsets, state)
        if len(axes) == 2 and _has_crossed_strides(*axes):
            return self._emit_tiled(axes[0], axes[1], offsets, state)
        first, *inner_axes = axes

        def each(index: str, so_far: tuple[str, ...]) -> Sequence[str]:
            return self.emit_axes(inner_axes, advance(self.low, first, offsets, index), so_far)

        return [*self.low.w.fold(first.count, self._state_types(), state, each)]

    def _emit_tiled(
        self, slow: Axis, fast: Axis, offsets: Offsets, state: Sequence[str]
    ) -> list[str]:
        """Emit two loops by square tiles, whose cache lines all stay in the cache."""

        def rows(height: Axis, at: Offsets, so_far: Sequence[str]) -> list[str]:
            return self._strip_mine(
                fast, at, so_far, lambda width, at, so_far: tile(height, width, at, so_far)
            )

        def tile(height: Axis, width: Axis, at: Offsets, so_far: Sequence[str]) -> list[str]:
            def each(index: str, so_far: tuple[str, ...]) -> Sequence[str]:
                return self._emit_innermost(width, advance(self.low, height, at, index), so_far)

            return [*self.low.w.fold(height.count, self._state_types(), so_far, each)]

        return self._strip_mine(slow, offsets, state, rows)

    def _strip_mine(
        self,
        axis: Axis,
        offsets: Offsets,
        state: Sequence[str],
        body: Callable[[Axis, Offsets, Sequence[str]], list[str]],
    ) -> list[str]:
        """Emit a body for each strip of an axis, `TILE_SIDE` long except for the last."""
        sizes = self.low.sizes
        count = sizes.div(sizes.add(axis.count, str(TILE_SIDE - 1)), str(TILE_SIDE))

        def each(strip: str, so_far: tuple[str, ...]) -> Sequence[str]:
            first = sizes.mul(strip, str(TILE_SIDE))
            strip_axis = Axis(sizes.min(str(TILE_SIDE), sizes.sub(axis.count, first)), axis.steps)
            return body(strip_axis, advance(self.low, axis, offsets, first), so_far)

        return [*self.low.w.fold(count, self._state_types(), state, each)]

    def _emit_innermost(
        self, axis: Axis | None, offsets: Offsets, state: Sequence[str]
    ) -> list[str]:
        """Emit the innermost loop, in blocks if sums are compensated."""
        if axis is None:
            return self._merge_partials(state, self.body(offsets, self._block_initials(state)))
        low, count, offsets = self.low, axis.count, self.hoist(axis, offsets)
        if not self.is_compensated or (is_literal(count) and int(count) <= SUM_BLOCK_TERMS):
            return self._merge_partials(
                state, self._emit_loop(axis, count, offsets, self._block_initials(state))
            )
        blocks = low.sizes.div(low.sizes.add(count, str(SUM_BLOCK_TERMS - 1)), str(SUM_BLOCK_TERMS))

        def each(block: str, so_far: tuple[str, ...]) -> Sequence[str]:
            first = low.sizes.mul(block, str(SUM_BLOCK_TERMS))
            size = low.sizes.min(str(SUM_BLOCK_TERMS), low.sizes.sub(count, first))
            at = advance(low, axis, offsets, first)
            return self._merge_partials(
                so_far, self._emit_loop(axis, size, at, self._block_initials(so_far))
            )

        return [*low.w.fold(blocks, self._state_types(), state, each)]

    def _emit_loop(
        self, axis: Axis, count: str, offsets: Offsets, initials: Sequence[str]
    ) -> Sequence[str]:
        """Emit one innermost loop, with metadata that lets LLVM vectorize and interleave it."""
        types = [accumulator.kind.text for accumulator in self.accumulators]

        def each(index: str, so_far: tuple[str, ...]) -> Sequence[str]:
            return self.body(advance(self.low, axis, offsets, index), so_far)

        if is_literal(count) and int(count) < _MIN_VECTOR_TRIPS:
            for k in range(int(count)):
                initials = each(str(k), (*initials,))
            return initials
        calls, metadata = self.low.calls, self.low.metadata
        calls_before = calls.vectorizable_count

        def loop_metadata() -> str:
            size = int(count) if is_literal(count) else None
            if calls.vectorizable_count > calls_before and (
                size is None or size >= _MIN_INTERLEAVED_MATH_TRIPS
            ):
                return metadata.parallel_accesses(4)
            return metadata.parallel_accesses(
                2 if types and (size is None or size >= _MIN_INTERLEAVED_SUM_TRIPS) else 1
            )

        return self.low.w.fold(count, types, initials, each, loop_metadata)

    def _block_initials(self, state: Sequence[str]) -> list[str]:
        """Return the initial values of an innermost loop; compensated sums start afresh."""
        initials, remaining = [], iter(state)
        for accumulator in self.accumulators:
            so_far = next(remaining)
            if self._is_compensated_sum(accumulator):
                next(remaining)
                so_far = accumulator.initial
            initials.append(so_far)
        return initials

    def _merge_partials(self, state: Sequence[str], partials: Sequence[str]) -> list[str]:
        """Return the state after an innermost loop that ended with `partials`."""
        next_state: list[str] = []
        remaining = iter(state)
        for accumulator, partial in zip(self.accumulators, partials, strict=True):
            so_far = next(remaining)
            if self._is_compensated_sum(accumulator):
                next_state += self._two_sum(accumulator.kind, so_far, next(remaining), partial)
            else:
                next_state.append(partial)
        return next_state

    def _two_sum(self, kind: Kind, x: str, compensation: str, y: str) -> tuple[str, str]:
        """Emit Knuth's TwoSum of two numbers; return their sum and the updated compensation."""
        w, type = self.low.w, kind.text
        rounded_sum = w.define(f"fadd {type} {x}, {y}")
        x_part = w.define(f"fsub {type} {rounded_sum}, {y}")
        y_part = w.define(f"fsub {type} {rounded_sum}, {x_part}")
        x_error = w.define(f"fsub {type} {x}, {x_part}")
        y_error = w.define(f"fsub {type} {y}, {y_part}")
        error = w.define(f"fadd {type} {x_error}, {y_error}")
        return rounded_sum, w.define(f"fadd {type} {compensation}, {error}")

    def finish(self, state: Sequence[str]) -> list[str]:
        """Return the results of the fold, with compensated sums corrected."""
        results, remaining, w = [], iter(state), self.low.w
        for accumulator in self.accumulators:
            so_far, type = next(remaining), accumulator.kind.text
            if self._is_compensated_sum(accumulator):
                compensation = next(remaining)
                # The compensation of an infinite sum is NaN.
                corrected = w.define(f"fadd {type} {so_far}, {compensation}")
                is_number = w.define(f"fcmp ord {type} {compensation}, {compensation}")
                so_far = w.define(f"select i1 {is_number}, {type} {corrected}, {type} {so_far}")
            results.append(so_far)
        return results


def _has_crossed_strides(slow: Axis, fast: Axis) -> bool:
    """Return whether two arrays are contiguous along different ones of two axes."""
    exceeds_tiles = all(
        not is_literal(x.count) or int(x.count) > 2 * TILE_SIDE for x in (slow, fast)
    )
    along_fast = any(step == "1" for step in fast.steps.values())
    along_slow = any(
        step == "1" and fast.steps.get(index_map, "1") != "1"
        for index_map, step in slow.steps.items()
    )
    return exceeds_tiles and along_fast and along_slow


def advance(low: Lowering, axis: Axis, offsets: Offsets, steps_taken: str) -> Offsets:
    """Return the offsets after some steps along an axis."""
    offsets_by_key: dict[tuple[str, str], str] = {}
    advanced = dict(offsets)
    for index_map, step in axis.steps.items():
        key = (offsets[index_map], step)
        if key not in offsets_by_key:
            offsets_by_key[key] = low.sizes.add(
                offsets[index_map], low.sizes.mul(steps_taken, step)
            )
        advanced[index_map] = offsets_by_key[key]
    return advanced
