"""One HTML file about a function, which needs no other: pictures, source and texts."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wend.ir.graph import Graph
from wend.pictures.arrange import arrange
from wend.pictures.letters import escaped
from wend.pictures.sketch import sketch
from wend.pictures.svg import beside, svg_of

_AROUND = 2  # lines of source before and after those that became nodes
_MOST_NODES = 2000  # of a graph that is drawn
# So that a page has less than 2 MB: letters of all pictures, and of all texts
_MOST_OF_PICTURES, _MOST_OF_TEXTS = 1_100_000, 700_000


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading.
        about: a few words beside that.
        content: a graph, which is drawn, or a text.
        is_open: whether a reader sees it without unfolding it.
    """

    title: str
    about: str
    content: Graph | str
    is_open: bool = False


def to_page(title: str, about: str, facts: Sequence[str], sections: Sequence[Section]) -> str:
    """A page.

    Args:
        title: what it is about.
        about: the line below the title.
        facts: further lines.
        sections: what it shows, in order.
    """
    graphs = [section.content for section in sections if isinstance(section.content, Graph)]
    pictures = _drawn(sections)
    most = _MOST_OF_TEXTS // max(1, len(sections) - len(graphs))
    style = beside("page.css") + beside("graph.css")
    told = "".join(f"<li>{escaped(fact)}</li>" for fact in facts)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{escaped(title)}</title>",
        f"<style>{style}</style></head><body>",
        f"<header><h1>{escaped(title)}</h1><p>{escaped(about)}</p>",
        f'<ul class="facts">{told}</ul></header>' if told else "</header>",
        '<main><div id="stages">',
        *(_section(section, pictures.get(section.content), most) for section in sections),
        "</div>",
        *_sources(graphs),
        f"</main><script>{beside('page.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _drawn(sections: Sequence[Section]) -> dict[Graph | str, str]:
    """The pictures of graphs, those first that are open; without those that are too large."""
    pictures: dict[Graph | str, str] = {}
    room = _MOST_OF_PICTURES
    for section in sorted(sections, key=lambda section: not section.is_open):
        graph = section.content
        if isinstance(graph, str) or graph.count() > _MOST_NODES:
            continue
        drawing = sketch(graph)
        arrange(drawing)
        svg = svg_of(drawing, graph, folds=True)
        if len(svg) <= room:
            pictures[graph] = svg
            room -= len(svg)
    return pictures


def _section(section: Section, picture: str | None, most: int) -> str:
    about = f" <span>{escaped(section.about)}</span>" if section.about else ""
    unfolded = " open" if section.is_open else ""
    head = f"<details{unfolded}><summary>{escaped(section.title)}{about}</summary>\n"
    if picture is not None:
        return f'{head}<div class="scroll">{picture}</div></details>'
    if isinstance(section.content, Graph):
        return f"{head}<p>too large for a page: <code>wend show --svg</code> draws it</p></details>"
    text = _shortened(section.content, most)
    return f'{head}<div class="scroll"><pre>{text}</pre></div></details>'


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return escaped(text)
    shown = text[:most].rpartition("\n")[0]
    left = text.count("\n") - shown.count("\n")
    return escaped(f"{shown}\n… and {left} more lines: `wend show --stage` prints them")


def _sources(graphs: Iterable[Graph]) -> Iterator[str]:
    """The user's lines that became nodes, with some around them."""
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
    near = {line + k for line in used for k in range(-_AROUND, _AROUND + 1)}
    before = 0
    for line in sorted(number for number in near if 1 <= number <= last):
        if before and line > before + 1:
            yield '<div class="gap">⋯</div>'
        before = line
        text = escaped(linecache.getline(file, line).rstrip("\n"))
        facts = f' used" data-line="{escaped(f"{file}:{line}")}"' if line in used else '"'
        yield f'<div class="line{facts}><b>{line}</b>{text}</div>'
