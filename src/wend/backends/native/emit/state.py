"""Assignment to variables.

Where the whole graph can be run again, a store is its value, and what a run leaves in a variable is
stored from its results (`backends/storing.py`); else it is a host call, in order with the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import state


def emit_store(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """What is stored."""
    return [operands[1]] if low.can_run_again else NotImplemented


EMITTERS: Mapping[Op, Emit] = {state.store: emit_store}
