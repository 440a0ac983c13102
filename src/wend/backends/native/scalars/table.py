"""Which operations are done on elements, by family."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.scalars import (
    contracting,
    elementwise,
    indexing,
    lists,
    moving,
    reducing,
    scanning,
)
from wend.backends.native.scalars.rule import Rule
from wend.ir.op import Op

RULES: Mapping[Op, Rule] = {
    **moving.RULES,
    **indexing.RULES,
    **elementwise.RULES,
    **reducing.RULES,
    **scanning.RULES,
    **contracting.RULES,
    **lists.RULES,
}
