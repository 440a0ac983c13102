"""Powers whose exponents are a constant array of equal numbers take that number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import creating, elementwise


def with_known_exponent(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Broadcast an exponent that is the same number for all elements.

    Not of 1/2: to the number 1/2 NumPy takes the root, which at −0.0 and −∞ is no power.
    """
    x, exponent = operands
    producer = exponent.node
    if not exponent.tensor.dims or producer is None or producer.op is not creating.constant:
        return None
    numbers = np.unique(producer.attrs["value"])
    if numbers.size != 1 or numbers[0] == 0.5:
        return None
    return [b.emit(elementwise.pow, x, b.full_like(x, numbers[0]))]


RULES: Mapping[Op, Any] = {elementwise.pow: with_known_exponent}
