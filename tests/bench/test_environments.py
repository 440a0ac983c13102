"""Where peers are found, and what the page says of them."""

import sys
from pathlib import Path

from bench import environments, workloads
from bench.peers import CATALOGUE

PAGE = (Path(__file__).parents[2] / "bench" / "README.md").read_text(encoding="utf-8")


def test_peers_are_found_where_they_are_installed(tmp_path):
    found = environments.interpreters(["wend", "python", "c"], None)
    assert found == dict.fromkeys(["wend", "python", "c"], sys.executable)
    place = environments.python_of(tmp_path / "other")
    place.parent.mkdir(parents=True)
    place.write_text("#!/bin/sh\necho '[\"catalyst\"]'\n")
    place.chmod(0o755)
    assert environments.interpreters(["catalyst"], tmp_path) == {"catalyst": str(place)}


def test_the_page_installs_what_the_command_installs():
    for packages in environments.ENVIRONMENTS.values():
        assert all(package in PAGE for package in packages)


def test_the_page_says_what_there_is():
    assert all(f"| `{name}` |" in PAGE for name in workloads.NAMES)


def test_every_peer_is_asked_by_a_name_of_its_own():
    labels = [entry.label for entry in CATALOGUE.values()]
    assert len(labels) == len(set(labels))
