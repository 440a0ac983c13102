"""`chunked_map`: a region applied to chunks of the elements of some arrays, in no order (D54).

Its operands are the mapped ones, arrays whose first axis counts the elements, and the invariants.
The region takes so many consecutive elements of each mapped operand, the last chunk what is left,
and the invariants. A result of the node is the results of all chunks, joined along the first axis:
a row for each element, or one row for each chunk. Sizes of chunks depend on nothing but the node,
so results do not depend on how many chunks run at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.base.errors import ShapeError, TypeMismatchError
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import ByRegions, Op
from wend.ir.types import Dim, TensorType, Type, fresh
from wend.ops.control import check_arguments, outer_symbols
from wend.ops.parallel_map import is_stackable


def _infer(
    *types: Type,
    mapped: int,
    chunk: int,
    rows: tuple[bool, ...],
    regions: Sequence[Graph],
    threads: int | None = None,
) -> tuple[Type, ...]:
    (body,) = regions
    size, chunks = _sizes(types[:mapped], chunk)
    outer = outer_symbols(types)
    own = body.params[0].tensor.dims[0]
    arguments = [
        type.with_shape((own, *type.dims[1:])) if isinstance(type, TensorType) else type
        for type in types[:mapped]
    ]
    known = outer if isinstance(own, int) else {*outer, own}
    check_arguments("body", body.param_types, (*arguments, *types[mapped:]), known)
    if len(body.results) != len(rows):
        raise ShapeError("results of the region are missing")
    inferred: list[Type] = []
    for has_rows, type in zip(rows, body.result_types, strict=True):
        if not isinstance(type, TensorType) or not type.rank:
            raise TypeMismatchError(f"{type} has no rows to join")
        first, *inner = type.dims
        if first != (own if has_rows else 1) or not is_stackable(
            type.with_shape(tuple(inner)), {*outer}
        ):
            raise TypeMismatchError(f"{type} cannot be joined")
        inferred.append(type.with_shape((size if has_rows else chunks, *inner)))
    return tuple(inferred)


def _sizes(mapped: Sequence[Type], chunk: int) -> tuple[Dim, Dim]:
    """Return the numbers of elements and of chunks."""
    sizes = {type.dims[0] if isinstance(type, TensorType) else None for type in mapped}
    if len(sizes) != 1 or (size := sizes.pop()) is None:
        raise ShapeError("the mapped operands are no arrays of one length")
    return size, -(-size // chunk) if isinstance(size, int) else fresh(0)


chunked_map = Op("chunked_map", _infer, None, ByRegions(), regions=("body",))


@dataclass(frozen=True, slots=True)
class ChunkedMapParts:
    """The parts of a `chunked_map` node.

    Attributes:
        mapped: the arrays whose elements are computed.
        invariants: what every chunk gets whole.
        body: (a chunk of each mapped array, invariants) → results.
        chunk: how many elements a chunk has, but the last.
        rows: which results have a row for each element; others have one for each chunk.
        source: the user's line.
        threads: how many threads may compute them at most; None: all.
    """

    mapped: tuple[Value, ...]
    invariants: tuple[Value, ...]
    body: Graph
    chunk: int
    rows: tuple[bool, ...]
    source: Source | None = None
    threads: int | None = None

    @staticmethod
    def of(node: Node) -> ChunkedMapParts:
        count, operands = node.attrs["mapped"], node.operands
        return ChunkedMapParts(
            operands[:count],
            operands[count:],
            node.regions[0],
            node.attrs["chunk"],
            node.attrs["rows"],
            node.source,
            node.attrs.get("threads"),
        )
