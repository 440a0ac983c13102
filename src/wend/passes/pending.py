"""A graph that is to be run, before the passes that are applied to what is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wend.ir.graph import Graph
from wend.passes.pipeline import OPTIMIZE, Transform, run_passes


@dataclass(frozen=True, eq=False)
class Pending:
    """A graph that is optimised when somebody looks at what comes of it.

    Attributes:
        given: the graph as it is.
        passes: what is applied to it.
    """

    given: Graph
    passes: Sequence[Transform] = OPTIMIZE

    @cached_property
    def optimized(self) -> Graph:
        """What is run."""
        return run_passes(self.given, self.passes) if self.passes else self.given
