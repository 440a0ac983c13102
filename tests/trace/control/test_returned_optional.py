"""Results that are None in some runs, which have had effects when they know it."""

from __future__ import annotations

import numpy as np
import pytest

import wend


def found(x, limit):
    print(x)
    return x if x > limit else None


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_one_trace_returns_none_and_numbers(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    f = wend.function(found)
    with wend.config(backend=backend):
        assert [f(1.0, 2.0), f(3.0, 2.0), f(-1.0, 2.0)] == [None, 3.0, None]
    assert f.trace_count == 1
    assert capsys.readouterr().out == "1.0\n3.0\n-1.0\n"


def test_another_trace_asks_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    inner = wend.function(found)

    @wend.function
    def outer(x):
        y = inner(x, 2.0)
        return -1.0 if y is None else y * x

    assert [outer(1.0), outer(3.0)] == [-1.0, 9.0]
    assert wend.grad(outer)(3.0) == 6.0
    assert wend.grad(outer)(1.0) == 0.0


def test_elements_of_a_map_have_one_structure() -> None:
    with pytest.raises(wend.WendError, match="None"):
        wend.vmap(lambda x: found(x, 2.0))(np.arange(4.0))
