"""`wend.numpy.fft` beside NumPy: values to the last bit, errors, unknown sizes, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.drawn import check
from wend.testing import check_grads

RNG = np.random.default_rng(0)
ALONG = [
    *({}, {"n": 1}, {"n": 4}, {"n": 9}, {"axis": 0}, {"axis": -2, "n": 5}),
    *({"norm": "ortho"}, {"norm": "forward", "n": 7}, {"norm": "backward", "axis": 1}),
]
OVER = [
    *({}, {"s": (3, 4), "axes": (0, 1)}, {"axes": (0,)}, {"axes": (1, 0), "s": (4, -1)}),
    *({"norm": "ortho"}, {"axes": (0, 1, 0)}),
]
ONE_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY_AXES = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]


def transforms(m: Any, x: Any, *, is_complex: bool) -> list[Any]:
    """Every transform of an array of two axes."""
    calls = [(name, how) for name in ONE_AXIS for how in ALONG]
    calls += [(name, how) for name in MANY_AXES for how in OVER]
    calls += [(name, how) for name in ("fftshift", "ifftshift") for how in ({}, {"axes": 0})]
    of_reals = ("rfft", "ihfft", "rfft2", "rfftn")
    return [getattr(m.fft, name)(x, **how) for name, how in calls
            if not is_complex or name not in of_reals]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "c8", "f2", "i4"])
def test_values_are_numpys(dtype: str, backend: str) -> None:
    x: Any = RNG.normal(size=(7, 6)) * 3
    is_complex = dtype.startswith("c")
    x = (x + 1j * RNG.normal(size=(7, 6)) if is_complex else x).astype(dtype)
    traced = wend.function(lambda x: transforms(np, x, is_complex=is_complex), backend=backend)
    references = transforms(np, x, is_complex=is_complex)
    for result, reference in zip(traced(x), references, strict=True):
        assert result.dtype == reference.dtype
        np.testing.assert_array_equal(result, reference)
    if backend == "native" and dtype in ("f8", "c16"):
        assert "runs in Python" not in str(traced.explain())


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.fft.fft(x, 0),
        lambda m, x: m.fft.fft(x, 2.0),
        lambda m, x: m.fft.fft(x, axis=2),
        lambda m, x: m.fft.fft(x, 3, axis=2),
        lambda m, x: m.fft.fft(x, norm="unitary"),
        lambda m, x: m.fft.hfft(x, norm="unitary"),
        lambda m, x: m.fft.rfft(x * 1j),
        lambda m, x: m.fft.irfft(x[:, :1]),
        lambda m, x: m.fft.fft(x[:0], axis=0),
        lambda m, x: m.fft.fftn(x, (2, 2, 2), axes=(0, 1)),
        lambda m, x: m.fft.rfftn(x, axes=()),
        lambda m, x: m.fft.fft2(x[0]),
        lambda m, x: m.fft.fft(x[0, 0]),
    ],
)
def test_errors_are_numpys(call: Any) -> None:
    check(call, np.ones((2, 3)))


def test_frequencies() -> None:
    for n in (1, 4, 5):
        check(lambda m, d, n=n: (m.fft.fftfreq(n, d), m.fft.rfftfreq(n, d)), 0.5, through=False)
    check(lambda m, d: m.fft.fftfreq(2.5, d), 0.5, through=False)


def smoothed(x: Any) -> Any:
    """A low-pass filter and a convolution, whose sizes follow that of the array."""
    spectrum = np.fft.rfft(x) * np.exp(-np.fft.rfftfreq(len(x), 0.1))
    padded = np.fft.fft(x, 2 * len(x))
    squared = np.fft.ifft(padded * padded)[: len(x)]
    middle = np.fft.fftshift(np.fft.fftfreq(len(x), d=x[0]))
    return np.fft.irfft(spectrum, len(x)) + np.fft.ihfft(x, len(x))[0].real + squared.real * middle


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_unknown_sizes(backend: str) -> None:
    def loss(x: Any) -> Any:
        return np.sum(smoothed(x) ** 2)

    value = wend.function(smoothed, backend=backend)
    gradient = wend.function(wend.grad(loss), backend=backend)
    for size in (6, 9, 4, 7):
        x = RNG.normal(size=size)
        np.testing.assert_allclose(value(x), smoothed(x), rtol=1e-12, atol=1e-12)
        known = wend.grad(lambda x: loss(x))(x)  # in a trace of its own, of this size
        np.testing.assert_allclose(gradient(x), known, rtol=1e-9, atol=1e-9)
    assert " 2 traces" in str(value.explain())
    assert " 2 traces" in str(gradient.explain())


def test_no_points_are_numpys_error_where_only_the_run_knows_them() -> None:
    run = wend.function(lambda x: np.fft.fft(x), input_signature=[wend.TensorSpec([None], "c16")])
    np.testing.assert_array_equal(run(np.ones(3) + 0j), [3, 0, 0])
    with pytest.raises(ValueError, match="Invalid number of FFT data points"):
        run(np.zeros(0, complex))


def test_derivatives_in_loops() -> None:
    def damped(x: Any) -> Any:
        while np.sum(x * x) > 1e-3:
            x = np.fft.irfft(0.4 * np.fft.rfft(x) * np.exp(1j * x[0]), len(x))
        return np.sum(x)

    check_grads(damped, (RNG.normal(size=5),), order=2)


def test_out() -> None:
    def into(m: Any, x: Any) -> Any:
        out = m.zeros_like(x) + 0j
        m.fft.fft2(x, out=out)
        return out

    check(into, RNG.normal(size=(2, 3)), ulps=0)


def test_eager() -> None:
    x = RNG.normal(size=5)
    with wend.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(np.abs(wnp.fft.rfft(x)) ** 2)
    assert y is not None
    np.testing.assert_array_equal(wnp.fft.rfft(x), np.fft.rfft(x))
