"""The tests of JAX and PyTorch run in processes of their own: `test_bridges.py` starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.own_process import is_alone

ALONE = ("jax", "torch")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave them out, unless this is such a process or they are asked for by name."""
    name = collection_path.relative_to(Path(__file__).parent).parts[:1]
    if not name or name[0] not in ALONE or is_alone():
        return None
    is_named = any(f"interop/{name[0]}" in str(x) for x in config.invocation_params.args)
    return None if is_named else True
