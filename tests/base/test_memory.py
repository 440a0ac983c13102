"""Policies of `memory=`: their texts, and what is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import wend
from wend.base.memory import memory_text, parsed, shown, shown_size, tape_limit_bytes

OBJECTS = [wend.Every(1), wend.Every(64), wend.Checkpoints(1), wend.Checkpoints(64)]


@pytest.mark.parametrize("policy", OBJECTS, ids=str)
def test_the_text_of_a_policy_parses_back(policy: Any) -> None:
    assert parsed(memory_text(policy)) == policy
    assert memory_text(memory_text(policy)) == str(policy)
    assert shown(str(policy)) == f"wend.{policy}"


@pytest.mark.parametrize("name", ["keep", "offload", "recompute", "spill", "thin"])
def test_a_name_is_its_text(name: str) -> None:
    assert memory_text(name) == parsed(name) == name
    assert shown(name) == f'"{name}"'


@pytest.mark.parametrize("trips", [0, -3, 1.5, True, "4"])
def test_a_number_of_trips_is_a_positive_integer(trips: Any) -> None:
    with pytest.raises(ValueError, match="the number of trips must be a positive integer"):
        wend.Every(trips)


USES = {
    "while_loop": lambda memory: wend.while_loop(lambda x: x < 2.0, abs, 5.0, memory=memory),
    "fori_loop": lambda memory: wend.fori_loop(0, 3, lambda i, x: x, 5.0, memory=memory),
    "scan": lambda memory: wend.scan(lambda c, x: (c, x), 0.0, None, 3, memory=memory),
    "map": lambda memory: wend.map(abs, [1.0], memory=memory),
    "loop": lambda memory: wend.loop(range(3), memory=memory),
    "config": lambda memory: wend.config(memory=memory),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_misuse_is_refused_by_name(use: Any) -> None:
    with pytest.raises(ValueError, match=r"no policy memory='all'.*\n.*wend.Every") as caught:
        use("all")
    for name in ("keep", "offload", "recompute", "spill", "thin"):
        assert f'"{name}"' in str(caught.value)
    with pytest.raises(TypeError, match="memory must be a policy, not 3"):
        use(3)


def test_the_environment_sets_the_policy_of_the_process() -> None:
    code = "import wend; from wend.base.config import settings; print(repr(settings().memory))"
    environment = {**os.environ, "WEND_MEMORY": "Every(7)"}
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, env=environment, check=True, capture_output=True, text=True)
    assert result.stdout == "Every(trips=7)\n"


SIZES = {1000: 1000, "500": 500, "2 kB": 2000, "1.5KiB": 1536, "2GiB": 2**31, "3MB": 3 * 10**6}


@pytest.mark.parametrize("size", SIZES)
def test_a_limit_is_a_number_or_a_text_with_a_unit(size: Any) -> None:
    assert tape_limit_bytes(size) == SIZES[size]
    assert tape_limit_bytes(None) == 0


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "", "0", "-3MB", "2x", "MB", "1.2.3kB"])
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="is no size"):
        wend.config(tape_limit=size)


def test_sizes_are_shown_in_the_largest_unit() -> None:
    assert [shown_size(n) for n in (7, 1024, 2**31)] == ["7 bytes", "1 KiB", "2 GiB"]
