"""`if` on a test that may be traced."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from wend.base import refusals, trees
from wend.base.errors import StructureError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at, user_source
from wend.capture.heap import container_phis
from wend.capture.heap.containers import copy_containers
from wend.capture.heap.locations import UNBOUND, Location, evaluate, write_log
from wend.capture.heap.nested_replacements import check_replacements
from wend.capture.heap.partial_attributes import AttributeNames
from wend.capture.heap.user_operators import log_write_operands
from wend.capture.stage import raises
from wend.capture.stage.carried_types import as_type, leaf_labels
from wend.capture.stage.guard import is_raised
from wend.capture.stage.placeholders import bound_in_run, fill_missing, placeholders
from wend.capture.stage.raises import Alternative, Raised
from wend.capture.stage.truth import as_test, is_traced, truth
from wend.capture.state import unbound
from wend.capture.state.differences import (
    cure_of,
    described,
    difference_of_instances,
    keys_of,
    return_cure,
)
from wend.capture.state.list_promotion import promote_grown_lists
from wend.capture.state.merged_instances import copied, is_mergeable
from wend.capture.state.new_variables import start_with_new_variables
from wend.capture.state.optional_value import merged_optional, merges_options, narrowed
from wend.capture.state.paths import check_recursion, decided
from wend.capture.state.state import Discovery, State, is_carried, is_same
from wend.capture.state.unbound_attributes import merge_paths
from wend.capture.syntax.names import PREFIX, RETURN_VALUE
from wend.eager.promotion import as_array
from wend.numpy.elementwise import logical_not
from wend.ops.creating import constant
from wend.trace.aliasing.may_alias import is_array, record_merge
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.branch_sizes import with_common_sizes
from wend.trace.control.branches import unify_results
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import LeafType, leaf_type
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import join_branches
from wend.trace.recording.run_errors import refuse_escaping_errors
from wend.trace.state.merged_texts import with_choices
from wend.trace.state.text_choice import chosen, is_choice, is_text
from wend.trace.state.variable import Variable

Arm = Callable[[], Any]


def if_(
    test: Any, then: Arm, other: Arm, live: Sequence[str], state: State, *, returns: bool = False
) -> None:
    """Run `if test: then  else: other`; `live`: the variables that are read later.

    `returns`: whether the function returns after `then`, so that no variable is read then.
    """
    test = as_test(test)
    if is_traced(test):
        decided(
            partial(truth, test),
            then,
            other,
            lambda: StagedIf(test, state, live, then_returns=returns).record(then, other),
        )
    else:
        (then if test else other)()


def if_return(test: Any, then: Arm, other: Arm, live: Sequence[str], state: State) -> Any:
    """Run an `if` whose arms end the function, and return the result of the arm."""
    test = as_test(test)
    if is_traced(test):
        return decided(
            partial(truth, test),
            then,
            other,
            lambda: StagedIf(test, state, live).record(then, other),
        )
    return (then if test else other)()


def if_value(test: Any, then: Arm, other: Arm, state: State | None, kind: str = "if") -> Any:
    """Return `then() if test else other()` for a traced test; `kind` is the source operator."""
    known_state = state or State()
    return decided(
        partial(truth, test),
        then,
        other,
        lambda: StagedIf(test, known_state, known_state.names, kind=kind, gives_value=True).record(
            then, other
        ),
    )


# Names of the arms in messages, in the order of their regions.
_ARM_LABELS = ("the else path", "the if path")


def initial_values(state: State, outer: Recording) -> list[Any]:
    """Return the state's values; variables left over from an earlier region become unbound.

    Only variables that nobody reads are affected: a loop sets those that are live in it.
    """
    values = state.get()
    for k in range(len(state.variables)):
        leaves = [] if values[k] is UNBOUND else trees.flatten(values[k])[0]
        if any(isinstance(x, Tracer) and not outer.can_lift(x) for x in leaves):
            values[k] = UNBOUND
    return values


_RETURNS = {code for name, code in dis.opmap.items() if name in ("RETURN_VALUE", "RETURN_CONST")}


def _never_returns(arm: Any) -> bool:
    """Return whether an arm always ends with a `raise`."""
    code = getattr(arm, "__code__", None)
    return code is not None and _RETURNS.isdisjoint(code.co_code[::2])


@dataclass(slots=True)
class _ArmEnd:
    """An arm that was recorded.

    Attributes:
        region: its recording.
        entered: what the state held at its start.
        left: what it held at the end.
        values: that, with copies of containers.
        result: what it returned.
        returned: that, with copies of containers.
        instances: copies of the instances among the values, by position, and of what it returned.
        raises: whether it ended with an exception.
        alternatives: what it may raise for a handler of captured code.
    """

    region: Recording
    entered: list[Any] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    result: Any = None
    returned: Any = None
    instances: dict[int, Any] = field(default_factory=dict)
    raises: bool = False
    alternatives: list[Alternative] = field(default_factory=list)


def close_rests(
    extent: raises.Extent, state: State, locations: Sequence[Location], value: Any
) -> tuple[Any, list[Alternative]]:
    """Close the rests of an extent; return a value that its end gives, and what it may raise."""
    normal = raises.Normal([*map(evaluate, state.readers), value], locations)
    alternatives = raises.close(extent, normal, [])
    *variables, value = normal.values
    state.setter(variables)
    return value, alternatives


class StagedIf:
    """An `if` that is being recorded."""

    def __init__(
        self,
        test: Any,
        state: State,
        live: Sequence[str],
        *,
        kind: str = "if",
        gives_value: bool = False,
        then_returns: bool = False,
    ) -> None:
        outer = current()
        if outer is None:
            raise test.leaked()
        self.outer, self.state, self.gives_value = outer, state.open_heap(), gives_value
        self.live_variables, self.then_returns = live, then_returns
        self.where = f"{kind}{at(user_source())}"
        self.entry: list[Any] | None = None
        self.test = truth(test)

    def record(self, then: Arm, other: Arm) -> Any:
        """Record both arms, and set the state to the merged values.

        If an arm raises an exception, the runs that take it end there: it becomes a check, and the
        other arm goes on without a branch.
        """
        discovery = Discovery(self.state)
        arms = (other, then)  # in the order of their regions
        order = sorted((0, 1), key=lambda index: not _never_returns(arms[index]))
        while True:
            self.start = self.entry or initial_values(self.state, self.outer)
            self.entry = None
            ends, discovered = {}, []
            for index in order:
                end, changed = self._record_arm(index, arms[index], discovery)
                if end.raises:
                    self._record_raise(index, end)
                    return arms[1 - index]()
                ends[index] = end
                discovered += changed
            values = [ends[index].values for index in (0, 1)]
            if start_with_new_variables(self.state, self.start, *values):
                self.entry = self.start
                continue
            if len(values[0]) == len(values[1]) and promote_grown_lists(
                self.state, self.where, self.start, *values
            ):
                self.entry = self.start
                continue
            if not discovery.needs_retrace(discovered):
                self.ends = [ends[index] for index in (0, 1)]
                regions = [end.region for end in self.ends]
                return self._finish(regions, [end.returned for end in self.ends], values)

    def _record_arm(
        self, index: int, arm: Arm, discovery: Discovery
    ) -> tuple[_ArmEnd, list[Location]]:
        """Record an arm; return its end, and the locations outside the state that it changes."""
        role = f"a branch of {self.where}"
        check_recursion(role, self.outer)
        region = Recording(f"branch{index}", self.outer, is_region=True, role=role)
        end, handled = _ArmEnd(region), sys.exc_info()[1]
        with write_log() as log:
            discovery.reached = log_write_operands()
            try:
                end.entered = self.state.set(self.start)
                self.state.disown(self.start)
                nested_before = self.state.nested_containers()
                with (
                    region.active(),
                    refuse_escaping_errors(self.where),
                    raises.in_region(region) as extent,
                ):
                    try:
                        end.result = arm()
                    except BaseException as error:
                        if refusals.is_refusal(error) or not is_raised(error, handled):
                            raise
                        end.alternatives = raises.end_raising(error)
                        end.raises = True
                    else:
                        if extent.rests:
                            locations = [location for location, _ in log.values()]
                            end.result, end.alternatives = close_rests(
                                extent, self.state, locations, end.result
                            )
                nested_after = self.state.nested_containers()
                end.left = self.state.get()
                end.values = [copy_containers(value) for value in end.left]
                end.returned = copy_containers(end.result)
                end.instances = {
                    k: copied(value) for k, value in enumerate(end.left) if is_mergeable(value)
                }
                if is_mergeable(end.result):
                    end.instances[-1] = copied(end.result)
            finally:
                self.state.undo(self.start)
                changed = discovery.undo(log)
        held = self.state.held(end.left, self.live_variables)
        check_replacements(
            nested_before, nested_after, self.where, self.outer, held, is_undone=True
        )
        return end, changed

    def _record_raise(self, index: int, end: _ArmEnd) -> None:
        """Record the check for a branch that ends with an exception, or what its handler reads."""
        outer, test, region = self.outer, self.test, end.region
        if end.alternatives:
            is_raised = test if index else logical_not(test)
            raises.open_rest(is_raised, end.alternatives, region)
            return
        *others, node = region.b.nodes
        values = {param: outer_value for outer_value, param in region.region_params.items()}
        operands = node.operands[2:]
        if all(other.op is constant for other in others) and values.keys() >= {*operands}:
            predicate = test if index else logical_not(test)
            arrays = [outer.wrap(values[operand]) for operand in operands]
            error, text = node.attrs["error"], node.attrs["text"]
            outer.emit_raise(error, text, predicate, arrays, node.source)
            return
        empty = Recording("branch", outer, is_region=True, role=region.role)
        regions = [empty, region] if index else [region, empty]
        join_branches(outer, outer.lift(test), regions, [[], []])

    def _finish(
        self, regions: Sequence[Recording], returned: list[Any], ends: Sequence[Sequence[Any]]
    ) -> Any:
        results, pairs, carried, leafless = list(self.start), [], [], []
        for k, name in enumerate(self.state.names):
            pair = [ends[0][k], ends[1][k]]
            if k < len(self.state.variables) and name not in self.live_variables:
                results[k] = UNBOUND
                continue
            if isinstance(pair[0], AttributeNames):
                results[k] = self._merged_order(name, *pair)
                continue
            if all(is_same(value, self.start[k]) for value in pair) and not self._is_rebound(k):
                continue
            is_decided = name.startswith(PREFIX) and pair[0] is pair[1]  # a flag of wend's own
            if is_decided or (isinstance(pair[0], Variable) and pair[0] is pair[1]):
                results[k] = pair[0]
                continue
            merged_pair = self._merge_pair(name, self._by_attributes(k, pair))
            if merged_pair is not None:
                carried.append(k)
                pairs.append(merged_pair)
            elif is_same(*pair) or (
                self.then_returns and k < len(self.state.variables) and pair[1] is UNBOUND
            ):
                results[k] = pair[0]
                leafless.append(k)
            else:
                results[k] = UNBOUND
                if not isinstance(self.start[k], unbound.MaybeBound):
                    self.state.note_unbound(k, f"on one path of the {self.where}", "on both paths")
        alternatives = self._add_alternatives(pairs)
        pairs.append(self._returned_pair(self._by_attributes(-1, returned)))
        names = [self.state.names[k] for k in carried]
        values = self._join(regions, pairs, [*names, *("a `raise`" for _ in alternatives)])
        for k, value in zip(carried, values, strict=False):
            results[k] = value
        self.state.restore(results)
        record_merge(*self.joined, self.outer)
        # What holds no arrays is no result of the node, but its identity is known to the run alone
        merged = [*carried, *leafless]
        options = [[*(end.left[k] for k in merged), end.result] for end in self.ends]
        merge_paths([*(results[k] for k in merged), values[-1]], options, self.outer)
        for (raised, leaves), value in zip(alternatives, values[len(carried) :], strict=False):
            flag, *arrays = value
            by_id = dict(zip(leaves, arrays, strict=True))
            raises.open_rest(flag, [(None, raised.replaced(by_id))])
        return values[-1]

    def _by_attributes(self, k: int, pair: list[Any]) -> list[Any]:
        """Return copies of instances that both arms leave at a position, if they differ."""
        if pair[0] is pair[1] or type(pair[0]) is not type(pair[1]):
            return pair
        copies = [end.instances.get(k) for end in self.ends]
        return pair if any(copy is None for copy in copies) else copies

    def _add_alternatives(self, pairs: list[list[Any]]) -> list[tuple[Raised, dict[int, Any]]]:
        """Add what the arms may raise to the pairs: a flag, and the arrays that the handler needs.

        Return the exceptions, and their arrays by id.
        """
        alternatives = []
        for index, end in enumerate(self.ends):
            for flag, raised in end.alternatives:
                leaves = raised.local_leaves(end.region)
                pair: list[Any] = [None, None]
                pair[index] = [flag, *leaves.values()]
                types = [leaf_type(as_array(leaf)) for leaf in leaves.values()]
                with self.ends[1 - index].region.active():
                    pair[1 - index] = [False, *(raises.value_of_type(None, t) for t in types)]
                pairs.append(pair)
                alternatives.append((raised, leaves))
        return alternatives

    def _merged_order(
        self, name: str, other: AttributeNames, then: AttributeNames
    ) -> AttributeNames:
        if then.agrees(other):
            return then.merged(other, f"set only on one path of the {self.where}")
        raise StructureError(
            explain(
                f"{self.where}: `{name}` has the order {then} if the test holds, else {other}.",
                cure="assign the attributes in one order on both paths, or before.",
            )
        )

    def _is_rebound(self, k: int) -> bool:
        """Return whether an arm leaves a different container, even if it is equal."""
        if self.state.is_contents(k):
            return False
        ends = self.ends
        return any(container_phis.are_others(end.left[k], end.entered[k]) for end in ends)

    def _merge_pair(self, name: str, pair: list[Any]) -> list[Any] | None:
        """Return a variable's values at the end of both arms, if they are graph values."""
        if name == RETURN_VALUE or (
            self.then_returns and pair[1] is UNBOUND and name in self.state.variables
        ):
            if name != RETURN_VALUE or not self._returns_none(pair):
                pair = fill_missing(pair)
            if name == RETURN_VALUE and (pair[0] is UNBOUND) != (pair[1] is UNBOUND):
                self._refuse_return(pair)  # of what no zeros stand for: a text, None
        elif name in self.state.possibly_unbound and name not in unbound.reasons():
            pair = bound_in_run(self._with_bound_choices(pair))
        elif self.gives_value and name in self.state.variables:
            pair = self._maybe_bound_pair(name, pair)
        pair = merged_optional(narrowed(pair, self.test), placeholders, self.outer)
        if any(value is UNBOUND for value in pair):
            return None
        pair = self._with_choices(pair)
        if all(map(is_carried, pair)) or all(map(is_mergeable, pair)):
            return pair
        if is_same(*pair):
            return None
        if all(isinstance(value, dict) for value in pair) and pair[0].keys() != pair[1].keys():
            raise StructureError(
                explain(
                    f"{self.where}: `{name}` has {keys_of(pair[1])} if the test holds, else "
                    f"{keys_of(pair[0])}.",
                    cure="give it the same keys on both paths; reading a missing key of a "
                    "defaultdict inserts it, so insert it before.",
                )
            )
        raise StructureError(
            explain(
                f"{self.where}: `{name}` is {described(pair[1])} if the test holds, "
                f"else {described(pair[0])}.",
                cure=cure_of(pair, "; give it the same kind of value on both paths"),
            )
        )

    def _with_choices(self, pair: list[Any]) -> list[Any]:
        """Return what both arms leave, where another text on each is a choice for the run."""
        if not merges_options(self.outer) and not any(map(is_choice, pair)):
            return pair
        return with_choices(pair, [end.region.active for end in self.ends])

    def _with_bound_choices(self, pair: list[Any]) -> list[Any]:
        """Return what both arms leave of a name with choices for texts, if one may not bind it."""
        inner = [x.value if isinstance(x, unbound.BoundInRun) else x for x in pair]
        some = next((x for x in inner if is_text(x) or is_choice(x)), UNBOUND)
        is_bound_once = any(x is UNBOUND or isinstance(x, unbound.BoundInRun) for x in pair)
        if some is UNBOUND or not is_bound_once:
            return pair
        texts = self._with_choices([some if x is UNBOUND else x for x in inner])
        texts = [chosen(x, (x,)) if is_text(x) else x for x in texts]
        return [
            unbound.BoundInRun(text, x.is_bound)
            if isinstance(x, unbound.BoundInRun)
            else x
            if x is UNBOUND
            else text
            for text, x in zip(texts, pair, strict=True)
        ]

    def _returns_none(self, pair: list[Any]) -> bool:
        """Return whether a path returns None, and not only because it returns nothing yet."""
        start = self.start[self.state.names.index(RETURN_VALUE)]
        return start is not None and any(value is None for value in pair)

    def _refuse_return(self, pair: list[Any]) -> None:
        index = 0 if pair[1] is UNBOUND else 1
        case = ("test fails", "test holds")[index]
        raise StructureError(
            explain(
                f"{self.where}: the function returns {described(pair[index])} only if the {case}.",
                cure="return arrays of the same structure on both paths.",
            )
        )

    def _maybe_bound_pair(self, name: str, pair: list[Any]) -> list[Any]:
        """Wrap what `:=` binds in one operand only; reading it checks that it is bound."""
        if any(value is UNBOUND for value in pair):
            filled = fill_missing(pair)
            if not all(map(is_carried, filled)):
                return pair
            unbound.note_reason(name, f"on one path of the {self.where}", "before it")
            pair = [unbound.MaybeBound(unbound.unwrap(value)) for value in filled]
        elif any(isinstance(value, unbound.MaybeBound) for value in pair):
            pair = [unbound.MaybeBound(unbound.unwrap(value)) for value in pair]
        return pair

    def _returned_pair(self, returned: list[Any]) -> list[Any]:
        if any(value is UNBOUND for value in returned):
            # A `return` in a loop that no iteration reaches.
            returned = fill_missing(returned)
            if returned[0] is UNBOUND or returned[1] is UNBOUND:
                return [None, None]
        returned = narrowed(returned, self.test)
        returned = self._with_choices(merged_optional(returned, placeholders, self.outer))
        if all(map(is_text, returned)) and merges_options(self.outer):  # one text
            returned = [chosen(text, (text,)) for text in returned]
        leaves = [trees.flatten(value)[0] for value in returned]
        are_merged = returned[0] is not returned[1] and all(map(is_mergeable, returned))
        if any(leaves) and not are_merged and not all(map(is_carried, returned)):
            if is_same(*returned):
                raise StructureError(
                    explain(
                        f"{self.where}: both paths give {described(returned[0])}.",
                        cure="only arrays and numbers can come out of a traced test.",
                    )
                )
            subject = "the value is" if self.gives_value else "the function returns"
            raise StructureError(
                explain(
                    f"{self.where}: {subject} {described(returned[1])} if the test "
                    f"holds, else {described(returned[0])}.",
                    cure=cure_of(returned) if self.gives_value else return_cure(returned),
                )
            )
        return returned

    def _join(
        self, regions: Sequence[Recording], rows: list[list[Any]], names: Sequence[str]
    ) -> list[Any]:
        labels = [*names, "the value" if self.gives_value else "what it returns"]
        both = [[row[k] for row in rows] for k in (0, 1)]
        flat, treedefs = [], []
        for region, values in zip(regions, both, strict=True):
            leaves, treedef = trees.flatten_deep(values, keeps_static=True, with_objects=True)
            with region.active():  # a variable is read where the arm left it
                flat.append([as_array(leaf) for leaf in leaves])
            treedefs.append(treedef)
        if not trees.is_same_structure(*treedefs):
            raise self._structure_error(rows, labels)
        flat = self._with_common_shapes(regions, flat)
        resized = with_common_sizes(self.outer, regions, flat)
        types = self._common_types(resized, leaf_labels(treedefs[0], labels))
        values = []
        for region, leaves in zip(regions, resized, strict=True):
            with region.active():
                values.append(
                    [region.lift(as_type(leaf, t)) for leaf, t in zip(leaves, types, strict=True)]
                )
        node = join_branches(self.outer, self.outer.lift(self.test), regions, values)
        tracers = [
            self.outer.wrap_as(value, t) for value, t in zip(node.results, types, strict=False)
        ]
        tracers = _share_identical_results(tracers, flat)
        self.joined = tracers, flat
        result: list[Any] = trees.unflatten(treedefs[0], tracers)
        return result

    def _with_common_shapes(
        self, regions: Sequence[Recording], flat: list[list[Any]]
    ) -> list[list[Any]]:
        """Return the leaves of both arms, which must have the same shapes."""
        return flat

    def _common_types(self, flat: Sequence[Sequence[Any]], paths: Sequence[str]) -> list[LeafType]:
        lists = {k for k, leaf in enumerate(flat[0]) if is_list(leaf)}
        arrays = [k for k in range(len(paths)) if k not in lists]
        options = [[arm_leaves[k] for k in arrays] for arm_leaves in flat]
        agreed = iter(unify_results(self.where, options, [paths[k] for k in arrays], _ARM_LABELS))
        return [leaf_type(flat[0][k]) if k in lists else next(agreed) for k in range(len(paths))]

    def _structure_error(self, rows: list[list[Any]], labels: Sequence[str]) -> StructureError:
        for (other, then), label in zip(rows, labels, strict=True):
            if (text := difference_of_instances(label, then, other)) is not None:
                return StructureError(f"{self.where}: {text}")
            difference = trees.first_difference(then, other, label)
            if difference:
                break
        if any(map(is_list, trees.flatten((other, then))[0])):
            return StructureError(
                explain(
                    f"{self.where}: `{label}` is a list that grows in a loop on one path.",
                    difference,
                    cure="make it an array on both paths: wnp.stack(out).",
                )
            )
        are_lists = type(then) is list and type(other) is list
        others = "; or do on each path what is done with the list" if are_lists else ""
        return StructureError(
            explain(
                f"{self.where}: `{label}` has another structure on each path.",
                f"if the test holds: {trees.described(then)}, else: {trees.described(other)}",
                difference,
                cure="give it the same structure on both paths: the same keys in the same order, "
                f"and the same lengths{others}.",
            )
        )


def _share_identical_results(results: list[Any], options: Sequence[Sequence[Any]]) -> list[Any]:
    """Use one result where several merge the same arrays on every path."""
    shared: dict[tuple[int, ...], Any] = {}
    rows = zip(*options, strict=True)
    return [
        shared.setdefault(tuple(map(id, row)), result) if all(map(is_array, row)) else result
        for result, row in zip(results, rows, strict=True)
    ]
