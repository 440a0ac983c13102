"""Where peers are found, and what the page says of them."""

import sys
from pathlib import Path

from bench import environments, workloads
from bench.peers import CATALOGUE

PAGE = (Path(__file__).parents[2] / "bench" / "README.md").read_text(encoding="utf-8")


def test_peers_are_found_where_they_are_installed(tmp_path):
    found = environments.interpreters(["wend", "python", "c"], None)
    assert found == dict.fromkeys(["wend", "python", "c"], sys.executable)


def test_an_environment_made_for_a_peer_comes_before_one_that_brings_it_along(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))  # it may have JAX, too
    peers, catalyst = (pretend(tmp_path / name, "jax") for name in ("peers", "catalyst"))
    assert environments.interpreters(["jax"], tmp_path) == {"jax": peers}
    pretend(tmp_path / "peers", "numba")
    assert environments.interpreters(["jax"], tmp_path) == {"jax": catalyst}


def pretend(place, module):
    """Make what says that it is a Python with a module."""
    python = environments.python_of(place)
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f"#!/bin/sh\necho '[\"{module}\"]'\n")
    python.chmod(0o755)
    return str(python)


def test_the_page_installs_what_the_command_installs():
    for packages in environments.ENVIRONMENTS.values():
        assert all(package in PAGE for package in packages)


def test_the_page_says_what_there_is():
    names = [name for name in workloads.NAMES if name not in workloads.named([*workloads.GROUPS])]
    assert all(f"| `{name}` |" in PAGE for name in (*names, *workloads.GROUPS))


def test_every_peer_is_asked_by_a_name_of_its_own():
    labels = [entry.label for entry in CATALOGUE.values()]
    assert len(labels) == len(set(labels))
