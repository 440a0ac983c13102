"""Every decision that code or a page cites has a page of its own, and the index lists it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
INDEX = DECISIONS / "README.md"
CITED = re.compile(r"\bD(\d{1,2})\b")
MOST_LINES, MOST_COLUMNS = 45, 100

PAGES = sorted(DECISIONS.glob("D*.md"))
SOURCES = [file for folder in ("src", "tests") for file in sorted((ROOT / folder).rglob("*.py"))]
MARKDOWN = sorted((ROOT / "docs").rglob("*.md"))


def number_of(page: Path) -> int:
    found = re.fullmatch(r"D(\d\d)-[a-z0-9-]+\.md", page.name)
    assert found, f"{page.name} is not called Dnn-short-slug.md"
    return int(found[1])


def prose_of_python(text: str) -> Iterator[str]:
    """Comments and docstrings: what else is called D1 may be a variable."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield docstring


def prose_of_markdown(text: str) -> Iterator[str]:
    """All but code, and what figures and diagrams draw."""
    yield re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def cited_in(file: Path) -> set[int]:
    text = file.read_text(encoding="utf-8")
    if not CITED.search(text):
        return set()
    prose = prose_of_python(text) if file.suffix == ".py" else prose_of_markdown(text)
    return {int(number) for part in prose for number in CITED.findall(part)}


def test_what_counts_as_a_citation() -> None:
    code = 'D1 = 1\n"""As (D2) says."""\nx = "D3"  # not D4, but D123\n'
    assert CITED.findall(" ".join(prose_of_python(code))) == ["4", "2"]
    page = "By D5, `D6` and 2D7.\n```python\nD8 = 1  # (D9)\n```\n"
    assert CITED.findall(" ".join(prose_of_markdown(page))) == ["5"]


def test_every_decision_that_is_cited_has_one_page() -> None:
    pages = defaultdict(list)
    for page in PAGES:
        pages[number_of(page)].append(page.name)
    assert {number: names for number, names in pages.items() if len(names) > 1} == {}
    cited = {file: cited_in(file) for file in (*SOURCES, *MARKDOWN)}
    assert any(cited[file] for file in SOURCES)
    assert {
        str(file.relative_to(ROOT)): sorted(f"D{number}" for number in numbers - pages.keys())
        for file, numbers in cited.items()
        if numbers - pages.keys()
    } == {}


def test_every_decision_is_cited_where_it_matters() -> None:
    cited = set[int]()
    for file in (*SOURCES, *MARKDOWN):
        if file.parent != DECISIONS:
            cited |= cited_in(file)
    assert [page.name for page in PAGES if number_of(page) not in cited] == []


def test_the_index_lists_every_page_by_its_title() -> None:
    rows = re.findall(
        r"^\| \[D(\d+)\]\((.+?)\) \| (.+?) \| .+ \|$", INDEX.read_text("utf-8"), re.MULTILINE
    )
    titles = {page: page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES}
    expected = [(page.name, title) for page, title in titles.items()]
    assert [(file, f"# D{number}: {title}") for number, file, title in rows] == expected
    assert [int(number) for number, _, _ in rows] == [number_of(page) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_context_choice_and_cost_on_one_screen(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    headings = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert headings[:3] == ["Context", "Choice", "Cost"]
    assert headings[3:] in ([], ["See"])
    assert len(lines) <= MOST_LINES
    prose = [line for line in lines if not line.startswith("|")]
    assert [line for line in prose if len(line) > MOST_COLUMNS] == []


@pytest.mark.parametrize("page", [INDEX, *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
    named = re.findall(r"\[D(\d+)\]\(D(\d\d)-", page.read_text(encoding="utf-8"))
    assert [pair for pair in named if int(pair[0]) != int(pair[1])] == []
