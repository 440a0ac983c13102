"""The tests of the JAX backend run in a process of their own: `test_alone.py` starts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.own_process import is_alone


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave them out, unless this is such a process or they are asked for by name."""
    if collection_path.relative_to(Path(__file__).parent).parts[:1] != ("jax",) or is_alone():
        return None
    is_named = any("backends/jax" in str(x) for x in config.invocation_params.args)
    return None if is_named else True
