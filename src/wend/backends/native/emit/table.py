"""Which operations have code of their own, by family."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.emit import (
    contracting,
    control,
    creating,
    effects,
    elementwise,
    indexing,
    linalg,
    lists,
    maybe,
    reducing,
    shaping,
    sizing,
    slicing,
    stacking,
    state,
)
from wend.backends.native.lowering import Emit
from wend.ir.op import Op

EMITTERS: Mapping[Op, Emit] = {
    **creating.EMITTERS,
    **elementwise.EMITTERS,
    **shaping.EMITTERS,
    **slicing.EMITTERS,
    **sizing.EMITTERS,
    **reducing.EMITTERS,
    **contracting.EMITTERS,
    **linalg.EMITTERS,
    **indexing.EMITTERS,
    **lists.EMITTERS,
    **stacking.EMITTERS,
    **maybe.EMITTERS,
    **effects.EMITTERS,
    **state.EMITTERS,
    **control.EMITTERS,
}
