"""The state of lowering a graph: what is threaded through it, and how values get their form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.checks import (
    Raise,
    RunCheck,
    encode,
    has_elements,
    with_elements,
    word_count,
)
from wend.backends.jax.host_log import HostLog
from wend.backends.jax.list_classes import CapacityClass, CapacityClasses
from wend.backends.jax.meshes import ONE_DEVICE, Placement, RowAxes
from wend.backends.jax.trips import Countdown
from wend.backends.jax.values import (
    DeviceList,
    Maybe,
    NewList,
    Stacked,
    TapeSegment,
    TripList,
    empty_segments,
    is_static,
    own,
)
from wend.base.config import settings
from wend.base.errors import UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.source import at
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import (
    Dim,
    HostType,
    ListType,
    MaybeType,
    Symbol,
    TensorType,
    Type,
    without_maybe,
)
from wend.ops import lists
from wend.ops.control import call, if_, while_
from wend.ops.indexing import nonzero
from wend.ops.parallel_map import parallel_map

T = TypeVar("T")

LOOP = "another loop"  # where a region may be
LEAST_CAPACITY = 16
# A list takes at most so much before a run has told how long it gets: a program that has too little
# room is compiled once more, and zeros of this size take microseconds
_FIRST_BYTES = 1 << 17


class Repeat(Exception):
    """A lowering starts again: lists of a class need more room than some were made with."""


_MOST_REPEATS = 100


def repeated(make: Callable[[], GraphLowering], lower: Callable[[GraphLowering], T]) -> T:
    """Return what `lower` makes of a new lowering, in which all lists of a class have one room."""
    for _ in range(_MOST_REPEATS):
        ctx = make()
        try:
            return lower(ctx)
        except Repeat:
            node = ctx.node
    where = "" if node is None else f" of {node.op.name}{at(node.source)}"
    raise AssertionError(f"the room for the lists{where} is not settled; this is an error in wend.")


class Progress(NamedTuple):
    """The state that every node passes on to the next, besides values.

    Attributes:
        code: the number of the check that failed first; 0: none.
        words: what the check has kept for its message.
        lengths: the greatest length that the lists of each class had.
    """

    code: Any
    words: Any
    lengths: tuple[Any, ...]


class GraphLowering:
    """One lowering of a graph, for arguments of known shapes.

    Attributes:
        classes: the classes of the graph's lists.
        capacities: how many elements the lists of a class have room for.
        host: the log of the Python calls of a run.
        placement: where the arguments lie.
        rows: the axes of the mesh that the rows of values are spread over, where that is known.
        checks: the checks of the program; the code of one is its position plus one.
        host_nodes: the nodes that the program leaves to Python.
        progress: what has been passed on so far.
        noted: the classes whose lengths the run tells.
        live_classes: the classes of lists that are checked when the loop around has ended.
        bounded_classes: the classes of lists that a loop around makes longer, and has bounds for.
        bounds: the most elements that lists of a class have had in loops of bounded trips.
        segments: the shapes of the segments in lists of a class.
        in_flight: the segments between the device and the host's memory, by the node that moves.
        countdowns: in which order nodes get segments.
        enclosing: the loops, branches and maps around, in words.
        copies: how many elements of maps around have a list of their own.
        axes: the names of the axes along which these maps have their elements.
        grows: whether the host runs the program once more where a list has had too little room;
            else each list has room for the most that it can hold.
        active: whether the element that a map computes is in the loop or branch that is lowered;
            None outside of maps.
    """

    def __init__(
        self,
        graph: Graph,
        classes: CapacityClasses,
        capacities: dict[int, int],
        host: HostLog,
        placement: Placement = ONE_DEVICE,
        segments: dict[int, TapeSegment] | None = None,
        *,
        grows: bool = True,
    ) -> None:
        self.classes = classes
        self.grows = grows
        self.capacities = capacities
        self.host = host
        self.placement = placement
        self.rows: dict[Value, RowAxes] = {}
        self.checks: list[RunCheck] = []
        self.host_nodes: dict[Node, None] = {}
        self.word_count = word_count(graph)
        self.live_classes: frozenset[CapacityClass] = frozenset()
        self.bounded_classes: frozenset[CapacityClass] = frozenset()
        self.noted: set[int] = set()
        self.bounds: dict[int, int] = {}
        self.segments: dict[int, TapeSegment] = {} if segments is None else segments
        self.in_flight: dict[Node, Any] = {}
        self.countdowns: dict[Node, Countdown] = {}
        self.enclosing: list[str] = []
        self.copies = 1
        self.axes: tuple[str, ...] = ()
        self.active: Any = None
        self.node: Node | None = None  # the one that is lowered
        self._in_use: set[int] = set()  # the classes of which there are lists
        self._dims: dict[Symbol, int] = {}
        self._common: dict[int, tuple[Any, Any]] = {}  # by the id of a traced integer
        self._rooms: dict[int, tuple[Any, int]] = {}  # by the id of a traced shape
        self._most: dict[int, tuple[Any, int]] = {}  # by the id of a traced integer, which is kept
        self._most_elements: dict[int, int | None] = {}  # by the class of a list
        zero = jnp.int32(0)
        words = encode((), self.word_count)
        self.progress = Progress(zero, words, (zero,) * classes.count)

    # Regions
    @contextmanager
    def scope(self, progress: Progress | None) -> Iterator[None]:
        """Lower a region that has the progress of its own; None: it passes on nothing."""
        outer, self.progress = self.progress, progress or self.progress
        try:
            yield
        finally:
            self.progress = outer

    @contextmanager
    def masked(self, active: Any) -> Iterator[None]:
        """Lower a loop or a branch that only some elements of a map are in."""
        outer, self.active = self.active, active
        try:
            yield
        finally:
            self.active = outer

    @contextmanager
    def inside(self, what: str) -> Iterator[None]:
        """Lower a region of a loop, a branch or a map."""
        self.enclosing.append(what)
        try:
            yield
        finally:
            self.enclosing.pop()

    @contextmanager
    def for_each_of(self, count: int) -> Iterator[None]:
        """Lower what a map computes for each of so many elements."""
        outer = self.copies, self.axes
        self.copies *= count
        self.axes = (*self.axes, f"map {len(self.axes)}")
        try:
            yield
        finally:
            self.copies, self.axes = outer

    # Sizes
    def bind(self, type: Type, value: Any) -> None:
        """Note the sizes that the symbols of a type stand for."""
        if isinstance(type, MaybeType):
            if isinstance(value, Maybe):
                self.bind(type.of, value.value)
            elif value is not ZERO:
                self.bind(type.of, value)
        elif isinstance(type, TensorType) and type.shape and not isinstance(value, Stacked):
            for dim, size in zip(type.shape, np.shape(value), strict=True):
                if isinstance(dim, Symbol):
                    self._dims[dim] = size
        elif isinstance(type, ListType) and isinstance(value, DeviceList):
            self._bind_items(type.element, value.items, 1)
        elif isinstance(type, ListType) and isinstance(value, TripList):
            self._bind_items(type.element, value.items, 1 + len(value.axes))

    def _bind_items(self, type: Type, items: Any, levels: int) -> None:
        match type:
            case MaybeType(of=inner):
                self._bind_items(inner, items.value if isinstance(items, Maybe) else items, levels)
            case ListType(element=element):
                self._bind_items(element, items.items, levels + 1)
            case TensorType(shape=shape) if shape and not isinstance(items, Stacked):
                for dim, size in zip(shape, np.shape(items)[levels:], strict=True):
                    if isinstance(dim, Symbol):
                        self._dims[dim] = size

    def size(self, dim: Dim) -> int | None:
        """Return the size that a dimension stands for, or None if that is not known."""
        return self._dims.get(dim) if isinstance(dim, Symbol) else dim

    def sizes(self, dims: Sequence[Dim] | None) -> tuple[int, ...] | None:
        """Return the sizes that dimensions stand for, or None if one is not known."""
        sizes = None if dims is None else [self.size(dim) for dim in dims]
        if sizes is None or None in sizes:
            return None
        return tuple(sizes)  # type: ignore[arg-type]

    def shape_of(self, node: Node, sizes: Sequence[Any], dims: Sequence[Dim] | None) -> Any:
        """Return the shape that an operand gives, or else an attribute.

        Raises:
            UnsupportedError: it depends on data.
        """
        if sizes and is_static(sizes[0]):
            return tuple(int(size) for size in sizes[0])
        shape = self.sizes(dims)
        if shape is None:
            raise self.data_dependent(node)
        return shape

    def data_dependent(self, node: Node) -> Exception:
        """Return the refusal of a shape that only the run knows."""
        return refusal(
            UnsupportedError(
                explain(
                    f'backend="jax": the shape of what {node.op.name}{at(node.source)} gives '
                    "depends on data, and programs of XLA have arrays of known shapes only.",
                    cure='run this function with backend="native", or keep the shape: '
                    "np.where(mask, x, 0) in place of x[mask]."
                    if node.op is nonzero
                    else _KNOWN_SIZES,
                )
            )
        )

    # Devices
    def propagate_row_axes(self, node: Node) -> None:
        """Note that results have rows where those of an operand of their length are."""
        for operand in node.operands:
            axes, length = self.rows.get(operand), _length(operand)
            for result in node.results:
                if axes is not None and length is not None and _length(result) == length:
                    self.rows.setdefault(result, axes)

    def note_host_node(self, node: Node) -> None:
        """Note that a node calls Python.

        Raises:
            UnsupportedError: arguments lie on several devices, and nobody has asked to gather them.
        """
        if self.placement.is_multi_device and not settings().jax_gather:
            raise refusal(
                UnsupportedError(
                    explain(
                        f'backend="jax": {node.op.name}{at(node.source)} calls Python, and the '
                        "arguments lie on several devices.",
                        cure="leave it out of the function; or gather what it takes at each "
                        "call: wend.config(jax_gather=True).",
                    )
                )
            )
        self.host_nodes[node] = None

    # Checks
    def check(self, node: Node, is_failing: Any, fail: Raise, *values: Any) -> None:
        """Add a check that fails where a predicate holds; `fail` raises its error."""
        if is_static(is_failing) and not is_failing:
            return
        types = [(np.dtype(jnp.result_type(x)), np.shape(x)) for x in values]
        self.checks.append(RunCheck(node, fail, types))
        code, words, lengths = self.progress
        is_first = jnp.logical_and(is_failing, code == 0)
        code = jnp.where(is_first, jnp.int32(len(self.checks)), code)
        if values:  # else what the words are does not matter, and a loop need not carry them
            words = jnp.where(is_first, encode(values, self.word_count), words)
        self.progress = Progress(code, words, lengths)

    def note_elements(self, numbers: Sequence[Any], code: Any) -> None:
        """Note the elements of nested maps, if a check has failed since there was a code.

        Those of another map inside are noted before, with what is around them.
        """
        last, words, lengths = self.progress
        is_new = jnp.logical_and(code == 0, last != 0) & ~has_elements(words)
        noted = jnp.where(is_new, with_elements(words, numbers), words)
        self.progress = Progress(last, noted, lengths)

    def note_length(self, list_class: CapacityClass, length: Any, node: Node) -> None:
        """Note the length that a list has had, of which it has no bound.

        Raises:
            UnsupportedError: lists cannot grow.
        """
        if not self.grows:
            raise refusal(UnsupportedError(_unbounded(node)))
        code, words, lengths = self.progress
        k = list_class.number
        self.noted.add(k)
        longest = jnp.maximum(lengths[k], jnp.asarray(length, jnp.int32))
        self.progress = Progress(code, words, (*lengths[:k], longest, *lengths[k + 1 :]))

    def bound(self, list_class: CapacityClass, most: int) -> None:
        """Note how long a list of a class gets at most, so that it has room for no more."""
        number = list_class.number
        self.bounds[number] = max(self.bounds.get(number, 0), most)
        room = self.capacities.get(number, most)
        if not self.grows and room < most:
            # Twice the room: many pushes, each of which needs a little more, repeat few times
            self.capacities[number] = max(most, 2 * room)
            raise Repeat

    # The most that integers can be, which bounds the trips of loops that count them down
    def note_most(self, x: Any, most: int | None) -> None:
        """Note the most that a traced integer, or each of an array, can be; None: not known."""
        x = x.value if isinstance(x, Maybe) else x
        if most is not None:
            self._most[id(x)] = x, most

    def most_of(self, x: Any) -> int | None:
        """Return the most that an integer, or each of an array, can be; None if not known."""
        if x is ZERO:
            return 0
        x = x.value if isinstance(x, Maybe) else x
        if is_static(x):
            return int(np.max(x)) if x.size and x.dtype.kind in "iu" else None
        return self._most[id(x)][1] if id(x) in self._most else None

    def note_most_element(self, list_class: CapacityClass, most: int | None) -> None:
        """Note the most that an integer in a list can be."""
        number = list_class.number
        before = self._most_elements.get(number, most)
        # Zeros are read where there is no element
        known = None if most is None or before is None else max(most, before, 0)
        self._most_elements[number] = known

    def most_element(self, list_class: CapacityClass | None) -> int | None:
        """Return the most that an integer in a list of a class can be; None if not known."""
        if list_class is None or self.grows:  # lists that grow may come from another run
            return None
        return self._most_elements.get(list_class.number)

    def has_room(self, number: int, progress: Progress) -> Any:
        """Return whether no list of a class has lost an element so far."""
        return progress.lengths[number] <= self.capacities.get(number, LEAST_CAPACITY)

    # Integers that are one for all elements of maps that are in a trip
    def note_common(self, x: Any, common: Any) -> None:
        """Note what an integer is in each element of the maps around that is in the trip."""
        self._common[id(x)] = x, common

    def common(self, x: Any) -> Any:
        """Return what an integer is in each element that is in the trip; None if they differ."""
        return self._common[id(x)][1] if id(x) in self._common else None

    # Shapes of arrays whose first size only the run knows
    def note_room_in(self, sizes: Any, room: int) -> None:
        """Note for how many rows there is room in an array of some sizes."""
        self._rooms[id(sizes)] = sizes, room

    def room_in(self, sizes: Any) -> int | None:
        """Return for how many rows there is room in an array of some sizes; None if not known."""
        return self._rooms[id(sizes)][1] if id(sizes) in self._rooms else None

    # Forms
    def new_list(self, type: ListType, list_class: CapacityClass, least: int = 0) -> DeviceList:
        """Return an empty list, with room for as many elements as its class needs."""
        number, zero = list_class.number, jnp.int32(0)
        if number in self.segments:
            capacity = self._room(list_class, least)
            return DeviceList(empty_segments(self.segments[number], capacity), zero)
        with self.inside(LOOP):  # which has made a list that is an element
            element = self.zeros(type.element, list_class.element)
        first = self._first_capacity(type, list_class, element)
        capacity = self._room(list_class, least, first)
        items = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), element)
        return DeviceList(items, zero)

    def _room(self, list_class: CapacityClass, least: int, first: int = LEAST_CAPACITY) -> int:
        """Return how many elements lists of a class have room for.

        Args:
            list_class: the class.
            least: how many elements a list has that belongs to the class.
            first: the room if no list has had any so far.

        Raises:
            Repeat: there are lists with less room, which this one may meet.
        """
        number = list_class.number
        before = self.capacities.get(number) or first
        self.capacities[number] = capacity = max(before, least, 1)
        if capacity > before and number in self._in_use:
            raise Repeat
        self._in_use.add(number)
        return capacity

    def _first_capacity(self, type: ListType, list_class: CapacityClass, element: Any) -> int:
        """Return how many elements a list has room for that no run has filled yet.

        The levels of a nest of loops share what a list takes.
        """
        if not self.grows:
            return self.bounds.get(list_class.number, LEAST_CAPACITY)
        if isinstance(without_maybe(type.element), HostType):
            return LEAST_CAPACITY  # of what, is not known: it may be segments of megabytes
        size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(element))
        room = _FIRST_BYTES / max(size * self.copies, 1)
        share = room ** (1 / (1 + self.enclosing.count(LOOP)))
        capacity = max(1 << round(math.log2(max(share, 1))), LEAST_CAPACITY)
        return min(capacity, self.bounds.get(list_class.number, capacity))

    def zeros(self, type: Type, list_class: CapacityClass | None) -> Any:
        """Return a value of a type that has no elements, or is all zeros."""
        match type:
            case TensorType(dtype=dtype, shape=shape):
                sizes = self.sizes(shape)
                if sizes is None:
                    raise refusal(
                        UnsupportedError(
                            explain(
                                f'backend="jax": the shape of a value that a loop or a branch '
                                f"makes, {type}, depends on data, and programs of XLA have arrays "
                                "of known shapes only.",
                                cure='run this function with backend="native".',
                            )
                        )
                    )
                return jnp.zeros(sizes, dtype)
            case MaybeType(of=inner):
                return Maybe(jnp.bool_(False), self.zeros(inner, list_class))
            case ListType():
                assert list_class is not None
                return self.new_list(type, list_class)
            case HostType():
                return jnp.int32(0)
        return None

    def fit(self, value: Any, type: Type, list_class: CapacityClass | None, least: int = 0) -> Any:
        """Return a value in the one form that all values of its type have where paths meet."""
        match type:
            case MaybeType(of=inner):
                if value is ZERO:
                    return self.zeros(type, list_class)
                if isinstance(value, Maybe):
                    return Maybe(value.is_present, self.fit(value.value, inner, list_class))
                return Maybe(jnp.bool_(True), self.fit(value, inner, list_class))
            case ListType():
                assert list_class is not None
                if isinstance(value, NewList):
                    return self.new_list(type, list_class, least)
                is_in_loop = isinstance(value, TripList) and value.row is not None
                return self.fit_list(value if is_in_loop else own(value), list_class, least)
            case TensorType(dtype=dtype):
                if isinstance(value, Stacked):
                    raise refusal(UnsupportedError(_stacked(self.node)))
                return jnp.asarray(value, dtype)
        return value

    def fit_list(
        self, value: DeviceList | TripList, list_class: CapacityClass, least: int = 0
    ) -> DeviceList | TripList:
        """Return a list with as much room as its class has."""
        items = self._fit_items(value.items, list_class, 0, least)
        length = jnp.asarray(value.length, jnp.int32)
        if isinstance(value, TripList):
            return replace(value, items=items, length=length)
        return DeviceList(items, length)

    def _fit_items(self, items: Any, list_class: CapacityClass, axis: int, least: int = 0) -> Any:
        """Return items of lists of a class, which have them along an axis, with room for more."""
        room: int = jax.tree.leaves(items)[0].shape[axis]
        items = padded(items, self._room(list_class, max(room, least)), axis)
        return self._fit_elements(items, list_class.element, axis + 1)

    def _fit_elements(self, items: Any, list_class: CapacityClass | None, axis: int) -> Any:
        """Return items that are lists, if a class is given, with as much room as it has."""
        match items:
            case Maybe():
                return Maybe(items.is_present, self._fit_elements(items.value, list_class, axis))
            case DeviceList():
                assert list_class is not None
                return DeviceList(self._fit_items(items.items, list_class, axis), items.length)
        return items

    def fit_result(self, value: Any, owner: Value, least: int = 0) -> Any:
        """Return a value in the form of another one, which it is passed on to."""
        return self.fit(value, owner.type, self.classes.of(owner), least)

    def operands_of(self, node: Node, operands: Sequence[Any]) -> list[Any]:
        """Return the operands of a node, with a list of its own for each empty one."""

        def with_list(k: int, x: Any) -> Any:
            if isinstance(x, TripList):
                return x if node.op in _TAKES_ROWS else own(x)
            if not isinstance(x, NewList) or node.op is lists.list_new:
                return x
            value = self.fit(x, node.operands[k].type, self.classes.of_use(node, k))
            return DeviceList(value.items, value.length, 0)

        return [with_list(k, x) for k, x in enumerate(operands)]


def _length(value: Value) -> Dim | None:
    type = value.type
    return type.shape[0] if isinstance(type, TensorType) and type.shape else None


# Operations that take lists of the elements of maps as they are
_TAKES_ROWS = {lists.list_push, lists.list_get, lists.list_len, if_, call, parallel_map}

# What holds for arrays of lists, and parts of arrays, of which only the run knows the length
_KNOWN_SIZES = (
    'run this function with backend="native", or keep sizes that the arguments have: an array '
    "with a mask, or a count, in place of a list or of a part."
)


def _stacked(node: Node | None) -> str:
    where = "" if node is None else at(node.source)
    return explain(
        'backend="jax": the result of a loop, a branch or a call that JAX traces is an array whose '
        f"number of elements depends on data, as that of a list or of x[:k]{where}, and programs "
        "of XLA have arrays of known shapes only.",
        cure=_KNOWN_SIZES,
    )


def _unbounded(node: Node) -> str:
    what = "the tape of the loop" if node.op is while_ else f"the list of {node.op.name}"
    return explain(
        f'backend="jax": JAX is tracing this call, and {what}{at(node.source)} has no bound: the '
        "program cannot be run once more with more room for it.",
        cure="bound the trips: wend.while_loop(…, maximum_iterations=n), or count them in the test "
        'of the loop; and keep the record of each trip: memory="keep". Or, for first '
        "gradients, keep a fixed number of records: memory=wend.Checkpoints(n).",
    )


def unsized(value: Any) -> Any:
    """Return a value whose lists have lengths that only the run knows."""
    if isinstance(value, DeviceList):
        return DeviceList(unsized(value.items), value.length)
    if isinstance(value, Maybe):
        return Maybe(value.is_present, unsized(value.value))
    return value


def padded(items: Any, capacity: int, axis: int) -> Any:
    """Return items with room for so many along an axis."""

    def pad(x: Any) -> Any:
        missing = capacity - x.shape[axis]
        widths = [(0, missing if k == axis else 0) for k in range(x.ndim)]
        return x if missing <= 0 else jnp.pad(x, widths)

    return jax.tree.map(pad, items)


Emitter = Callable[[GraphLowering, Node, Sequence[Any]], Any]
