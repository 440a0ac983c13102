"""Damaged files are refused, or hold graphs that run: nothing crashes, hangs, or fails inside.

`python -m tests.helpers.mutated_files 0 20000 native log.txt` searches longer.
"""

from __future__ import annotations

import os

import pytest

from tests.helpers.mutated_files import search

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
COUNTS = {"numpy": 10_000, "native": 10_000} if IS_LONG else {"numpy": 120, "native": 60}


@pytest.mark.parametrize("backend", COUNTS)
def test_damaged_files_are_refused_or_run(backend, tmp_path):
    start = 0 if backend == "numpy" else COUNTS["numpy"]
    seeds = range(start, start + COUNTS[backend])
    counts = search(seeds, backend, tmp_path / "log.txt")
    assert counts.keys() <= {"refused", "called", "loaded", "MemoryError", "_TooSlowError"}
    assert counts["refused"] > len(seeds) // 2
    assert counts["called"] > len(seeds) // 30
