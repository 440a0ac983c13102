"""Values that a loop cannot carry: they may not change in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base.errors import StructureError, explain
from wend.capture.heap.locations import UNBOUND
from wend.capture.state.list_promotion import may_grow
from wend.capture.state.merged_instances import is_mergeable
from wend.capture.state.optional_value import OptionalValue, may_be_none
from wend.capture.state.state import Reference, State, is_carried, is_same
from wend.capture.syntax.names import RETURN_VALUE
from wend.trace.control.tensor_list import TensorList
from wend.trace.state.creation import is_new
from wend.trace.state.merged_texts import holds_choice, may_become_choices
from wend.trace.state.text_choice import TextChoice


class OptionalCarryError(StructureError):
    """A value is None in some trips and a number in others: a loop may carry it with a flag.

    Attributes:
        is_known: whether Python knows what it is in the next trip.
    """

    is_known = False


class TextCarryError(OptionalCarryError):
    """A value is another text in some trips: a loop may carry the number of the text."""


def check_not_carried(
    where: str,
    state: State,
    carried: Sequence[int],
    start: Sequence[Any],
    values: Sequence[Any],
    *,
    carries_optionals: bool,
) -> None:
    """Check that values which cannot be carried do not change in a trip.

    Raises:
        StructureError: one does.
    """
    for k, (old, new) in enumerate(zip(start, values, strict=False)):
        if k in carried or old is UNBOUND or is_same(old, new) or is_replaced(old, new):
            continue
        if old is None and (state.names[k] == RETURN_VALUE or is_new(new)):
            continue
        is_traced_list = isinstance(new, TensorList) or isinstance(
            getattr(new, "container", None), TensorList
        )
        if isinstance(old, Reference) and is_traced_list:
            continue  # a list that an inner loop appends to
        is_optional_carry = is_optional(state.names[k], (old, new))
        is_of_texts = state.names[k] != RETURN_VALUE and may_become_choices((old, new))
        is_flagged = (is_optional_carry or is_of_texts) and carries_optionals
        if _grows(state, k, old, new) or is_flagged:
            continue
        kind = OptionalCarryError if is_optional_carry else StructureError
        kind = TextCarryError if is_of_texts else kind
        error = kind(
            explain(
                f"{where}: `{state.names[k]}` changes in the loop from "
                f"{_shown(old):.40} to {_shown(new):.40}.",
                cure="only arrays and numbers can change in a staged loop; start it as one.",
            )
        )
        if isinstance(error, TextCarryError):
            error.is_known = not holds_choice(new)
        raise error


def _grows(state: State, k: int, old: Any, new: Any) -> bool:
    """Return whether a value is a list, or a deque, that the loop appends to."""
    location = state.location_of(k)
    is_list = location is None or may_grow(getattr(location, "container", None))
    is_longer = type(old) is type(new) is list and len(old) != len(new)
    return is_list and is_longer and is_carried(new)


def is_optional(name: str, values: Sequence[Any]) -> bool:
    """Return whether a variable or attribute is None at some times and a number at others."""
    if name == RETURN_VALUE or any(map(is_new, values)):
        return False
    some_is_none = any(value is None or isinstance(value, OptionalValue) for value in values)
    return some_is_none and all(value is None or may_be_none(value) for value in values)


def is_replaced(old: Any, new: Any) -> bool:
    """Return whether one value has another instance, of the same class, in its place."""
    return old is not new and type(old) is type(new) and is_mergeable(old) and is_mergeable(new)


def _shown(value: Any) -> str:
    return value.described() if isinstance(value, (OptionalValue, TextChoice)) else repr(value)
