"""Which operations have code of their own, by family."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.emit import (
    broadcasting,
    complexes,
    contracting,
    control,
    convolving,
    creating,
    effects,
    elementwise,
    extremes,
    indexing,
    linalg,
    lists,
    maybe,
    nests,
    positions,
    reducing,
    shaping,
    sizing,
    slicing,
    sorting,
    stacking,
    state,
)
from wend.backends.native.lowering import Emit
from wend.ir.op import Op

EMITTERS: Mapping[Op, Emit] = {
    **creating.EMITTERS,
    **elementwise.EMITTERS,
    **complexes.EMITTERS,  # after those of reals, which they call
    **shaping.EMITTERS,
    **broadcasting.EMITTERS,
    **slicing.EMITTERS,
    **sizing.EMITTERS,
    **reducing.EMITTERS,
    **extremes.EMITTERS,
    **sorting.EMITTERS,
    **contracting.EMITTERS,
    **convolving.EMITTERS,
    **linalg.EMITTERS,
    **indexing.EMITTERS,
    **positions.EMITTERS,
    **lists.EMITTERS,
    **stacking.EMITTERS,
    **maybe.EMITTERS,
    **effects.EMITTERS,
    **state.EMITTERS,
    **control.EMITTERS,
    **nests.EMITTERS,
}
