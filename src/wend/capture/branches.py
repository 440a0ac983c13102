"""`if` on what may be traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, StructureError, explain
from wend.base.source import at, user_source
from wend.capture.exits import RETURN_VALUE
from wend.capture.operators import truth
from wend.capture.state import UNBOUND, State, is_carried, is_same
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast, tensor_type
from wend.trace.control import agree, join_branches
from wend.trace.recording import Recording, current

Arm = Callable[[], Any]


def if_(
    test: Any,
    then: Arm,
    other: Arm,
    live: Sequence[str],
    names: Sequence[str],
    reads: Sequence[Callable[[], Any]],
    setter: Callable[[Sequence[Any]], None],
) -> None:
    """`if test: then  else: other`; the arms change the state, of which `live` is read later."""
    if not isinstance(test, Staged):
        (then if test else other)()
        return
    state = State(names, reads, setter)
    _Branch(test, state, live).record(then, other)


def if_return(
    test: Any,
    then: Arm,
    other: Arm,
    live: Sequence[str],
    names: Sequence[str],
    reads: Sequence[Callable[[], Any]],
    setter: Callable[[Sequence[Any]], None],
) -> Any:
    """`if` whose arms end the function: gives what they return."""
    if not isinstance(test, Staged):
        return (then if test else other)()
    state = State(names, reads, setter)
    return _Branch(test, state, live).record(then, other)


class _Branch:
    """An `if` that is being recorded."""

    def __init__(self, test: Any, state: State, live: Sequence[str]) -> None:
        outer = current()
        assert outer is not None
        self.outer, self.state, self.live = outer, state, live
        self.where = f"if{at(user_source())}"
        self.test = truth(test)
        self.start = state.get()

    def record(self, then: Arm, other: Arm) -> Any:
        """Record both arms, and leave the state as whichever runs will leave it."""
        try:
            regions, returned, ends = [], [], []
            for number, arm in enumerate((other, then)):
                region = Recording(f"branch{number}", self.outer, is_region=True)
                self.state.set(self.start)
                with region.active():
                    returned.append(arm())
                regions.append(region)
                ends.append(self.state.get())
        finally:
            self.state.restore(self.start)
        after, rows, names = list(self.start), [], []
        for k, name in enumerate(self.state.names):
            pair = [ends[0][k], ends[1][k]]
            if name not in self.live:
                after[k] = UNBOUND
                continue
            if all(is_same(value, self.start[k]) for value in pair):
                continue
            found = self._pair(name, pair)
            if found is None:
                after[k] = pair[0] if is_same(*pair) else UNBOUND
            else:
                names.append(k)
                rows.append(found)
        rows.append(self._returned(returned))
        values = self._join(regions, rows)
        for k, value in zip(names, values, strict=False):
            after[k] = value
        self.state.restore(after)
        return values[-1]

    def _pair(self, name: str, pair: list[Any]) -> list[Any] | None:
        """What a variable holds at the end of each arm, if it is part of the graph."""
        if name == RETURN_VALUE:
            pair = _filled(pair)
        if any(value is UNBOUND for value in pair):
            return None
        if all(map(is_carried, pair)):
            return pair
        if is_same(*pair):
            return None
        raise StructureError(
            explain(
                f"{self.where}: `{name}` is {_described(pair[1])} if the test holds, "
                f"else {_described(pair[0])}.",
                cure="only arrays and numbers can depend on a traced test; "
                "give it the same kind of value on both paths.",
            )
        )

    def _returned(self, returned: list[Any]) -> list[Any]:
        leaves = [trees.flatten(value)[0] for value in returned]
        if any(leaves) and not all(is_carried(value) for value in returned):
            raise StructureError(
                explain(
                    f"{self.where}: the function returns {_described(returned[1])} if the test "
                    f"holds, else {_described(returned[0])}.",
                    cure="return arrays of the same structure on both paths.",
                )
            )
        return returned

    def _join(self, regions: Sequence[Recording], rows: list[list[Any]]) -> list[Any]:
        both = [[row[k] for row in rows] for k in (0, 1)]
        flat, treedefs = [], []
        for own in both:
            leaves, treedef = trees.flatten(own)
            flat.append([as_array(leaf) for leaf in leaves])
            treedefs.append(treedef)
        if treedefs[0] != treedefs[1]:
            difference = trees.first_difference(both[0], both[1], "value")
            raise StructureError(
                explain(
                    f"{self.where}: the paths give values of different structure.",
                    difference,
                    cure="give every variable the same structure on both paths.",
                )
            )
        types = agree(self.where, flat, trees.paths(treedefs[0], "value"))
        values = []
        for region, own in zip(regions, flat, strict=True):
            with region.active():
                pairs = zip(own, types, strict=True)
                values.append([region.lift(cast(leaf, t.type.dtype)) for leaf, t in pairs])
        node = join_branches(self.outer, self.outer.lift(self.test), regions, values)
        tracers = [
            self.outer.wrap(value, weak=t.weak)
            for value, t in zip(node.results, types, strict=False)
        ]
        result: list[Any] = trees.unflatten(treedefs[0], tracers)
        return result


def _filled(pair: list[Any]) -> list[Any]:
    """A return value that only one path has: the other's is never read, so zeros will do."""
    for k in (0, 1):
        missing = pair[k] is UNBOUND or pair[k] is None or pair[k] is False
        if missing and is_carried(pair[1 - k]):
            pair = list(pair)
            pair[k] = trees.tree_map(placeholder, pair[1 - k])
    return pair


def placeholder(like: Any) -> Any:
    """Zeros of a leaf's type, where a value is needed that nobody reads."""
    type = tensor_type(like)
    if not type.is_static:
        raise CarryError(f"a value of type {type} must be bound before the loop")
    zeros = np.zeros(type.dims, type.dtype)  # type: ignore[arg-type]
    return zeros if zeros.ndim else zeros[()]


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if is_carried(value):
        leaves = trees.flatten(value)[0]
        return str(tensor_type(leaves[0])) if len(leaves) == 1 else f"a {type(value).__name__}"
    return f"{value!r:.40}"
