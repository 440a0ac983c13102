"""The truth of what may be traced."""

from __future__ import annotations

from typing import Any

from wend.ir.dtypes import BOOL
from wend.numpy import elementwise as ew
from wend.trace.checks import check_predicate


def truth(x: Any) -> Any:
    """What Python would take for the truth of a traced scalar, as a traced bool."""
    if x.type.shape == () and x.type.dtype != BOOL:
        return ew.not_equal(x, 0)
    check_predicate(x, "the truth of a traced array")
    return x
