"""A self-contained HTML page about a function: pictures, source and texts."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Sequence

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph
from wend.pictures.arrange import arrange
from wend.pictures.letters import escaped
from wend.pictures.sketch import sketch
from wend.pictures.svg import resource_text, svg_of

_CONTEXT_LINES = 2  # source lines shown before and after those that became nodes
_MAX_DRAWN_NODES = 2000  # larger graphs are not drawn
# A page stays below 2 MB: characters of all pictures, and of all texts.
_MAX_PICTURE_CHARS, _MAX_TEXT_CHARS = 1_100_000, 700_000


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of a page.

    Attributes:
        title: its heading.
        about: a short description beside the heading.
        content: a graph to draw, or a text.
        is_open: whether it is unfolded initially.
    """

    title: str
    about: str
    content: Graph | str
    is_open: bool = False


def to_page(title: str, about: str, facts: Sequence[str], sections: Sequence[PageSection]) -> str:
    """Return a page.

    Args:
        title: its title.
        about: the line below the title.
        facts: further lines.
        sections: the sections, in order.
    """
    graphs = [section.content for section in sections if isinstance(section.content, Graph)]
    pictures = _draw_graphs(sections)
    max_chars = _MAX_TEXT_CHARS // max(1, len(sections) - len(graphs))
    style = resource_text("page.css") + resource_text("graph.css")
    fact_items = "".join(f"<li>{escaped(fact)}</li>" for fact in facts)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{escaped(title)}</title>",
        f"<style>{style}</style></head><body>",
        f"<header><h1>{escaped(title)}</h1><p>{escaped(about)}</p>",
        f'<ul class="facts">{fact_items}</ul></header>' if fact_items else "</header>",
        '<main><div id="stages">',
        *(_section(section, pictures.get(section.content), max_chars) for section in sections),
        "</div>",
        *_source_lines(graphs),
        f"</main><script>{resource_text('page.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _draw_graphs(sections: Sequence[PageSection]) -> dict[Graph | str, str]:
    """Return the pictures of the graphs that fit, open sections first."""
    pictures: dict[Graph | str, str] = {}
    remaining_chars = _MAX_PICTURE_CHARS
    for section in sorted(sections, key=lambda section: not section.is_open):
        graph = section.content
        if isinstance(graph, str) or graph.count() > _MAX_DRAWN_NODES:
            continue
        drawing = sketch(graph)
        arrange(drawing)
        svg = svg_of(drawing, graph, folds=True)
        if len(svg) <= remaining_chars:
            pictures[graph] = svg
            remaining_chars -= len(svg)
    return pictures


def _section(section: PageSection, picture: str | None, max_chars: int) -> str:
    about = f" <span>{escaped(section.about)}</span>" if section.about else ""
    unfolded = " open" if section.is_open else ""
    head = f"<details{unfolded}><summary>{escaped(section.title)}{about}</summary>\n"
    if picture is not None:
        return f'{head}<div class="scroll">{picture}</div></details>'
    if isinstance(section.content, Graph):
        return f"{head}<p>too large for a page: <code>wend show --svg</code> draws it</p></details>"
    text = _shortened(section.content, max_chars)
    return f'{head}<div class="scroll"><pre>{text}</pre></div></details>'


def _shortened(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return escaped(text)
    shown = text[:max_chars].rpartition("\n")[0]
    remaining_lines = text.count("\n") - shown.count("\n")
    return escaped(f"{shown}\n… and {remaining_lines} more lines: `wend show --stage` prints them")


def _source_lines(graphs: Iterable[Graph]) -> Iterator[str]:
    """Yield the user's lines that became nodes, with context."""
    used: dict[str, set[int]] = {}
    for graph in graphs:
        for node in graph.walk():
            if node.source is not None and linecache.getline(node.source.file, node.source.line):
                used.setdefault(node.source.file, set()).add(node.source.line)
    if not used:
        return
    yield '<div id="source">'
    for file, lines in used.items():
        yield f"<h2>{escaped(file)}</h2>"
        yield from _lines(file, lines)
    yield "</div>"


def _lines(file: str, used: set[int]) -> Iterator[str]:
    last = len(linecache.getlines(file))
    shown = {line + k for line in used for k in range(-_CONTEXT_LINES, _CONTEXT_LINES + 1)}
    before = 0
    for line in sorted(number for number in shown if 1 <= number <= last):
        if before and line > before + 1:
            yield '<div class="gap">⋯</div>'
        before = line
        text = escaped(linecache.getline(file, line).rstrip("\n"))
        facts = f' used" data-line="{escaped(f"{file}:{line}")}"' if line in used else '"'
        yield f'<div class="line{facts}><b>{line}</b>{text}</div>'
