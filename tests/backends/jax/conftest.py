"""The backend is tested where JAX is installed: by the extra `wend[jax]`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.helpers.quick_xla import quick_xla

__all__ = ["quick_xla"]  # for all tests of this room

jax = pytest.importorskip("jax", reason="the extra wend[jax] is not installed")


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    """Let JAX have 64-bit numbers, as NumPy does."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tapes have room for 16 records at first."""
    monkeypatch.setattr("wend.backends.jax.lowering._FIRST_BYTES", 0)
