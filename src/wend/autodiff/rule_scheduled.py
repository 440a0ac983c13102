"""The adjoint of a scheduled call: that of its plain form, which is run again (D31)."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.cotangents import Cotangent
from wend.autodiff.rule_checkpoint import pull_back_recomputed
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.ir.graph import Node
from wend.ops.schedules import ScheduledParts


def pull_back_scheduled(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Append the backward call."""
    pull_back_recomputed(t, bwd, node, ScheduledParts.of(node).plain, cts)
