"""The scalarization rules of all operations, by family."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.scalarize import (
    arithmetic,
    complexes,
    indexing,
    lists,
    permute,
    reducing,
)
from wend.backends.native.scalarize.rule import ExpansionRule
from wend.ir.graph import Node
from wend.ir.op import Op

_RULES: Mapping[Op, ExpansionRule] = {
    **permute.RULES,
    **indexing.RULES,
    **arithmetic.RULES,
    **reducing.RULES,
    **lists.RULES,
}
_COMPLEX_RULES: Mapping[Op, ExpansionRule] = {**lists.RULES, **complexes.RULES}


def rule_of(node: Node) -> ExpansionRule | None:
    """Return the rule of a node; that for complex numbers where it has any."""
    rules = _COMPLEX_RULES if complexes.has_complex(node) else _RULES
    return rules.get(node.op)
