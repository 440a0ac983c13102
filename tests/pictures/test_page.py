"""Pages that need nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

import wend
from wend.cli import demo
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.pictures import page
from wend.pictures.page import PageSection, to_page

VOID = {"meta", "br"}


class Balance(HTMLParser):
    """Notes elements that are not closed where they should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def halved(x: Any) -> Any:
    while x > 1.0:
        x = x / 2.0
    return x


def page_of(*sections: PageSection) -> str:
    return to_page("<title> & co", "about", ["a fact"], sections)


def test_it_is_one_file_and_well_formed() -> None:
    graph = wend.function(halved).get_concrete_function(8.0).graph
    text = page_of(
        PageSection("picture", "", graph, is_open=True), PageSection("text", "", "a < b && c")
    )
    balance = Balance()
    balance.feed(text)
    assert balance.open == balance.wrong == []
    assert "&lt;title&gt; &amp; co" in text
    assert "a &lt; b &amp;&amp; c" in text
    assert re.findall(r"https?:[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"<link|<img|src=|href=|@import|url\(", text) == []


def test_it_has_the_lines_that_became_nodes() -> None:
    graph = wend.function(halved).get_concrete_function(8.0).graph
    text = page_of(PageSection("picture", "", graph))
    (loop,) = (node for node in graph.walk() if node.op.name == "while")
    assert loop.source is not None
    assert f"<b>{loop.source.line}</b>    while x &gt; 1.0:" in text
    assert f"<b>{loop.source.line - 1}</b>def halved(x: Any) -&gt; Any:" in text
    assert text.count(f'data-line="{loop.source}"') >= 2  # a box, and the line


def test_without_a_file_there_is_no_source() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x * x", names)
    graph = wend.function(names["f"], capture=False).get_concrete_function(1.0).graph
    assert 'id="source"' not in page_of(PageSection("picture", "", graph))


def test_texts_without_end_are_cut_and_it_is_said() -> None:
    text = "\n".join(["x" * 99] * 20_000)
    found = page_of(PageSection("text", "", text), PageSection("another", "", text))
    assert len(found) < 800_000
    shown = found.count("x" * 99) // 2
    assert found.count(f"… and {20_000 - shown} more lines") == 2


@pytest.mark.parametrize(
    ("limit", "value"), [("_MAX_DRAWN_NODES", 3), ("_MAX_PICTURE_CHARS", 1000)]
)
def test_graphs_without_end_are_not_drawn(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, limit, value)
    graph = wend.function(halved).get_concrete_function(8.0).graph
    found = page_of(PageSection("picture", "", graph))
    assert "too large for a page" in found
    assert "<svg" not in found


def test_the_demo_is_drawn_in_less_than_two_megabytes() -> None:
    pelts = demo.read_pelts()
    slope = wend.value_and_grad(demo.negative_log_likelihood, has_aux=True)
    graph = slope.get_concrete_function(demo.START, pelts, 1e-8).graph
    runs = run_passes(graph, OPTIMIZE)
    texts = [PageSection(str(k), "", "x" * 99 + "\n" * 9000) for k in range(12)]
    found = page_of(
        PageSection("recorded", "", graph), PageSection("runs", "", runs, is_open=True), *texts
    )
    assert len(found.encode()) < 2_000_000
    assert "<summary>runs</summary>\n<div" in found  # what is open comes first
    assert found.count("too large for a page") == 1
