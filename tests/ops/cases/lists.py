"""Rows of `wend.ops.lists`."""

import numpy as np

from tests.helpers.cases import Case, a_list
from tests.helpers.samples import between
from wend.ir.types import ListType, Symbol, tensor
from wend.runtime.sequence import Sequence

F64 = tensor("f8")
ROW = tensor("f8", 2)


def rows(count: int, seed: int = 0) -> list[np.ndarray]:
    return [between(-1, 1, 2, seed=seed + k) for k in range(count)]


def items(l: Sequence) -> list[object]:
    return list(l.items())


CASES = [
    *(
        Case("list_new", lambda element: [], [()], attrs={"element": element})
        for element in (F64, ListType(F64), tensor("i8", Symbol("n")))
    ),
    Case(
        "list_push",
        lambda l, x: [*items(l), x],
        [(a_list(np.int8(1)), np.int8(2))],
        [(a_list(element=F64), np.float64(2)), (a_list(*rows(2)), rows(1, 7)[0])],
    ),
    Case(
        "list_push",
        lambda l, x: [*items(l), x],
        [(a_list(element=ListType(F64)), a_list(np.float64(3)))],
    ),
    Case(
        "list_pop",
        lambda l: ([*items(l)][:-1], items(l)[-1]),
        [(a_list(np.int8(1)),)],
        [(a_list(np.float64(2)),), (a_list(*rows(3)),)],
    ),
    Case(
        "list_get",
        lambda l, i: items(l)[i],
        [(a_list(np.bool_(True)), np.int64(0))],
        [(a_list(*rows(3)), np.int64(k)) for k in (0, 2, -1)],
    ),
    Case(
        "list_add_at",
        lambda l, i, x: [y + x if k == i else y for k, y in enumerate(items(l))],
        smooth=[(a_list(*rows(3)), np.int64(1), rows(1, 5)[0])],
    ),
    Case(
        "list_set",
        lambda l, i, x: [x if k == i else y for k, y in enumerate(items(l))],
        [(a_list(np.int8(1)), np.int64(0), np.int8(2))],
        [(a_list(*rows(3)), np.int64(1), rows(1, 5)[0])],
    ),
    Case(
        "list_len",
        lambda l: np.int64(len(items(l))),
        [(a_list(element=F64),), (a_list(*rows(3)),)],
    ),
    Case(
        "list_zeros",
        lambda l: [y * 0 for y in items(l)],
        [(a_list(element=F64),), (a_list(np.array([1, 2], np.int8)),)],
    ),
    Case(
        "list_add",
        lambda a, b: [x + y for x, y in zip(items(a), items(b), strict=True)],
        [(a_list(element=F64), a_list(element=F64))],
        [(a_list(*rows(2)), a_list(*rows(2, 5)))],
    ),
    Case(
        "list_stack",
        lambda l, shape, dtype: np.array(items(l), dtype).reshape(-1, *shape),
        [(a_list(element=ROW), np.array([2])), (a_list(element=F64), np.zeros(0, np.int64))],
        [(a_list(*rows(3)), np.array([2])), (a_list(np.float64(1)), np.zeros(0, np.int64))],
        {"dtype": np.dtype("f8")},
    ),
    Case(
        "list_unstack",
        lambda x: [x[k] for k in range(len(x))],
        [(np.zeros((0, 2), np.int8),), (np.array([True, False]),)],
        [(between(-1, 1, 3, 2),), (between(-1, 1, 2),)],
    ),
]
