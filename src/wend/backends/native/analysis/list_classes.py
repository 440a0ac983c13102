"""Alias classes of lists, which share an arena, computed before code generation.

Every list value of a graph belongs to a `ListClass`: a union-find merges a carry, its start, its
next value and the loop's result. A `list_new` makes a new list at each use, so two loops that
start from the same empty list have classes of their own.

Lists that a loop records together form one arena of records (D22). A *tape* is a list that is
created empty for one `While` and pushed once per iteration, with no other use. All tapes of a loop
that are pushed in the same region lie side by side in records, so one capacity check serves all of
them. If the elements are tapes that an inner loop has filled together, one slot pair in the record
holds the start and length of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field

from wend.backends.native.analysis.list_uses import is_new_list, tape_push
from wend.backends.native.target.value_layout import (
    element_layout,
    is_list,
    list_layout,
    num_slots,
    references,
    refuse,
)
from wend.base.lazy.dataclass import dataclass
from wend.ir.dataflow import Use, region_edges, region_flow, used_value
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, MaybeType, Symbol, TensorType, Type
from wend.ops import lists, maybe, shaping
from wend.ops.control import WhileParts, while_


@dataclass(eq=False, repr=False, slots=True)
class Arena:
    """The storage of the records of one or more list classes.

    Attributes:
        number: the index of the arena.
        stride: the number of slots of a record.
        references: the slots that are pointers to arrays, which the record keeps alive.
        is_argument: whether it is the records of an argument, read in place; their stride is then
            known at run time only.
    """

    number: int
    stride: int = 0
    references: list[int] = field(default_factory=list)
    is_argument: bool = False


@dataclass(eq=False, repr=False, slots=True)
class ListClass:
    """Lists that may alias: a node of a union-find.

    Attributes:
        element: the type of their elements.
        inner: the class of the elements, if these are lists.
        allocation_sites: the uses where such lists are created, empty or as a copy.
        pushes: the nodes that append.
        writes: the nodes that pop or update an element.
        parent: the class that this one was merged into.
        arena: where the records lie.
        offset: the first slot of the elements in a record.
        tape: the loop that this is a tape of.
    """

    element: Type
    inner: ListClass | None
    allocation_sites: list[Use] = field(default_factory=list)
    pushes: list[Node] = field(default_factory=list)
    writes: list[Node] = field(default_factory=list)
    parent: ListClass | None = None
    arena: Arena = field(default_factory=lambda: Arena(-1))
    offset: int = 0
    tape: Node | None = None


def root(list_class: ListClass) -> ListClass:
    """Return the representative of a class."""
    while list_class.parent is not None:
        list_class = list_class.parent
    return list_class


def layout_of(list_classes: Iterable[ListClass]) -> tuple[str, ...]:
    """Return the record layout of nested list classes, as `value_layout.list_layout` does."""
    return tuple(element_layout(list_class.element) for list_class in list_classes)


def _new_class(type: Type) -> ListClass | None:
    match type:
        case ListType(element=element):
            return ListClass(element, _new_class(element))
        case MaybeType(of=inner):
            return _new_class(inner)
    return None


def _common_type(a: Type, b: Type) -> Type | None:
    """Return a type that holds the values of two types which differ in known sizes only."""
    match a, b:
        case TensorType(), TensorType() if a.dtype == b.dtype:
            if a.rank is None or a.rank != b.rank:
                return a if a.rank is None else a.with_shape(None)
            pairs = zip(a.dims, b.dims, strict=True)
            return a.with_shape(tuple(x if x == y else Symbol("any") for x, y in pairs))
        case ListType(element=x), ListType(element=y):
            inner = _common_type(x, y)
            return None if inner is None else ListType(inner)
        case MaybeType(of=x), MaybeType(of=y):
            inner = _common_type(x, y)
            return None if inner is None else MaybeType(inner)
    return a if a == b else None


class ListClasses:
    """The list classes of a graph and their arenas."""

    def __init__(self, graph: Graph) -> None:
        self._value_classes: dict[Value, ListClass | None] = {}
        self._use_classes: dict[Use, ListClass | None] = {}
        self._current_node: Node | None = None
        for param in graph.params:
            self._class_of(param)  # arguments have an arena even if unused
        self.arenas: list[Arena] = []
        self._leading_pushes: set[Node] = set()
        if any(map(is_list, graph.types)):
            self._visit(graph)
            self._find_tapes(graph)
        self._find_borrowed_arguments(graph)
        self._all_classes = self._roots()
        for list_class in self._all_classes:
            if list_class.arena.number < 0:
                list_class.arena = self._new_arena()
                list_class.arena.stride = max(num_slots(list_class.element), 1)
            list_class.arena.references += [
                list_class.offset + k for k in references(list_class.element)
            ]

    def of(self, value: Value) -> ListClass:
        """Return the class of a list value."""
        list_class = self._class_of(value)
        assert list_class is not None, f"{value!r} is no list"
        return root(list_class)

    def of_use(self, owner: Node | Graph, index: int) -> ListClass:
        """Return the class of a list operand of a node, or of a list result of a graph."""
        list_class = self._class_of_use(owner, index)
        assert list_class is not None
        return root(list_class)

    def of_or_none(self, value: Value) -> ListClass | None:
        """Return the class of a value, or None if it is not a list."""
        list_class = self._class_of(value)
        return None if list_class is None else root(list_class)

    def of_use_or_none(self, owner: Node | Graph, index: int) -> ListClass | None:
        """Return the class of an operand or result, or None if it is not a list."""
        list_class = self._class_of_use(owner, index)
        return None if list_class is None else root(list_class)

    def starts_record(self, push: Node) -> bool:
        """Return whether a push onto a tape is the first of its record, which reserves space."""
        return push in self._leading_pushes

    def allocated_in(self, region: Graph) -> Iterator[ListClass]:
        """Yield the classes of the lists that a region allocates, at any depth."""
        owners: set[Node | Graph] = {region, *region.walk()}
        owners.update(inner for node in region.walk() for inner in node.regions)
        for list_class in self._all_classes:
            if any(owner in owners for owner, _ in list_class.allocation_sites):
                yield list_class

    def nested(self, value: Value) -> Iterator[ListClass]:
        """Yield the class of a value and of the lists in it, outermost first."""
        list_class = self._class_of(value)
        while list_class is not None:
            yield root(list_class)
            list_class = root(list_class).inner

    def _find_borrowed_arguments(self, graph: Graph) -> None:
        """Read in place the lists of arguments that alias nothing and are never changed."""
        argument_counts = Counter(
            list_class for param in graph.params for list_class in self.nested(param)
        )
        for param in graph.params:
            list_classes = list(self.nested(param))
            only_read = all(
                argument_counts[p] == 1 and not (p.allocation_sites or p.pushes or p.writes)
                for p in list_classes
            )
            if only_read and list_layout(param.type) == layout_of(list_classes):
                for list_class in list_classes:
                    list_class.arena = self._new_arena()
                    list_class.arena.is_argument = True

    def _roots(self) -> list[ListClass]:
        roots: dict[ListClass, None] = {}
        for start in (*self._value_classes.values(), *self._use_classes.values()):
            list_class = start
            while list_class is not None:
                roots[root(list_class)] = None
                list_class = root(list_class).inner
        return list(roots)

    def _new_arena(self) -> Arena:
        self.arenas.append(Arena(len(self.arenas)))
        return self.arenas[-1]

    # Unification
    def _class_of(self, value: Value) -> ListClass | None:
        if value not in self._value_classes:
            self._value_classes[value] = _new_class(value.type)
        return self._value_classes[value]

    def _class_of_use(self, owner: Node | Graph, index: int) -> ListClass | None:
        value = used_value((owner, index))
        if not is_new_list(value):
            return self._class_of(value)
        if (owner, index) not in self._use_classes:
            list_class = _new_class(value.type)
            assert list_class is not None
            list_class.allocation_sites.append((owner, index))
            self._use_classes[owner, index] = list_class
        return self._use_classes[owner, index]

    def _unify(self, a: ListClass | None, b: ListClass | None) -> None:
        if a is None or b is None:
            return
        a, b = root(a), root(b)
        if a is b:
            return
        common = _common_type(a.element, b.element)
        if common is None:
            assert self._current_node is not None
            raise refuse(self._current_node, f"lists of {a.element} and of {b.element} meet here")
        a.element = common
        self._unify(a.inner, b.inner)
        b.parent = a
        a.allocation_sites += b.allocation_sites
        a.pushes += b.pushes
        a.writes += b.writes

    def _visit(self, graph: Graph) -> None:
        for node in graph.nodes:
            self._current_node = node
            self._unify_node(node)
            for region in node.regions:
                self._visit(region)
        for k in range(len(graph.results)):
            self._class_of_use(graph, k)

    def _unify_node(self, node: Node) -> None:
        if node.op is lists.list_new:
            return  # its uses have classes; one of its own would be an arena that is never filled
        operands = [self._class_of_use(node, k) for k in range(len(node.operands))]
        results = [self._class_of(result) for result in node.results]
        if region_edges(node):
            for use, value in region_flow(node):
                self._unify(self._class_of(value), self._class_of_use(*use))
        elif node.op is lists.list_push:
            self._unify(results[0], operands[0])
            self._unify_element(operands[0], operands[1])
            self._root(operands[0]).pushes.append(node)
        elif node.op is lists.list_pop:
            self._unify(results[0], operands[0])
            self._unify_element(operands[0], results[1])
            self._root(operands[0]).writes.append(node)
        elif node.op is lists.list_get:
            self._unify_element(operands[0], results[0])
        elif node.op in (lists.list_set, lists.list_add_at):
            self._unify(results[0], operands[0])
            if node.op is lists.list_set or isinstance(self._root(operands[0]).element, MaybeType):
                self._unify_element(operands[0], operands[2])
            else:
                self._unify_shared(self._root(operands[0]).inner, operands[2])
            self._root(operands[0]).writes.append(node)
        elif node.op in (lists.list_zeros, lists.list_add, lists.list_unstack):
            self._add_allocation_site(results[0], (node, 0))
            if node.op is lists.list_add:
                for list_class in operands:
                    self._unify_shared(results[0], list_class)
        elif node.op in (maybe.autograd_add, maybe.instantiate, maybe.present, shaping.refine):
            for list_class in operands:
                self._unify(results[0], list_class)
            if node.op is maybe.autograd_add:
                self._add_allocation_site(results[0], (node, 0))

    def _unify_shared(self, total: ListClass | None, addend: ListClass | None) -> None:
        """Unify possibly absent lists in a sum of lists with those of an addend it may share."""
        while total is not None and addend is not None:
            total, addend = root(total), root(addend)
            if isinstance(total.element, MaybeType):
                self._unify(total.inner, addend.inner)
                return
            total, addend = total.inner, addend.inner

    def _add_allocation_site(self, list_class: ListClass | None, use: Use) -> None:
        """Record that lists are allocated here, including the lists inside them."""
        while list_class is not None:
            root(list_class).allocation_sites.append(use)
            list_class = root(list_class).inner

    def _root(self, list_class: ListClass | None) -> ListClass:
        assert list_class is not None
        return root(list_class)

    def _unify_element(self, list: ListClass | None, element: ListClass | None) -> None:
        self._unify(self._root(list).inner, element)

    # Tapes
    def _find_tapes(self, graph: Graph) -> None:
        for node in reversed(list(graph.walk())):  # inner loops first
            if node.op is not while_:
                continue
            w = WhileParts.of(node)
            tape_arenas: dict[Graph, Arena] = {}
            pushes: dict[Graph, list[Node]] = {}
            offsets: dict[tuple[Graph, Arena], int] = {}
            for k, start in enumerate(w.carry):
                if not is_new_list(start):
                    continue
                region, push = tape_push(w, k)
                list_class = self.of_use(node, k)
                uses = list_class.allocation_sites, list_class.pushes, list_class.writes
                if region is None or uses != ([(node, k)], [push], []):
                    continue
                if region not in tape_arenas:
                    tape_arenas[region] = self._new_arena()
                    pushes[region] = []
                assert push is not None
                pushes[region].append(push)
                list_class.tape = node
                arena = list_class.arena = tape_arenas[region]
                inner = self._pushed_tape(push)
                if inner is not None and (region, inner) in offsets:
                    list_class.offset = offsets[region, inner]
                    continue
                list_class.offset = arena.stride
                arena.stride += num_slots(list_class.element)
                if inner is not None:
                    offsets[region, inner] = list_class.offset
            for region, nodes in pushes.items():
                self._leading_pushes.add(min(nodes, key=region.nodes.index))

    def _pushed_tape(self, push: Node) -> Arena | None:
        """Return the arena of the tape that a push appends.

        Tapes that share an arena have equal starts and lengths.
        """
        value = push.operands[1]
        if not isinstance(value.type, ListType):
            return None
        list_class = self.of_use(push, 1)
        is_tape = list_class.tape is not None and list_class.tape is value.node
        return list_class.arena if is_tape else None
