"""Which lists share an arena: those that flow into one another, found before any code is written.

Every list value of a graph belongs to a `ListClass`; a carry, its start, its next value and the
loop's result are one class. A `list_new` is made anew at each use, so that two loops which start from the
same empty list have places of their own.

Lists that a loop records together form one arena of records (D22): a *tape* is a list made empty
for one `While` and pushed once a trip, and nothing else happens to it; all tapes of a loop that are
pushed in the same region lie side by side in records, and one check of the capacity serves all.
Where the elements are the tapes that an inner loop has filled together, one place in the record
says for all where they start and how long they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from wend.backends.native.analysis.list_uses import is_new_list, tape_push
from wend.backends.native.target.value_layout import (
    element_layout,
    layout,
    references,
    refuse,
    width,
)
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, MaybeType, Symbol, TensorType, Type
from wend.ops import lists, maybe, shaping
from wend.ops.control import WhileParts, call, if_, while_

Use: TypeAlias = tuple[Node | Graph, int]  # the operand of a node, or the result of a graph


@dataclass(eq=False, repr=False, slots=True)
class Arena:
    """Where the records of one or more places lie.

    Attributes:
        number: counts the arenas.
        stride: the slots of a record.
        references: those that are pointers to arrays, which the record keeps alive.
        is_given: whether the records of an argument are read where they lie; then how far it is
            from one to the next is known when the program runs.
    """

    number: int
    stride: int = 0
    references: list[int] = field(default_factory=list)
    is_given: bool = False


@dataclass(eq=False, repr=False, slots=True)
class ListClass:
    """Lists that flow into one another.

    Attributes:
        element: the type of their elements.
        inner: the place of the elements, where these are lists.
        makers: where such lists are made from nothing, or as a copy.
        pushes: the nodes that append.
        writes: the nodes that pop or change an element.
        arena: where the records lie; `offset` is the first slot in them.
        tape: the loop and its carry that this is the tape of.
    """

    element: Type
    inner: ListClass | None
    makers: list[Use] = field(default_factory=list)
    pushes: list[Node] = field(default_factory=list)
    writes: list[Node] = field(default_factory=list)
    parent: ListClass | None = None
    arena: Arena = field(default_factory=lambda: Arena(-1))
    offset: int = 0
    tape: Node | None = None


def root(place: ListClass) -> ListClass:
    """The representative of a place."""
    while place.parent is not None:
        place = place.parent
    return place


def layout_of(places: Iterable[ListClass]) -> tuple[str, ...]:
    """How lists of a place lie in records, and the lists in them: as `slots.layout` says it."""
    return tuple(element_layout(place.element) for place in places)


def _new_place(type: Type) -> ListClass | None:
    match type:
        case ListType(element=element):
            return ListClass(element, _new_place(element))
        case MaybeType(of=inner):
            return _new_place(inner)
    return None


def _wider(a: Type, b: Type) -> Type | None:
    """A type whose values can hold those of two types that differ in what is known of sizes."""
    match a, b:
        case TensorType(), TensorType() if a.dtype == b.dtype:
            if a.rank is None or a.rank != b.rank:
                return a if a.rank is None else a.with_shape(None)
            pairs = zip(a.dims, b.dims, strict=True)
            return a.with_shape(tuple(x if x == y else Symbol("any") for x, y in pairs))
        case ListType(element=x), ListType(element=y):
            inner = _wider(x, y)
            return None if inner is None else ListType(inner)
        case MaybeType(of=x), MaybeType(of=y):
            inner = _wider(x, y)
            return None if inner is None else MaybeType(inner)
    return a if a == b else None


class ListClasses:
    """The places of a graph and their arenas."""

    def __init__(self, graph: Graph) -> None:
        self._of: dict[Value, ListClass | None] = {}
        self._of_use: dict[Use, ListClass | None] = {}
        self._node: Node | None = None
        for param in graph.params:
            self._place(param)  # an argument is written into its arena, whether it is used or not
        self._visit(graph)
        self.arenas: list[Arena] = []
        self._leading: set[Node] = set()
        self._find_tapes(graph)
        self._find_given(graph)
        self._all = self._roots()
        for place in self._all:
            if place.arena.number < 0:
                place.arena = self._new_arena()
                place.arena.stride = max(width(place.element), 1)
            place.arena.references += [place.offset + k for k in references(place.element)]

    def of(self, value: Value) -> ListClass:
        """The place of a list value."""
        place = self._place(value)
        assert place is not None, f"{value!r} is no list"
        return root(place)

    def used(self, owner: Node | Graph, index: int) -> ListClass:
        """The place of a list operand of a node, or of a list among a graph's results."""
        place = self._use(owner, index)
        assert place is not None
        return root(place)

    def maybe_of(self, value: Value) -> ListClass | None:
        """The place of a value, or None where it is no list."""
        place = self._place(value)
        return None if place is None else root(place)

    def maybe_used(self, owner: Node | Graph, index: int) -> ListClass | None:
        """The place of an operand or result, or None where it is no list."""
        place = self._use(owner, index)
        return None if place is None else root(place)

    def leads(self, push: Node) -> bool:
        """Whether a push onto a tape is the first of its record, which makes room for it."""
        return push in self._leading

    def made_in(self, region: Graph) -> Iterator[ListClass]:
        """The places of lists that a region makes, at any depth."""
        owners: set[Node | Graph] = {region, *region.walk()}
        owners.update(inner for node in region.walk() for inner in node.regions)
        for place in self._all:
            if any(owner in owners for owner, _ in place.makers):
                yield place

    def reach(self, value: Value) -> Iterator[ListClass]:
        """The place of a value and of the lists in it."""
        place = self._place(value)
        while place is not None:
            yield root(place)
            place = root(place).inner

    def _find_given(self, graph: Graph) -> None:
        """Read lists where they lie that one argument brings and nobody makes or changes."""
        brought = Counter(place for param in graph.params for place in self.reach(param))
        for param in graph.params:
            places = list(self.reach(param))
            only_read = all(
                brought[p] == 1 and not (p.makers or p.pushes or p.writes) for p in places
            )
            if only_read and layout(param.type) == layout_of(places):
                for place in places:
                    place.arena = self._new_arena()
                    place.arena.is_given = True

    def _roots(self) -> list[ListClass]:
        found: dict[ListClass, None] = {}
        for given in (*self._of.values(), *self._of_use.values()):
            place = given
            while place is not None:
                found[root(place)] = None
                place = root(place).inner
        return list(found)

    def _new_arena(self) -> Arena:
        self.arenas.append(Arena(len(self.arenas)))
        return self.arenas[-1]

    # What flows where
    def _place(self, value: Value) -> ListClass | None:
        if value not in self._of:
            self._of[value] = _new_place(value.type)
        return self._of[value]

    def _use(self, owner: Node | Graph, index: int) -> ListClass | None:
        values = owner.operands if isinstance(owner, Node) else owner.results
        value = values[index]
        if not is_new_list(value):
            return self._place(value)
        if (owner, index) not in self._of_use:
            place = _new_place(value.type)
            assert place is not None
            place.makers.append((owner, index))
            self._of_use[owner, index] = place
        return self._of_use[owner, index]

    def _join(self, a: ListClass | None, b: ListClass | None) -> None:
        if a is None or b is None:
            return
        a, b = root(a), root(b)
        if a is b:
            return
        both = _wider(a.element, b.element)
        if both is None:
            assert self._node is not None
            raise refuse(self._node, f"lists of {a.element} and of {b.element} meet here")
        a.element = both
        self._join(a.inner, b.inner)
        b.parent = a
        a.makers += b.makers
        a.pushes += b.pushes
        a.writes += b.writes

    def _visit(self, graph: Graph) -> None:
        for node in graph.nodes:
            self._node = node
            self._flow(node)
            for region in node.regions:
                self._visit(region)
        for k in range(len(graph.results)):
            self._use(graph, k)

    def _flow(self, node: Node) -> None:
        if node.op is lists.list_new:
            return  # its uses have places; one of its own would be an arena that nobody fills
        given = [self._use(node, k) for k in range(len(node.operands))]
        results = [self._place(result) for result in node.results]
        if node.op is while_:
            self._flow_while(node, given)
        elif node.op is if_ or node.op is call:
            inputs = given[1:] if node.op is if_ else given
            for branch in node.regions:
                for param, place in zip(branch.params, inputs, strict=True):
                    self._join(self._place(param), place)
                for k, result in enumerate(results):
                    self._join(result, self._use(branch, k))
        elif node.op is lists.list_push:
            self._join(results[0], given[0])
            self._join_element(given[0], given[1])
            self._root(given[0]).pushes.append(node)
        elif node.op is lists.list_pop:
            self._join(results[0], given[0])
            self._join_element(given[0], results[1])
            self._root(given[0]).writes.append(node)
        elif node.op is lists.list_get:
            self._join_element(given[0], results[0])
        elif node.op in (lists.list_set, lists.list_add_at):
            self._join(results[0], given[0])
            if node.op is lists.list_set or isinstance(self._root(given[0]).element, MaybeType):
                self._join_element(given[0], given[2])
            else:
                self._join_shared(self._root(given[0]).inner, given[2])
            self._root(given[0]).writes.append(node)
        elif node.op in (lists.list_zeros, lists.list_add, lists.list_unstack):
            self._make(results[0], (node, 0))
            if node.op is lists.list_add:
                for place in given:
                    self._join_shared(results[0], place)
        elif node.op in (maybe.autograd_add, maybe.instantiate, maybe.present, shaping.refine):
            for place in given:
                self._join(results[0], place)
            if node.op is maybe.autograd_add:
                self._make(results[0], (node, 0))

    def _join_shared(self, total: ListClass | None, part: ListClass | None) -> None:
        """Join what a sum of lists may take over from one of them: lists that may be absent."""
        while total is not None and part is not None:
            total, part = root(total), root(part)
            if isinstance(total.element, MaybeType):
                self._join(total.inner, part.inner)
                return
            total, part = total.inner, part.inner

    def _make(self, place: ListClass | None, use: Use) -> None:
        """Note that lists are made here, those inside lists included."""
        while place is not None:
            root(place).makers.append(use)
            place = root(place).inner

    def _root(self, place: ListClass | None) -> ListClass:
        assert place is not None
        return root(place)

    def _join_element(self, list: ListClass | None, element: ListClass | None) -> None:
        self._join(self._root(list).inner, element)

    def _flow_while(self, node: Node, given: list[ListClass | None]) -> None:
        w = WhileParts.of(node)
        count = len(w.carry)
        for k, param in enumerate(w.before_carry):
            self._join(self._place(param), given[k])
            self._join(self._place(param), self._use(w.after, k))
        for k, param in enumerate(w.after_forwarded):
            self._join(self._place(param), self._use(w.before, k + 1))
            self._join(self._place(param), self._place(node.results[k]))
        for params in (w.before_invariants, w.after_invariants):
            for param, place in zip(params, given[count:], strict=True):
                self._join(self._place(param), place)

    # Tapes
    def _find_tapes(self, graph: Graph) -> None:
        for node in reversed(list(graph.walk())):  # inner loops first
            if node.op is not while_:
                continue
            w = WhileParts.of(node)
            together: dict[Graph, Arena] = {}
            pushes: dict[Graph, list[Node]] = {}
            offsets: dict[tuple[Graph, Arena], int] = {}
            for k, start in enumerate(w.carry):
                if not is_new_list(start):
                    continue
                region, push = tape_push(w, k)
                place = self.used(node, k)
                alone = place.makers == [(node, k)] and place.pushes == [push]
                if region is None or not alone or place.writes:
                    continue
                if region not in together:
                    together[region] = self._new_arena()
                    pushes[region] = []
                assert push is not None
                pushes[region].append(push)
                place.tape = node
                arena = place.arena = together[region]
                inner = self._pushed_tape(push)
                if inner is not None and (region, inner) in offsets:
                    place.offset = offsets[region, inner]
                    continue
                place.offset = arena.stride
                arena.stride += width(place.element)
                if inner is not None:
                    offsets[region, inner] = place.offset
            for region, nodes in pushes.items():
                self._leading.add(min(nodes, key=region.nodes.index))

    def _pushed_tape(self, push: Node) -> Arena | None:
        """The arena of the tape that a push appends: tapes that share one start and end alike."""
        value = push.operands[1]
        if not isinstance(value.type, ListType):
            return None
        place = self.used(push, 1)
        return place.arena if place.tape is not None and place.tape is value.node else None
