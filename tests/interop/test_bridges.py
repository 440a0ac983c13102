"""The tests of the bridges, each in a process of its own."""

from __future__ import annotations

import importlib.util

import pytest

from tests.helpers.own_process import run_alone


@pytest.mark.parametrize("system", ["jax", "torch"])
def test_in_a_process_of_its_own(system: str) -> None:
    if importlib.util.find_spec(system) is None:
        pytest.skip(f"NOT RUN: {system} is not installed")
    run_alone(f"tests/interop/{system}")
