"""Walking, rebuilding and filling lists, dicts and deques."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

import pytest

from wend.trace.aliasing.containers import (
    aliases_of,
    assign_items,
    container_like,
    containers_in,
    items_of,
    unified,
)


def test_containers_come_from_outside_and_the_left():
    inner, outer = [1.0], {"a": (2.0, [3.0])}
    value = [inner, outer]
    assert [*containers_in((value,))] == [value, inner, outer, [3.0]]


def test_a_container_that_holds_itself_ends():
    items: list = [1.0]
    items.append(items)
    assert len([*containers_in(items)]) <= 2


def test_aliases_number_the_containers():
    row = [1.0]
    assert aliases_of(([1.0], [1.0]), {}) == ()
    assert aliases_of((row, {"a": row}), {"b": row}) == (0, 1, 0, 2, 0)


def test_unified_containers_are_one():
    row = [1.0]
    args = (row, (row, 2.0), [row])
    args_again, _ = unified(([[1.0], ([1.0], 2.0), [[1.0]]], {}), aliases_of([*args], {}))
    first, (second, _), (third,) = args_again
    assert first is second is third


@pytest.mark.parametrize(
    "container",
    [[1], deque([1], maxlen=3), {"a": 1}, OrderedDict(a=1), defaultdict(int, a=1)],
)
def test_items_are_put_in_place(container):
    items = dict(items_of(container)) if isinstance(container, dict) else [2, 3]
    new = container_like(container, {"a": 5} if isinstance(container, dict) else [2, 3])
    assert type(new) is type(container)
    kept = container
    assign_items(container, items)
    assert kept is container
    assert [value for _, value in items_of(container)] == (
        [1] if isinstance(container, dict) else [2, 3]
    )
