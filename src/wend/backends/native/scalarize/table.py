"""The scalarization rules of all operations, by family."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.scalarize import arithmetic, indexing, lists, permute, reducing
from wend.backends.native.scalarize.rule import ExpansionRule
from wend.ir.op import Op

RULES: Mapping[Op, ExpansionRule] = {
    **permute.RULES,
    **indexing.RULES,
    **arithmetic.RULES,
    **reducing.RULES,
    **lists.RULES,
}
