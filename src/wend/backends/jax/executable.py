"""The executable of a graph: programs of XLA, one for each set of argument shapes."""

from __future__ import annotations

import marshal
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from wend.backends.jax.boundary import refusal_of_64_bits, warn_of_64_bits
from wend.backends.jax.checks import RunCheck
from wend.backends.jax.control import lower_region
from wend.backends.jax.emit.hosting import EMITTERS as HOST_OPS
from wend.backends.jax.host_log import HostLog
from wend.backends.jax.items import from_sequence, to_sequence
from wend.backends.jax.list_classes import CapacityClasses
from wend.backends.jax.lowering import LEAST_CAPACITY, GraphLowering, repeated
from wend.backends.jax.meshes import (
    Placement,
    automatic,
    described_placements,
    explicit_mesh,
    moved,
    placed,
    placement_of,
    refusal_of_arrays,
    requested_placements,
)
from wend.backends.jax.stores import stored_results
from wend.backends.jax.values import DeviceList, Maybe, Stacked, TapeSegment
from wend.backends.protocol import Explains, FusedLoop
from wend.base.config import settings
from wend.base.errors import WendError
from wend.base.lazy.dataclass import dataclass
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node
from wend.ir.types import HostType, ListType, MaybeType, TensorType, Type
from wend.ops import lists
from wend.runtime.disk_cache import disk_cache
from wend.runtime.graph_cache import Fact, Key, cache_key


class JaxExecutable(Explains):
    """Runs a graph by programs of XLA.

    Results are arrays of JAX, which may still be computed when a call returns: a call waits only
    where it has to know whether a check failed, or whether lists had room.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._classes = CapacityClasses(graph)
        self._stores = stored_results(graph)
        self._placements = requested_placements(graph)
        self._host = HostLog()
        self._has_host = any(node.op in HOST_OPS for node in graph.walk())
        self._programs: dict[Hashable, XlaProgram] = {}

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        log, params = self._host, self._graph.params
        with jax.enable_x64(True), log.run() if self._has_host else nullcontext():
            values = [*arguments]
            for k, node in self._placements.items():
                values[k] = placed(values[k], node)
            pairs = zip(values, params, strict=True)
            taken = [_taken(x, param.type, log) for x, param in pairs]
            results = self._run(taken)
            returned = [
                _returned(x, result.type, log)
                for x, result in zip(results, self._graph.results, strict=True)
            ]
        warn_of_64_bits(self._graph)
        for k, storage in self._stores.items():
            storage.put(returned[k])
        return returned

    def _run(self, values: Sequence[Any]) -> Sequence[Any]:
        leaves, structure = jax.tree.flatten(values)
        mesh = explicit_mesh(leaves)
        if mesh is None:
            return self._run_program(leaves, structure)
        auto = automatic(mesh)
        with jax.set_mesh(auto):
            results = self._run_program(moved(leaves, auto), structure)
        moved_results: Sequence[Any] = moved(results, mesh)
        return moved_results

    def _run_program(self, leaves: Sequence[Any], structure: Any) -> Sequence[Any]:
        placement = placement_of(leaves)
        gathers = placement.is_multi_device and settings().jax_gather
        key = (structure, tuple((x.shape, x.dtype) for x in leaves), placement, gathers)
        program = self._programs.get(key)
        if program is None:
            shapes = tuple((x.shape, x.dtype.str) for x in leaves)
            program = self._programs[key] = XlaProgram(
                self._graph,
                self._classes,
                structure,
                self._host,
                placement,
                CapacityMemory.of(self._graph, str(structure), shapes, str(placement.rows)),
            )
        while True:
            self._host.restart()
            results, totals = program(leaves)
            if not program.waits:
                return results
            ended = np.asarray(totals)
            if not program.has_room(ended):
                program = self._programs[key] = program.enlarged(ended)
                continue
            program.raise_failed(ended)
            return results

    @property
    def host_nodes(self) -> Sequence[Node]:
        nodes = [node for program in self._programs.values() for node in program.host_nodes]
        return list(dict.fromkeys(nodes))

    @property
    def fused_loops(self) -> Sequence[FusedLoop]:
        return ()

    @property
    def remarks(self) -> Sequence[str]:
        count = len(self._programs)
        compiled = f"compiled {count} programs, for {count} sets of shapes"
        return [*described_placements(self._graph), *([compiled] if count > 1 else [])]


class CapacityMemory(NamedTuple):
    """The capacities that a program had to have, on disk: other processes begin with them.

    Attributes:
        key: the key of the program; None: nothing is kept.
    """

    key: Key | None

    @classmethod
    def of(cls, graph: Graph, *facts: Fact) -> CapacityMemory:
        """Return that of a graph for some arguments."""
        has_lists = lists.list_push in graph.ops
        return cls(cache_key(graph, "capacities", *facts) if has_lists else None)

    def recall(self) -> dict[int, int]:
        """Return the capacities that an earlier process has kept; none if there are none."""
        cache = disk_cache()
        data = None if self.key is None or cache is None else cache.find(self.key.digest)
        return {} if data is None else dict(marshal.loads(data))

    def keep(self, capacities: Mapping[int, int]) -> None:
        """Keep capacities, with which later processes begin."""
        cache = disk_cache()
        if self.key is not None and cache is not None:
            cache.keep(self.key.digest, marshal.dumps(tuple(capacities.items()), 2))


@dataclass(eq=False)
class XlaProgram:
    """A graph compiled for arguments of some shapes, with some capacities of its lists."""

    _graph: Graph
    _classes: CapacityClasses
    _structure: Any
    _host: HostLog
    _placement: Placement
    _memory: CapacityMemory
    _capacities: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._capacities = self._capacities or self._memory.recall()
        self._checks: list[RunCheck] = []
        self._counted: list[int] = []
        self._segments: dict[int, TapeSegment] = {}
        self._bounds: dict[int, int] = {}
        self.host_nodes: Sequence[Node] = ()
        self._function = jax.jit(self._trace)

    def __call__(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        """Run it; return the results and the totals that tell how the run ended."""
        try:
            results: tuple[Sequence[Any], Any] = self._function(leaves)
        except WendError as error:
            notes = getattr(error, "__notes__", [])
            notes[:] = [note for note in notes if "JAX has removed" not in note]
            raise
        except (RuntimeError, ValueError) as error:
            refused = refusal_of_arrays(self._graph.name, leaves)
            refused = refused or refusal_of_64_bits(self._graph, error)
            if refused is not None:
                raise refused from None
            raise
        return results

    def _trace(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        return repeated(
            lambda: GraphLowering(
                self._graph,
                self._classes,
                self._capacities,
                self._host,
                self._placement,
                self._segments,
            ),
            lambda ctx: self._lower(ctx, leaves),
        )

    def _lower(self, ctx: GraphLowering, leaves: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        results = lower_region(ctx, self._graph, self._arguments(ctx, leaves))
        fitted = [
            None
            if x is ZERO
            else x
            if isinstance(x, Stacked) or isinstance(r.type, MaybeType)
            else ctx.fit(x, r.type, self._classes.of_use(self._graph, k))
            for k, (x, r) in enumerate(zip(results, self._graph.results, strict=True))
        ]
        self._checks, self.host_nodes = ctx.checks, list(ctx.host_nodes)
        self._bounds = ctx.bounds
        lengths = ctx.progress.lengths
        self._counted = [k for k in sorted(ctx.noted) if isinstance(lengths[k], jax.core.Tracer)]
        counted = [lengths[k] for k in self._counted]
        if not self._checks:
            return fitted, jnp.stack(counted) if counted else None
        totals = jnp.stack([*counted, ctx.progress.code])
        words = jax.lax.bitcast_convert_type(ctx.progress.words, jnp.int32)
        return fitted, jnp.concatenate([totals, words])

    def _arguments(self, ctx: GraphLowering, leaves: Sequence[Any]) -> list[Any]:
        values = jax.tree.unflatten(self._structure, leaves)
        rows = jax.tree.unflatten(self._structure, self._placement.rows or [()] * len(leaves))
        arguments = []
        for x, axes, param in zip(values, rows, self._graph.params, strict=True):
            if isinstance(param.type, TensorType) and axes:
                ctx.rows[param] = axes
            x = ZERO if x is None and isinstance(param.type, MaybeType) else x
            ctx.bind(param.type, x)
            arguments.append(ctx.fit_result(x, param) if isinstance(x, DeviceList) else x)
        return arguments

    @property
    def waits(self) -> bool:
        """Whether a run has to be looked at before its results can be returned."""
        return bool(self._checks or self._counted)

    def has_room(self, totals: np.ndarray) -> bool:
        """Return whether no list of a run was longer than its capacity."""
        return all(total <= self._capacities[k] for k, total in self._lengths(totals))

    def _lengths(self, totals: np.ndarray) -> list[tuple[int, int]]:
        return [(k, int(total)) for k, total in zip(self._counted, totals, strict=False)]

    def enlarged(self, totals: np.ndarray) -> XlaProgram:
        """Return the program with room for the lists of a run."""
        capacities = dict(self._capacities)
        for k, total in self._lengths(totals):
            if total > capacities[k]:
                capacity = max(1 << (total - 1).bit_length(), LEAST_CAPACITY)
                bound = self._bounds.get(k, 0)
                capacities[k] = min(capacity, bound) if total <= bound else capacity
        self._memory.keep(capacities)
        return replace(self, _capacities=capacities)

    def raise_failed(self, totals: np.ndarray) -> None:
        """Raise the error of the check that failed first, if one did."""
        if not self._checks:
            return
        code, words = totals[len(self._counted)], totals[len(self._counted) + 1 :]
        if code:
            self._checks[code - 1].raise_from(words.view(np.uint32))


def inline(graph: Graph, arguments: Sequence[Any]) -> list[Any]:
    """Return the results of a graph of arrays, as a part of a program that JAX is tracing.

    The host does not see how its run ends, so it cannot repeat it with more room: each list has
    room for the most that it can hold. A check that fails is an error of JAX.

    Raises:
        UnsupportedError: a list has no bound.
    """
    capacities: dict[int, int] = {}

    def lower(ctx: GraphLowering) -> list[Any]:
        results = lower_region(ctx, graph, arguments)
        _raise_failed(ctx)
        return [
            ctx.fit(x, result.type, None) for x, result in zip(results, graph.results, strict=True)
        ]

    def make() -> GraphLowering:
        return GraphLowering(graph, CapacityClasses(graph), capacities, HostLog(), grows=False)

    with jax.enable_x64(True):
        return repeated(make, lower)


def _raise_failed(ctx: GraphLowering) -> None:
    """Add to a program that it raises the error of the check that has failed first."""
    if not ctx.checks:
        return
    checks = ctx.checks

    def tell(code: Any, words: Any) -> None:
        try:
            checks[int(code) - 1].raise_from(np.asarray(words))
        except Exception as error:  # noqa: BLE001 - JAX passes on the text, without the notes
            text = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
            raise RuntimeError(text) from None

    def fail(code: Any, words: Any) -> None:
        io_callback(tell, None, code, words)

    code, words, _ = ctx.progress
    jax.lax.cond(jnp.asarray(code) != 0, fail, lambda *_: None, code, words)


def _taken(x: Any, type: Type, log: HostLog) -> Any:
    """Return an argument as a program takes it."""
    match type:
        case ListType():
            return from_sequence(x, type)
        case MaybeType(of=inner):
            return None if x is ZERO else _taken(x, inner, log)
        case TensorType(dtype=dtype):
            return x if isinstance(x, jax.Array) else jnp.asarray(x, dtype)
        case HostType():
            if isinstance(x, TapeSegment):
                return x
            log.handles.append(x)
            return jnp.int32(len(log.handles) - 1)
    return None


def _returned(x: Any, type: Type, log: HostLog) -> Any:
    """Return a result as Python holds it."""
    match type:
        case MaybeType(of=inner):
            if isinstance(x, Maybe):
                return _returned(x.value, inner, log) if bool(x.is_present) else ZERO
            return ZERO if x is None else _returned(x, inner, log)
        case ListType():
            assert isinstance(x, DeviceList)
            return to_sequence(x, type)
        case TensorType() if isinstance(x, Stacked):
            rows, count = x.items.items, int(x.items.length)
            return (
                jnp.broadcast_to(rows, (count, *rows.shape[1:])) if x.is_uniform else rows[:count]
            )
        case HostType():
            return x if isinstance(x, TapeSegment) else log.handles[int(x)]
    return x
