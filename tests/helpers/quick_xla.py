"""Programs of XLA without most of its passes: half of the time, and the same meaning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.shares import is_chosen

# The tests of JAX ask what a program means: XLA's passes run for one in so many of them, and with
# `make test-long` for all.
OPTIMIZED_SHARE = 8
_OPTION = "jax_disable_most_optimizations"


@pytest.fixture(autouse=True)
def quick_xla(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """XLA compiles quickly, in processes that a test starts as well, but for the chosen tests."""
    import jax

    is_quick = not is_chosen(f"{request.node.nodeid} optimized", OPTIMIZED_SHARE)
    monkeypatch.setenv(_OPTION.upper(), str(int(is_quick)))
    before = jax.config.read(_OPTION)
    jax.config.update(_OPTION, is_quick)
    yield
    jax.config.update(_OPTION, before)
