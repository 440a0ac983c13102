"""The rows: a file for each family of `wend.ops`."""

from tests.ops.cases import (
    contracting,
    convolving,
    creating,
    decompositions,
    effects,
    elementwise,
    factors,
    indexing,
    linalg,
    lists,
    maybe,
    numbers,
    reducing,
    scanning,
    searching,
    shaping,
    sorting,
    special,
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
    convolving,
    decompositions,
    factors,
    numbers,
    scanning,
    searching,
    special,
)
CASES = [case for family in FAMILIES for case in family.CASES]
