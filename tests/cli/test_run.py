"""`wend run`."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.cli import main


@pytest.fixture
def path(tmp_path):
    fun = wend.function(lambda x, n: {"scaled": x * n, "sum": (x.sum(), None)}, name="fun")
    fun(np.ones(3), 2)
    wend.save(tmp_path / "m.wend", fun=fun)
    np.save(tmp_path / "x.npy", np.arange(3.0))
    return tmp_path / "m.wend"


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_arguments_are_numbers_and_arrays(path, backend, capsys):
    arguments = ["run", str(path), "--input", str(path.parent / "x.npy"), "--input", "3"]
    assert main([*arguments, "--backend", backend]) == 0
    assert capsys.readouterr().out == (
        "{'scaled': array([0., 3., 6.]), 'sum': (np.float64(3.0), None)}\n"
    )
    out = path.parent / "y.npz"
    assert main([*arguments, "--out", str(out)]) == 0
    with np.load(out) as arrays:
        assert sorted(arrays) == ["result_scaled", "result_sum_0"]
        assert arrays["result_scaled"].tolist() == [0.0, 3.0, 6.0]


def test_one_array_is_written_alone(tmp_path):
    fun = wend.function(lambda x: x + 1, name="fun")
    fun(1)
    wend.save(tmp_path / "m.wend", fun=fun)
    out = str(tmp_path / "y.npy")
    assert main(["run", str(tmp_path / "m.wend"), "--input", "41", "--out", out]) == 0
    assert np.load(out) == 42


def test_mistakes_are_explained(path, capsys):
    assert main(["run", str(path), "--input", "three"]) == 1
    assert "'three' is no number" in capsys.readouterr().err
    assert main(["run", str(path), "--input", "1.0", "--input", "2"]) == 1
    assert "has no trace for (x float, n int)" in capsys.readouterr().err
    x = str(path.parent / "x.npy")
    out = str(path.parent / "y.npy")
    assert main(["run", str(path), "--input", x, "--input", "2", "--out", out]) == 1
    assert "To fix it: write them to a file .npz" in capsys.readouterr().err
