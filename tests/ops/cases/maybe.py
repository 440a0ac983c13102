"""Rows of `wend.ops.maybe`."""

import numpy as np

from tests.helpers.cases import Case, a_list, maybe
from tests.helpers.samples import between
from wend.base.zero import ZERO
from wend.ir.types import ListType, tensor

ROW = tensor("f8", 2)
X, Y = between(-1, 1, 2), between(2, 3, 2)
ABSENT = maybe(ZERO, ROW)


def total(x: object, y: object) -> object:
    return y if x is ZERO else x if y is ZERO else x + y


CASES = [
    *(
        Case("zero", lambda type: ZERO, [()], attrs={"type": type})
        for type in (ROW, ListType(tensor("f4")))
    ),
    Case("is_zero", lambda x: np.bool_(x is ZERO), [(ABSENT,), (maybe(X),)]),
    Case(
        "any_nonzero",
        lambda *xs: np.bool_(any(x is not ZERO for x in xs)),
        [(ABSENT,), (maybe(X),), (ABSENT, maybe(X)), (ABSENT, ABSENT), (ABSENT, X)],
    ),
    Case(
        "autograd_add",
        total,
        [(ABSENT, maybe(Y)), (maybe(X), ABSENT), (ABSENT, ABSENT), (ABSENT, Y), (X, ABSENT)],
        [(X, Y), (maybe(X), Y), (X, maybe(Y)), (maybe(X), maybe(Y))],
    ),
    Case(
        "autograd_add",
        lambda x, y: [a + b for a, b in zip(x.items(), y.items(), strict=True)],
        smooth=[(a_list(X, Y), maybe(a_list(Y, X).value, ListType(ROW)))],
    ),
    Case(
        "instantiate",
        lambda x, zeros: zeros if x is ZERO else x,
        [(ABSENT, 0 * X)],
        [(maybe(X), 0 * X)],
    ),
    Case("present", lambda x: x, smooth=[(maybe(X),)]),
]
