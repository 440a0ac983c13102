"""Values that are never read, for paths that have none."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, explain
from wend.capture.heap.locations import UNBOUND
from wend.capture.state import unbound
from wend.capture.state.optional_value import OptionalValue, optional_values
from wend.capture.state.state import is_carried
from wend.ir.types import ListType, TensorType, Type
from wend.trace.recording.arguments import LeafType, leaf_type
from wend.trace.recording.recording import Recording
from wend.trace.state.merged_texts import holds_choice, with_choices


def placeholders(like: Any) -> Any:
    """Return zeros of the structure and types of a value."""
    leaves, treedef = trees.flatten_deep(like, keeps_static=True, with_objects=True)
    return trees.unflatten(treedef, [*map(_placeholder, leaves)])


def _placeholder(like: Any) -> Any:
    return zeros_of(leaf_type(like))


def zeros_of(leaf: LeafType) -> Any:
    """Return zeros of a type.

    Raises:
        CarryError: its size is only known when the function runs, or it is a list.
    """
    type: Type = leaf.type
    if isinstance(type, ListType):
        raise CarryError(
            explain(
                "a list that grows is first bound or returned on some paths only.",
                cure="make it before: out = [].",
            )
        )
    assert isinstance(type, TensorType)
    if not type.is_static:
        raise CarryError(
            explain(
                f"a value of rank {type.rank} is first bound or returned on some paths only, "
                "and its size is only known when it runs.",
                cure="give the variable a value of that size before.",
            )
        )
    zeros = np.zeros([int(dim) for dim in type.dims if isinstance(dim, int)], type.dtype)
    if leaf.weak:
        return zeros.item()
    return zeros if zeros.ndim or leaf.zero_dim else zeros[()]


def bound_in_run(pair: list[Any]) -> list[Any]:
    """Return two values with whether they are bound, if one may not be, and both can be merged."""
    if not any(value is UNBOUND or isinstance(value, unbound.BoundInRun) for value in pair):
        return pair
    values = [value.value if isinstance(value, unbound.BoundInRun) else value for value in pair]
    bound = next((value for value in values if is_carried(value)), None)
    if bound is None or not all(value is UNBOUND or is_carried(value) for value in values):
        return pair
    try:
        values = [placeholders(bound) if value is UNBOUND else value for value in values]
    except CarryError:  # the size is not known
        return pair
    return [as_bound_in_run(*both) for both in zip(values, pair, strict=True)]


def as_bound_in_run(value: Any, origin: Any) -> unbound.BoundInRun:
    """Return a value with whether the run has bound the one that it stands for."""
    if isinstance(value, unbound.BoundInRun):
        value = value.value
    if isinstance(origin, unbound.BoundInRun):
        return unbound.BoundInRun(value, origin.is_bound)
    return unbound.BoundInRun(value, np.bool_(origin is not UNBOUND))


def flagged(region: Recording, name: str, start: Any, value: Any) -> Any:
    """Return what a trip leaves, with the flag or number that it entered the loop with."""
    if isinstance(start, OptionalValue):
        return optional_values([start, value], placeholders)[1]
    if value is not UNBOUND and value is not start and holds_choice(start):
        return with_choices([start, value], [region.active] * 2)[1]
    if not isinstance(start, unbound.BoundInRun) or isinstance(value, unbound.BoundInRun):
        return value
    if value is UNBOUND and name in unbound.reasons():
        return value
    return as_bound_in_run(start.value if value is UNBOUND else value, value)


def fill_missing(pair: list[Any]) -> list[Any]:
    """Fill a value that one path lacks with zeros, which are never read."""
    for k in (0, 1):
        missing = pair[k] is UNBOUND or pair[k] is None or pair[k] is False
        if missing and is_carried(pair[1 - k]):
            pair = list(pair)
            pair[k] = placeholders(pair[1 - k])
    return pair
