"""Random numbers that SciPy draws: those of plain Python, at each call."""
# ruff: noqa: NPY002

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import UnsupportedError

optimize, stats = pytest.importorskip("scipy.optimize"), pytest.importorskip("scipy.stats")

DRAWS: dict[str, Callable[..., Any]] = {
    "number": lambda x: stats.norm.rvs() * x,
    "of_traced": lambda x: (stats.norm.rvs(x, 2.0), stats.norm.rvs(loc=x, scale=x, size=3)),
    "by_position": lambda x: stats.gamma.rvs(2.0, 1.0, x, (2, 1)),
    "broadcast": lambda x: stats.expon.rvs(scale=[1.0, x]),
    "whole": lambda x: (stats.poisson.rvs(x), stats.bernoulli.rvs(0.4, size=4) * x),
    "frozen": lambda x: (stats.norm(0.5).rvs() * x, stats.t(df=3, scale=x).rvs(2)),
    "seeded": lambda x: stats.norm.rvs(loc=x, size=2, random_state=3),
    "vectors": lambda x: (stats.multivariate_normal.rvs([x, 1.0], np.eye(2)),
                          stats.multivariate_normal.rvs(None, np.eye(3) * x, 4),
                          stats.multivariate_normal.rvs() * x),
    "outside_its_domain": lambda x: stats.norm.rvs(scale=-x),
}  # fmt: skip


def loop(x: Any) -> Any:
    while abs(x) < 5.0:
        x = x + stats.norm.rvs()
    return x


DRAWS["loop"] = loop


@pytest.mark.parametrize("name", DRAWS)
def test_runs_draw_what_python_draws(name: str) -> None:
    function = DRAWS[name]
    compiled = wend.function(function)
    for seed in (0, 1):
        results: list[Any] = []
        for one in (function, compiled):
            np.random.seed(seed)
            try:
                results.append((one(1.5), np.random.random()))
            except ValueError as error:
                results.append((str(error), 0.0))
        np.testing.assert_equal(*results)


@pytest.mark.parametrize("draw", [
    lambda x: optimize.differential_evolution(lambda v: v @ v, [(-1, 1)]).x * x,
    lambda x: stats.gaussian_kde([1.0, 2.0, 4.0]).resample(2) * x,
    lambda x: stats.ortho_group.rvs(2) * x,
])  # fmt: skip
def test_other_draws_are_refused(draw: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="draws a random number"):
        wend.function(draw)(2.0)


def test_a_seeded_search_is_a_constant() -> None:
    def search(x: Any) -> Any:
        return optimize.differential_evolution(lambda v: v @ v, [(-1, 1)], seed=3).x * x

    assert wend.function(search)(2.0) == pytest.approx(search(2.0))
