"""Arms that raise exceptions; programs are in `tests/semantics/programs/raises.txt`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.ops import effects
from wend.ops.control import if_


def checked_root(x: Any) -> Any:
    if x < 0:
        raise ValueError(f"negative: {x}")
    return np.sqrt(x)


def graph_of(fun: Any, *args: Any) -> Any:
    return wend.function(fun).get_concrete_function(*args).graph


def test_an_arm_that_only_raises_is_a_check_without_a_branch() -> None:
    nodes = [*graph_of(checked_root, 1.0).walk()]
    assert [node.op for node in nodes].count(effects.raise_if) == 1
    assert not any(node.op is if_ for node in nodes)


def test_a_text_that_takes_work_is_made_only_where_it_is_needed() -> None:
    def checked(x):
        if x[0] < 0:
            raise ValueError(f"negative: {np.exp(x).sum()}")
        return x

    (branch,) = [node for node in graph_of(checked, np.ones(3)).nodes if node.op is if_]
    assert any(node.op.name == "exp" for region in branch.regions for node in region.nodes)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_checks_have_derivatives_of_all_orders(backend: str) -> None:
    def fun(x, n):
        y = x
        for k in range(n):
            y = np.sin(y) + x
            if not y < 10.0:
                raise ArithmeticError(f"diverged at {k}: {y}")
        return y * y

    def free(x, n):
        y = x
        for _ in range(n):
            y = np.sin(y) + x
        return y * y

    with wend.config(backend=backend):
        for transform in (wend.grad, lambda f: wend.grad(wend.grad(f)), wend.checkpoint):
            assert transform(fun)(1.0, 5) == transform(free)(1.0, 5)
            with pytest.raises(ArithmeticError, match=r"^diverged at 0: 99\.49"):
                transform(fun)(100.0, 5)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_came_before_is_done_and_the_line_is_noted(backend: str) -> None:
    total = wend.Variable(0.0)

    @wend.function(backend=backend)
    def fun(a, x):
        total.assign(1.0)
        a[0] = x
        if x < 0:
            total.assign(2.0)
            a[1] = x
            raise KeyError("x", x)
        total.assign(3.0)
        return x

    array = np.zeros(3)
    assert fun(array, 4.0) == 4.0
    assert total.value == 3.0
    with pytest.raises(KeyError) as caught:
        fun(array, -4.0)
    assert caught.value.args == ("x", -4.0)
    assert total.value == 2.0
    assert array.tolist() == [-4.0, -4.0, 0.0]
    line = fun.__wrapped__.__code__.co_firstlineno + 7
    assert caught.value.__notes__ == [f"raised at test_branches.py:{line}"]


def test_the_path_that_goes_on_is_recorded_once() -> None:
    """Where each check would record what follows twice, twenty would take minutes."""
    calls = []

    @wend.do_not_capture
    def count():
        calls.append(0)

    def fun(x):
        for k in (*range(20),):
            if x > k:
                count()
            else:
                raise ValueError(k)
        return x

    assert wend.function(fun)(30.0) == 30.0
    assert len(calls) == 20


def test_a_raise_that_every_run_of_a_loop_reaches() -> None:
    def fun(x):
        while x > 0:
            raise ValueError("always")
        return x

    compiled = wend.function(fun)
    with pytest.raises(ValueError, match="always"):
        compiled(1.0)
    assert compiled(-1.0) == -1.0
