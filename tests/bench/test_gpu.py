"""The programs for a GPU run on the CPU, where nothing is measured."""

import importlib.util

import pytest
from bench import gpu

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="NOT RUN: jax is not installed"
)


def test_it_says_so_where_there_is_no_gpu(capsys, monkeypatch):
    monkeypatch.setattr(gpu, "platform", lambda: "cpu")
    assert gpu.main([]) == 0
    assert "NOT RUN: JAX has no GPU here, but 'cpu'" in capsys.readouterr().out


@needs_jax
@pytest.mark.parametrize(
    "program",
    [
        *(("lstm", "wend-jax"), ("lstm", "jax"), ("solves", "wend-jax"), ("solves", "jax-tape")),
        *(("settled", "keep:8"), ("settled", "offload:8")),
    ],
)
def test_its_programs_run(program):
    found = gpu.measured(*program, "--small")
    assert found is not None
    assert found["seconds"] > 0.0
