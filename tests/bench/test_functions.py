"""The functions that are measured compute what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest
from bench import functions

import wend
import wend.numpy as wnp


@pytest.mark.sampled(30)
@pytest.mark.parametrize("name", functions.ROWS)
def test_both_sides_compute_the_same(name: str) -> None:
    row = functions.ROWS[name]
    for dtype in row.dtypes:
        rng = np.random.default_rng(3)
        arrays = [draw(rng, 100, np.dtype(dtype)) for draw in row.draws]
        found = wend.function(lambda *given: row.call(wnp, *given), backend="native")(*arrays)
        expected = row.call(np, *arrays)
        assert found.dtype == expected.dtype
        tolerance = 1e-5 if expected.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_a_ratio_is_the_time_over_numpys(monkeypatch) -> None:
    monkeypatch.setattr(functions, "ROUNDS", 2)
    monkeypatch.setattr(functions, "SAMPLE", 1e-5)
    assert 0 < functions.ratio("add", "float64", 100) < 1000


def test_the_table_has_a_row_for_each_dtype_and_a_mean(monkeypatch, capsys) -> None:
    monkeypatch.setattr(functions, "ROUNDS", 1)
    monkeypatch.setattr(functions, "SAMPLE", 1e-5)
    assert functions.main(["add", "--sizes", "10"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 2 + len(functions.ROWS["add"].dtypes) + 1
    assert out[-1].startswith("| geometric mean |")
