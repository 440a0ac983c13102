"""Every program under each policy of `memory=`: the derivatives that `"keep"` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.plain_programs import PLAIN
from tests.helpers.programs import PROGRAMS, Program
from wend.base.memory import Memory

POLICIES: list[Memory] = [
    "recompute",
    "thin",
    *map(wend.Every, (1, 2, 3, 5)),
    *map(wend.Checkpoints, (1, 2, 3, 5)),
]


def derivatives(fun: Callable[..., Any], program: Program) -> list[Any]:
    """Value, gradient, gradient of the gradient's sum, tangent of that sum."""
    wrt = tuple(range(len(program.args)))
    value, gradient = wend.value_and_grad(fun, wrt)(*program.args)

    def summed(*args: Any) -> Any:
        return sum(wnp.sum(part) for part in wend.grad(fun, wrt)(*args))

    tangents = tuple(np.ones_like(arg) for arg in program.args)
    tangent = wend.jvp(summed, program.args, tangents)[1]
    return [value, *gradient, *wend.grad(summed, wrt)(*program.args), tangent]


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("form", ["functional", "plain"])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_policies_give_the_derivatives_of_keep(program: Program, form: str, backend: str) -> None:
    fun = program.fun if form == "functional" else PLAIN[program.name]
    with wend.config(backend=backend):
        expected = derivatives(fun, program)
        for policy in POLICIES:
            with wend.config(memory=policy):
                actual = derivatives(fun, program)
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=str(policy))
