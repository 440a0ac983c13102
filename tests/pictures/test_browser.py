"""Pages in a browser: folding, lines of the source, light and dark; skipped where there is none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers import lstm
from tests.helpers.browser import document_after
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.pictures.page import PageSection, to_page


def walked(x: Any, n: Any) -> Any:
    total = 0.0
    for k in range(n):
        if x[k] > 0:
            y = x[k]
            while y > 1.0:
                y = np.sqrt(y) - 0.1
            total = total + y
    return total


def told(tmp_path: Path, script: str, fun: Any, *args: Any) -> Any:
    """What a script in a page of a function's gradient gives: a call of `tell`."""
    recorded = wend.grad(fun).get_concrete_function(*args).graph
    graph = run_passes(recorded, OPTIMIZE)
    page = to_page("page", "", [], [PageSection("picture", "", graph, is_open=True)])
    tell = "const tell = (x) => { document.title = JSON.stringify(x); };"
    watch = "window.addEventListener('error', (event) => tell(event.message));"
    page = page.replace("<script>", f"<script>{watch}", 1)
    page = page.replace("</body>", f"<script>{{{tell}{script}}}</script></body>")
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    title = re.search(r"<title>(.*?)</title>", document_after(file), re.DOTALL)
    assert title is not None
    return json.loads(title[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.parametrize(
    ("fun", "args"),
    [(walked, (np.ones(5), 3)), (lstm.loss, (lstm.start(), np.ones((6, 4, 8)), np.ones((4, 4))))],
)
def test_unfolded_again_a_picture_is_what_it_was(tmp_path: Path, fun: Any, args: Any) -> None:
    script = """
        const svg = document.querySelector("svg");
        const before = svg.outerHTML, height = +svg.getAttribute("height");
        const [foldAll, unfoldAll] = document.querySelectorAll("button");
        foldAll.click();
        const folded = +svg.getAttribute("height");
        unfoldAll.click();
        tell([svg.outerHTML.replaceAll(' class=""', '') === before.replaceAll(' class=""', ''),
              height, folded]);
    """
    same, height, folded = told(tmp_path, script, fun, *args)
    assert same
    assert folded < height / 2


def test_a_folded_box_hides_what_is_inside_and_the_rest_moves_up(tmp_path: Path) -> None:
    script = """
        const fold = document.querySelector(".fold"), box = fold.parentElement;
        const below = [...document.querySelectorAll("svg > .result")].pop();
        const top = () => below.getBoundingClientRect().top;
        const before = top(), inner = box.querySelector(".region");
        fold.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
        tell([before - top() > 100, getComputedStyle(inner).display,
              fold.getAttribute("aria-expanded"), box.getBoundingClientRect().height < 120]);
    """
    assert told(tmp_path, script, walked, np.ones(5), 3) == [True, "none", "false", True]


def test_a_line_shows_its_nodes_and_a_node_its_line(tmp_path: Path) -> None:
    script = """
        const line = [...document.querySelectorAll(".line.used")].find(
            (line) => line.textContent.includes("np.sqrt"));
        const over = (x) => x.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
        over(line);
        const nodes = [...document.querySelectorAll("g.hit")];
        const all = nodes.length > 1 && nodes.every((n) => n.dataset.line === line.dataset.line);
        over(document.querySelector("header"));
        const none = document.querySelectorAll(".hit").length;
        over(nodes[0].querySelector("rect"));
        tell([all, none, line.classList.contains("hit")]);
    """
    assert told(tmp_path, script, walked, np.ones(5), 3) == [True, 0, True]


def test_texts_fit_into_their_boxes(tmp_path: Path) -> None:
    # Where the fonts that are asked for are not there, the browser takes another of equal letters.
    script = """
        const wide = [];
        for (const text of document.querySelectorAll("svg text")) {
            const box = text.parentElement.closest("g:not(.outs):not(.notes)");
            const rect = box && [...box.children].find((x) => x.matches("rect"));
            if (rect && text.getBBox().width > +rect.getAttribute("width") + 2)
                wide.push(text.textContent);
        }
        tell(wide);
    """
    args = (lstm.start(), np.ones((6, 4, 8)), np.ones((4, 4)))
    assert told(tmp_path, script, lstm.loss, *args) == []


@pytest.mark.parametrize(("scheme", "expected"), [("light", 255), ("dark", 20)])
def test_colours_follow_the_readers_screen(tmp_path: Path, scheme: str, expected: int) -> None:
    graph = wend.function(walked).get_concrete_function(np.ones(5), 3).graph
    page = to_page("page", "", [], [PageSection("picture", "", graph, is_open=True)])
    script = "document.title = getComputedStyle(document.querySelector('svg')).backgroundColor;"
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    number = {"dark": 0, "light": 1}[scheme]
    document = document_after(file, f"--blink-settings=preferredColorScheme={number}")
    assert f"<title>rgb({expected}, " in document
