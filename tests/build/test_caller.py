"""Calls through `ctypes`: arguments that do not fit, and threads."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import wend
from tests.helpers.built import library_of
from wend.build import build
from wend.build.caller import StateArrays


def scale(x, y, a):
    x *= a
    return x + y


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    library = library_of(build(scale, "f64[n], f64[n], f64", out=tmp_path))
    x = np.arange(3.0)
    np.testing.assert_array_equal(library.call("scale", [x, [1, 2, 3], 2]), [1.0, 4.0, 7.0])
    np.testing.assert_array_equal(x, [0.0, 2.0, 4.0])
    with pytest.raises(ValueError, match="y: a size is 2, not 3"):
        library.call("scale", [x, np.ones(2), 2.0])
    with pytest.raises(ValueError, match="x has 2 axes, not 1"):
        library.call("scale", [np.ones((2, 2)), x, 2.0])
    with pytest.raises(TypeError, match="x is changed: pass a contiguous array of float64"):
        library.call("scale", [[1.0, 2.0], np.ones(2), 2.0])
    with pytest.raises(TypeError, match="scale takes 3 arguments"):
        library.call("scale", [x])


def test_a_state_is_passed_where_there_are_variables(tmp_path: Path) -> None:
    count = wend.Variable(5, name="count")
    library = library_of(build(lambda x: count + x, "i64", name="f", out=tmp_path))
    assert library.call("f", [2], StateArrays(library)) == 7
    with pytest.raises(TypeError, match="f has variables"):
        library.call("f", [2])


def test_threads_have_workspaces_of_their_own(tmp_path: Path) -> None:
    def total(x):
        kept = []
        s = 0.0
        while s < 100.0:
            s = s + x.sum()
            kept.append(s)
        return np.array(kept)

    library = library_of(build(total, "f64[n]", out=tmp_path))
    wrong: list[float] = []

    def work(step: float) -> None:
        x = np.full(100, step / 100)
        expected = total(x)
        wrong.extend(
            step for _ in range(200) if not np.array_equal(library.call("total", [x]), expected)
        )

    threads = [threading.Thread(target=work, args=(1.0 + k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
