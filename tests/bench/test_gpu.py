"""The programs for a GPU run on the CPU, where nothing is measured."""

import importlib.util
import subprocess

import pytest
from bench import gpu

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="NOT RUN: jax is not installed"
)


def test_it_says_so_where_there_is_no_gpu(capsys, monkeypatch):
    monkeypatch.setattr(gpu, "platform", lambda: "cpu")
    assert gpu.main([]) == 0
    assert "NOT RUN: JAX has no GPU here, but 'cpu'" in capsys.readouterr().out


@pytest.mark.parametrize("error", ["MemoryError", "jaxlib: RESOURCE_EXHAUSTED: Out of memory"])
def test_a_lack_of_memory_is_no_room(monkeypatch, error):
    run = subprocess.CompletedProcess([], 1, "", error)
    monkeypatch.setattr(gpu.subprocess, "run", lambda *_, **options: run)
    assert gpu.measured("lstm", "jax") is None


def test_another_error_is_one(monkeypatch):
    run = subprocess.CompletedProcess([], 1, "", "ValueError")
    monkeypatch.setattr(gpu.subprocess, "run", lambda *_, **options: run)
    with pytest.raises(RuntimeError, match="lstm jax fails"):
        gpu.measured("lstm", "jax")


@needs_jax
@pytest.mark.parametrize(("program", "peer"), [("lstm", "jax"), ("solves", "jax-tape")])
def test_answers_are_those_of_the_peer(program, peer):
    runs = [gpu.measured(program, which, "--small") for which in ("wend-jax", peer)]
    assert runs[0]["answer"] == pytest.approx(runs[1]["answer"], rel=1e-6)
    assert all(run["seconds"] > 0.0 for run in runs)


@needs_jax
@pytest.mark.parametrize("program", [("settled", "keep:8"), ("settled", "offload:8")])
def test_programs_without_a_peer_run(program):
    found = gpu.measured(*program, "--small")
    assert found is not None
    assert found["seconds"] > 0.0
