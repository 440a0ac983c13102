"""Whether what a recording has recorded may be noticed: each of its nodes is looked at once."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from wend.base.lazy.dataclass import dataclass
from wend.ops.effects import is_noticed

if TYPE_CHECKING:
    from wend.ir.graph import Node


@dataclass(eq=False, slots=True)
class NoticedNodes:
    """Whether a list of nodes that grows has one that somebody may notice.

    Attributes:
        nodes: the nodes; one may be removed at times.
    """

    nodes: list[Node]
    _count: int = 0  # of nodes looked at, none of which is noticed
    _last: Node | None = None  # of these

    def __bool__(self) -> bool:
        if self._count and self.nodes[self._count - 1 : self._count] != [self._last]:
            self._count = 0  # a node was removed before it
        for node in islice(self.nodes, self._count, None):
            if is_noticed(node):
                return True
            self._count += 1
            self._last = node
        return False
