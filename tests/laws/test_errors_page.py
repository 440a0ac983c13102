"""`docs/errors.md` shows what users see: mistakes are made, messages compared, cures run."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.helpers.golden import Golden

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
FILE = "mistake.py"  # as which a program of the page is run
_SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_TEXT = re.compile(r"```text\n(.*?)```", re.DOTALL)


class Section(NamedTuple):
    title: str
    body: str


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def sections() -> list[Section]:
    return [Section(title, body) for title, body in _SECTION.findall(page())]


def run(code: str, scope: dict[str, Any]) -> None:
    """Run a program of the page; its source is to be found, as that of a file is."""
    linecache.cache[FILE] = len(code), None, code.splitlines(keepends=True), FILE
    exec(compile(code, FILE, "exec"), scope)


def test_there_are_enough() -> None:
    assert len(sections()) >= 12


@pytest.mark.sampled(3)
@pytest.mark.parametrize("section", sections(), ids=lambda section: section.title)
def test_section(section: Section, golden: Golden) -> None:
    mistake, *cures = _PYTHON.findall(section.body)
    (text,) = _TEXT.findall(section.body)
    scope: dict[str, Any] = {"__name__": FILE}
    imports = _PYTHON.search(page())
    assert imports is not None
    run(imports[1], scope)
    with pytest.raises(Exception) as caught:
        run(mistake, scope)
    notes = getattr(caught.value, "__notes__", [])
    message = "\n".join([f"{type(caught.value).__name__}: {caught.value}", *notes, ""])
    if golden.update:
        new = section.body.replace(f"```text\n{text}```", f"```text\n{message}```")
        PAGE.write_text(page().replace(section.body, new), encoding="utf-8")
        text = message
    assert message == text
    assert cures
    for cure in cures:
        run(cure, scope)
