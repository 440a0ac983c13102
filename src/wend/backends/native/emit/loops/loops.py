"""The loops of a nest: over axes, the one that goes fast last, with numbers that they hand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.loops.index_maps import Gather, IndexMap, merged
from wend.backends.native.fusion.symbolic_strides import (
    NONE,
    ONE,
    Extent,
    written,
)
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.sizes import known

# So many terms of a sum are added at once, in an order that suits vectors; these sums are added
# without rounding errors, so that the error does not grow with their number.
BLOCK = 512
# From so many elements on it pays to go on with several vectors at once: of sums, and of functions,
# of which four vectors take twice as long to compile.
_LONG, _LONG_OF_FUNCTIONS = 128, 4096
# The sides of squares in which arrays are gone through that lie along different axes
TILE = 64

# Where elements lie, and the positions that have been looked up
Offsets: TypeAlias = Mapping[IndexMap | Gather, str]
Inside: TypeAlias = Callable[[Offsets, Sequence[str]], Sequence[str]]
# Looks up before a loop what stays the same in it
Settle: TypeAlias = Callable[["Axis", Offsets], Offsets]


@dataclass(frozen=True, slots=True)
class Total:
    """A number that a loop hands on from element to element.

    Attributes:
        kind: what it is.
        start: what it is at first.
        is_sum: whether it is a sum of floats.
    """

    kind: Kind
    start: str
    is_sum: bool


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of some loop: how many steps there are, and how far each access goes with one."""

    count: str
    steps: Mapping[IndexMap, str]


def axes_of(
    low: Lowering,
    sizes: Sequence[Extent],
    axes: Sequence[int],
    accesses: Sequence[IndexMap],
    fixed: Sequence[IndexMap] = (),
) -> list[Axis]:
    """Axes of the space as loops: as few as possible, the one that is fastest to go along last.

    Args:
        low: what writes.
        sizes: those of the space.
        axes: which of them.
        accesses: what the loops read and write.
        fixed: those that have to go on along the last one.
    """
    pairs = [(sizes[k], [access.steps[k] for access in accesses]) for k in axes]
    found = merged(pairs)
    must = [accesses.index(access) for access in fixed]
    if len(found) > 1:
        said = [
            [accesses.index(lookup.at) for lookup, _ in access.lookups if lookup.at]
            for access in accesses
        ]
        best = max(range(len(found)), key=lambda k: _ease(found[k], must, said, k))
        found.append(found.pop(best))
    return [
        Axis(
            written(low.sizes, size),
            {a: written(low.sizes, s) for a, s in zip(accesses, steps, strict=True) if s != NONE},
        )
        for size, steps in found
    ]


def _ease(
    axis: tuple[Extent, Sequence[Extent]],
    must: Sequence[int],
    said: Sequence[Sequence[int]],
    k: int,
) -> tuple[int, ...]:
    """How well loops go along an axis: what is side by side, or the same, goes well.

    `said`: for each access those that say where it is.
    """
    size, steps = axis
    is_possible = all(steps[k] != NONE for k in must)
    is_compute_bound = bool(size[1]) or size[0] >= 4
    easy = [
        step in (NONE, ONE) and all(steps[j] == NONE for j in others)
        for step, others in zip(steps, said, strict=True)
    ]
    return is_possible, is_compute_bound, sum(easy), k


def over(low: Lowering, axes: Sequence[Axis], offsets: Offsets, body: Inside) -> None:
    """Run a body at each place of axes, that is for each row."""
    if not axes:
        body(offsets, ())
        return
    first, *rest = axes

    def each(number: str) -> None:
        over(low, rest, further(low, first, offsets, number), body)

    low.w.loop(first.count, each)


def fold(
    low: Lowering,
    axes: Sequence[Axis],
    offsets: Offsets,
    totals: Sequence[Total],
    body: Inside,
    settle: Settle = lambda _, offsets: offsets,
) -> list[str]:
    """Run a body at each place of axes; return what the totals have become.

    The body is given those so far, and returns the next. Along the last axis there is no order.
    """
    fast = axes[-1].count if axes else "1"
    is_compute_bound = len(axes) > 1 or not known(fast) or int(fast) > BLOCK
    blocks = is_compute_bound and any(total.is_sum for total in totals)
    writer = _Fold(low, totals, body, blocks, settle)
    return writer.finish(writer.along(axes, offsets, writer.starts()))


@dataclass(eq=False, repr=False, slots=True)
class _Fold:
    """Writes one fold. Where it is in `blocks`, a sum is two numbers: it, and what it lacks."""

    low: Lowering
    totals: Sequence[Total]
    body: Inside
    blocks: bool
    settle: Settle

    def starts(self) -> list[str]:
        return [
            text
            for total in self.totals
            for text in ((total.start, total.start) if self._is_double(total) else (total.start,))
        ]

    def _is_double(self, total: Total) -> bool:
        return self.blocks and total.is_sum

    def _types(self) -> list[str]:
        return [t.kind.text for t in self.totals for _ in range(1 + self._is_double(t))]

    def along(self, axes: Sequence[Axis], offsets: Offsets, state: Sequence[str]) -> list[str]:
        if len(axes) <= 1:
            return self._fast(axes[0] if axes else None, offsets, state)
        if len(axes) == 2 and _cross(*axes):
            return self._tiles(axes[0], axes[1], offsets, state)
        first, *rest = axes

        def each(number: str, so_far: tuple[str, ...]) -> Sequence[str]:
            return self.along(rest, further(self.low, first, offsets, number), so_far)

        return [*self.low.w.fold(first.count, self._types(), state, each)]

    def _tiles(self, slow: Axis, fast: Axis, offsets: Offsets, state: Sequence[str]) -> list[str]:
        """Two axes by squares, of which all lines that are read stay in the cache meanwhile."""

        def rows(height: Axis, at: Offsets, so_far: Sequence[str]) -> list[str]:
            return self._by_parts(
                fast, at, so_far, lambda width, at, so_far: square(height, width, at, so_far)
            )

        def square(height: Axis, width: Axis, at: Offsets, so_far: Sequence[str]) -> list[str]:
            def each(number: str, so_far: tuple[str, ...]) -> Sequence[str]:
                return self._fast(width, further(self.low, height, at, number), so_far)

            return [*self.low.w.fold(height.count, self._types(), so_far, each)]

        return self._by_parts(slow, offsets, state, rows)

    def _by_parts(
        self,
        axis: Axis,
        offsets: Offsets,
        state: Sequence[str],
        body: Callable[[Axis, Offsets, Sequence[str]], list[str]],
    ) -> list[str]:
        """Run a body for each part of an axis, `TILE` long but for the last."""
        sizes = self.low.sizes
        count = sizes.div(sizes.add(axis.count, str(TILE - 1)), str(TILE))

        def each(number: str, so_far: tuple[str, ...]) -> Sequence[str]:
            first = sizes.mul(number, str(TILE))
            part = Axis(sizes.least(str(TILE), sizes.sub(axis.count, first)), axis.steps)
            return body(part, further(self.low, axis, offsets, first), so_far)

        return [*self.low.w.fold(count, self._types(), state, each)]

    def _fast(self, axis: Axis | None, offsets: Offsets, state: Sequence[str]) -> list[str]:
        if axis is None:
            return self._joined(state, self.body(offsets, self._fresh(state)))
        low, count, offsets = self.low, axis.count, self.settle(axis, offsets)
        if not self.blocks or (known(count) and int(count) <= BLOCK):
            return self._joined(state, self._run(axis, count, offsets, self._fresh(state)))
        blocks = low.sizes.div(low.sizes.add(count, str(BLOCK - 1)), str(BLOCK))

        def each(number: str, so_far: tuple[str, ...]) -> Sequence[str]:
            first = low.sizes.mul(number, str(BLOCK))
            size = low.sizes.least(str(BLOCK), low.sizes.sub(count, first))
            at = further(low, axis, offsets, first)
            return self._joined(so_far, self._run(axis, size, at, self._fresh(so_far)))

        return [*low.w.fold(blocks, self._types(), state, each)]

    def _run(
        self, axis: Axis, count: str, offsets: Offsets, starts: Sequence[str]
    ) -> Sequence[str]:
        types = [total.kind.text for total in self.totals]

        def each(number: str, so_far: tuple[str, ...]) -> Sequence[str]:
            return self.body(further(self.low, axis, offsets, number), so_far)

        calls, metadata = self.low.calls, self.low.metadata
        so_far = calls.in_loops

        def note() -> str:
            size = int(count) if known(count) else None
            if calls.in_loops > so_far and (size is None or size >= _LONG_OF_FUNCTIONS):
                return metadata.parallel_accesses(4)
            return metadata.parallel_accesses(2 if types and (size is None or size >= _LONG) else 1)

        return self.low.w.fold(count, types, starts, each, note)

    def _fresh(self, state: Sequence[str]) -> list[str]:
        """Where a run along the last axis starts: sums of blocks at nothing."""
        found, rest = [], iter(state)
        for total in self.totals:
            so_far = next(rest)
            if self._is_double(total):
                next(rest)
                so_far = total.start
            found.append(so_far)
        return found

    def _joined(self, state: Sequence[str], found: Sequence[str]) -> list[str]:
        joined: list[str] = []
        rest = iter(state)
        for total, part in zip(self.totals, found, strict=True):
            so_far = next(rest)
            if self._is_double(total):
                joined += self._added(total.kind, so_far, next(rest), part)
            else:
                joined.append(part)
        return joined

    def _added(self, kind: Kind, total: str, lack: str, part: str) -> tuple[str, str]:
        """Knuth's sum of two numbers, and the lack so far with what it has rounded away."""
        w, type = self.low.w, kind.text
        both = w.define(f"fadd {type} {total}, {part}")
        mine = w.define(f"fsub {type} {both}, {part}")
        theirs = w.define(f"fsub {type} {both}, {mine}")
        lost = w.define(f"fsub {type} {total}, {mine}")
        lost_too = w.define(f"fsub {type} {part}, {theirs}")
        rounded = w.define(f"fadd {type} {lost}, {lost_too}")
        return both, w.define(f"fadd {type} {lack}, {rounded}")

    def finish(self, state: Sequence[str]) -> list[str]:
        found, rest, w = [], iter(state), self.low.w
        for total in self.totals:
            so_far, type = next(rest), total.kind.text
            if self._is_double(total):
                lack = next(rest)
                # Of an infinite sum the lack is no number.
                whole = w.define(f"fadd {type} {so_far}, {lack}")
                is_number = w.define(f"fcmp ord {type} {lack}, {lack}")
                so_far = w.define(f"select i1 {is_number}, {type} {whole}, {type} {so_far}")
            found.append(so_far)
        return found


def _cross(slow: Axis, fast: Axis) -> bool:
    """Whether one array lies side by side along one axis, and another along the other."""
    is_compute_bound = all(not known(x.count) or int(x.count) > 2 * TILE for x in (slow, fast))
    along_fast = any(step == "1" for step in fast.steps.values())
    along_slow = any(
        step == "1" and fast.steps.get(access, "1") != "1" for access, step in slow.steps.items()
    )
    return is_compute_bound and along_fast and along_slow


def further(low: Lowering, axis: Axis, offsets: Offsets, number: str) -> Offsets:
    """Where elements lie, so many steps along an axis."""
    steps: dict[tuple[str, str], str] = {}
    found = dict(offsets)
    for access, step in axis.steps.items():
        key = (offsets[access], step)
        if key not in steps:
            steps[key] = low.sizes.add(offsets[access], low.sizes.mul(number, step))
        found[access] = steps[key]
    return found
