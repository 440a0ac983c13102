"""Every public array function with arrays to try it on, and how it is tried.

The rows serve the tests of `wend.numpy` and the table in docs/coverage.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.special

import wend
import wend.numpy as wnp

STEP = 1e-5


@dataclass(frozen=True)
class Sample:
    """A call of a public function.

    Attributes:
        name: as in `wend.numpy`, with dots.
        arrays: the arguments that are traced.
        options: those that are not.
        call: `(function, *arrays, **options)`, where the call is not the plain one.
        of: what is compared and differentiated of the result, where that is not all of it.
        traced: False where it is only for plain arrays.
        through: False where NumPy's own function does not ask its arguments what to do.
        smooth: False where the numbers have no derivative to compare with.
        orders: how often it is differentiated.
        tol: how far a derivative may be from finite differences.
    """

    name: str
    arrays: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    call: Callable[..., Any] | None = None
    of: Callable[[Any], Any] | None = None
    traced: bool = True
    through: bool = True
    smooth: bool = True
    orders: int = 2
    tol: float = 1e-6

    def __str__(self) -> str:
        return self.name

    def run(self, function: Callable[..., Any], *arrays: Any) -> list[Any]:
        """The results of a function in the place of the public one, as a flat list."""
        if self.call is None:
            found = function(*arrays, **self.options)
        else:
            found = self.call(function, *arrays, **self.options)
        return flat(found if self.of is None else self.of(found))

    @property
    def public(self) -> Callable[..., Any]:
        return reach(wnp, self.name)

    @property
    def original(self) -> Callable[..., Any]:
        """NumPy's or SciPy's function, or one of the tests' own."""
        if self.name in OWN:
            return OWN[self.name]
        if self.name.startswith("special."):
            return reach(scipy.special, self.name[8:])
        return reach(np, self.name)

    @property
    def goes_through(self) -> bool:
        return self.through and self.name not in OWN


def reach(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def flat(found: Any) -> list[Any]:
    """Arrays of a result: of tuples and lists in order, None left out."""
    if isinstance(found, (list, tuple)):
        return [x for item in found for x in flat(item)]
    return [] if found is None else [found]


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int, inplace: bool) -> Any:
    found = np.array(arr)
    np.put_along_axis(found, indices, values, axis)
    return found


def _cumulative(run: Callable[..., Any], start: int) -> Callable[..., Any]:
    def function(x: Any, *, axis: int, include_initial: bool) -> Any:
        found = run(x, axis)
        assert include_initial
        return np.insert(found, 0, start, axis)

    return function


NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
# What the oldest NumPy that wend runs with lacks, or takes less of, and since when NumPy has it
LATER: dict[str, tuple[tuple[int, int], Callable[..., Any]]] = {
    "astype": ((2, 1), lambda x, dtype, device=None: x.astype(dtype)),
    "cumulative_prod": ((2, 1), _cumulative(np.cumprod, 1)),
    "cumulative_sum": ((2, 1), _cumulative(np.cumsum, 0)),
    "unstack": ((2, 1), tuple),
    "matvec": ((2, 2), lambda x1, x2: (x1 @ x2[..., None])[..., 0]),
    "vecmat": ((2, 2), lambda x1, x2: (np.conj(x1)[..., None, :] @ x2)[..., 0, :]),
}
# Older ones take roots for `x ** 0.5` alone, not in `np.power`
POWERS_ARE_ROOTS = bool(np.signbit(np.power(-0.0, 0.5)))
OWN: dict[str, Callable[..., Any]] = {
    **{name: run for name, (since, run) in LATER.items() if since > NUMPY},
    "logsumexp": scipy.special.logsumexp,
    "put_along_axis": _put_along_axis,
}


# Checks
def quiet(run: Callable[[], Any]) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


def assert_same(found: Sequence[Any], expected: Sequence[Any], rtol: float, role: str) -> None:
    """Equal in dtype, shape and value."""
    assert len(found) == len(expected), f"{role}: {len(found)} results, not {len(expected)}"
    for a, b in zip(found, expected, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype, f"{role}: {a.dtype}, not {b.dtype}"
        assert a.shape == b.shape, f"{role}: {a.shape}, not {b.shape}"
        if a.dtype.kind in "fc":
            eps = rtol * float(np.finfo(a.dtype).eps)
            np.testing.assert_allclose(a, b, rtol=eps, atol=eps, err_msg=role)
        else:
            np.testing.assert_array_equal(a, b, err_msg=role)


def expected_of(sample: Sample) -> list[Any]:
    return quiet(lambda: sample.run(sample.original, *sample.arrays))


def check_eager(sample: Sample) -> None:
    found = quiet(lambda: sample.run(sample.public, *sample.arrays))
    assert_same(found, expected_of(sample), 0, "at once")


def check_traced(sample: Sample) -> None:
    recorded = wend.function(lambda *xs: sample.run(sample.public, *xs))
    assert_same(quiet(lambda: recorded(*sample.arrays)), expected_of(sample), 2000, "recorded")


def check_through(sample: Sample) -> None:
    recorded = wend.function(lambda *xs: sample.run(sample.original, *xs))
    found = quiet(lambda: recorded(*sample.arrays))
    assert_same(found, expected_of(sample), 2000, "recorded through numpy")


def _scalar(sample: Sample, weights: Sequence[Any]) -> Callable[..., Any]:
    """The sum of the float results, weighted."""

    def scalar(*xs: Any) -> Any:
        total: Any = 0.0
        for y, w in zip(sample.run(sample.public, *xs), weights, strict=True):
            if w is not None:
                total = total + wnp.sum(wnp.real(y * w))
        return total

    return scalar


def _pair(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return float(sum(np.sum(np.real(x * y)) for x, y in zip(xs, ys, strict=True)))


def _random(rng: np.random.Generator, like: Any) -> Any:
    like = np.asarray(like)
    if like.dtype.kind not in "fc":
        return None
    noise = rng.standard_normal(like.shape)
    return noise + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else noise


def gradient_of(sample: Sample) -> tuple[Callable[..., Any], list[int], Callable[..., Any]]:
    """The scalar function, the positions of its float arguments, its gradient in them."""
    rng = np.random.default_rng(len(sample.name))
    weights = [_random(rng, y) for y in expected_of(sample)]
    wrt = [k for k, x in enumerate(sample.arrays) if np.asarray(x).dtype.kind in "fc"]
    scalar = _scalar(sample, weights)
    return scalar, wrt, wend.grad(scalar, argnums=tuple(wrt))


def has_gradient(sample: Sample) -> bool:
    """Whether some number of the gradient is not 0."""
    if not is_differentiable(sample):
        return False
    _, _, gradient = gradient_of(sample)
    return any(np.any(g != 0) for g in quiet(lambda: gradient(*sample.arrays)))


def is_differentiable(sample: Sample) -> bool:
    """Whether floats go in and floats come out."""
    floats = [np.asarray(x).dtype.kind in "fc" for x in sample.arrays]
    return any(floats) and any(np.asarray(y).dtype.kind in "fc" for y in expected_of(sample))


def check_gradient(sample: Sample) -> None:
    """Gradients of first and second order against central differences."""
    if not is_differentiable(sample) or not sample.smooth:
        return
    scalar, wrt, gradient = gradient_of(sample)
    _check_slope(sample, scalar, wrt, gradient, seed=1)
    if sample.orders < 2:
        return
    rng = np.random.default_rng(7)
    along = [_random(rng, sample.arrays[k]) for k in wrt]

    def second(*xs: Any) -> Any:
        found: Any = 0.0
        for g, t in zip(gradient(*xs), along, strict=True):
            found = found + wnp.sum(wnp.real(g * t))
        return found

    _check_slope(sample, second, wrt, wend.grad(second, argnums=tuple(wrt)), seed=2)


def _check_slope(
    sample: Sample,
    scalar: Callable[..., Any],
    wrt: Sequence[int],
    gradient: Callable[..., Any],
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    grads = quiet(lambda: gradient(*sample.arrays))
    for g, k in zip(grads, wrt, strict=True):
        x = np.asarray(sample.arrays[k])
        assert (np.shape(g), np.asarray(g).dtype) == (x.shape, x.dtype)
    for _ in range(2):
        along = [_random(rng, sample.arrays[k]) for k in wrt]
        measured = _measure(sample, scalar, wrt, along)
        found = _pair(grads, along)
        size = 1 + _pair([np.abs(g) for g in grads], [np.abs(t) for t in along])
        assert abs(found - measured) <= sample.tol * size, f"{found}, measured {measured}"


def _measure(
    sample: Sample, scalar: Callable[..., Any], wrt: Sequence[int], along: Sequence[Any]
) -> float:
    """The slope along a direction, by central differences."""
    ends = []
    for sign in (1, -1):
        moved = list(sample.arrays)
        for k, t in zip(wrt, along, strict=True):
            moved[k] = moved[k] + sign * STEP * t
        ends.append(float(np.real(quiet(lambda moved=moved: scalar(*moved)))))
    return (ends[0] - ends[1]) / (2 * STEP)
