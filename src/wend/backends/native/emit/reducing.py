"""TODO."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.lowering import Emit
from wend.ir.op import Op

EMITTERS: Mapping[Op, Emit] = {}
