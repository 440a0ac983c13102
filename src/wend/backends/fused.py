"""What a backend does in one loop over memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.base.source import Source


@dataclass(frozen=True, slots=True)
class Fused:
    """Several operations on arrays that compiled code does in one loop over their elements.

    Attributes:
        count: how many.
        sources: the user's lines.
        unstored: how many arrays are never in memory, for only this loop wants them.
        saved: how many bytes these would take; None where sizes are not known before the run.
        is_inside: whether a loop of the program is around it.
    """

    count: int
    sources: Sequence[Source]
    unstored: int
    saved: int | None
    is_inside: bool
