"""What a piece of captured control flow may change: variables, attributes, containers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from types import CellType
from typing import Any

import numpy as np

from wend.base import trees
from wend.capture.heap import container_phis
from wend.capture.heap.containers import (
    Parts,
    copied,
    is_container,
    parts,
)
from wend.capture.heap.locations import (
    UNBOUND,
    Attribute,
    Cell,
    Contents,
    Elements,
    Location,
    WriteLog,
    bound_by,
    is_set_by_code,
    log_write,
    read,
    variable,
)
from wend.eager.dispatch import Staged, recorder
from wend.ir.dtypes import is_supported
from wend.trace.arrays.concrete_array import ConcreteTracedArray, adopt, made_elsewhere
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import is_array_leaf

Read = Callable[[], Any]


def is_unbound(value: object) -> bool:
    """Whether a variable was not bound."""
    return value is UNBOUND


class Reference:
    """Stands for a container or an array that changes in place: which one, not what is in it."""

    def __init__(self, container: Any) -> None:
        self.container = container

    def __repr__(self) -> str:
        return repr(self.container)


class State:
    """The variables and other places that control flow may change, by position.

    Args:
        names: the variables.
        reads: how to read each.
        setter: takes their values, and sets them all.
        heap: `("variable" | "attribute" | "holder" | "contents", label, what reads the variable or
            the object, the attribute's name)`; of a holder the attribute is not bound anew.
        passing: variables that nobody reads later: they are there because what they hold changes.
        in_place: variables that are never bound to something else: an array that one holds stays
            that array, and changes.
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        reads: Sequence[Read] = (),
        setter: Callable[[Sequence[Any]], None] = lambda values: None,
        heap: Sequence[tuple[str, str, Any, str | None]] = (),
        passing: Sequence[str] = (),
        in_place: Sequence[str] = (),
    ) -> None:
        self.passing, self.in_place = frozenset(passing), set(in_place)
        self.variables, self.reads, self.setter, self.heap = names, reads, setter, heap
        self.places: list[Location] = []
        self.keys: set[Hashable] = set()
        self.replaced: list[tuple[int, Location]] = []  # lists that were taken for traced ones

    def opened(self) -> State:
        """This state, with the objects that its attributes and containers belong to now."""
        self._adopt()
        for kind, label, thunk, attribute in self.heap:
            if kind == "variable":
                self.extend([variable(thunk, label)])
                continue
            owner = read(thunk)
            if kind == "holder" and is_ref(getattr(owner, attribute or "", None)):
                continue  # an array that changes itself
            if kind in ("attribute", "holder") and owner is not UNBOUND:
                if not is_set_by_code(owner, attribute or ""):
                    self.extend([Attribute(label, owner, attribute or "")])
            elif is_container(owner):
                own = label in self.variables
                self.extend([Contents(label, owner, None if own else bound_by(thunk, label))])
        return self

    def _adopt(self) -> None:
        """Let arrays that operators made of known ones be such as can become traced."""
        found: dict[int, Any] = {}
        for k, reads in enumerate(self.reads):
            if (array := made_here(reads)) is not None:
                found[k] = array
        if found:
            now = [found.get(k, read(reads)) for k, reads in enumerate(self.reads)]
            self.setter(now)

    def extend(self, places: Sequence[Location], *, quietly: bool = False) -> None:
        """Take more places in; `quietly`: they belong to nobody else."""
        for place in places:
            if place.key not in self.keys:
                if not quietly:
                    log_write(place)
                self.keys.add(place.key)
                self.places.append(place)
                if isinstance(place, Contents) and place.binding is not None:
                    self.extend([place.binding], quietly=quietly)

    def rollback(self) -> None:
        """Let lists that were taken for traced ones be themselves."""
        for index, place in reversed(self.replaced):
            self.keys = {*self.keys - {self.places[index].key}, place.key}
            self.places[index] = place
        self.replaced.clear()

    @property
    def names(self) -> list[str]:
        return [*self.variables, *(place.label for place in self.places)]

    def carried_in(self, values: Sequence[Any]) -> list[int]:
        """Which of some values can be part of a graph, in the order in which a loop has them."""
        leading = [k for k, p in enumerate(self.places, len(self.variables)) if p.leads]
        rest = [k for k in range(len(values)) if k not in leading]
        return [k for k in (*leading, *rest) if k < len(values) and is_carried(values[k])]

    def get(self) -> list[Any]:
        """The values now; `UNBOUND` for what is not bound."""
        found = [*map(read, self.reads), *(place.read() for place in self.places)]
        return [self._referred(k, value) for k, value in enumerate(found)]

    def _referred(self, k: int, value: Any) -> Any:
        if is_container(value) and ("contents", id(value)) in self.keys:
            return Reference(value)
        stays = k < len(self.variables) and self.variables[k] in self.in_place
        return Reference(value) if stays and (is_container(value) or is_ref(value)) else value

    def snapshot(self) -> list[Any]:
        """The values now, which later changes in place leave as they are."""
        return [copied(value) for value in self.get()]

    def set(self, values: Sequence[Any]) -> list[Any]:
        """Give every place its value; containers are copied, so that changes in place stay here.

        Returns:
            what the places hold.
        """
        found = [copied(value) for value in values]
        self.restore(found)
        kept = [None if self.is_contents(k) else value for k, value in enumerate(values)]
        container_phis.entered(kept, found)
        return found

    def parts(self) -> list[tuple[Contents, Parts]]:
        """The containers that change in place, with those that each holds now."""
        own = (place for place in self.places if isinstance(place, Contents))
        return [(place, parts(place.container)) for place in own]

    def is_contents(self, k: int) -> bool:
        """Whether a place is what a container holds, which stays the container it is."""
        first = len(self.variables)
        return k >= first and isinstance(self.places[k - first], Contents)

    def restore(self, values: Sequence[Any]) -> None:
        """Give every place its value, the very objects; places taken in since keep theirs."""
        found = [v.container if isinstance(v, Reference) else v for v in values]
        count = len(self.variables)
        self.setter(found[:count])
        for place, value in zip(self.places, found[count:], strict=False):
            place.write(value)


def is_ref(value: Any) -> bool:
    """Whether a value is an array that changes in place for everyone who holds it."""
    if isinstance(value, np.ndarray):
        return True
    return isinstance(value, Tracer) and not is_list(value) and value.type.shape != ()


def made_here(reads: Read) -> ConcreteTracedArray | None:
    """A plain array that one variable holds and nobody else, as one that can become traced."""
    if recorder.get() is None:
        return None
    array = read(reads)
    is_sole = type(array) is np.ndarray and array.base is None and _references(array) <= _SOLE
    return adopt(array) if is_sole and array.ndim and is_supported(array.dtype) else None


def _references(array: Any) -> int:
    return sys.getrefcount(array)


def _references_of_one() -> int:
    held = np.zeros(1)

    def measured(reads: Read) -> int:
        array = read(reads)
        return _references(array)

    return measured(lambda: held)


_SOLE = _references_of_one()


def _is_left(place: Location) -> bool:
    """Whether nobody holds a container any more but those who note its changes.

    So it was made in the trace, which need not be repeated to find that out.
    """
    if not isinstance(place, Contents):
        return False
    held, binding = _holders(place), place.binding
    if isinstance(binding, Cell) and binding.read() is place.container:
        # A variable of a function that has returned, which held it.
        held -= _holders_of_variable(binding) <= _VARIABLE_LEFT
    return held <= _LEFT


def _holders(place: Contents) -> int:
    return sys.getrefcount(place.container)


def _holders_of_variable(place: Cell) -> int:
    return sys.getrefcount(place.cell)


_LEFT = _holders(Contents("", []))
_VARIABLE_LEFT = _holders_of_variable(Cell("", CellType()))


class Discovery:
    """Finds what a body changes beyond its state, by tracing it again until nothing new shows.

    An object that is made anew in each trace belongs to the body; one that two traces change
    comes from outside.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.seen: dict[Hashable, Location] = {}  # holds the objects, so that their ids stay theirs
        self.arrays: dict[
            Hashable, tuple[Location, Any]
        ] = {}  # with what they held before `undone`
        self.may_trace_again = True

    def undone(self, log: WriteLog) -> list[Location]:
        """Undo what a trace changed beyond the state, and say which places it was."""
        found = []
        for place, old in reversed(log.values()):
            if place.key in self.state.keys or place.belongs_to_the_trace() or _is_left(place):
                continue
            new = place.read()
            place.write(old)
            if not is_same(old, new):
                found.append(place)
                if isinstance(place, Elements):
                    self.arrays[place.key] = place, new
        return found

    def found_more(self, places: Sequence[Location]) -> bool:
        """Take in places that traces changed beyond the state; say whether to trace again."""
        confirmed = [place for place in places if place.key in self.seen]
        for place in confirmed:
            if isinstance(place, Elements):
                raise made_elsewhere(place.array)
        fresh = [place for place in places if place.key not in self.seen]
        for place in fresh:
            self.seen[place.key] = place
        self.state.extend(confirmed)
        again = bool(confirmed) or (bool(fresh) and self.may_trace_again)
        # What shows up after this was made by the body, unless the state has grown.
        self.may_trace_again = bool(confirmed)
        for place in () if again else places:
            self._redo(place)
        return again

    def _redo(self, place: Location) -> None:
        """Let an array that the body has made hold what the body has put into it."""
        if place.key in self.arrays:
            array, new = self.arrays[place.key]
            array.write(new)


def is_carried(value: Any) -> bool:
    """Whether a value can be part of a graph: a pytree of arrays and numbers, and not empty."""
    if value is UNBOUND or isinstance(value, Reference):
        return False
    leaves, _ = trees.flatten(value)
    return bool(leaves) and all(is_array_leaf(leaf) for leaf in leaves)


def is_same(a: Any, b: Any) -> bool:
    """Whether nothing changed: the same object, or containers of the same leaves."""
    if a is b:
        return True
    if a is UNBOUND or b is UNBOUND or type(a) is not type(b):
        return False
    if isinstance(a, Reference):
        return a.container is b.container
    mine, tree = trees.flatten(a)
    theirs, other = trees.flatten(b)
    return bool(tree == other) and all(map(_same_leaf, mine, theirs))


def _same_leaf(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if is_ref(a) or is_ref(b):
        return False  # a copy is another array
    if isinstance(a, Staged) or isinstance(b, Staged):
        return bool(getattr(a, "value", None) is getattr(b, "value", b))
    if is_array_leaf(a) or type(a) is not type(b):
        return type(a) in (bool, int, float, complex) and type(a) is type(b) and bool(a == b)
    if isinstance(a, Reference):
        return a.container is b.container
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001  # whatever a user's __eq__ raises, they are not known equal
        return False


def holds_staged(value: Any) -> bool:
    """Whether a traced array is among the leaves, or changes there."""
    if isinstance(value, Reference):
        return isinstance(value.container, Staged)
    return value is not UNBOUND and any(isinstance(x, Staged) for x in trees.flatten(value)[0])
