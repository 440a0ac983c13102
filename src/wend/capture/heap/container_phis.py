"""Container phis: lists and dicts whose identity is known only at run time.

`if test: a = [3, 4]` leaves the old list in `a`, or the new one. The contents are part of the
graph, so they may be read. The container may be mutated only if nobody else holds a list that
it may be, since the mutation would show there. The rule for arrays is the same
(`trace/aliasing/may_alias.py`).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import AliasError, explain
from wend.base.instances import class_with_generated, is_replaceable, is_unregistered
from wend.base.keys import attributes_of
from wend.base.source import at, user_source
from wend.capture.heap.aliases import find_holder
from wend.capture.heap.containers import CONTAINER_TYPES
from wend.capture.heap.nested_replacements import is_created_inside
from wend.trace.aliasing import listed_containers
from wend.trace.aliasing.may_alias import may_alias
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording
from wend.trace.state.chosen_keys import known_key
from wend.trace.state.text_choice import is_choice

_SEARCH = "a comparison or key"
# Containers whose comparisons look at the identity of what they hold
_SEARCHED = (list, tuple, dict, set, frozenset, deque)
Row = Sequence[Any]


class _PhiGraph:
    """The may-alias relation between containers in one trace, keyed by identity."""

    def __init__(self) -> None:
        self.containers: dict[int, Any] = {}  # by id; held so that no id is reused
        self.incoming: dict[int, list[int]] = {}  # phi -> the containers that it may be
        self.outgoing: dict[int, list[int]] = {}
        self.copied_from: dict[int, int] = {}  # a copy in a region -> its original
        self.merge_of: dict[int, int] = {}  # phi -> its branch or loop
        self.siblings: dict[int, set[int]] = {}  # phis of one merge that may be the same container
        self.guarded: set[int] = set()  # copies on whose identity what is traced depends
        self.mutated: set[int] = set()
        self.merge_ids = itertools.count()

    def add_alias(self, phi: Any, option: Any, merge: int) -> None:
        """Record that one container may be another."""
        if phi is option:
            return
        self.containers[id(phi)], self.containers[id(option)] = phi, option
        self.incoming.setdefault(id(phi), []).append(id(option))
        self.outgoing.setdefault(id(option), []).append(id(phi))
        self.merge_of[id(phi)] = merge

    def resolve(self, x: Any) -> int:
        """Return the id of the container that a copy stands for."""
        return [*self.copies_of(x)][-1]

    def copies_of(self, x: Any) -> Iterator[int]:
        """Yield the ids of a copy, of what it is a copy of, and so on."""
        key = id(x)
        yield key
        while key in self.copied_from:
            key = self.copied_from[key]
            yield key

    def guard_identity(self, *values: Any) -> None:
        """Note copies of which the trace has told whether they are other objects."""
        for value in values:
            self.guarded.update(self.copies_of(value))

    def may_aliases(self, x: Any) -> Iterator[Any]:
        """Yield the containers that may be the same as `x`."""
        aliases: dict[int, None] = {}
        self._collect_outgoing(id(x), None, aliases)
        self._collect_incoming(id(x), aliases)
        for sibling in self.siblings.get(id(x), ()):
            aliases[sibling] = None
            self._collect_outgoing(sibling, None, aliases)
        return (self.containers[k] for k in aliases if k != id(x))

    def _collect_incoming(self, k: int, aliases: dict[int, None]) -> None:
        for option in self.incoming.get(k, ()):
            if option not in aliases:
                aliases[option] = None
                self._collect_outgoing(option, k, aliases)
                self._collect_incoming(option, aliases)

    def _collect_outgoing(self, k: int, via: int | None, aliases: dict[int, None]) -> None:
        for other in self.outgoing.get(k, ()):
            if other == via or other in aliases:
                continue
            if via is not None and self.merge_of[other] == self.merge_of[via]:
                continue  # of the same branch or loop: `siblings` says which alias
            aliases[other] = None
            self._collect_outgoing(other, None, aliases)


_phis: ContextVar[_PhiGraph | None] = ContextVar("wend_container_choices", default=None)


@contextmanager
def tracking() -> Iterator[None]:
    """Track container phis in this block, the trace of a function."""
    with scoped(_phis, _PhiGraph()), listed_containers.tracking():
        yield


def any_phis() -> bool:
    """Return whether there are containers whose identity is known only at run time."""
    phis = _phis.get()
    return phis is not None and bool(phis.containers or listed_containers.listed())


def enter_region(originals: Row, copies: Row) -> None:
    """Record what a region's variables hold in place of their previous values."""
    phis = _phis.get()
    if phis is None:
        return
    for original, copy in zip(originals, copies, strict=False):
        if copy is original:
            continue
        for new, old in paired_containers(copy, original):
            if new is not old:
                phis.add_alias(new, old, next(phis.merge_ids))
                phis.copied_from[id(new)] = id(old)


def check_guards(copies: Row, ends: Row) -> None:
    """Check that a trip keeps the objects of which it has told whether they are others.

    Args:
        copies: the values at the start of a recorded trip.
        ends: those at its end.

    Raises:
        AliasError: one is another object then, so that only the run knows what a later trip tells.
    """
    phis = _phis.get()
    if phis is None or not phis.guarded:
        return
    for copy, end in zip(copies, ends, strict=False):
        remaining = {id(old): phis.resolve(new) for new, old in paired_containers(end, copy)}
        for part, _ in paired_containers(copy, copy):
            if id(part) in phis.guarded and remaining.get(id(part)) != phis.resolve(part):
                raise _unknown_identity("a comparison or key in a loop")


def merge_paths(
    results: Row, options: Sequence[Row], outer: Recording, *, repeats: bool = False
) -> None:
    """Record which containers the results of a branch or loop may be.

    Args:
        results: what the state holds after it.
        options: the values at the end of each path; of a loop, those at its start come first.
        outer: the recording around it.
        repeats: whether it is a loop, where a trip starts with what the one before has left.
    """
    phis = _phis.get()
    if phis is None:
        return
    merge, listed = next(phis.merge_ids), listed_containers.listed()
    sources: list[_Sources] = []
    for k, result in enumerate(results):
        result_sources: dict[int, _Sources] = {}
        for option_index, row in enumerate(options):
            for new, old in paired_containers(result, row[k]):
                container_sources = result_sources.setdefault(id(new), (new, [None] * len(options)))
                source_id = phis.resolve(old)
                if listed is not None and listed.is_known(source_id):
                    listed.add_alias(new, source_id)
                container_sources[1][option_index] = source_id
                is_outer = source_id in phis.incoming or source_id != id(old)
                if is_outer or not is_created_inside(old, outer):
                    phis.add_alias(new, phis.containers.get(source_id, old), merge)
        sources += result_sources.values()
    siblings = {
        (a, b)
        for (a, (phi, ids)), (b, (other, other_ids)) in itertools.combinations(
            enumerate(sources), 2
        )
        if phi is not other and any(map(_are_one, ids, other_ids))
    }
    if repeats:
        entered = _by_start(sources)
        for phi, source_ids in _over_trips(sources, entered):
            for source_id in source_ids & phis.containers.keys():
                phis.add_alias(phi, phis.containers[source_id], merge)
        siblings = _siblings_over_trips(sources, entered, siblings)
    for a, b in siblings:
        for phi, other in itertools.permutations((sources[a][0], sources[b][0])):
            phis.containers[id(phi)] = phi
            phis.siblings.setdefault(id(phi), set()).add(id(other))


# A container after a branch or loop, and the ids of those that it may be, for each path
_Sources = tuple[Any, list[int | None]]


def _are_one(a: int | None, b: int | None) -> bool:
    return a == b and a is not None


def _by_start(sources: Sequence[_Sources]) -> dict[int, list[int]]:
    """Return the positions of the containers that enter a loop as one, by its id."""
    entered: dict[int, list[int]] = {}
    for k, (_, (start, *_)) in enumerate(sources):
        if start is not None:
            entered.setdefault(start, []).append(k)
    return entered


def _over_trips(
    sources: Sequence[_Sources], entered: dict[int, list[int]]
) -> Iterator[tuple[Any, set[int]]]:
    """Yield the containers after a loop, and the ids of those that several trips may leave."""
    for phi, (start, *left) in sources:
        pending, reached = [x for x in left if x is not None and x != start], {start}
        while pending:
            source_id = pending.pop()
            if source_id in reached:
                continue
            reached.add(source_id)
            pending += [x for k in entered.get(source_id, ()) for x in sources[k][1] if x]
        yield phi, {x for x in reached if x is not None} if len(reached) > 2 else set()


def _siblings_over_trips(
    sources: Sequence[_Sources], entered: dict[int, list[int]], siblings: set[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Return the positions of containers that may be one after several trips."""
    pairs = [*itertools.combinations(range(len(sources)), 2)]
    known = {*siblings}
    is_complete = not known
    while not is_complete:
        more = {
            (a, b)
            for a, b in pairs
            if (a, b) not in known
            and any(
                (min(x, y), max(x, y)) in known
                for left, other in zip(sources[a][1][1:], sources[b][1][1:], strict=True)
                for x in entered.get(left or 0, ())
                for y in entered.get(other or 0, ())
            )
        }
        known |= more
        is_complete = not more
    return known


def any_mutated(*values: Any) -> bool:
    """Return whether a phi among the containers of some values was mutated."""
    phis = _phis.get()
    if phis is None:
        return False
    parts = [container for value in values for container, _ in paired_containers(value, value)]
    return any(id(container) in phis.mutated for container in parts)


def check_mutation(value: Any, label: str = "") -> None:
    """Check that a container and those nested in it may be mutated.

    Args:
        value: the container.
        label: the variable through which it is reached, if any.

    Raises:
        AliasError: it may be a container that somebody else holds.
    """
    phis = _phis.get()
    if phis is None or not any_phis():
        return
    check_listed(value, label)
    for container, _ in paired_containers(value, value):
        if id(container) not in phis.containers:
            continue
        phis.mutated.update(phis.copies_of(container))
        others = [*phis.may_aliases(container)]
        if others and (held := find_holder(_is_one_of(others))):
            kind = type(container).__name__
            subject, one = (f"`{label}`", label) if label else (f"a {kind}", "x")
            may_be = f"may be the {kind} that {held} holds"
            if container is not value:
                may_be, one = f"holds a {kind} that may be the one that {held} holds", "x"
            raise AliasError(
                explain(
                    f"{subject} is changed{at(user_source())}, and {may_be}, which is known only "
                    "at run time: in Python both would change.",
                    cure=f"change it on each path of the test, by the name that it has there; "
                    f"or make it a {kind} of its own: {one} = {_copy_of(container, one)} before.",
                )
            )


def check_listed(value: Any, label: str = "") -> None:
    """Check that a container may be mutated although a list grows in a loop or branch.

    Raises:
        AliasError: the list may hold it, or a container that it may be.
    """
    phis, listed = _phis.get(), listed_containers.listed()
    if phis is None or listed is None or not _has_identity(value):
        return
    keys = _may_be(value, phis)
    holder: str | None = None
    was_popped = any(key in listed.popped for key in keys)
    if any(map(listed.holds, keys)) or (listed.is_repeated and was_popped):
        holder = "a list that grows in a loop or branch"
    elif was_popped:
        holder = find_holder(_is_one_of(listed.others(value)))
    if holder is not None:
        kind = type(value).__name__
        subject, one = (f"`{label}`", label) if label else (f"a {kind}", "x")
        raise AliasError(
            explain(
                f"{subject} is changed{at(user_source())}, and {holder} may hold the {kind}: in "
                "Python both would change.",
                cure=f"change a copy, and put that into the list: {one} = {_copy_of(value, 'x')}, "
                f"out[k] = {one}; or append a copy.",
            )
        )


def _may_be(value: Any, phis: _PhiGraph) -> set[int]:
    """Return the ids of the containers that one may be."""
    return {*phis.copies_of(value), *(id(other) for other in phis.may_aliases(value))}


def _may_be_listed(a: Any, b: Any, phis: _PhiGraph) -> bool:
    """Return whether one is an item that a list has given, which may be the other."""
    listed = listed_containers.listed()
    if listed is None or type(a) is not type(b):
        return False
    keys = _may_be(a, phis), _may_be(b, phis)
    is_read = any(map(listed.was_read, itertools.chain(*keys)))
    return is_read and all(any(map(listed.is_known, ids)) for ids in keys)


def is_same_object(a: Any, b: Any, subject: str = "`is`") -> bool:
    """Return `a is b`.

    Args:
        a: a value.
        b: another one.
        subject: what asks, for the message.

    Raises:
        AliasError: whether one is the other is known only at run time.
    """
    if a is b:
        return True
    phis = _phis.get()
    if phis is None:
        return False
    if _has_identity(a) and _has_identity(b) and any_phis():
        phis.guard_identity(a, b)
        if phis.resolve(a) == phis.resolve(b):
            return True
        may_be = any(other is b for other in phis.may_aliases(a)) or _may_be_listed(a, b, phis)
    else:
        may_be = isinstance(a, Tracer) and isinstance(b, Tracer) and may_alias(a, b)
    if may_be:
        raise _unknown_identity(subject)
    return False


def check_identity(*values: Any) -> None:
    """Check that the trace knows which objects these are, and which they hold.

    Python's containers compare what they hold by identity first, and by `==` only then.

    Raises:
        AliasError: one is known only at run time.
    """
    phis = _phis.get()
    if phis is None or not phis.containers:
        return
    for part in _compared_parts(values, {}):
        if id(part) in phis.containers and next(phis.may_aliases(part), None) is not None:
            raise _unknown_identity(_SEARCH)


def check_comparison(a: Any, b: Any) -> None:
    """Check that the trace knows which objects two containers or dataclasses both hold.

    Raises:
        AliasError: only the run knows it.
    """
    if any_phis() and all(isinstance(x, _SEARCHED) or _compares_fields(x) for x in (a, b)):
        check_distinct(a, b)


def check_distinct(*values: Any) -> None:
    """Check that the trace knows which of the objects in some values are one.

    Raises:
        AliasError: only the run knows it.
    """
    phis = _phis.get()
    if phis is None or not phis.containers:
        return
    parts = [*_compared_parts(values, {})]
    ids = {id(part) for part in parts}
    phis.guard_identity(*parts)
    for part in parts:
        if id(part) in phis.containers and any(id(x) in ids for x in phis.may_aliases(part)):
            raise _unknown_identity(_SEARCH)


def with_known_keys(container: Any) -> Any:
    """Return a set or dict, once it is known which objects or texts its keys are.

    Raises:
        AliasError: only the run knows it.
        ConcreteValueError: only the run knows a text.
    """
    if any_phis() and isinstance(container, (set, frozenset, dict)):
        check_identity(*container)
    if isinstance(container, (set, frozenset, dict)) and any(map(is_choice, container)):
        if isinstance(container, dict):
            return {known_key(key): value for key, value in container.items()}
        return type(container)(map(known_key, container))
    return container


def is_one_of(items: Iterable[Any], item: Any) -> bool:
    """Return whether an item of a container is an object, as far as `==` does not tell.

    Raises:
        AliasError: only the run knows it.
    """
    if not is_replaceable(item) or _compares_fields(item):
        check_identity(item, *items)
        return False
    others = [x for x in items if is_replaceable(x)]
    return any(is_same_object(item, x, _SEARCH) for x in others)


def _compared_parts(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yield the instances that a comparison or hash of a value may tell by identity."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    parts: Iterable[Any] = ()
    if isinstance(value, dict):
        parts = itertools.chain.from_iterable(value.items())
    elif isinstance(value, _SEARCHED):
        parts = value
    elif _compares_fields(value):
        parts = [part for _, part in attributes_of(value)]
    elif is_replaceable(value):
        yield value
    for part in parts:
        yield from _compared_parts(part, seen)


def _compares_fields(value: Any) -> bool:
    """Return whether `==` compares the fields of a value, as dataclasses and attrs do."""
    return is_unregistered(value) and class_with_generated(type(value), "__eq__") is not None


def compare_by_identity(a: Any, b: Any) -> bool:
    """Return whether `==` of two values means `is`, where only a run may tell which they are."""
    return any_phis() and _compares_by_identity(a) and _compares_by_identity(b)


def _compares_by_identity(value: Any) -> bool:
    eq: Any = getattr(type(value), "__eq__", None)
    return is_replaceable(value) and eq is object.__eq__


def _unknown_identity(subject: str) -> AliasError:
    return AliasError(
        explain(
            f"{subject}{at(user_source())}: whether the two are one object is known only at "
            "run time.",
            cure="keep a flag that says which it is, and test that.",
        )
    )


def _copy_of(container: Any, name: str) -> str:
    if is_replaceable(container):
        return (
            f"dataclasses.replace({name})" if is_unregistered(container) else f"copy.copy({name})"
        )
    return f"{name}.copy()"


def _is_object(target: Any) -> Callable[[Any], bool]:
    return lambda value: value is target


def _is_one_of(targets: Sequence[Any]) -> Callable[[Any], bool]:
    ids = {id(target) for target in targets}
    return lambda value: id(value) in ids


def _is_phi(value: Any) -> bool:
    phis = _phis.get()
    return phis is not None and id(value) in phis.containers


def _has_identity(value: Any) -> bool:
    """Return whether a value is a container, or an instance that may be replaced."""
    return isinstance(value, CONTAINER_TYPES) or is_replaceable(value)


def are_others(value: Any, before: Any) -> bool:
    """Return whether a container in a value is another object than before, even if equal."""
    return any(new is not old for new, old in paired_containers(value, before))


def paired_containers(new: Any, old: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the containers in a value with those at the same position of another value."""
    if type(new) is not type(old):
        return
    if isinstance(new, CONTAINER_TYPES):
        yield new, old
    if is_replaceable(new):
        yield new, old
        # An object of an ordinary class may be large, or hold itself. Only the copies that regions
        # make hold further copies.
        if is_unregistered(new) or new is not old or _is_phi(new):
            parts = dict(attributes_of(old))
            for name, part in attributes_of(new):
                yield from paired_containers(part, parts.get(name))
    if isinstance(new, dict):
        for key in dict.keys(new) & dict.keys(old):
            yield from paired_containers(dict.__getitem__(new, key), dict.__getitem__(old, key))
    sequence = next((kind for kind in (list, tuple, deque) if isinstance(new, kind)), None)
    if sequence is not None:
        items = zip(sequence.__iter__(new), sequence.__iter__(old), strict=False)
        for new_item, old_item in items:
            yield from paired_containers(new_item, old_item)
