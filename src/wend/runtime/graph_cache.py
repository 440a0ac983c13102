"""What one process makes of a graph, for the next process that has an equal one."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wend.base.config import settings
from wend.base.dump import is_watched
from wend.base.log import tell
from wend.ir.graph import Graph
from wend.ir.packing import Names, pack, read_array, unpack, written_array
from wend.runtime.build_fingerprint import build_fingerprint
from wend.runtime.disk_cache import digest, disk_cache

MOST_BYTES = 1 << 20  # of the arrays that are kept with what is made

Fact: TypeAlias = Any  # None, a bool, a number, a str; a tuple of them
TransformResult: TypeAlias = tuple[Sequence[Graph], Fact]


class Key(NamedTuple):
    """Under what is kept what is made of a graph.

    Attributes:
        digest: the same for all that makes no difference to what is made.
        names: what the graph names by number.
    """

    digest: bytes
    names: Names


def key_of(graph: Graph, *about: Fact) -> Key | None:
    """The key of what is made of a graph, here; None where nothing is to be kept, or found.

    Nothing is, of graphs that hold Python's objects: no other process has them. Nor where somebody
    wants to see how it is made.

    Args:
        graph: what it is made of: its nodes, the user's lines, the numbers of its constants.
        about: what is made, and with which options: of what `Fact` is.
    """
    here = settings()
    if here.verify or is_watched() or disk_cache() is None or not build_fingerprint():
        return None
    names = Names()
    data = pack([graph], names)
    arrays = names.arrays()
    if arrays is None:
        return None
    options = marshal.dumps((about, [(x.dtype.str, x.shape) for x in arrays]), 2)
    numbers = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in arrays]
    return Key(digest(build_fingerprint(), options, data, *numbers), names)


def cached_transform(
    what: str, graph: Graph, options: Fact, make: Callable[[], TransformResult]
) -> TransformResult:
    """Graphs that are made of a graph: found, where an earlier process has made them.

    Args:
        what: names how they are made.
        graph: what they are made of.
        options: all that it depends on beside the graph.
        make: makes them, and what else there is to know.
    """
    key = key_of(graph, what, options)
    cache = disk_cache()
    if key is None or cache is None:
        return make()
    data = cache.find(key.digest)
    if data is not None:
        tell("found", f"{what} of {graph.name}")
        facts, arrays, packed = marshal.loads(data)
        for array in arrays:
            key.names.object(read_array(array))
        return unpack(packed, key.names), facts
    graphs, facts = made = make()
    names = key.names.copy()
    packed = pack(graphs, names)
    new = Names((), names.objects[len(key.names.objects) :]).arrays()
    if new is not None and sum(x.nbytes for x in new) <= MOST_BYTES:
        arrays = [written_array(x) for x in new]
        cache.keep(key.digest, marshal.dumps((facts, arrays, packed), 2))
    return made
