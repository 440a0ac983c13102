"""The parts of a drawing: boxes in rows, wires between them, drawings inside boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node
from wend.pictures import letters
from wend.pictures.layers import Edge

HEADER = 22.0  # height of a title line
DETAIL = 13.0  # height of a line of small text
PORTS = 15.0  # height of port labels, above and below a box
PAD = 12.0  # padding inside a box
ROW_GAP = 26.0  # between two rows
GAP = 16.0  # between two boxes of a row


@dataclass(frozen=True, slots=True)
class Port:
    """An end of an edge: its offset from the left end of the box, and its label."""

    x: float
    label: str = ""


@dataclass(slots=True, eq=False)
class Box:
    """A box for a node, a param or a result.

    Attributes:
        kind: "param", "result", "node", "tape", or the operation that holds the regions.
        title: its first line.
        details: further lines, in small text.
        notes: such lines about what a loop records on its tape.
        node: the node that it stands for, if any.
        ins: the ports above it.
        outs: the ports below it.
        inner: the drawings of its regions.
        is_stacked: whether the regions are stacked rather than side by side.
        line: the user's source line, as shown.
    """

    kind: str
    title: str
    details: Sequence[str] = ()
    notes: Sequence[str] = ()
    node: Node | None = None
    ins: Sequence[Port] = ()
    outs: Sequence[Port] = ()
    inner: Sequence[Drawing] = ()
    is_stacked: bool = True
    line: str = ""
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    row: int = 0

    @property
    def head(self) -> float:
        """The height without the regions."""
        above = PORTS if self.inner and self.ins else 0.0
        return above + HEADER + DETAIL * (len(self.details) + len(self.notes))


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a wire between two adjacent rows.

    Attributes:
        start: the x position at its upper end.
        end: the x position at its lower end.
        row: the upper row.
        box: the number of the box it starts from; -1 if the wire passes through the row.
    """

    start: float
    end: float
    row: int
    box: int


@dataclass(frozen=True, slots=True)
class Wire:
    """The edges from one port, which carry one value."""

    is_tape: bool
    segments: Sequence[Segment]


@dataclass(slots=True, eq=False)
class Drawing:
    """The drawing of a graph: its boxes in rows.

    Attributes:
        title: the name of the region.
        notes: lines below all rows.
        edges: the connections of boxes.
        tape: the keys of edges that carry lists.
    """

    title: str
    boxes: Sequence[Box]
    edges: Sequence[Edge]
    notes: Sequence[str] = ()
    tape: set[int] = field(default_factory=set)
    tops: list[float] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0

    @property
    def top(self) -> float:
        """The y position of the first row."""
        return HEADER if self.title else 0.0


def spread_ports(ports: Sequence[Port], width: float) -> list[Port]:
    """Return the ports of a row with the free width distributed evenly around them."""
    label_widths = [letters.width(port.label, letters.SMALL) + GAP / 2 for port in ports]
    spare = (width - sum(label_widths)) / max(1, len(ports))
    spread, left = [], 0.0
    for port, label_width in zip(ports, label_widths, strict=True):
        spread.append(Port(left + (label_width + spare) / 2, port.label))
        left += label_width + spare
    return spread
