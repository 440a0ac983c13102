"""Exceptions that some runs raise, on their way to the `try` that handles them.

Where a `raise` under a traced test is handled in the same trace, what follows it up to the end of
the block is recorded in a region of its own: the *rest*. The block of a `try`, a branch and the
body of a loop are *extents*: where one ends, its rests are closed, each as an `if` node whose
results are what the code after it needs from either side.

    try:                          handled, … = if test: (True, what is bound at the raise)
        if test: raise E     ->                else: a; (False, what is bound at the end)
        a                         if handled: b
    except E: b
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from types import MethodType, TracebackType
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import StagedRaiseError, StructureError, explain
from wend.base.handling.handlers import entered_count, entered_managers, first_catching
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at, frames, line_of, raised_at, user_frame, user_source
from wend.capture.guards.kinds import is_users_class
from wend.capture.guards.outside import loaded_attribute
from wend.capture.heap.locations import Attribute, Contents, Location, WriteLog
from wend.capture.stage.placeholders import zeros_of
from wend.capture.stage.reachable import HeldValues, leaves_of, map_leaves, reachable
from wend.eager.dispatch import recorder
from wend.eager.promotion import as_array, cast
from wend.eager.raising import ErrorText, Filled
from wend.ir.graph import Value
from wend.ir.types import ListType, Type
from wend.numpy.elementwise import logical_not
from wend.trace.aliasing.may_alias import is_array, record_merge
from wend.trace.arrays.concrete_array import ConcreteTracedArray, ref_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList, is_list
from wend.trace.recording.arguments import LeafType, leaf_type, leaf_type_with_flags
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import join_branches
from wend.trace.state.raised_errors import CarriedError, raise_in_run
from wend.trace.state.templates import Text

# A `try` whose block has more of these is too large to record with all of its handlers
_MAX_RESTS = 60


class Extent:
    """A part of the program at whose end rests are closed.

    Args:
        base: where it is recorded.
        is_region: whether it is a region of its own: an arm of a branch, a part of a loop.

    Attributes:
        rests: the rests that are open in it, each inside the one before.
    """

    def __init__(self, base: Recording, *, is_region: bool = False) -> None:
        self.base, self.is_region = base, is_region
        self.rests: list[Rest] = []
        self.managers = entered_count()

    def now(self) -> Recording:
        """Return where it is recorded now."""
        return self.rests[-1].region if self.rests else self.base

    def bound_now(self) -> tuple[list[Any], WriteLog]:
        """Return the variables that its handlers may read, and the writes since its start."""
        raise NotImplementedError


_extents: ContextVar[tuple[Extent, ...]] = ContextVar("wend_extents", default=())


@dataclass(slots=True)
class Raised:
    """An exception that some runs raise, with what is bound there.

    Attributes:
        statement: the `try` that handles it.
        error: the exception.
        variables: the variables that the statement may change, as they are bound there.
        contents: what the objects that these reach hold there.
        written: what was written since the statement began: the values there, by location.
    """

    statement: Extent
    error: CarriedError
    variables: list[Any]
    contents: dict[int, HeldValues]
    written: dict[Hashable, tuple[Location, Any]]
    arrays: list[Any] = field(default_factory=list)

    @staticmethod
    def now(statement: Extent, error: BaseException) -> Raised:
        """Return an exception that is raised now."""
        variables, log = statement.bound_now()
        locations = [location for location, _ in log.values()]
        written = {x.key: (x, x.read()) for x in locations if not isinstance(x, Contents)}
        owners = [x.container for x in locations if isinstance(x, Contents)]
        owners += [x.owner for x in locations if isinstance(x, Attribute)]
        values = [value for _, value in written.values()]
        contents = reachable([*variables, *owners, *values])
        carried = CarriedError(error)
        return Raised(statement, carried, variables, contents, written, [*carried.arrays])

    def local_leaves(self, region: Recording) -> dict[int, Any]:
        """Return its arrays that belong to a region, by id."""
        return {id(x): x for x in self.leaves() if _is_local(x, region)}

    def leaves(self) -> Iterator[Any]:
        """Yield its arrays."""
        held = [c.values() for c in self.contents.values() if not isinstance(c.owner, set)]
        values = [value for _, value in self.written.values()]
        for value in (*self.arrays, *self.variables, *(x for row in held for x in row), *values):
            yield from leaves_of(value)

    def mapped(self, leaf: Callable[[Any], Any]) -> Raised:
        """Return it with its arrays mapped."""
        return Raised(
            self.statement,
            self.error,
            [map_leaves(x, leaf) for x in self.variables],
            {key: contents.mapped(leaf) for key, contents in self.contents.items()},
            {key: (x, map_leaves(value, leaf)) for key, (x, value) in self.written.items()},
            [map_leaves(x, leaf) for x in self.arrays],
        )

    def replaced(self, arrays: dict[int, Any]) -> Raised:
        """Return it with arrays in place of its own, by the ids of those."""
        return self.mapped(lambda leaf: arrays.get(id(leaf), leaf))

    def exception(self) -> BaseException:
        """Return the exception, as the handler gets it."""
        return self.error.remade(self.arrays)


# A traced flag, or None for always, and what is raised if it holds
Alternative = tuple[Any, Raised]


@dataclass(slots=True)
class Rest:
    """The code that follows a `raise`, as it is recorded.

    Attributes:
        outer: the recording around it.
        test: whether the exception is raised.
        region: the region of what follows.
        raised: the region of the runs that raise it.
        alternatives: what these may raise, with flags of their region.
    """

    outer: Recording
    test: Any
    region: Recording
    raised: Recording
    alternatives: list[Alternative]


def is_handled_here() -> bool:
    """Return whether code runs in a `try` whose handlers can be recorded."""
    return bool(_extents.get())


@contextmanager
def in_region(region: Recording) -> Iterator[Extent]:
    """Open an extent for a region, if there is a `try` around it."""
    new = Extent(region, is_region=True)
    if not is_handled_here():
        yield new
        return
    with extent(new):
        yield new


@contextmanager
def extent(new: Extent) -> Iterator[Extent]:
    """Open an extent for a block."""
    with scoped(_extents, (*_extents.get(), new)):
        yield new


def mark() -> list[Rest]:
    """Return the rests that are open in this extent."""
    extents = _extents.get()
    return [*extents[-1].rests] if extents else []


def reinstate(rests: Sequence[Rest]) -> None:
    """Make these the rests that are open in this extent: others are dropped, or opened again."""
    extents = _extents.get()
    if extents and (rests or extents[-1].rests):
        extents[-1].rests[:] = rests
        recorder.set(extents[-1].now())


def statement_for(error: BaseException) -> Extent | None:
    """Return the statement that handles an error of some runs; None if none does.

    Raises:
        StagedRaiseError: it is handled by code that is not recorded.
    """
    if not is_handled_here():
        return None
    kind = type(error)
    if is_users_class(kind):  # a handler matches by the bases, which may be replaced
        loaded_attribute(kind, "__mro__", kind.__mro__)
    caught = first_catching([kind], frames(), or_passes_on=True)
    if caught is None:
        return None
    handler, _ = caught
    what = f"`raise`{at(raised_at(error) or user_source())} of {type(error).__name__}"
    where = f"`{handler.what}`{at(handler.source)}"
    if isinstance(error, BaseExceptionGroup):
        raise _refusal(f"{what} would be caught by {where}: groups are not recorded.")
    statement = handler.statement
    if not isinstance(statement, Extent) or not _reaches(statement):
        reason = "its class is computed" if handler.statement is not None else "it is not recorded"
        raise _refusal(f"{what} would be caught by {where}, but {reason}.")
    for entry in entered_managers(statement.managers):
        if not _is_passive(entry.manager):
            raise _refusal(
                f"{what}, which {where} would catch, leaves the `with` at line {entry.line}."
            )
    if sum(len(open_extent.rests) for open_extent in _extents.get()) >= _MAX_RESTS:
        raise _refusal(f"{what} is one of more than {_MAX_RESTS} that {where} would catch.")
    return statement


def _is_passive(manager: Any) -> bool:
    """Return whether a manager does nothing when its block is left by an error."""
    if type(manager) is contextlib.ExitStack:
        callbacks = (callback for _, callback in manager._exit_callbacks)  # type: ignore[attr-defined]
        return all(isinstance(c, MethodType) and _is_passive(c.__self__) for c in callbacks)
    is_ours = type(manager).__module__.startswith("wend.")
    return is_ours or type(manager) in _PASSIVE_MANAGERS  # a subclass may do more


_PASSIVE_MANAGERS = contextlib.suppress, contextlib.nullcontext, warnings.catch_warnings


def _refusal(summary: str) -> StagedRaiseError:
    return StagedRaiseError(
        explain(
            summary,
            cure="test for the case with `if` in place of the handler; or put the handler around "
            "the call of the traced function.",
        )
    )


def _reaches(statement: Extent) -> bool:
    """Return whether what is recorded now goes on to the end of a statement's block."""
    now = current()
    for open_extent in reversed(_extents.get()):
        if open_extent.now() is not now:
            return False
        if open_extent is statement:
            return True
        now = open_extent.base.parent if open_extent.is_region else open_extent.base
    return False


def open_rest(test: Any, alternatives: list[Alternative], raised: Recording | None = None) -> None:
    """Record what follows for the runs in which a test does not hold.

    Args:
        test: whether something is raised.
        alternatives: what is, with flags of the region.
        raised: the region of the runs that raise it, by default an empty one.
    """
    outer, around = current(), _extents.get()[-1]
    assert outer is not None
    role = f"what follows a `raise`{at(user_source())}"
    raised = raised or Recording("raised", outer, is_region=True, role=role)
    region = Recording("following", outer, is_region=True, role=role)
    around.rests.append(Rest(outer, test, region, raised, alternatives))
    recorder.set(region)


def take_on(rests: Sequence[Rest]) -> None:
    """Add open rests to the extent."""
    _extents.get()[-1].rests += rests


def end_raising(error: BaseException, first: int = 0) -> list[Alternative]:
    """Close the rests of an extent that always ends by an error; return what it may raise.

    `first`: how many rests stay open.
    """
    statement = statement_for(error)
    alternatives: list[Alternative] = []
    if statement is None:
        raise_in_run(error)
    else:
        alternatives = [(None, Raised.now(statement, error))]
    extents = _extents.get()
    return close(extents[-1], None, alternatives, first) if extents else []


def divert(test: Any, kind: type[BaseException], arguments: Sequence[Any]) -> bool:
    """Lead the runs in which a test holds to the handler of an exception.

    Return whether there is one that can be recorded.
    """
    if not is_handled_here():
        return False
    frame = user_frame()
    assert frame is not None
    error = kind(*arguments)
    error.__traceback__ = TracebackType(None, frame, frame.f_lasti, line_of(frame))
    statement = statement_for(error)
    if statement is None:
        return False
    open_rest(test, [(None, Raised.now(statement, error))])
    return True


def divert_operation(
    test: Callable[[], Any], kind: type[BaseException], text: Callable[[], ErrorText]
) -> bool:
    """Lead the runs in which an operation raises an error to its handler.

    Return whether there is one that can be recorded.
    """
    if not is_handled_here():
        return False
    caught = first_catching([kind], frames())
    if caught is None or not isinstance(caught[0].statement, Extent):
        return False
    return divert(test(), kind, _arguments(text()))


def _arguments(text: ErrorText) -> list[Any]:
    if isinstance(text, Filled):
        before, placeholder, after = text.text.partition("{}")
        text = Text.of((before, (text.number, None, ""), after)) if placeholder else before
    return [*text] if isinstance(text, tuple) else [text]


class Normal:
    """The values that the code after an extent may read, if nothing is raised in it.

    Args:
        values: the variables, and what is returned.
        locations: what was written in it.
    """

    def __init__(self, values: Sequence[Any], locations: Sequence[Location]) -> None:
        self.values = list(values)
        self.locations = [x for x in locations if not isinstance(x, Contents)]
        self.written = [x.read() for x in self.locations]
        owners = [x.container for x in locations if isinstance(x, Contents)]
        self.contents = reachable([*self.values, *self.written, *owners])

    def leaves(self) -> Iterator[Any]:
        """Yield its arrays."""
        held = [c.values() for c in self.contents.values() if not isinstance(c.owner, set)]
        for value in (*self.values, *self.written, *(x for row in held for x in row)):
            yield from leaves_of(value)

    def map(self, leaf: Callable[[Any], Any]) -> None:
        """Map its arrays, in the objects that hold them."""
        self.values = [map_leaves(x, leaf) for x in self.values]
        for key, contents in self.contents.items():
            self.contents[key] = new = contents.mapped(leaf)
            if not new.is_same(contents):
                new.write()
        for k, (location, value) in enumerate(zip(self.locations, self.written, strict=True)):
            self.written[k] = new_value = map_leaves(value, leaf)
            if new_value is not value:
                location.write(new_value)


def close(
    open_extent: Extent,
    normal: Normal | None,
    alternatives: list[Alternative],
    first: int = 0,
) -> list[Alternative]:
    """Close the rests of an extent, and map what its end may read.

    Args:
        open_extent: the extent.
        normal: what is read if nothing is raised; None if something always is.
        alternatives: what may be raised in the innermost rest.
        first: how many rests stay open.

    Returns:
        what may be raised, with flags.
    """
    while len(open_extent.rests) > first:
        following = open_extent.rests.pop()
        recorder.set(following.outer)
        alternatives = _Closing(following, normal, alternatives).closed()
    return alternatives


def _is_local(leaf: Any, region: Recording) -> bool:
    """Return whether an array belongs to a region; a name may be left over from another."""
    ref = ref_of(leaf) if isinstance(leaf, ConcreteTracedArray) else leaf
    outer = region.parent
    assert outer is not None
    return isinstance(ref, Tracer) and region.can_lift(ref) and not outer.can_lift(ref)


class _Closing:
    """The end of a following."""

    def __init__(self, following: Rest, normal: Normal | None, inner: list[Alternative]) -> None:
        self.following, self.normal, self.inner = following, normal, inner
        self.regions = following.region, following.raised
        self.rows: list[tuple[Any, Any]] = []
        self.slots: tuple[dict[int, int], dict[int, int]] = ({}, {})  # id -> row, of either side

    def closed(self) -> list[Alternative]:
        following, outer = self.following, self.following.outer
        self._add_leaves()
        inner_flags = [self._flag(flag, 0) for flag, _ in self.inner]
        outer_flags = [self._flag(flag, 1) for flag, _ in following.alternatives]
        tracers = self._joined()

        def flag(row: int | None, side: int) -> Any:
            if row is not None:
                return tracers[row]
            return following.test if side else logical_not(following.test)

        def mapping(side: int) -> Callable[[Any], Any]:
            slots = self.slots[side]
            return lambda leaf: tracers[slots[id(leaf)]] if id(leaf) in slots else leaf

        with outer.active():
            if self.normal is not None:
                self.normal.map(mapping(0))
            return [
                *(
                    (flag(k, 0), x.mapped(mapping(0)))
                    for k, (_, x) in zip(inner_flags, self.inner, strict=True)
                ),
                *(
                    (flag(k, 1), x.mapped(mapping(1)))
                    for k, (_, x) in zip(outer_flags, following.alternatives, strict=True)
                ),
            ]

    def _flag(self, flag: Any, side: int) -> int | None:
        """Add the row of a flag of one side; None if it is the test, or its opposite."""
        if flag is None:
            return None
        self.rows.append((flag, False) if side == 0 else (False, flag))
        return len(self.rows) - 1

    def _add_leaves(self) -> None:
        """Add a row for each array that leaves a region; sides share rows of equal types."""
        sources: tuple[list[Normal | Raised], list[Normal | Raised]] = (
            [*([] if self.normal is None else [self.normal]), *(x for _, x in self.inner)],
            [x for _, x in self.following.alternatives],
        )
        leaves: list[dict[int, Any]] = []
        for side in (0, 1):
            arrays = (leaf for source in sources[side] for leaf in source.leaves())
            leaves.append({id(x): x for x in arrays if _is_local(x, self.regions[side])})
        free: dict[LeafType, list[int]] = {}
        for x in leaves[0].values():
            type = self._type_of(x, 0)
            self.slots[0][id(x)] = len(self.rows)
            free.setdefault(type, []).append(len(self.rows))
            self.rows.append((x, None))
        for x in leaves[1].values():
            type = self._type_of(x, 1)
            if free.get(type) and not is_array(x):
                row = free[type].pop(0)
                self.rows[row] = (self.rows[row][0], x)
            else:
                row = len(self.rows)
                self.rows.append((None, x))
            self.slots[1][id(x)] = row

    def _type_of(self, leaf: Any, side: int) -> LeafType:
        if is_list(leaf):
            return LeafType(leaf.value.type)
        with self.regions[side].active():
            return leaf_type_with_flags(as_array(leaf))

    def _joined(self) -> list[Any]:
        """Record the node; return its results, by row."""
        outer = self.following.outer
        types: list[LeafType] = []
        for row in self.rows:
            side = 1 if row[0] is None or row[0] is False else 0
            types.append(self._type_of(row[side], side))
        lifted: list[list[Value]] = []
        leaves: list[list[Any]] = []
        for side, region in enumerate(self.regions):
            with region.active():
                pairs = zip(self.rows, types, strict=True)
                values = [value_of_type(row[side], type) for row, type in pairs]
                lifted.append([*map(region.lift, values)])
                leaves.append(values)
        node = join_branches(outer, outer.lift(self.following.test), self.regions, lifted)
        results = zip(node.results, types, strict=False)
        tracers: list[Any] = [outer.wrap_as(value, type) for value, type in results]
        record_merge(tracers, leaves, outer)
        return tracers


def value_of_type(x: Any, leaf: LeafType) -> Any:
    """Return a value of a type, cast to it; zeros, or an empty list, in place of None."""
    type: Type = leaf.type
    if isinstance(type, ListType):
        return TensorList.empty(type) if x is None else x
    return zeros_of(leaf) if x is None else cast(as_array(x), leaf.type.dtype)


class RaiseSlot(Location):
    """The carry of a loop for an exception that ends it: a flag, and the arrays that it needs."""

    def __init__(self, part: str, number: int, raised: Raised, leaves: dict[int, Any]) -> None:
        super().__init__("a `raise`", ("raise", id(self)))
        self.part, self.number = part, number
        self.start: tuple[Any, ...] = (False, *map(_zeros_like, leaves.values()))
        self.value = self.start
        self.fill(True, raised, leaves)

    def fits(self, part: str, number: int, leaves: dict[int, Any]) -> bool:
        """Return whether it is the slot of an exception."""
        return (part, number, len(leaves) + 1) == (self.part, self.number, len(self.start))

    def fill(self, flag: Any, raised: Raised, leaves: dict[int, Any]) -> None:
        """Store an exception that is raised if a flag holds."""
        self.raised, self.ids = raised, [*leaves]
        self.value = flag, *leaves.values()

    def read(self) -> Any:
        return self.value

    def write(self, value: Any) -> None:
        self.value = value

    def reopen(self) -> None:
        """Record what follows the loop for the runs that have not raised it."""
        flag, *arrays = self.value
        if isinstance(flag, Tracer):
            by_id = dict(zip(self.ids, arrays, strict=True))
            open_rest(flag, [(None, self.raised.replaced(by_id))])


def _zeros_like(leaf: Any) -> Any:
    if is_list(leaf):
        raise StructureError(
            explain(
                f"the length of a list changes in a loop{at(user_source())} that an exception may "
                "leave, and the handler around the loop would find the list as it is there.",
                cure="put the `try` into the loop; or keep the values in an array: out[k] = value.",
            )
        )
    return zeros_of(leaf_type(as_array(leaf)))
