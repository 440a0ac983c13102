"""The table of operations that native code has emitters for, by family."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.codegen.lowering import Emit
from wend.backends.native.emit import (
    chunks,
    concurrent,
    contracting,
    decompositions,
    fourier,
    linalg,
    loop_nest,
    random,
)
from wend.backends.native.emit.array import (
    complexes,
    creating,
    elementwise,
    extremes,
    indexing,
    positions,
    reducing,
    shaping,
    slicing,
    sorting,
    stacking,
)
from wend.backends.native.emit.control import control, effects, lists, maybe
from wend.backends.native.emit.lanes import lane_map
from wend.ir.op import Op

EMITTERS: Mapping[Op, Emit] = {
    **creating.EMITTERS,
    **elementwise.EMITTERS,
    **complexes.EMITTERS,  # overrides the emitters for reals, which it calls
    **shaping.EMITTERS,
    **slicing.EMITTERS,
    **reducing.EMITTERS,
    **extremes.EMITTERS,
    **sorting.EMITTERS,
    **contracting.EMITTERS,
    **decompositions.EMITTERS,
    **linalg.EMITTERS,
    **fourier.EMITTERS,
    **random.EMITTERS,
    **indexing.EMITTERS,
    **positions.EMITTERS,
    **lists.EMITTERS,
    **stacking.EMITTERS,
    **maybe.EMITTERS,
    **effects.EMITTERS,
    **control.EMITTERS,
    **chunks.EMITTERS,
    **concurrent.EMITTERS,
    **loop_nest.EMITTERS,
    **lane_map.EMITTERS,
}
