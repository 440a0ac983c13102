"""Sorts by NumPy's vectors, by our own digits and by both, whichever this machine would choose."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from wend.backends.native.jit.llvm import engine
from wend.backends.native.rt.ordering import numpy_sorts, sorts


@pytest.fixture(params=["vectors", "digits", "vectors of short rows"])
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "digits":
        monkeypatch.setattr(numpy_sorts, "_address", lambda dtype: 0)
    limit = 100 if request.param == "vectors of short rows" else None
    monkeypatch.setattr(numpy_sorts, "max_count", lambda: limit)
    return str(request.param)


def test_numpys_are_found_where_it_has_vectors() -> None:
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    has_vectors = any(map(features.get, ("AVX2", "ASIMD")))
    for dtype in sorts.DTYPES:
        assert numpy_sorts.is_available(dtype) == (has_vectors and dtype.itemsize >= 4)


def sorted_by(dtype: np.dtype, x: np.ndarray, step: int) -> np.ndarray:
    text, name = sorts.sort_library(dtype), sorts.sort(dtype)
    code = engine()._compile_object(text, None)
    linked = engine()._link(engine()._shared_linker, code, [name], numpy_sorts.addresses(dtype))
    sort = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(linked.addresses[name])
    out, count = np.empty_like(x), len(x) // step
    room = np.empty(count * sorts.sort_room(dtype, str(step)), np.uint8)
    for k in range(step):
        row, target = x[k:].ctypes.data, out[k:].ctypes.data
        sort(row, target, step, room.ctypes.data, count)
    return out


@pytest.mark.sampled(30)
@pytest.mark.parametrize("dtype", sorts.DTYPES, ids=str)
@pytest.mark.parametrize("step", [1, 3])
def test_rows(dtype: np.dtype, step: int, chosen: str) -> None:
    assert chosen != "digits" or not numpy_sorts.is_available(dtype)
    rng = np.random.default_rng(5)
    for count in (0, 1, 2, 7, 64, 65, 300, 5000):
        x = (rng.normal(size=(count, step)) * 50).astype(dtype)
        if dtype.kind == "f":
            odd = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf], dtype)
            x = np.where(rng.random(x.shape) < 0.4, rng.choice(odd, x.shape), x)
        found = sorted_by(dtype, np.ravel(x), step).reshape(x.shape)
        bits = f"u{dtype.itemsize}"
        np.testing.assert_array_equal(found.view(bits), np.sort(x, 0, kind="stable").view(bits))
