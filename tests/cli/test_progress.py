"""The progress line: on a terminal only, with rich or without."""

import io
import sys

import pytest

from wend.cli.progress import progress_line


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_quiet_where_nobody_watches(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_line() as report:
        report("half")
    assert stream.getvalue() == ""


def test_plain_line_is_cut_to_the_width_and_removed(monkeypatch):
    stream = _Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("COLUMNS", "10")
    with progress_line() as report:
        report("half")
        report("a long line of text")
    assert stream.getvalue() == "\rhalf\x1b[K\ra long li\x1b[K\r\x1b[K"


def test_plain_line_is_removed_after_an_error(monkeypatch):
    stream = _Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(KeyboardInterrupt), progress_line() as report:
        report("half")
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[K")


def test_rich_line(monkeypatch):
    pytest.importorskip("rich")
    stream = _Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress_line() as report:
        report("half of it [all]")
    assert "half of it" in stream.getvalue()
