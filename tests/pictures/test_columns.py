"""Positions in a row."""

from __future__ import annotations

from wend.pictures.columns import assign_columns
from wend.pictures.layers import Edge, order_layers


def test_a_chain_is_straight() -> None:
    widths = [10.0, 60.0, 30.0]
    edges = [Edge(0, 5.0, 1, 30.0, 0), Edge(1, 30.0, 2, 15.0, 1)]
    layers = order_layers([0, 1, 2], widths, edges, 4.0)
    assert assign_columns(layers, 8.0) == 60.0
    assert [layer[0].x for layer in layers] == [25.0, 0.0, 15.0]


def test_a_line_that_passes_is_straight() -> None:
    widths = [100.0, 100.0, 100.0, 100.0]
    edges = [Edge(0, 50.0, 1, 50.0, 0), Edge(1, 50.0, 2, 50.0, 1), Edge(0, 50.0, 3, 50.0, 0)]
    layers = order_layers([0, 1, 2, 3], widths, edges, 4.0)
    assign_columns(layers, 8.0)
    passing = [slot for layer in layers for slot in layer if slot.box < 0]
    assert len(passing) == 2
    assert abs(passing[0].x - passing[1].x) < 2.0


def test_nothing_is_no_wide() -> None:
    assert assign_columns([], 8.0) == 0.0
