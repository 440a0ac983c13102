"""The on-disk cache of programs: everything that is known of machine code except its text.

The key is the graph before any pass, so a process that finds a program and its code neither
optimizes the graph nor emits LLVM IR. Programs are pickled; what is unpickled may consist of the
records of programs only, `_ALLOWED`.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wend.backends.native.analysis.list_classes import Arena, ListClass, root
from wend.backends.native.jit.llvm import engine
from wend.backends.native.program import (
    ChunkProgram,
    Field,
    HostCall,
    Layout,
    Program,
    SavedState,
)
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.protocol import FusedLoop
from wend.base.reporting.log import tell
from wend.base.source import Source
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import TABLE, Op
from wend.ir.packing import Names, pack, pack_array, unpack, unpack_array
from wend.ir.types import (
    HostType,
    ListType,
    MaybeType,
    ResourceType,
    Symbol,
    TensorType,
    TokenType,
    Type,
)
from wend.passes.pipeline import LazyOptimized
from wend.runtime.disk_cache import disk_cache
from wend.runtime.graph_cache import MAX_ARRAY_BYTES, Key, cache_key


class CachedProgram(NamedTuple):
    """A program without its text, and the digest that finds the machine code of the text."""

    program: Program
    digest: bytes


def program_key(pending: LazyOptimized, threads: int) -> Key | None:
    """Return the cache key of the program of a graph, or None if it cannot be cached."""
    passes = tuple([transform.__name__ for transform in pending.passes])
    return cache_key(pending.graph, "program", engine().build_fingerprint, threads, passes)


def find_program(key: Key) -> CachedProgram | None:
    """Return the program that an earlier process stored, or None."""
    cache = disk_cache()
    data = cache and cache.find(key.digest)
    if not data:
        return None
    try:
        cached = _Unpickler(io.BytesIO(data), key.names.objects).load()
    except Exception as error:  # noqa: BLE001 - of whatever kind: the data is of no use
        tell("cache", f"a program is left out: {error!r}")
        return None
    return cached if isinstance(cached, CachedProgram) else None


def keep_program(key: Key, program: Program, digest: bytes) -> None:
    """Store a program for later processes, unless its constants are large."""
    cache = disk_cache()
    if cache is None or sum(x.nbytes for x in program.constants) > MAX_ARRAY_BYTES:
        return
    file = io.BytesIO()
    _Pickler(file, key.names.objects).dump(CachedProgram(replace(program, text=""), digest))
    cache.keep(key.digest, file.getvalue())


class _Pickler(pickle.Pickler):
    """A pickler that writes nodes without their graph, and its arrays by number."""

    def __init__(self, file: io.BytesIO, objects: Sequence[Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(x): k for k, x in enumerate(objects)}

    def persistent_id(self, x: Any) -> int | None:
        return self._numbers.get(id(x)) if type(x) is np.ndarray else None

    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, Node):
            operands = [value.type for value in x.operands]
            results = [value.type for value in x.results]
            regions = x.regions if x.op is loop_nest else ()
            return _node, (x.op, operands, {**x.attrs}, regions, results, x.source)
        if isinstance(x, Graph):
            names = Names()
            data = pack([x], names)
            return _graph, (data, [*names.symbols], names.objects)
        if isinstance(x, Op):
            return _op, (x.name,)
        if isinstance(x, np.dtype):
            return np.dtype, (x.str,)
        if isinstance(x, np.ndarray):
            return unpack_array, (pack_array(x),)
        if isinstance(x, ListClass):
            if (representative := root(x)) is not x:
                return _identity, (representative,)
            return ListClass, (x.element, x.inner, [], [], [], None, x.arena, x.offset)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, objects: Sequence[Any]) -> None:
        super().__init__(file)
        self._objects = objects

    def persistent_load(self, number: int) -> Any:
        return self._objects[number]

    def find_class(self, module: str, name: str) -> Any:
        return _ALLOWED[module, name]


def _node(
    op: Op,
    operands: Sequence[Type],
    attrs: Mapping[str, Any],
    regions: Sequence[Graph],
    results: Sequence[Type],
    source: Source | None,
) -> Node:
    return Node(op, [Value(type) for type in operands], attrs, regions, results, source)


def _graph(data: bytes, symbols: Sequence[Symbol], objects: Sequence[Any]) -> Graph:
    (graph,) = unpack(data, Names(symbols, objects))
    return graph


def _op(name: str) -> Op:
    return loop_nest if name == loop_nest.name else TABLE[name]


def _identity(list_class: ListClass) -> ListClass:
    return list_class


_ALLOWED: Mapping[tuple[str, str], Any] = {
    (x.__module__, x.__qualname__): x
    for x in (
        *(CachedProgram, Program, ChunkProgram, Layout, Field, HostCall, SavedState),
        *(FusedLoop, Source),
        *(_node, _graph, _op, _identity, unpack_array, np.dtype, ListClass, Arena, Symbol),
        *(TensorType, ListType, MaybeType, ResourceType, TokenType, HostType),
    )
}
