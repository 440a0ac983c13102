"""Pictures of graphs as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.programs import PROGRAMS, Program
from wend.ir.graph import Graph
from wend.ir.printer import node_texts
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.pictures.arrange import arrange
from wend.pictures.boxes import PORTS, Box, Drawing
from wend.pictures.sketch import sketch
from wend.pictures.words import is_number

SVG = "{http://www.w3.org/2000/svg}"


def graphs(program: Program) -> Iterator[Graph]:
    """What is recorded, and the gradient as it runs."""
    yield wend.function(program.fun).get_concrete_function(*program.args).graph
    if np.asarray(program.args[0]).dtype.kind == "f":
        slope = wend.grad(program.fun).get_concrete_function(*program.args)
        yield run_passes(slope.graph, OPTIMIZE)


def titles(svg: str) -> list[str]:
    """What is told of each node."""
    root = ET.fromstring(svg)
    return [title.text or "" for title in root.iter(f"{SVG}title")][1:]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_every_node_is_there_once(program: Program) -> None:
    for graph in graphs(program):
        texts = node_texts(graph)
        expected = [
            texts[node] + (f"\n{node.source.short}" if node.source else "")
            for node in graph.walk()
            if not is_number(node)
        ]
        assert sorted(titles(graph.to_svg())) == sorted(expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_boxes_are_inside_and_apart(program: Program) -> None:
    for graph in graphs(program):
        drawing = sketch(graph)
        arrange(drawing)
        check_places(drawing)


def check_places(drawing: Drawing) -> None:
    areas = [area(box, drawing) for box in drawing.boxes]
    for left, top, right, bottom in areas:
        assert left >= 0.0
        assert top >= drawing.top
        assert right <= drawing.width
        assert bottom <= drawing.height
    for number, one in enumerate(areas):
        for other in areas[:number]:
            beside = one[2] <= other[0] or other[2] <= one[0]
            assert beside or one[3] <= other[1] or other[3] <= one[1]
    for box in drawing.boxes:
        for inner in box.inner:
            assert inner.x + inner.width <= box.width
            assert inner.y >= box.head
            assert inner.y + inner.height <= box.height
            check_places(inner)
    for wire in drawing.wires:
        for segment in wire.segments:
            assert segment.row + 1 < len(drawing.tops)
            assert 0.0 <= min(segment.start, segment.end)
            assert max(segment.start, segment.end) <= drawing.width


def area(box: Box, drawing: Drawing) -> tuple[float, float, float, float]:
    """With the labels below it."""
    top = drawing.tops[box.row]
    return box.x, top, box.x + box.width, top + box.height + (PORTS if box.outs else 0.0)


def test_names_and_texts_are_escaped() -> None:
    fun = wend.function(lambda x: x + 1.0, name="a<b> & 'c'")
    graph = fun.get_concrete_function({"<k>&": 1.0}["<k>&"]).graph
    svg = graph.to_svg()
    assert ET.fromstring(svg).find(f"{SVG}title").text == "a<b> & 'c'"  # type: ignore[union-attr]

    def labelled(tree: Any) -> Any:
        return tree["<&\x00>"] * 2.0

    odd = wend.function(labelled).get_concrete_function({"<&\x00>": 1.0}).graph
    ET.fromstring(odd.to_svg())


def test_what_a_loop_keeps_is_marked() -> None:
    def grown(x: Any) -> Any:
        while x < 10.0:
            x = x * wnp.sin(x) + 1.0
        return x

    plain = wend.function(grown).get_concrete_function(2.0).graph.to_svg()
    assert "keeps" not in plain
    svg = wend.grad(grown).get_concrete_function(2.0).graph.to_svg()
    assert "keeps x f64[], 8 bytes a trip" in svg
    assert re.search(r'class="tape".*?list_push', svg, re.DOTALL)
    assert '<path class="w"' in svg


def test_numbers_stand_where_they_are_used() -> None:
    svg = wend.function(lambda x: 2.0 * x - 0.5).get_concrete_function(1.0).graph.to_svg()
    assert "mul(·, 2.0)" in svg or "mul(2.0, ·)" in svg
    assert "sub(·, 0.5)" in svg
    assert not any("constant()" in title for title in titles(svg))


def test_an_empty_graph_and_results_without_nodes() -> None:
    for fun in (lambda x: x, lambda x: 3.0, lambda x: None, lambda x: (x, x)):
        ET.fromstring(wend.function(fun).get_concrete_function(1.0).graph.to_svg())


def test_it_refers_to_nothing_else() -> None:
    svg = wend.function(lambda x: x * x).get_concrete_function(1.0).graph.to_svg()
    assert re.findall(r"https?://[^\"]*|href|url\(", svg) == ["http://www.w3.org/2000/svg"]


def test_notebooks_show_it_and_very_large_graphs_as_text() -> None:
    concrete = wend.function(lambda x: x * x).get_concrete_function(np.ones(3))
    assert "<svg" in concrete._repr_html_()
    assert concrete._repr_html_() == concrete.graph._repr_html_()

    def long(x: Any) -> Any:
        for _ in wend.unroll(range(600)):
            x = wnp.sin(x)
        return x

    html = wend.function(long).get_concrete_function(1.0).graph._repr_html_()
    assert html.startswith("<pre>")
    assert "sin" in html


def test_boxes_tell_what_was_moved_and_what_is_computed_again() -> None:
    def root(a: Any) -> Any:
        x = a
        while np.abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    recorded = wend.grad(root).get_concrete_function(2.0).graph
    svg = run_passes(recorded, OPTIMIZE).to_svg()
    assert svg.count("moved out of the loop") == 1
    assert svg.count("computed again") == 1
    assert "computed again" not in wend.function(root).get_concrete_function(2.0).graph.to_svg()


def test_what_only_the_backward_pass_needs_is_not_computed_again() -> None:
    @wend.function
    def scaled(x: Any) -> Any:
        return x / wnp.sum(x)

    recorded = wend.grad(lambda x, y: wnp.sum(scaled(x) * y)).get_concrete_function(
        np.ones(100), np.ones(100)
    )
    graph = run_passes(recorded.graph, OPTIMIZE)
    assert "computed again" not in graph.to_svg()
