"""Containers in others that a branch or loop replaces: nobody else may hold either one.

Only the run knows whether `table["row"]` is the list that it was, or another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import AliasError, NestingError, explain
from wend.capture.heap.aliases import find_holder
from wend.capture.heap.containers import ItemOfTuple, NestedContainers, replaced_containers
from wend.trace.aliasing.referrers import is_held
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording

NestedByLocation = Sequence[tuple[Any, NestedContainers]]


def check_replacements(
    before: NestedByLocation,
    after: NestedByLocation,
    where: str,
    outer: Recording,
    held: Sequence[tuple[str, Any]],
    *,
    is_undone: bool,
) -> None:
    """Refuse to replace a nested container in some runs only, if somebody else holds either one.

    `before` and `after` are the nested containers by location around a loop or branch, `held` are
    the variables and attributes after it, by name. `is_undone`: whether lists are now as they were
    before, so that it is known which items were appended.
    """
    for (location, nested_before), (_, nested_after) in zip(before, after, strict=True):
        for old, new in replaced_containers(nested_before, nested_after):
            _check_nested(location, old, where, is_shared=_count_places(old, before) > 1)
            if not is_created_inside(new, outer):
                _check_nested(location, new, where)
        for new in _stored(location.container, nested_before, nested_after, is_undone):
            for name, value in held:
                if is_held(value, _is_object(new), location.container):
                    raise _nested_error(location, new, where, f"`{name}`")
            if _count_places(new, after) > 1:
                raise _nested_error(location, new, where, None)


def _stored(
    owner: Any, before: NestedContainers, after: NestedContainers, is_undone: bool
) -> Iterator[Any]:
    """Yield the containers that were put into others, without those that lists were extended by."""
    for key, (new, inner) in after.items():
        old, inner_before = before.get(key, (None, {}))
        if old is new:
            yield from _stored(new, inner_before, inner, is_undone)
            continue
        is_appended = isinstance(owner, (list, deque)) and not (
            is_undone and _position(key) < len(owner)
        )
        if old is not None or not is_appended:
            yield new


def _position(key: Any) -> Any:
    return _position(key.key) if isinstance(key, ItemOfTuple) else key


def _count_places(container: Any, nested: NestedByLocation) -> int:
    """Return at how many places a container stands in others."""
    places: set[tuple[int, Any]] = set()
    for location, inner in nested:
        places |= {*_places(container, location.container, inner)}
    return len(places)


def _places(container: Any, owner: Any, nested: NestedContainers) -> Iterator[tuple[int, Any]]:
    for key, (part, inner) in nested.items():
        if part is container:
            yield id(owner), key
        yield from _places(container, part, inner)


def _check_nested(location: Any, nested: Any, where: str, *, is_shared: bool = False) -> None:
    holder = None if nested is None else find_holder(_is_object(nested), location.container)
    if nested is not None and (holder is not None or is_shared):
        raise _nested_error(location, nested, where, holder)


def _nested_error(location: Any, nested: Any, where: str, holder: str | None) -> AliasError:
    kind, holder = type(nested).__name__, holder or f"another place of `{location.label}`"
    return AliasError(
        explain(
            f"{where}: whether `{location.label}` holds the {kind} that {holder} holds "
            "is known only at run time: changes to one would show in the other.",
            cure=f"put a .copy() into `{location.label}`, or take one out of it.",
        )
    )


def is_created_inside(container: Any, outer: Recording) -> bool:
    """Return whether a container holds what a region inside a recording has computed."""
    try:
        leaves, _ = trees.flatten_deep(container, with_objects=True)
    except NestingError:
        return False
    return any(isinstance(x, Tracer) and not outer.can_lift(x) for x in leaves)


def _is_object(target: Any) -> Callable[[Any], bool]:
    return lambda value: value is target
