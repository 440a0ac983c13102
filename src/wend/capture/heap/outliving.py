"""Which objects outlive a trace: by counts of references, as the garbage collector does it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

from wend.trace.aliasing.referrers import MAX_NODES, is_node, parts_of

# wend's own tables that hold objects of the user, and objects that are to be left out
Tables = tuple[list[Any], set[int]]


def referents(x: Any) -> Iterator[Any]:
    """Yield the objects that an object refers to, without the globals of functions."""
    return (part for part in parts_of(x) if is_node(part))


def _internal_references(tables: Tables) -> tuple[list[Any], dict[int, int]]:
    """Return the objects that wend's own tables refer to, and how often, by id."""
    holders, excluded = tables
    own = excluded | {*map(id, holders)}
    counts: dict[int, int] = {}
    roots = []
    for holder in holders:
        for x in gc.get_referents(holder):
            if id(x) not in own:
                counts[id(x)] = counts.get(id(x), 0) + 1
                if counts[id(x)] == 1 and is_node(x):
                    roots.append(x)
    return roots, counts


def _with_other_references(nodes: dict[int, Any], counts: dict[int, int]) -> list[Any]:
    """Return the nodes with more references than `counts` explains, beside that of `nodes`."""
    marker = object()
    nodes[id(marker)] = marker
    counts = {**counts, id(marker): 1}  # the variable here
    excess = {k: sys.getrefcount(x) - counts.get(k, 0) for k, x in nodes.items()}
    del nodes[id(marker)]
    usual = excess[id(marker)]
    return [nodes[k] for k, count in excess.items() if k != id(marker) and count > usual]


def _count_items(references: list[Any], counts: dict[int, int]) -> None:
    for x in references:
        counts[id(x)] = counts.get(id(x), 0) + 1


def still_referenced(owners: list[Any], tables: Tables) -> set[int]:
    """Return the ids of the owners that anything but wend's own tables refers to."""
    _, counts = _internal_references(tables)
    nodes = {id(owner): owner for owner in owners}
    _count_items(owners, counts)
    return {id(x) for x in _with_other_references(nodes, counts)}


def outliving(owners: list[Any], tables: Tables) -> set[int]:
    """Return the ids of the owners that do not only refer to each other.

    As the garbage collector does it: among what wend's own tables reach, objects with further
    references are alive, and so is what these reach.
    """
    stack, counts = _internal_references(tables)
    _count_items(owners, counts)
    reached: dict[int, Any] = {}
    while stack and len(reached) < MAX_NODES:
        node = stack.pop()
        if id(node) in reached:
            continue
        reached[id(node)] = node
        for x in referents(node):
            counts[id(x)] = counts.get(id(x), 0) + 1
            if id(x) not in reached:
                stack.append(x)
    node = x = None
    stack.clear()
    alive = _with_other_references(reached, counts)
    seen = {*map(id, alive)}
    while alive:
        for x in referents(alive.pop()):
            if id(x) not in seen:
                seen.add(id(x))
                alive.append(x)
    return seen


def outliving_after_collection(owners: list[Any], tables: Tables) -> set[int]:
    """Return the ids of the owners that outlive the trace, with what wend itself dropped freed."""
    gc.collect(1)  # what a trace has made is young: the collector is paused meanwhile
    return outliving(owners, tables)
