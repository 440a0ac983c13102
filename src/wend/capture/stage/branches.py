"""`if` on what may be traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, StructureError, explain
from wend.base.source import at, user_source
from wend.capture.heap import container_phis
from wend.capture.heap.containers import KINDS, copied
from wend.capture.heap.locations import UNBOUND, write_log
from wend.capture.heap.user_operators import log_write_operands
from wend.capture.stage import guard
from wend.capture.stage.truth import is_traced, truth
from wend.capture.state import unbound
from wend.capture.state.list_promotion import lists_have_grown
from wend.capture.state.state import (
    Discovery,
    State,
    is_carried,
    is_same,
)
from wend.capture.syntax.names import RETURN_VALUE
from wend.eager.promotion import as_array, cast, tensor_type
from wend.trace.aliasing.may_alias import is_array, settle
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.branches import agree
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import LeafType, leaf_type
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import join_branches
from wend.trace.state.variable import Variable

Arm = Callable[[], Any]


def if_(test: Any, then: Arm, other: Arm, live: Sequence[str], state: State) -> None:
    """`if test: then  else: other`; the arms change the state, of which `live` is read later."""
    if is_traced(test):
        _Branch(test, state, live).record(then, other)
    else:
        (then if test else other)()


def if_return(test: Any, then: Arm, other: Arm, live: Sequence[str], state: State) -> Any:
    """`if` whose arms end the function: gives what they return."""
    if is_traced(test):
        return _Branch(test, state, live).record(then, other)
    return (then if test else other)()


def if_value(test: Any, then: Arm, other: Arm, state: State | None, kind: str = "if") -> Any:
    """`then() if test else other()`, for a traced test; `kind` is what the user wrote."""
    state = state or State()
    return _Branch(test, state, state.names, kind=kind, gives_value=True).record(then, other)


# How messages call the arms, in the order of their regions.
_ARMS = ("the else path", "the if path")


class _Branch:
    """An `if` that is being recorded."""

    def __init__(
        self,
        test: Any,
        state: State,
        live: Sequence[str],
        *,
        kind: str = "if",
        gives_value: bool = False,
    ) -> None:
        outer = current()
        if outer is None:
            raise test.leaked()
        self.outer, self.state, self.gives_value = outer, state.opened(), gives_value
        self.variables_live = live
        self.where = f"{kind}{at(user_source())}"
        self.entry: list[Any] | None = None
        self.test = truth(test)

    def record(self, then: Arm, other: Arm) -> Any:
        """Record both arms, and leave the state as whichever runs will leave it."""
        discovery = Discovery(self.state)
        while True:
            self.start = self.entry or self._entered()
            self.entry = None
            regions, returned, ends, more = [], [], [], []
            self.entered, self.left = [], []
            for number, arm in enumerate((other, then)):
                role = f"a branch of {self.where}"
                region = Recording(f"branch{number}", self.outer, is_region=True, role=role)
                with write_log() as log:
                    log_write_operands()
                    try:
                        self.entered.append(self.state.set(self.start))
                        before = self.state.parts()
                        with region.active(), guard.region(self.where):
                            returned.append(arm())
                        now = self.state.parts()
                        self.left.append(self.state.get())
                        ends.append([copied(value) for value in self.left[-1]])
                    finally:
                        self.state.restore(self.start)
                        more += discovery.undone(log)
                container_phis.check_replaced(before, now, self.where, self.outer)
                regions.append(region)
            if len(ends[0]) == len(ends[1]) and lists_have_grown(
                self.state, self.where, self.start, *ends
            ):
                self.entry = self.start
                continue
            if not discovery.found_more(more):
                return self._finish(regions, returned, ends)

    def _entered(self) -> list[Any]:
        """What the state holds; variables left by a trace that was dropped are not bound.

        Only what nobody reads is left so: a loop sets the variables that are live in it.
        """
        values = self.state.get()
        for k in range(len(self.state.variables)):
            leaves = [] if values[k] is UNBOUND else trees.flatten(values[k])[0]
            if any(isinstance(x, Tracer) and not self.outer.can_lift(x) for x in leaves):
                values[k] = UNBOUND
        return values

    def _finish(
        self, regions: Sequence[Recording], returned: list[Any], ends: Sequence[Sequence[Any]]
    ) -> Any:
        after, rows, places = list(self.start), [], []
        for k, name in enumerate(self.state.names):
            pair = [ends[0][k], ends[1][k]]
            if k < len(self.state.variables) and name not in self.variables_live:
                after[k] = UNBOUND
                continue
            if all(is_same(value, self.start[k]) for value in pair) and not self._is_rebound(k):
                continue
            if isinstance(pair[0], Variable) and pair[0] is pair[1]:
                after[k] = pair[0]
                continue
            found = self._pair(name, pair)
            if found is not None:
                places.append(k)
                rows.append(found)
            elif is_same(*pair):
                after[k] = pair[0]
            else:
                after[k] = UNBOUND
                if not isinstance(self.start[k], unbound.Perhaps):
                    unbound.note(name, f"on one path of the {self.where}", "on both paths")
        rows.append(self._returned(returned))
        values = self._join(regions, rows, [self.state.names[k] for k in places])
        for k, value in zip(places, values, strict=False):
            after[k] = value
        self.state.restore(after)
        settle(*self.joined, self.outer)
        options = [
            [*(left[k] for k in places), value]
            for left, value in zip(self.left, returned, strict=True)
        ]
        container_phis.merged(values, options, self.outer)
        return values[-1]

    def _is_rebound(self, k: int) -> bool:
        """Whether an arm leaves another container in a place, if it be an equal one."""
        if not isinstance(self.start[k], KINDS) or self.state.is_contents(k):
            return False
        pairs = zip(self.entered, self.left, strict=True)
        return any(entered[k] is not left[k] for entered, left in pairs)

    def _pair(self, name: str, pair: list[Any]) -> list[Any] | None:
        """What a variable holds at the end of each arm, if it is part of the graph."""
        if name == RETURN_VALUE:
            pair = _filled(pair)
        elif self.gives_value:
            pair = self._perhaps(name, pair)
        if any(value is UNBOUND for value in pair):
            return None
        if all(map(is_carried, pair)):
            return pair
        if is_same(*pair):
            return None
        if all(isinstance(value, dict) for value in pair) and pair[0].keys() != pair[1].keys():
            raise StructureError(
                explain(
                    f"{self.where}: `{name}` has {_keys(pair[1])} if the test holds, else "
                    f"{_keys(pair[0])}.",
                    cure="give it the same keys on both paths; reading a missing key of a "
                    "defaultdict puts it in, so put it in before.",
                )
            )
        raise StructureError(
            explain(
                f"{self.where}: `{name}` is {_described(pair[1])} if the test holds, "
                f"else {_described(pair[0])}.",
                cure="only arrays and numbers can depend on a traced test; "
                "give it the same kind of value on both paths.",
            )
        )

    def _perhaps(self, name: str, pair: list[Any]) -> list[Any]:
        """What `:=` binds in one operand only: whether it is bound is asked where it is read."""
        if any(value is UNBOUND for value in pair):
            filled = _filled(pair)
            if not all(map(is_carried, filled)):
                return pair
            unbound.note(name, f"on one path of the {self.where}", "before it")
            pair = [unbound.Perhaps(unbound.surely(value)) for value in filled]
        elif any(isinstance(value, unbound.Perhaps) for value in pair):
            pair = [unbound.Perhaps(unbound.surely(value)) for value in pair]
        return pair

    def _returned(self, returned: list[Any]) -> list[Any]:
        if any(value is UNBOUND for value in returned):
            # A `return` in a loop that no iteration comes to.
            returned = _filled(returned)
            if returned[0] is UNBOUND or returned[1] is UNBOUND:
                return [None, None]
        leaves = [trees.flatten(value)[0] for value in returned]
        if any(leaves) and not all(is_carried(value) for value in returned):
            if is_same(*returned):
                raise StructureError(
                    explain(
                        f"{self.where}: both paths give {_described(returned[0])}.",
                        cure="only arrays and numbers can come out of a traced test.",
                    )
                )
            subject = "the value is" if self.gives_value else "the function returns"
            raise StructureError(
                explain(
                    f"{self.where}: {subject} {_described(returned[1])} if the test "
                    f"holds, else {_described(returned[0])}.",
                    cure="only arrays and numbers can depend on a traced test."
                    if self.gives_value
                    else _cure_of_returns(returned),
                )
            )
        return returned

    def _join(
        self, regions: Sequence[Recording], rows: list[list[Any]], names: Sequence[str]
    ) -> list[Any]:
        labels = [*names, "the value" if self.gives_value else "what it returns"]
        both = [[row[k] for row in rows] for k in (0, 1)]
        flat, treedefs = [], []
        for region, own in zip(regions, both, strict=True):
            leaves, treedef = trees.flatten(own)
            with region.active():  # a variable is read where the arm left it
                flat.append([as_array(leaf) for leaf in leaves])
            treedefs.append(treedef)
        if treedefs[0] != treedefs[1]:
            raise self._structures_differ(rows, labels)
        paths = labelled(treedefs[0], labels)
        types = self._agreed(flat, paths)
        values = []
        for region, own in zip(regions, flat, strict=True):
            with region.active():
                pairs = zip(own, types, strict=True)
                values.append([region.lift(as_type(leaf, t)) for leaf, t in pairs])
        node = join_branches(self.outer, self.outer.lift(self.test), regions, values)
        tracers = [
            self.outer.wrap(value, weak=t.weak)
            for value, t in zip(node.results, types, strict=False)
        ]
        tracers = _one_for_one(tracers, flat)
        self.joined = tracers, flat
        result: list[Any] = trees.unflatten(treedefs[0], tracers)
        return result

    def _agreed(self, flat: Sequence[Sequence[Any]], paths: Sequence[str]) -> list[LeafType]:
        lists = {k for k, leaf in enumerate(flat[0]) if is_list(leaf)}
        arrays = [k for k in range(len(paths)) if k not in lists]
        options = [[own[k] for k in arrays] for own in flat]
        agreed = iter(agree(self.where, options, [paths[k] for k in arrays], _ARMS))
        return [leaf_type(flat[0][k]) if k in lists else next(agreed) for k in range(len(paths))]

    def _structures_differ(self, rows: list[list[Any]], labels: Sequence[str]) -> StructureError:
        for (other, then), label in zip(rows, labels, strict=True):
            difference = trees.first_difference(then, other, label)
            if difference:
                break
        if any(map(is_list, trees.flatten((other, then))[0])):
            return StructureError(
                explain(
                    f"{self.where}: `{label}` is a list that grows in a loop on one path.",
                    difference,
                    cure="let it be an array on both paths: wnp.stack(out).",
                )
            )
        return StructureError(
            explain(
                f"{self.where}: `{label}` has another structure on each path.",
                f"if the test holds: {_structure(then)}, else: {_structure(other)}",
                difference,
                cure="give it the same structure on both paths: the same keys and lengths.",
            )
        )


def _one_for_one(results: list[Any], options: Sequence[Sequence[Any]]) -> list[Any]:
    """The results, where one array is in two places on every path: one array in both."""
    found: dict[tuple[int, ...], Any] = {}
    rows = zip(*options, strict=True)
    return [
        found.setdefault(tuple(map(id, row)), result) if all(map(is_array, row)) else result
        for result, row in zip(results, rows, strict=True)
    ]


def as_type(leaf: Any, type: LeafType) -> Any:
    """A leaf with the dtype that was agreed on; traced lists as they are."""
    return leaf if is_list(leaf) else cast(leaf, type.type.dtype)


def labelled(treedef: trees.TreeDef, labels: Sequence[str]) -> list[str]:
    """The leaves of a list of variables, as a user would write them: `x`, `d['k'][0]`."""
    found = []
    for accessor in treedef.accessors():
        position, rest = accessor[0].entry, accessor[1:]
        found.append(f"`{labels[position]}{rest.codify('') if len(rest) else ''}`")
    return found


def _structure(value: Any) -> str:
    _, treedef = trees.flatten(value)
    text = str(treedef).removeprefix("PyTreeSpec(").removesuffix(")")
    return text.replace(", NoneIsLeaf", "")


def _cure_of_returns(returned: Sequence[Any]) -> str:
    if any(value is None for value in returned):
        return "return a value on both paths."
    return "return arrays of the same structure on both paths."


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
        raise CarryError(
            explain(
                f"a value of rank {type.rank} is first bound or returned on some paths only, "
                "and its size is only known when it runs.",
                cure="give the variable a value of that size before.",
            )
        )
    zeros = np.zeros([int(dim) for dim in type.dims if isinstance(dim, int)], type.dtype)
    return zeros if zeros.ndim else zeros[()]


def _keys(value: dict[Any, Any]) -> str:
    return f"the keys {list(value)!r:.40}" if value else "no keys"


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if is_carried(value):
        leaves = trees.flatten(value)[0]
        return str(tensor_type(leaves[0])) if len(leaves) == 1 else f"a {type(value).__name__}"
    return f"{value!r:.40}"
