"""The operations that hold regions, and views of such nodes that name their parts.

`While` has the shape of MLIR's `scf.while`: `before` takes the carry and gives a predicate and
the values it forwards, to `after` while the predicate holds and to the results when it does not;
`after` gives the next carry. `before` runs once more than `after`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wend.base.errors import ShapeError, TypeMismatchError, listed
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source
from wend.ir.dtypes import BOOL, INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import ByRegions, Op, RegionEdge
from wend.ir.types import (
    Dim,
    ListType,
    MaybeType,
    Symbol,
    TensorType,
    Type,
    accepts,
    fresh,
    substitute,
    symbols,
    without_maybe,
)

PREDICATE = TensorType(BOOL, ())
AGAIN = "again"
DEFAULT_PARALLEL_ITERATIONS = 10  # as in TensorFlow


def check_arguments(
    what: str, params: Sequence[Type], arguments: Sequence[Type], outer: set[Symbol]
) -> None:
    """Check that arguments of a region fit its params; outer symbols are bound to themselves."""
    if len(params) != len(arguments):
        raise ShapeError(f"{what}: takes {len(params)} values, given {len(arguments)}")
    bound: dict[Symbol, Dim] = {symbol: symbol for symbol in outer}
    for position, (param, type) in enumerate(zip(params, arguments, strict=True)):
        if not accepts(param, type, bound):
            raise TypeMismatchError(f"{what}: value {position} is {type}, expected {param}")


def as_seen_outside(types: Iterable[Type], outer: set[Symbol]) -> tuple[Type, ...]:
    """Return types as seen outside a region: symbols that only it knows become new unknowns."""
    types = tuple(types)
    local = [s for type in types for s in symbols(type) if s not in outer]
    names = {symbol: fresh(k) for k, symbol in enumerate(dict.fromkeys(local))}
    return tuple(substitute(type, names) for type in types)


def outer_symbols(types: Iterable[Type]) -> set[Symbol]:
    """Return the symbols of the sizes that are known around a region."""
    return {symbol for type in types for symbol in symbols(type)}


def _infer_while(
    *types: Type,
    carry: int,
    regions: Sequence[Graph],
    memory: str = "keep",
    applied: str = "",
    limit: int = 0,
    parallel_iterations: int = 0,
) -> tuple[Type, ...]:
    before, after = regions
    # A carry whose size changes has a separate symbol in the regions, not an outer one.
    outer, invariants = outer_symbols(types), types[carry:]
    check_arguments("before", before.param_types, types, outer)
    if not before.results or before.result_types[0] != PREDICATE:
        predicate_type = before.result_types[0] if before.results else "nothing"
        raise TypeMismatchError(f"the predicate must be a bool scalar, not {predicate_type}")
    forwarded = before.result_types[1:]
    check_arguments("after", after.param_types, (*forwarded, *invariants), outer)
    check_arguments("the next carry", before.param_types[:carry], after.result_types, outer)
    return as_seen_outside(forwarded, outer)


def _join(a: Type, b: Type) -> Type | None:
    """Return the least type that holds both types, or None."""
    if a == b:
        return a
    if isinstance(a, MaybeType) or isinstance(b, MaybeType):
        inner = _join(without_maybe(a), without_maybe(b))
        return None if inner is None else MaybeType(inner)
    if isinstance(a, ListType) and isinstance(b, ListType):
        inner = _join(a.element, b.element)
        return None if inner is None else ListType(inner)
    if isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype == b.dtype:
        return _join_shapes(a, b)
    return None


def _join_shapes(a: TensorType, b: TensorType) -> TensorType | None:
    """Join two shapes: sizes that differ become unknown, or None if both are numbers."""
    if a.shape is None or b.shape is None:
        return a.with_shape(None)
    pairs = list(zip(a.shape, b.shape, strict=False))
    if len(a.shape) != len(b.shape) or any(
        a_dim != b_dim and isinstance(a_dim, int) and isinstance(b_dim, int)
        for a_dim, b_dim in pairs
    ):
        return None
    dims = (
        a_dim if a_dim == b_dim else Symbol(f"either {a_dim} or {b_dim}") for a_dim, b_dim in pairs
    )
    return a.with_shape(tuple(dims))


def _infer_if(selector: Type, *types: Type, regions: Sequence[Graph]) -> tuple[Type, ...]:
    if selector not in (PREDICATE, TensorType(INT64, ())):
        raise TypeMismatchError(f"the predicate must be a bool or i64 scalar, not {selector}")
    outer = outer_symbols(types)
    for number, branch in enumerate(regions):
        check_arguments(f"branch {number}", branch.param_types, types, outer)
        if len(branch.results) != len(regions[0].results):
            raise ShapeError("branches give different numbers of results")
    joined = []
    for position, options in enumerate(zip(*(b.result_types for b in regions), strict=True)):
        type = options[0]
        for option in options[1:]:
            both = _join(type, option)
            if both is None:
                raise TypeMismatchError(f"result {position} differs: {listed(options)}")
            type = both
        joined.append(type)
    return as_seen_outside(joined, outer)


def infer_call(*types: Type, regions: Sequence[Graph], recompute: bool = False) -> tuple[Type, ...]:
    """Return the result types of a call of the one region; its symbols bind to the arguments."""
    (callee,) = regions
    if len(callee.params) != len(types):
        raise ShapeError(f"{callee.name}: takes {len(callee.params)} values, given {len(types)}")
    bound: dict[Symbol, Dim] = {}
    for position, (param, type) in enumerate(zip(callee.param_types, types, strict=True)):
        if not accepts(param, type, bound):
            raise TypeMismatchError(f"{callee.name}: value {position} is {type}, expected {param}")
    local = [s for type in callee.result_types for s in symbols(type) if s not in bound]
    names: dict[Symbol, Dim] = {s: fresh(k) for k, s in enumerate(dict.fromkeys(local))}
    return tuple(substitute(type, bound | names) for type in callee.result_types)


def _infer_block(
    *types: Type, of: str, cotangents: int, regions: Sequence[Graph]
) -> tuple[Type, ...]:
    if not 0 < cotangents <= len(types):
        raise ShapeError(f"a block of {of}: {cotangents} cotangents, {len(types)} operands")
    results = infer_call(*types, regions=regions)
    if all(isinstance(type, MaybeType) for type in types[:cotangents]):
        return tuple(MaybeType(without_maybe(type)) for type in results)
    return results


def _while_edges(node: Node) -> Sequence[RegionEdge]:
    carry = node.attrs["carry"]
    invariants, forwarded = len(node.operands) - carry, len(node.results)
    return (
        RegionEdge(None, 0, 0, 0, carry + invariants),
        RegionEdge(0, 1, 1, 0, forwarded),
        RegionEdge(None, 1, carry, forwarded, invariants),
        RegionEdge(1, 0, 0, 0, carry),
        RegionEdge(0, None, 1, 0, forwarded),
    )


def _branch_edges(node: Node) -> Sequence[RegionEdge]:
    """Return the edges of a node that runs one of its regions on its last operands."""
    count = len(node.regions[0].params)
    first = len(node.operands) - count  # after the selector
    regions = range(len(node.regions))
    into = [RegionEdge(None, k, first, 0, count) for k in regions]
    return (*into, *(RegionEdge(k, None, 0, 0, len(node.results)) for k in regions))


while_ = Op(
    "while",
    _infer_while,
    None,
    ByRegions(),
    regions=("before", "after"),
    region_edges=_while_edges,
    leading_operands="carry",
)
if_ = Op("if", _infer_if, None, ByRegions(), regions=("branch*",), region_edges=_branch_edges)
call = Op("call", infer_call, None, ByRegions(), regions=("callee",), region_edges=_branch_edges)
# The derivative of a node of operation `of`, applied to the cotangents of its results: the first
# `cotangents` operands. If all of them are Zero, so are the results, and nothing runs.
linear_block = Op(
    "linear_block",
    _infer_block,
    None,
    ByRegions(),
    regions=("body",),
    region_edges=_branch_edges,
    leading_operands="cotangents",
)


@dataclass(frozen=True, slots=True)
class WhileParts:
    """The parts of a `while` node, by name instead of by position.

    `memory` names the tape policy of its backward pass (D31), and `applied` the one by which it has
    been rewritten; or it is `AGAIN`, where it runs trips for a second time. `"keep"` and `""` are
    no attributes of the node. `limit`: the bytes that it may record; 0: any number.
    `parallel_iterations`: how many trips the dataflow backend may have in flight; 0: its default.
    1: native code does not pipeline the loop either.
    """

    carry: tuple[Value, ...]
    invariants: tuple[Value, ...]
    before: Graph
    after: Graph
    source: Source | None = None
    memory: str = "keep"
    applied: str = ""
    limit: int = 0
    parallel_iterations: int = 0

    @staticmethod
    def of(node: Node) -> WhileParts:
        count = node.attrs["carry"]
        before, after = node.regions
        carry, invariants = node.operands[:count], node.operands[count:]
        memory, applied = node.attrs.get("memory", "keep"), node.attrs.get("applied", "")
        limit, parallel = node.attrs.get("limit", 0), node.attrs.get("parallel_iterations", 0)
        source = node.source
        return WhileParts(
            carry, invariants, before, after, source, memory, applied, limit, parallel
        )

    @property
    def before_carry(self) -> tuple[Value, ...]:
        """The params of `before` that hold the carry."""
        return self.before.params[: len(self.carry)]

    @property
    def before_invariants(self) -> tuple[Value, ...]:
        return self.before.params[len(self.carry) :]

    @property
    def predicate(self) -> Value:
        return self.before.results[0]

    @property
    def forwarded(self) -> tuple[Value, ...]:
        """The values that `before` forwards, to `after` or to the results."""
        return self.before.results[1:]

    @property
    def after_forwarded(self) -> tuple[Value, ...]:
        """The params of `after` that hold the forwarded values."""
        return self.after.params[: len(self.forwarded)]

    @property
    def after_invariants(self) -> tuple[Value, ...]:
        return self.after.params[len(self.forwarded) :]

    @property
    def next_carry(self) -> tuple[Value, ...]:
        return self.after.results


@dataclass(frozen=True, slots=True)
class IfParts:
    """The parts of an `if` node. A bool selector takes branch 1 when it is true."""

    selector: Value
    operands: tuple[Value, ...]
    branches: tuple[Graph, ...]

    @staticmethod
    def of(node: Node) -> IfParts:
        return IfParts(node.operands[0], node.operands[1:], node.regions)


@dataclass(frozen=True, slots=True)
class CallParts:
    """The parts of a `call` node.

    `recompute`: the backward pass keeps no residuals and runs the callee again; no pass may undo
    that (D15).
    """

    operands: tuple[Value, ...]
    callee: Graph
    recompute: bool = False

    @staticmethod
    def of(node: Node) -> CallParts:
        return CallParts(node.operands, node.regions[0], node.attrs.get("recompute", False))


@dataclass(frozen=True, slots=True)
class BlockParts:
    """The parts of a `linear_block` node; the body takes cotangents, then forward values."""

    cotangents: tuple[Value, ...]
    forward: tuple[Value, ...]
    body: Graph

    @staticmethod
    def of(node: Node) -> BlockParts:
        count = node.attrs["cotangents"]
        return BlockParts(node.operands[:count], node.operands[count:], node.regions[0])


def parts(node: Node) -> Any:
    """Return the parts of a node that holds regions."""
    views = {while_: WhileParts, if_: IfParts, call: CallParts, linear_block: BlockParts}
    return views[node.op].of(node)  # type: ignore[attr-defined]
