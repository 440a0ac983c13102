"""The tests of the JAX backend, in a process of their own."""

from __future__ import annotations

import importlib.util

import pytest
from tests.helpers.own_process import run_alone


def test_the_jax_backend() -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("NOT RUN: jax is not installed")
    run_alone("tests/backends/jax")
