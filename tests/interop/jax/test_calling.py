"""Calls by compiled programs: on XLA's buffers, or by callbacks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wend.interop.jax import as_jax, calling, ffi_types


def doubled(x: Any) -> Any:
    return 2.0 * x, x.sum() > 0, np.zeros((0, 2))


def test_programs_call_the_handler() -> None:
    f = as_jax(doubled)
    text = jax.jit(f).lower(jnp.ones(3)).as_text()
    assert "wend_call" in text
    assert "callback" not in text
    y, flag, empty = jax.jit(f)(jnp.arange(3.0))
    assert (y.tolist(), flag, empty.shape) == ([0.0, 2.0, 4.0], True, (0, 2))


def test_an_unknown_interface_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ffi_types, "major_version", lambda: 7)
    calling._register.cache_clear()
    try:
        with pytest.warns(UserWarning, match="has version 7, not 0"):
            y, *_ = jax.jit(as_jax(doubled))(jnp.ones(2))
        assert y.tolist() == [2.0, 2.0]
    finally:
        calling._register.cache_clear()


def test_the_version_is_that_of_the_header() -> None:
    assert ffi_types.major_version() == ffi_types.MAJOR
