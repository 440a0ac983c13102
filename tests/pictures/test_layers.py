"""Rows of boxes, and the order in them."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wend.pictures.columns import assign_columns
from wend.pictures.layers import Edge, assign_rows, order_layers

GAP, THIN = 10.0, 4.0


@st.composite
def drawings(draw: Any) -> tuple[list[float], list[Edge]]:
    """Boxes of any width, each below some of those before it."""
    widths = draw(st.lists(st.sampled_from([10.0, 40.0, 300.0]), max_size=25))
    edges = []
    for end in range(1, len(widths)):
        for start in draw(st.lists(st.integers(0, end - 1), max_size=3)):
            edges.append(Edge(start, widths[start] / 2, end, widths[end] / 3, start))
    return widths, edges


@given(drawings())
def test_every_line_goes_down(drawn: tuple[list[float], list[Edge]]) -> None:
    widths, edges = drawn
    rows = assign_rows(widths, edges, 400.0, GAP)
    assert all(rows[edge.start] < rows[edge.end] for edge in edges)
    assert sorted({*rows}) == list(range(len({*rows})))


@given(drawings())
def test_rows_are_narrow(drawn: tuple[list[float], list[Edge]]) -> None:
    widths, edges = drawn
    rows = assign_rows(widths, edges, 400.0, GAP)
    for row in {*rows}:
        mine = [width for width, own in zip(widths, rows, strict=True) if own == row]
        assert len(mine) == 1 or sum(mine) <= 400.0


@given(drawings())
def test_places_have_all_boxes_once_and_do_not_overlap(
    drawn: tuple[list[float], list[Edge]],
) -> None:
    widths, edges = drawn
    rows = assign_rows(widths, edges, 400.0, GAP)
    layers = order_layers(rows, widths, edges, THIN)
    width = assign_columns(layers, GAP)
    assert sorted(p.box for layer in layers for p in layer if p.box >= 0) == [*range(len(widths))]
    for number, layer in enumerate(layers):
        assert all(slot.row == number for slot in layer)
        assert all(segment.end.row == number + 1 for slot in layer for segment in slot.below)
        for slot, following in itertools.pairwise(layer):
            assert slot.x + slot.width + GAP <= following.x + 1e-6
        assert all(-1e-6 <= slot.x and slot.x + slot.width <= width + 1e-6 for slot in layer)


@given(drawings())
def test_each_line_arrives_where_it_is_to(drawn: tuple[list[float], list[Edge]]) -> None:
    widths, edges = drawn
    layers = order_layers(assign_rows(widths, edges, 400.0, GAP), widths, edges, THIN)
    boxes = {slot.box: slot for layer in layers for slot in layer if slot.box >= 0}
    for edge in edges:
        reached, waiting = (
            set(),
            [segment for segment in boxes[edge.start].below if segment.key == edge.key],
        )
        while waiting:
            segment = waiting.pop()
            reached.add(segment.end.box)
            if segment.end.box < 0:
                waiting += segment.end.below
        assert edge.end in reached


def test_a_line_across_rows_shares_its_places() -> None:
    chain = [Edge(0, 5.0, 1, 5.0, 0), Edge(1, 5.0, 2, 5.0, 1), Edge(2, 5.0, 3, 5.0, 2)]
    edges = [*chain, Edge(0, 5.0, 2, 5.0, 0), Edge(0, 5.0, 3, 5.0, 0)]
    layers = order_layers(assign_rows([10.0] * 4, edges, 100.0, GAP), [10.0] * 4, edges, THIN)
    assert [len(layer) for layer in layers] == [1, 2, 2, 1]


def test_crossings_that_need_not_be_are_not() -> None:
    # 0 → 3 and 1 → 2: drawn in the order of the boxes these would cross
    edges = [Edge(0, 5.0, 3, 5.0, 0), Edge(1, 5.0, 2, 5.0, 1)]
    layers = order_layers([0, 0, 1, 1], [10.0] * 4, edges, THIN)
    above, below = ([slot.box for slot in layer] for layer in layers)
    assert (above.index(0) < above.index(1)) == (below.index(3) < below.index(2))
