"""The adjoint of `Call`: with residuals, or with recomputation."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff import rule_if
from wend.autodiff.cotangents import Cotangent
from wend.autodiff.rule_checkpoint import pull_back_checkpoint
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.ir.graph import Node
from wend.ops.control import CallParts


def pull_back_call(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `Call` of a forward one; its `recompute` attribute selects the rule."""
    rule = pull_back_checkpoint if CallParts.of(node).recompute else rule_if.pull_back_call
    rule(t, bwd, node, cts)
