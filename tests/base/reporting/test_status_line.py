"""The line below all else: on a terminal only, with rich or without."""

from __future__ import annotations

import atexit
import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from wend.base.reporting.status_line import Status, _ErasingStream, reporting


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """A terminal for all that is written from here on, without rich."""
    found = _Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("COLUMNS", "20")
    return found


def test_quiet_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with reporting() as report:
        report("half")
    assert stream.getvalue() == ""


def test_a_plain_line_is_cut_to_the_width_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = on_terminal(monkeypatch)
    with reporting() as report:
        report("half")
        report("a long line of text that does not end")
    assert stream.getvalue() == "\rhalf\x1b[K\ra long line of text\x1b[K\r\x1b[K"


def test_it_is_removed_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = on_terminal(monkeypatch)
    with pytest.raises(KeyboardInterrupt), reporting() as report:
        report("half")
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[K")


def test_rich_draws_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    stream = _Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    status, owner = Status(), object()
    status.show(owner, [("half", "bold"), (" of it [all]", "")], 0.0)
    status.drop(owner)
    assert "\x1b[1mhalf\x1b[0m of it [all]" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    "write",
    [
        lambda: print("hello"),
        lambda: print("hello", file=sys.stderr),
        lambda: sys.stdout.writelines(["hello\n"]),
    ],
)
def test_what_others_write_finds_a_clean_line(
    write: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = on_terminal(monkeypatch)
    with reporting() as report:
        report("half")
        write()
        assert sys.stdout is sys.stderr is stream
        report("all")
    assert stream.getvalue() == "\rhalf\x1b[K\r\x1b[Khello\n\rall\x1b[K\r\x1b[K"
    assert sys.stdout is sys.stderr is stream


def test_lines_stand_in_the_order_of_their_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = on_terminal(monkeypatch)
    status, outer, inner, later = Status(), "outer", "inner", "later"
    status.show(outer, [("a", "")], 1.0)
    status.show(inner, [("b", "")], 2.0)
    status.show(inner, [("c", "")], 2.0)
    status.drop(inner)
    status.show(later, [("d", "")], 3.0)
    status.show(outer, [("e", "")], 1.0)  # so what began later is over
    status.drop(outer)
    shown = [text.removesuffix("\x1b[K") for text in stream.getvalue().split("\r")]
    assert shown == ["", "a", "a  ·  b", "a  ·  c", "a", "a  ·  d", "e", ""]


def test_what_was_redirected_meanwhile_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = on_terminal(monkeypatch)
    status, other = Status(), io.StringIO()
    status.show("owner", [("half", "")], 0.0)
    shy = sys.stdout
    sys.stdout = other
    status.drop("owner")
    assert sys.stdout is other
    sys.stdout = shy  # as who redirected it puts back
    status.show("owner", [("half", "")], 0.0)
    assert isinstance(sys.stdout, _ErasingStream)
    assert sys.stdout.stream is stream
    status.drop("owner")
    assert sys.stdout is stream


def test_the_end_of_the_process_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = on_terminal(monkeypatch)
    registered: list[Any] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    status = Status()
    status.show("owner", [("half", "")], 0.0)
    (at_exit,) = registered
    at_exit()
    assert stream.getvalue().endswith("\r\x1b[K")
    assert sys.stdout is stream
