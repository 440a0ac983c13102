"""Positions in views: a check for each, with the error of the view's axis."""

from __future__ import annotations

import pytest

from wend.ir.dtypes import FLOAT64, INT64
from wend.ir.types import TensorType
from wend.ops import indexing
from wend.ops.build import Build
from wend.ops.loop_counters import as_integer
from wend.passes.view_positions import Coordinate, UnknownSizeError, ViewPositions


def positions_in(dims):
    b = Build("")
    return b, ViewPositions(b, "gather"), b.param(TensorType(FLOAT64, dims))


def test_a_known_position_counts_from_the_start():
    b, positions, view = positions_in((4, 3))
    checked = positions.checked(Coordinate(b.integer(-1), view, 1))
    assert as_integer(checked.value) == 2
    assert all(node.op is not indexing.position for node in b.nodes)


def test_other_positions_are_checked():
    b, positions, view = positions_in((4, 3))
    i = b.param(TensorType(INT64, ()))
    checked = positions.checked(Coordinate(i, view, 1))
    (check,) = [node for node in b.nodes if node.op is indexing.position]
    assert checked.value is check.results[0]
    assert check.attrs["axis"] == 1


def test_what_is_not_checked_is_not_moved():
    b, positions, view = positions_in((4, 3))
    unchecked = Coordinate(b.integer(0), view, 0, is_checked=False)
    with pytest.raises(UnknownSizeError):
        positions.affine(unchecked, 1, 1)
    with pytest.raises(UnknownSizeError):
        unchecked.moved(1)
