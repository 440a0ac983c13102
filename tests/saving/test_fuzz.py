"""Damaged files are refused, or hold graphs that run: nothing crashes, hangs, or fails inside."""

from __future__ import annotations

import os

import pytest

from tests.helpers.mutated_files import search

COUNT = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 150


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_damaged_files_are_refused_or_run(backend, tmp_path):
    start = 0 if backend == "numpy" else COUNT
    counts = search(range(start, start + COUNT), backend, tmp_path / "log.txt")
    assert counts.keys() <= {"refused", "called", "loaded", "MemoryError", "_TooSlowError"}
    assert counts["refused"] > COUNT // 2
    assert counts["called"] > COUNT // 20
