"""The `concurrent_call` op: nodes that do not need each other, each a function of its own.

Each runs on a workspace of its own, so nothing in it is shared but the arrays that it reads.
"""

from __future__ import annotations

from wend.ir.op import NoGradient, Op
from wend.ir.types import Type


def _infer(
    *types: Type, first: int, takes: tuple[tuple[int, ...], ...], results: tuple[Type, ...]
) -> tuple[Type, ...]:
    return results


# `first` is the number of the first function, `takes` which operands each of them takes.
concurrent_call = Op("concurrent_call", _infer, None, NoGradient())
