"""`wend export`."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from tests.cli.test_show import folder
from wend.cli import main

pytest.importorskip("onnxruntime", reason="NOT RUN: the extra wend[onnx] is not installed")

import onnx

from tests.helpers.onnx_models import results

__all__ = ["folder"]


def test_a_function_of_a_file_and_one_that_was_saved(folder, capsys):
    line = "export 'newton.py:wend.value_and_grad(root)(2.0)' --out slope.onnx"
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out == "slope.onnx: (a) -> (result_0, result_1)\n"
    value, slope = results(onnx.load("slope.onnx"), [9.0])
    assert (value, slope) == (pytest.approx(3.0), pytest.approx(1.0 / 6.0))
    assert main(shlex.split("save newton.py:root(2.0) --out n.wend")) == 0
    assert main(shlex.split("export n.wend:root --out root.onnx")) == 0
    np.testing.assert_allclose(results(onnx.load("root.onnx"), [9.0])[0], 3.0)


def test_mistakes_are_explained(folder, capsys):
    call = "newton.py:wend.function(lambda x: np.linalg.eigh(x)[0])(np.eye(2))"
    assert main(["export", call, "--out", "x.onnx"]) == 1
    assert "eigh" in capsys.readouterr().err
    assert main(["export", "nothing.wend", "--out", "x.onnx"]) == 1
