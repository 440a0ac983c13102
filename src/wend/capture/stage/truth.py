"""The truth value of operands that may be traced."""

from __future__ import annotations

from typing import Any

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.ir.dtypes import BOOL
from wend.numpy import elementwise as ew
from wend.trace.recording.recording import current


def is_traced(x: Any) -> bool:
    """Return whether the truth of a value is unknown now; a tape knows it as it runs eagerly."""
    if not isinstance(x, Staged):
        return False
    recording = current()
    return recording is None or not recording.runs_now()


def truth(x: Any) -> Any:
    """Return the truth of a traced scalar, as Python defines it, as a traced bool."""
    if x.type.shape == () and x.type.dtype != BOOL:
        return ew.not_equal(x, 0)
    if x.type.shape != ():
        raise TypeMismatchError(
            explain(
                f"the truth value of {x!r} is needed{at(user_source())}, but it has more than one "
                "element.",
                cure="use .any() or .all(); or choose element by element with np.where.",
            )
        )
    return x
