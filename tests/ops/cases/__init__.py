"""The rows: a file for each family of `wend.ops`."""

from tests.ops.cases import (
    contracting,
    creating,
    effects,
    elementwise,
    indexing,
    linalg,
    lists,
    maybe,
    reducing,
    shaping,
    sorting,
)

FAMILIES = (
    creating,
    elementwise,
    shaping,
    indexing,
    reducing,
    contracting,
    sorting,
    linalg,
    lists,
    maybe,
    effects,
)
CASES = [case for family in FAMILIES for case in family.CASES]
