"""Which parts of arrays nests read where they lie, and which they put where they belong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wend.backends.native.module import fuse_array_loops
from wend.ir.dtypes import FLOAT64, INT64
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.ops.build import Build

WHOLE = (None, None, None)
COLUMN = (WHOLE, "at")


def outside(write: Callable[[Build, Value, Value, Value], Value]) -> list[str]:
    """The operations that are in no nest, of what is done with a matrix, another and a position."""
    b = Build("f")
    x, y = (b.param(TensorType(FLOAT64, (30, 40))) for _ in range(2))
    k = b.param(TensorType(INT64, ()))
    graph = fuse_array_loops(b.finish([write(b, x, y, k)]))
    return [node.op.name for node in graph.nodes if node.op.name not in ("loop_nest", "constant")]


def column(b: Build, x: Value, k: Value) -> Value:
    return b.take_part(x, k, entries=COLUMN, cuts=())


def put(b: Build, x: Value, value: Value, k: Value) -> Value:
    return b.set_part(x, value, k, entries=COLUMN)


def test_what_is_computed_of_columns_is_put_in_a_column() -> None:
    assert outside(lambda b, x, y, k: put(b, x, b.mul(column(b, y, k), column(b, x, k)), k)) == []
    assert outside(lambda b, x, y, k: put(b, x, column(b, y, k), k)) == []


@pytest.mark.parametrize(
    ("far", "found"), [(1, ["add"]), (-39, ["add"]), (40, ["add", "set_part"])]
)
def test_a_column_beside_is_read_meanwhile(far: int, found: list[str]) -> None:
    def write(b: Build, x: Value, y: Value, k: Value) -> Value:
        return put(b, x, b.neg(column(b, x, b.add(k, b.integer(far)))), k)

    assert outside(write) == found


def test_what_may_be_the_same_elements_is_computed_first() -> None:
    rows = (("cut"), WHOLE)

    def write(b: Build, x: Value, y: Value, k: Value) -> Value:
        part = b.take_part(x, b.integer(0), b.integer(9), entries=rows, cuts=(9,))
        return b.set_part(x, b.neg(part), k, b.add(k, b.integer(9)), entries=rows)

    assert outside(write) == ["add", "set_part"]
    assert outside(lambda b, x, y, k: put(b, x, b.neg(column(b, y, k)), k)) == []


def test_products_and_sizes_are_of_parts_where_they_lie() -> None:
    def product(b: Build, x: Value, y: Value, k: Value) -> Value:
        pair = column(b, x, k), column(b, y, k)
        return b.dot_general(*pair, contract=((0,), (0,)), batch=((), ()))

    assert outside(product) == []
    assert outside(lambda b, x, y, k: b.shape_of(column(b, x, k))) == []
