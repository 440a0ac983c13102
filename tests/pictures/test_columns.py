"""Positions in a row."""

from __future__ import annotations

from wend.pictures.columns import set_columns
from wend.pictures.layers import Line, places_of


def test_a_chain_is_straight() -> None:
    widths = [10.0, 60.0, 30.0]
    lines = [Line(0, 5.0, 1, 30.0, 0), Line(1, 30.0, 2, 15.0, 1)]
    layers = places_of([0, 1, 2], widths, lines, 4.0)
    assert set_columns(layers, 8.0) == 60.0
    assert [layer[0].x for layer in layers] == [25.0, 0.0, 15.0]


def test_a_line_that_passes_is_straight() -> None:
    widths = [100.0, 100.0, 100.0, 100.0]
    lines = [Line(0, 50.0, 1, 50.0, 0), Line(1, 50.0, 2, 50.0, 1), Line(0, 50.0, 3, 50.0, 0)]
    layers = places_of([0, 1, 2, 3], widths, lines, 4.0)
    set_columns(layers, 8.0)
    passing = [place for layer in layers for place in layer if place.box < 0]
    assert len(passing) == 2
    assert abs(passing[0].x - passing[1].x) < 2.0


def test_nothing_is_no_wide() -> None:
    assert set_columns([], 8.0) == 0.0
