"""Which types go where: symbols take any size, but the same size each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wend.ir import ListType, MaybeType, Symbol, TensorType, TokenType
from wend.ir.types import accepts, is_differentiable, substitute, tensor

N, M = Symbol("n"), Symbol("m")


@pytest.mark.parametrize(
    ("expected", "found", "fits"),
    [
        (tensor("f8", 2), tensor("f8", 2), True),
        (tensor("f8", 2), tensor("f4", 2), False),
        (tensor("f8", 2), tensor("f8", 3), False),
        (tensor("f8", 2), tensor("f8", N), False),
        (tensor("f8", N), tensor("f8", 7), True),
        (tensor("f8", N, N), tensor("f8", 7, 7), True),
        (tensor("f8", N, N), tensor("f8", 7, 8), False),
        (TensorType(np.dtype("f8"), None), tensor("f8", 1, 2), True),
        (tensor("f8", 1, 2), TensorType(np.dtype("f8"), None), False),
        (ListType(tensor("f8", N)), ListType(tensor("f8", 3)), True),
        (ListType(tensor("f8")), tensor("f8"), False),
        (MaybeType(tensor("f8")), tensor("f8"), True),
        (tensor("f8"), MaybeType(tensor("f8")), False),
        (TokenType(), TokenType(), True),
        (TokenType(), tensor("f8"), False),
    ],
)
def test_accepts(expected: Any, found: Any, fits: bool) -> None:
    assert accepts(expected, found) is fits


def test_bindings_go_over_several_values() -> None:
    bound: dict[Any, Any] = {}
    assert accepts(tensor("f8", N), tensor("f8", 3), bound)
    assert accepts(tensor("f8", M, N), tensor("f8", 5, 3), bound)
    assert not accepts(tensor("f8", N), tensor("f8", 5), bound)
    assert bound == {N: 3, M: 5}


def test_substitution_goes_inside() -> None:
    assert substitute(ListType(tensor("f8", N, 2)), {N: M}) == ListType(tensor("f8", M, 2))


def test_floats_and_lists_of_them_have_derivatives() -> None:
    assert is_differentiable(tensor("c16"))
    assert is_differentiable(ListType(ListType(tensor("f4", N))))
    assert not is_differentiable(ListType(tensor("i8")))
    assert not is_differentiable(TokenType())
