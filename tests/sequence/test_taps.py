"""Taps: which rows a step reads."""

from __future__ import annotations

import numpy as np

from wend.sequence.taps import output_taps, sequence_taps


def test_rows_of_each_tap():
    (taps,) = sequence_taps({"input": np.arange(6), "taps": [-1, 0, 2]}, go_backwards=False)
    assert taps.span == 4
    np.testing.assert_array_equal(taps.rows(3), [[0, 1, 2], [1, 2, 3], [3, 4, 5]])


def test_taps_to_one_side_read_from_the_current_row_on():
    (after,) = sequence_taps({"input": np.arange(6), "taps": [2]}, go_backwards=False)
    assert after.span == 3
    np.testing.assert_array_equal(after.rows(4), [[2, 3, 4, 5]])
    (before,) = sequence_taps({"input": np.arange(6), "taps": [-2]}, go_backwards=True)
    np.testing.assert_array_equal(before.rows(4), [[5, 4, 3, 2]])


def test_initial_rows_are_the_oldest_first():
    nothing, one, two = output_taps([None, 2.0, {"initial": np.arange(2.0), "taps": [-2]}])
    assert (nothing.initial, nothing.taps) == ((), ())
    assert [float(x) for x in one.initial] == [2.0]
    assert [float(x) for x in two.initial] == [0.0, 1.0]
    assert output_taps(None) is None
