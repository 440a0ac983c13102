"""Names in graphs: `wend.name` for values, `wend.name_scope` for the operations of a block."""

from __future__ import annotations

import re
from contextlib import ContextDecorator
from typing import Any

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import SCOPE
from wend.eager.dispatch import Staged
from wend.ops import shaping
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current


def name(x: Any, name: str) -> Any:
    """Return an array under a name, by which `ConcreteFunction.prune` finds it.

    Args:
        x: an array or a number.
        name: its name in the graph that is being recorded; ignored outside of a trace. In a
            `wend.name_scope` the scope and a slash are put before it.

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
    scope = SCOPE.get()
    value.name = f"{scope}/{name}" if scope else name
    return x


class name_scope(ContextDecorator):  # noqa: N801 - used like a function
    """Name the operations of a `with` block: in graphs, pictures, profiles and saved files.

    The scope is recorded with the source line of each operation, and derivatives inherit it.
    Nested scopes are joined by slashes. It is a decorator, too. A `wend.function` is recorded once
    for all callers, so it starts without a scope.

    Args:
        name: letters, digits and `_ . - /`.

    Raises:
        TypeMismatchError: the name is no string.
        ValueError: it is empty, or has other characters.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> @wend.function
        ... def model(x):
        ...     with wend.name_scope("encoder"):
        ...         return wnp.tanh(x)
        >>> node, = model.get_concrete_function(0.5).graph.nodes
        >>> node.source.scope
        'encoder'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeMismatchError(f"wend.name_scope takes a string, not {name!r:.60}")
        if not re.fullmatch(r"[\w.\-/]+", name):
            cure = "use letters, digits and the characters _ . - / in it."
            raise ValueError(explain(f"{name!r:.60} is no name of a scope", cure=cure))
        self.name = name
        self._outer: list[str] = []  # one manager may be open several times

    def __enter__(self) -> str:
        outer = SCOPE.get()
        scope = f"{outer}/{self.name}" if outer else self.name
        self._outer.append(outer)
        SCOPE.set(scope)
        return scope

    def __exit__(self, *raised: object) -> None:
        SCOPE.set(self._outer.pop())
