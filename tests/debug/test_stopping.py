"""`wend.debug.breakpoint`: where it stops, and what is to be seen there."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import wend
import wend.numpy as wnp


@pytest.fixture(params=["numpy", "native", "eager"])
def stops(request, monkeypatch):
    """The frames in which it stopped, in the place of a debugger."""
    found = []

    def hook():
        frame = sys._getframe(1)
        found.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    backend = {"backend": request.param} if request.param != "eager" else {"eager": True}
    with wend.config(**backend):
        yield found


def test_the_line_and_the_numbers(stops):
    def fun(x, options):
        _name, y = "abc", x * 2.0
        while y > 1.0:
            y = y / 2.0
            wend.debug.breakpoint()
        return y + options["k"]

    assert wend.function(fun)(2.0, {"k": 1.0}) == 2.0
    line = fun.__code__.co_firstlineno + 4
    assert [(file, at) for file, at, _ in stops] == [(__file__, line)] * 2
    assert [held["y"] for _, _, held in stops] == [2.0, 1.0]
    held = stops[0][2]
    assert held["x"] == 2.0
    assert held["_name"] == "abc"
    assert held["options"] == {"k": 1.0}
    assert set(held) == {"x", "y", "_name", "options"}


def test_arrays_are_copies(stops):
    def fun(x):
        x = x + 1.0
        wend.debug.breakpoint()
        return x

    assert wend.function(fun)(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    stops[0][2]["x"][:] = 7.0
    assert wend.function(fun)(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_under_a_derivative(stops):
    def fun(x):
        y = x * x
        wend.debug.breakpoint()
        return y

    assert wend.grad(fun)(3.0) == 6.0
    assert [float(held["y"]) for _, _, held in stops] == [9.0]


def test_a_branch_that_is_not_taken(stops):
    def fun(x):
        if x > 1.0:
            wend.debug.breakpoint()
        return x

    run = wend.function(fun)
    run(0.5)
    assert stops == []
    run(2.0)
    assert len(stops) == 1


def test_lists_that_grow_are_left_out(stops):
    def fun(x):
        out = []
        for k in range(3):
            out.append(x * k)
            wend.debug.breakpoint()
        return wnp.stack(out)

    assert wend.function(fun)(1.0).tolist() == [0.0, 1.0, 2.0]
    assert len(stops) == 3
    assert all(held["x"] == 1.0 for _, _, held in stops)


def test_what_it_raises_comes_out(stops, monkeypatch):
    def leave():
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "breakpointhook", leave)

    def fun(x):
        wend.debug.breakpoint()
        return x

    with pytest.raises(KeyboardInterrupt):
        wend.function(fun)(1.0)
