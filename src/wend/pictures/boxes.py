"""What a drawing consists of: boxes in rows, lines between them, drawings inside boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wend.ir.graph import Node
from wend.pictures import letters
from wend.pictures.layers import Line

HEADER = 22.0  # the line with a box's title
DETAIL = 13.0  # a line of small letters
PORTS = 15.0  # the labels of ports, above and below a box
PAD = 12.0  # around what is inside a box
ROW_GAP = 26.0  # where lines go from one row to the next
GAP = 16.0  # between two boxes of a row


@dataclass(frozen=True, slots=True)
class Port:
    """Where a line ends or begins: how far from the box's left end, and what is written there."""

    x: float
    label: str = ""


@dataclass(slots=True, eq=False)
class Box:
    """A node, a param or a result.

    Attributes:
        kind: what it is: "param", "result", "node", "tape", or the operation that holds regions.
        title: its first line.
        details: lines of small letters below that.
        notes: such lines about what a loop keeps.
        node: what it stands for, if that is a node.
        ins, outs: its ports.
        inner: the drawings of its regions; `is_stacked`: one below the other.
        line: the user's line, as it is shown.
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
        """How high it is without what is inside."""
        above = PORTS if self.inner and self.ins else 0.0
        return above + HEADER + DETAIL * (len(self.details) + len(self.notes))


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a line, from one row to the next.

    Attributes:
        start, end: how far to the right.
        row: the row that it comes from.
        box: the box that it comes from, by number; -1 where the line passes the row.
    """

    start: float
    end: float
    row: int
    box: int


@dataclass(frozen=True, slots=True)
class Wire:
    """The lines from one port: one value."""

    is_tape: bool
    segments: Sequence[Segment]


@dataclass(slots=True, eq=False)
class Drawing:
    """A graph: its boxes in rows.

    Attributes:
        title: which region it is.
        notes: lines below all.
        lines: which boxes are connected.
        tape: the keys of lines that are lists.
    """

    title: str
    boxes: Sequence[Box]
    lines: Sequence[Line]
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
        """Where its first row is."""
        return HEADER if self.title else 0.0


def spread(ports: Sequence[Port], width: float) -> list[Port]:
    """Ports in a row, each in the middle of its part of what is free."""
    taken = [letters.width(port.label, letters.SMALL) + GAP / 2 for port in ports]
    spare = (width - sum(taken)) / max(1, len(ports))
    placed, left = [], 0.0
    for port, mine in zip(ports, taken, strict=True):
        placed.append(Port(left + (mine + spare) / 2, port.label))
        left += mine + spare
    return placed
