"""What operations may raise in a run: known positions, sizes and exponents raise nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wend.ir.graph import Value
from wend.ir.op import TABLE
from wend.ir.types import Symbol, TensorType
from wend.ops.build import Build

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)
VECTOR, MATRIX = TensorType(F64, (3,)), TensorType(F64, (3, 3))
INDEX = TensorType(I64, ())


def errors_of(emit: Callable[..., Any], *types: TensorType) -> tuple[type[BaseException], ...]:
    """What the last node may raise that is emitted for params of these types."""
    b = Build("f")
    emit(b, *[b.param(type) for type in types])
    node = b.nodes[-1]
    return node.op.raises(node) if callable(node.op.raises) else node.op.raises


def at(b: Build, x: Value, *indices: Value) -> None:
    b.emit(TABLE["gather"], x, *indices)


def moved(b: Build, x: Value) -> None:
    order = b.emit(TABLE["argsort"], x, axis=0)
    at(b, x, b.emit(TABLE["reshape"], order, shape=(3, 1)))


UNKNOWN = TensorType(F64, (Symbol("n"),))


@pytest.mark.parametrize(
    ("emit", "types", "expected"),
    [
        (at, (VECTOR, INDEX), (IndexError,)),
        (lambda b, x: at(b, x, b.constant(np.int64(2))), (VECTOR,), ()),
        (lambda b, x: at(b, x, b.constant(np.int64(-3))), (VECTOR,), ()),
        (lambda b, x: at(b, x, b.constant(np.int64(3))), (VECTOR,), (IndexError,)),
        (lambda b, x: at(b, x, b.constant(np.int64(0))), (UNKNOWN,), (IndexError,)),
        (moved, (VECTOR,), ()),
        (lambda b, a, y: b.solve(a, y), (MATRIX, MATRIX), (np.linalg.LinAlgError,)),
        (lambda b, a: b.emit(TABLE["cholesky"], a), (MATRIX,), (np.linalg.LinAlgError,)),
        (lambda b, x, y: b.emit(TABLE["pow"], x, y), (INDEX, INDEX), (ValueError,)),
        (lambda b, x: b.emit(TABLE["pow"], x, b.constant(np.int64(2))), (INDEX,), ()),
        (lambda b, x, y: b.emit(TABLE["pow"], x, y), (VECTOR, VECTOR), ()),
        (lambda b, x: b.emit(TABLE["reshape"], x, shape=(3, 1)), (VECTOR,), ()),
        (lambda b, x: b.emit(TABLE["reshape"], x, shape=(3, 1)), (UNKNOWN,), (ValueError,)),
        (lambda b, x: b.emit(TABLE["exp"], x), (UNKNOWN,), ()),
    ],
)
def test_errors(emit: Any, types: Any, expected: Any) -> None:
    assert errors_of(emit, *types) == expected


@pytest.mark.parametrize("name", ["assert", "py_function", "nonnegative", "broadcast_shapes"])
def test_checks_of_the_run_always_may(name: str) -> None:
    if name in TABLE:
        assert TABLE[name].raises
