"""Signatures as text."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import TypeMismatchError
from wend.build.signature import parse_signature


def test_types_and_shapes() -> None:
    specs = parse_signature(" f64[n, 3],i64 , bool[], c64[n] ")
    assert [spec.dims for spec in specs] == [("n", 3), (), (), ("n",)]
    dtypes = [np.float64, np.int64, np.bool_, np.complex64]
    assert [spec.dtype for spec in specs] == [np.dtype(dtype) for dtype in dtypes]
    assert parse_signature("") == []


def test_equal_names_are_equal_sizes() -> None:
    x, y = (spec.leaf_type().type for spec in parse_signature("f64[n], f64[n, m]"))
    assert x.dims[0] == y.dims[0] != y.dims[1]
    traced = wend.function(lambda x, y: x + y).get_concrete_function(
        *parse_signature("f64[n], f64[n]")
    )
    assert traced.graph.result_types[0].dims == traced.graph.param_types[0].dims


@pytest.mark.parametrize("text", ["f65", "f64[", "f64[n+1]", "f64 f64", "float"])
def test_what_is_no_signature_is_explained(text: str) -> None:
    with pytest.raises(TypeMismatchError, match="of the signature"):
        parse_signature(text)
