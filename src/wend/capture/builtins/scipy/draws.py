"""Draws of SciPy's random numbers: `rvs` of distributions draws in the run; others are refused.

SciPy draws from NumPy's global generator, as the user's code does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wend.capture.builtins.draws.random_draws import run_draw, shape_of, shape_of_sizes, sizes_of
from wend.capture.builtins.refused_calls import DRAW, Call, refusing
from wend.eager.promotion import common_shape
from wend.ir.dtypes import INT64
from wend.ir.types import Shape, TensorType

_SEEDS = ("seed", "rng", "random_state")
_FUNCTIONS = {
    "scipy.cluster": ("kmeans", "kmeans2"),
    "scipy.optimize": ("basinhopping", "differential_evolution", "dual_annealing"),
    "scipy.sparse": ("rand", "random", "random_array"),
    "scipy.stats": ("bootstrap", "monte_carlo_test", "permutation_test"),
}


def draws(package: str, name: str) -> bool:
    """Return whether a function of SciPy draws random numbers."""
    return name in _FUNCTIONS.get(package, ())


def unless_seeded(fun: Call, shown: str) -> Call:
    """Return a function that draws, which is refused unless a number is its seed."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(kwargs.get(name), (int, np.integer)) for name in _SEEDS):
            return fun(*args, **kwargs)
        return refusing(shown, DRAW)(*args, **kwargs)

    return run


def of_method(owner: Any, name: str) -> Call | None:
    """Return what captured code calls in place of a method of SciPy's that draws, or None."""
    if name not in ("rvs", "resample"):
        return None
    # One that is frozen has its parameters.
    distribution, frozen = getattr(owner, "dist", owner), getattr(owner, "args", ())
    options: Mapping[str, Any] = getattr(owner, "kwds", {})
    kind = type(distribution).__name__.removesuffix("_gen")
    is_discrete = hasattr(distribution, "pmf")
    if kind == "multivariate_normal" and distribution is owner:
        return lambda *args, **kwargs: _vectors(distribution, args, kwargs)
    if not hasattr(distribution, "numargs"):
        return refusing(f"{kind}.{name}", DRAW)

    def rvs(*args: Any, **kwargs: Any) -> Any:
        if frozen or options:
            kwargs |= dict(zip(("size", "random_state"), args, strict=False))
            args, kwargs = frozen, {**options, **kwargs}
        shapes = distribution.shapes.split(", ") if distribution.shapes else []
        names = (*shapes, "loc", *([] if is_discrete else ["scale"]), "size")
        bound = {**dict(zip(names, args, strict=False)), **kwargs}
        bound.pop("random_state", None)
        size = bound.pop("size", None)
        shape: Shape | None = (
            (common_shape([shape_of(x) for x in bound.values()]) if bound else ())
            if size is None
            else shape_of_sizes(sizes_of(size))
        )
        result = TensorType(INT64 if is_discrete else np.dtype(float), shape)
        drawn = _drawn(f"{distribution.name}.rvs", distribution.rvs, args, kwargs, result)
        return drawn.as_weak() if is_discrete and shape == () else drawn

    return rvs


def _vectors(distribution: Any, args: Any, kwargs: Any) -> Any:
    """Draw vectors of a normal distribution."""
    names = ("mean", "cov", "size", "random_state")
    bound = {**dict(zip(names, args, strict=False)), **kwargs}
    shapes = [shape_of(bound[name]) for name in ("mean", "cov") if bound.get(name) is not None]
    length = next((shape[-1] for shape in shapes if shape), 1)
    shape = (*shape_of_sizes(sizes_of(bound.get("size", 1))), length)
    result = TensorType(np.dtype(float), tuple(size for size in shape if size != 1))
    return _drawn("multivariate_normal.rvs", distribution.rvs, args, kwargs, result)


def _drawn(shown: str, method: Call, args: Any, kwargs: Any, result: TensorType) -> Any:
    return run_draw(shown, method, args, kwargs, result, errors=(ValueError,))
