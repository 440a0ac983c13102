"""`python -m wend cache`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wend
from wend.cli import main
from wend.runtime.disk_cache import DiskCache


def test_ls_and_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DiskCache(tmp_path).keep(b"key", bytes(2000))
    with wend.config(cache_dir=str(tmp_path)):
        assert main(["cache", "ls"]) == 0
        listed = capsys.readouterr().out
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d       2\.0 KiB  [0-9a-f]{40}\.code\n", listed)
        assert listed.endswith(f"1 file, 1 of 262144 KiB, in {tmp_path}\n")
        assert main(["cache", "clear"]) == 0
        assert capsys.readouterr().out == f"1 file removed from {tmp_path}\n"
        assert main(["cache", "ls"]) == 0
        assert capsys.readouterr().out == f"0 files, 0 of 262144 KiB, in {tmp_path}\n"


def test_without_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "ls"]) == 0
    assert capsys.readouterr().out == (
        "WEND_CACHE_DIR is empty: nothing is kept between processes\n"
    )
