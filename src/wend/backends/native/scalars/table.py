"""Which operations are done on elements, by family."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.scalars import arithmetic, indexing, lists, moving
from wend.backends.native.scalars.rule import Rule
from wend.ir.op import Op

RULES: Mapping[Op, Rule] = {
    **moving.RULES,
    **indexing.RULES,
    **arithmetic.RULES,
    **lists.RULES,
}
