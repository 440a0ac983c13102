"""A persistent cache of graph transforms: what one process derives, the next one loads."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from wend.base.config import settings
from wend.base.reporting.dump import captures_stages
from wend.base.reporting.log import tell
from wend.ir.graph import Graph
from wend.ir.packing import Names, pack, pack_array, unpack, unpack_array
from wend.runtime.build_fingerprint import build_fingerprint
from wend.runtime.disk_cache import digest, disk_cache

# Each graph is packed and hashed once, whatever is derived from it.
_graph_keys: WeakKeyDictionary[Graph, Key | None] = WeakKeyDictionary()
MAX_ARRAY_BYTES = 1 << 20  # total size of the arrays stored with a result

Fact: TypeAlias = Any  # None, a bool, a number, a str; a tuple of them
TransformResult: TypeAlias = tuple[Sequence[Graph], Fact]


class Key(NamedTuple):
    """The key of a result derived from a graph.

    Attributes:
        digest: the hash of all that the result depends on.
        names: the symbols and objects that the packed graph refers to by number.
    """

    digest: bytes
    names: Names


def cache_key(graph: Graph, *facts: Fact) -> Key | None:
    """Return the key of a result derived from a graph; None if it must not be cached.

    A graph that holds Python objects is not cached: no other process has them. Nor is a result
    whose derivation is to be verified or dumped. `facts` are the transform and its options.
    """
    if settings().verify or captures_stages() or disk_cache() is None or not build_fingerprint():
        return None
    if graph not in _graph_keys:
        _graph_keys[graph] = _graph_key(graph)
    key = _graph_keys[graph]
    if key is None:
        return None
    return Key(digest(build_fingerprint(), marshal.dumps(facts, 2), key.digest), key.names.copy())


def _graph_key(graph: Graph) -> Key | None:
    """Return the hash of a graph's nodes, lines and constants; None if it holds Python objects."""
    names = Names()
    data = pack([graph], names)
    arrays = names.arrays()
    if arrays is None:
        return None
    types = marshal.dumps([(x.dtype.str, x.shape) for x in arrays], 2)
    numbers = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in arrays]
    return Key(digest(types, data, *numbers), names)


def cached_transform(
    what: str, graph: Graph, options: Fact, transform: Callable[[], TransformResult]
) -> TransformResult:
    """Return the graphs that a transform derives from a graph, from the cache where possible.

    Args:
        what: the name of the transform.
        graph: its input.
        options: everything else it depends on.
        transform: computes the graphs, and further facts about them.
    """
    key = cache_key(graph, what, options)
    cache = disk_cache()
    if key is None or cache is None:
        return transform()
    data = cache.find(key.digest)
    if data is not None:
        try:
            result = _loaded(data, key.names.copy())
        except Exception as error:  # noqa: BLE001 - of whatever kind: the data is of no use
            tell("cache", f"{what} of {graph.name} is left out: {error!r}")
        else:
            tell("found", f"{what} of {graph.name}")
            return result
    graphs, facts = result = transform()
    names = key.names.copy()
    packed = pack(graphs, names)
    new = Names((), names.objects[len(key.names.objects) :]).arrays()
    if new is not None and sum(x.nbytes for x in new) <= MAX_ARRAY_BYTES:
        arrays = [pack_array(x) for x in new]
        cache.keep(key.digest, marshal.dumps((facts, arrays, packed), 2))
    return result


def _loaded(data: bytes, names: Names) -> TransformResult:
    facts, arrays, packed = marshal.loads(data)
    for array in arrays:
        names.object(unpack_array(array))
    return unpack(packed, names), facts
