"""`parallel_map`: a region applied to each element of some arrays, in no particular order (D32).

Its operands are the mapped ones, where the sums start, and the invariants. A mapped operand is an
array, whose first axis counts the elements, or a list of them. The region takes an element of each
mapped operand, then the invariants.

Who records it may say how many lanes and threads there are at most, and how many elements are
computed together. This changes no result. An error tells the number of the element, unless the
elements are not `numbered` as the user counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from wend.base.errors import ShapeError, TypeMismatchError
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import ByRegions, Op, RegionEdge
from wend.ir.types import Dim, ListType, Symbol, TensorType, Type, accepts, fresh, symbols
from wend.ops.control import as_seen_outside, check_arguments, outer_symbols

# How a result is made of those of the elements: an array with a new first axis, a list, or where
# the sum starts plus all of them, in the order of the elements
STACK, LIST, SUM = "stack", "list", "sum"
# The attributes that say how many of them there are at most
CHUNK = "chunk"  # how many elements are computed together
LIMITS = ("lanes", "threads", CHUNK)


def element_type(type: Type) -> Type:
    """Return the type of an element of a mapped operand.

    Raises:
        TypeMismatchError: it has none.
    """
    match type:
        case ListType(element=element):
            return element
        case TensorType(shape=(_, *dims)):
            return type.with_shape(tuple(dims))
    raise TypeMismatchError(f"{type} has no elements to map over")


def is_stackable(type: Type, outer: set[Symbol]) -> bool:
    """Return whether values that a region yields have one size, which is known outside."""
    return (
        isinstance(type, TensorType) and type.shape is not None and outer.issuperset(symbols(type))
    )


def _common_size(mapped: Sequence[Type]) -> Dim:
    sizes = {type.dims[0] for type in mapped if isinstance(type, TensorType)}
    if len(sizes) > 1:
        raise ShapeError(f"the mapped operands have {' and '.join(map(str, sizes))} elements")
    return sizes.pop() if sizes else fresh(0)


def _infer(
    *types: Type,
    mapped: int,
    results: tuple[str, ...],
    regions: Sequence[Graph],
    lanes: int | None = None,
    threads: int | None = None,
    chunk: int | None = None,
    numbered: bool = True,
) -> tuple[Type, ...]:
    (body,) = regions
    starts = types[mapped : mapped + results.count(SUM)]
    if not mapped or len(starts) < results.count(SUM) or len(body.results) != len(results):
        raise ShapeError("operands or results of the region are missing")
    elements = [element_type(type) for type in types[:mapped]]
    outer = outer_symbols(types)
    check_arguments("body", body.param_types, (*elements, *types[mapped + len(starts) :]), outer)
    size, sums = _common_size(types[:mapped]), iter(starts)
    inferred: list[Type] = []
    for form, type in zip(results, body.result_types, strict=True):
        if form == LIST:
            inferred += [ListType(element) for element in as_seen_outside([type], outer)]
        elif form == SUM:
            inferred.append(next(sums))
            if not accepts(inferred[-1], type, {symbol: symbol for symbol in outer}):
                raise TypeMismatchError(f"{type} is added to {inferred[-1]}")
        elif not isinstance(type, TensorType) or not is_stackable(type, {*outer}):
            raise TypeMismatchError(f"{type} cannot be stacked: its size is known inside only")
        else:
            inferred.append(type.with_shape((size, *type.dims)))
    return tuple(inferred)


def _edges(node: Node) -> Sequence[RegionEdge]:
    """Return the edges; a value becomes an element, an element part of a result."""
    mapped, forms = node.attrs["mapped"], node.attrs["results"]
    after = mapped + forms.count(SUM)
    sums = (k for k, form in enumerate(forms) if form == SUM)
    return (
        RegionEdge(None, 0, 0, 0, mapped),
        RegionEdge(None, 0, after, mapped, len(node.operands) - after),
        RegionEdge(0, None, 0, 0, len(forms)),
        *(RegionEdge(None, None, mapped + j, k, 1) for j, k in enumerate(sums)),
    )


parallel_map = Op(
    "parallel_map",
    _infer,
    None,
    ByRegions(),
    regions=("body",),
    region_edges=_edges,
    leading_operands="mapped",
)


@dataclass(frozen=True, slots=True)
class ParallelMapParts:
    """The parts of a `parallel_map` node.

    `forms` tells of each result whether it is a stack, a list or a sum; `limits` has how many
    `lanes` and `threads` there are at most, and how many elements a `chunk` has, where that is
    said; `is_numbered` whether errors tell the positions of elements.
    """

    mapped: tuple[Value, ...]
    starts: tuple[Value, ...]
    invariants: tuple[Value, ...]
    body: Graph
    forms: tuple[str, ...]
    source: Source | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    is_numbered: bool = True

    @staticmethod
    def of(node: Node) -> ParallelMapParts:
        forms = node.attrs["results"]
        first, after = node.attrs["mapped"], node.attrs["mapped"] + forms.count(SUM)
        operands = node.operands
        return ParallelMapParts(
            operands[:first],
            operands[first:after],
            operands[after:],
            node.regions[0],
            forms,
            node.source,
            {name: node.attrs[name] for name in LIMITS if name in node.attrs},
            node.attrs.get("numbered", True),
        )

    @property
    def options(self) -> Mapping[str, int]:
        """The attributes of a map of the same elements, besides those that count operands."""
        return {**self.limits, **({} if self.is_numbered else {"numbered": False})}

    @property
    def elements(self) -> tuple[Value, ...]:
        """The params of the body that hold the elements."""
        return self.body.params[: len(self.mapped)]

    @property
    def body_invariants(self) -> tuple[Value, ...]:
        """The params of the body that hold the invariants."""
        return self.body.params[len(self.mapped) :]

    def start_of(self, result: int) -> Value:
        """Return where a sum starts."""
        return self.starts[self.forms[:result].count(SUM)]
