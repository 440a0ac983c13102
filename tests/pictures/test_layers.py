"""Rows of boxes, and the order in them."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wend.pictures.columns import set_columns
from wend.pictures.layers import Line, places_of, rows_of

GAP, THIN = 10.0, 4.0


@st.composite
def drawings(draw: Any) -> tuple[list[float], list[Line]]:
    """Boxes of any width, each below some of those before it."""
    widths = draw(st.lists(st.sampled_from([10.0, 40.0, 300.0]), max_size=25))
    lines = []
    for end in range(1, len(widths)):
        for start in draw(st.lists(st.integers(0, end - 1), max_size=3)):
            lines.append(Line(start, widths[start] / 2, end, widths[end] / 3, start))
    return widths, lines


@given(drawings())
def test_every_line_goes_down(drawn: tuple[list[float], list[Line]]) -> None:
    widths, lines = drawn
    rows = rows_of(widths, lines, 400.0, GAP)
    assert all(rows[line.start] < rows[line.end] for line in lines)
    assert sorted({*rows}) == list(range(len({*rows})))


@given(drawings())
def test_rows_are_narrow(drawn: tuple[list[float], list[Line]]) -> None:
    widths, lines = drawn
    rows = rows_of(widths, lines, 400.0, GAP)
    for row in {*rows}:
        mine = [width for width, own in zip(widths, rows, strict=True) if own == row]
        assert len(mine) == 1 or sum(mine) <= 400.0


@given(drawings())
def test_places_have_all_boxes_once_and_do_not_overlap(
    drawn: tuple[list[float], list[Line]],
) -> None:
    widths, lines = drawn
    rows = rows_of(widths, lines, 400.0, GAP)
    layers = places_of(rows, widths, lines, THIN)
    width = set_columns(layers, GAP)
    assert sorted(p.box for layer in layers for p in layer if p.box >= 0) == [*range(len(widths))]
    for number, layer in enumerate(layers):
        assert all(place.row == number for place in layer)
        assert all(link.end.row == number + 1 for place in layer for link in place.below)
        for place, following in itertools.pairwise(layer):
            assert place.x + place.width + GAP <= following.x + 1e-6
        assert all(-1e-6 <= place.x and place.x + place.width <= width + 1e-6 for place in layer)


@given(drawings())
def test_each_line_arrives_where_it_is_to(drawn: tuple[list[float], list[Line]]) -> None:
    widths, lines = drawn
    layers = places_of(rows_of(widths, lines, 400.0, GAP), widths, lines, THIN)
    boxes = {place.box: place for layer in layers for place in layer if place.box >= 0}
    for line in lines:
        reached, waiting = (
            set(),
            [link for link in boxes[line.start].below if link.line == line.key],
        )
        while waiting:
            link = waiting.pop()
            reached.add(link.end.box)
            if link.end.box < 0:
                waiting += link.end.below
        assert line.end in reached


def test_a_line_across_rows_shares_its_places() -> None:
    chain = [Line(0, 5.0, 1, 5.0, 0), Line(1, 5.0, 2, 5.0, 1), Line(2, 5.0, 3, 5.0, 2)]
    lines = [*chain, Line(0, 5.0, 2, 5.0, 0), Line(0, 5.0, 3, 5.0, 0)]
    layers = places_of(rows_of([10.0] * 4, lines, 100.0, GAP), [10.0] * 4, lines, THIN)
    assert [len(layer) for layer in layers] == [1, 2, 2, 1]


def test_crossings_that_need_not_be_are_not() -> None:
    # 0 → 3 and 1 → 2: drawn in the order of the boxes these would cross
    lines = [Line(0, 5.0, 3, 5.0, 0), Line(1, 5.0, 2, 5.0, 1)]
    layers = places_of([0, 0, 1, 1], [10.0] * 4, lines, THIN)
    above, below = ([place.box for place in layer] for layer in layers)
    assert (above.index(0) < above.index(1)) == (below.index(3) < below.index(2))
