"""Running on both backends, and comparing."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.build import executable
from wend.backends.differential import DifferentialExecutable, difference
from wend.backends.numpy.backend import BACKEND
from wend.base.errors import MismatchError
from wend.ir.types import tensor
from wend.ops.build import Build
from wend.passes.pipeline import LazyOptimized


@pytest.mark.parametrize(
    ("x", "y", "how"),
    [
        (1.0, 1.0 + 1e-15, ""),
        (1.0, 1.1, "up to 0.1 away, where the largest is 1.1, from"),
        (np.float32(1.0), np.float32(1.00001), ""),
        (np.array([1, 2]), np.array([1, 3]), "not"),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), ""),
        (np.array([np.nan, 1.0]), np.array([1.0, 1.0]), "NaN or inf at other places than"),
        (np.inf, -np.inf, "NaN or inf at other places than"),
        (np.zeros(3), np.zeros(0), "float64[3] instead of float64[0], which is"),
        (np.zeros(0), np.zeros(0), ""),
        (1.0 + 1.0j, 1.0 + 1.0j, ""),
        (True, False, "not"),
    ],
)
def test_how_results_differ(x, y, how):
    assert difference(x, y) == how


def test_what_is_right_passes():
    @wend.function
    def fun(x):
        while x.sum() > 1.0:
            x = x * wnp.tanh(x)
        return x

    plain = fun(np.linspace(0.1, 2.0, 50)), wend.grad(lambda x: fun(x).sum())(np.ones(50))
    with wend.config(compare=True, backend="native"):
        np.testing.assert_array_equal(fun(np.linspace(0.1, 2.0, 50)), plain[0])
        np.testing.assert_array_equal(wend.grad(lambda x: fun(x).sum())(np.ones(50)), plain[1])


class _Wrong:
    """Runs another graph."""

    def __init__(self, graph):
        self._run = BACKEND.compile(graph)
        self.host_nodes = ()

    def __call__(self, arguments):
        return [1.5 * x for x in self._run(arguments)]


def test_what_is_wrong_is_told():
    b = Build("fun")
    x = b.param(tensor("f8", 3))
    graph = b.finish([b.sin(x)])
    run = DifferentialExecutable(_Wrong(graph), graph, "native")
    with pytest.raises(MismatchError, match=r"fun: result 0 is up to .* numpy backend's") as caught:
        run([np.ones(3)])
    assert "alone, each operation gives the same" in str(caught.value)


class _Rounding(_Wrong):
    """Runs it, and is wrong in the last bit."""

    def __call__(self, arguments):
        return [np.nextafter(x, np.inf) for x in self._run(arguments)]


def test_strictly_the_last_bit_counts():
    b = Build("fun")
    graph = b.finish([b.sin(b.param(tensor("f8", 3)))])
    DifferentialExecutable(_Rounding(graph), graph, "native")([np.ones(3)])
    with wend.config(strict=True):
        strict = DifferentialExecutable(_Rounding(graph), graph, "native")
    with pytest.raises(MismatchError, match="0 is not, to the last bit, the numpy") as caught:
        strict([np.ones(3)])
    assert "unless" not in str(caught.value)


def test_the_setting_chooses():
    b = Build("fun")
    graph = b.finish([b.sin(b.param(tensor("f8", 3)))])
    assert not isinstance(executable("native", LazyOptimized(graph)), DifferentialExecutable)
    with wend.config(compare=True):
        assert isinstance(executable("native", LazyOptimized(graph)), DifferentialExecutable)
        assert not isinstance(executable("numpy", LazyOptimized(graph)), DifferentialExecutable)


def test_effects_happen_once(capsys):
    @wend.function
    def fun(x):
        print("ran")
        return x + 1.0

    with wend.config(compare=True, backend="native"):
        assert fun(1.0) == 2.0
    assert capsys.readouterr().out == "ran\n"
