"""`wend.name`: names for graph values, by which `ConcreteFunction.prune` finds them."""

from __future__ import annotations

from typing import Any

from wend.base.errors import TypeMismatchError, explain
from wend.eager.dispatch import Staged
from wend.ops import shaping
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current


def name(x: Any, name: str) -> Any:
    """Return an array under a name, by which `ConcreteFunction.prune` finds it.

    Args:
        x: an array or a number.
        name: its name in the graph that is being recorded; ignored outside of a trace.

    Raises:
        TypeMismatchError: `x` is no array, or `name` no string.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> @wend.function
        ... def model(x):
        ...     hidden = wend.name(wnp.tanh(x), "hidden")
        ...     return hidden * 2.0
        >>> head = model.get_concrete_function(0.5).prune("hidden", "result")
        >>> head(3.0)
        np.float64(6.0)
    """
    if not is_array_leaf(x):
        cure = "name each array of it."
        raise TypeMismatchError(explain(f"wend.name takes an array, not {x!r:.60}", cure=cure))
    if not isinstance(name, str):
        raise TypeMismatchError(f"wend.name takes a string as the name, not {name!r:.60}")
    recording = current()
    if recording is None or recording.runs_now() or not isinstance(x, Staged):
        return x
    value = recording.lift(x)
    if value.name is not None:  # an argument's name, for example: keep both
        value = recording.b.emit(shaping.refine, value, type=value.type)
        x = recording.wrap(value, weak=x.weak)
    value.name = name
    return x
