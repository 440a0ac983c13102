"""A loop of captured code that is being recorded as one `While` node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, StagedRaiseError, StructureError, explain
from wend.base.memory import Memory
from wend.base.refusals import refusal
from wend.capture.heap import container_phis
from wend.capture.heap.containers import copy_containers
from wend.capture.heap.locations import (
    UNBOUND,
    Attribute,
    AttributeOrder,
    Contents,
    WriteLog,
    write_log,
)
from wend.capture.heap.nested_replacements import check_replacements
from wend.capture.heap.partial_attributes import AttributeNames
from wend.capture.heap.user_operators import log_write_operands
from wend.capture.stage import raises
from wend.capture.stage.branches import close_rests, initial_values
from wend.capture.stage.carried_types import CarriedTypes, as_type
from wend.capture.stage.placeholders import as_bound_in_run, flagged, placeholders
from wend.capture.stage.truth import truth
from wend.capture.state import unbound, unbound_attributes
from wend.capture.state.list_promotion import promote_grown_lists
from wend.capture.state.merged_instances import copied, is_mergeable
from wend.capture.state.new_variables import (
    check_trip_appends_none,
    start_with_new_variables,
)
from wend.capture.state.not_carried import (
    OptionalCarryError,
    check_not_carried,
    is_optional,
    is_replaced,
)
from wend.capture.state.optional_value import optional_values
from wend.capture.state.state import Discovery, Reference, State, is_carried
from wend.capture.syntax.names import RETURN_VALUE
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array
from wend.numpy.elementwise import logical_and, logical_not
from wend.trace.aliasing.may_alias import alias_error, is_array, record_merge, roots
from wend.trace.arrays.concrete_array import demote, promote_for_region, ref_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import LeafType, leaf_type_with_flags
from wend.trace.recording.recording import Recording
from wend.trace.recording.regions import add_mutated_refs, inner_loops_keep, join_loop
from wend.trace.recording.run_errors import refuse_escaping_errors
from wend.trace.state.merged_texts import is_other_choice, with_choices

Thunk = Callable[[], Any]


class StagedLoop:
    """A loop that is being recorded: `test` is traced in region `before`, `body` in `after`.

    Attributes:
        entry: the values on entry.
        start: the initial values of the carry, with placeholders for unbound variables.
        carried, forwarded: the indices that `before`, and `after`, get as params.
        expected_refs, refs: outer arrays that may be, and are, updated in place.
        set_before, left_before: the values that `before` starts and ends with.
        tested: the same as `left_before`, which `after` continues with.
        set_after, left_after, ends: the values that `after` starts and ends with; copies of these.
        first_trip_may_differ: whether recording failed on a type, a structure, an unbound name or
            an error, which the first trip may have otherwise than the others.
        optional_error: that a value is None, or another text, in some trips.
        carries_optionals: whether it carries such values, with a flag or number.
        changes_sizes: whether recording failed on sizes that change from trip to trip.
        resizes: whether it carries such sizes as symbols.
        slots: what it carries for exceptions that end it.
        log: the heap writes of the last trace.
    """

    def __init__(
        self,
        outer: Recording,
        state: State,
        where: str,
        *,
        always: bool,
        python_may_run: bool,
        memory: Memory | None = None,
        carries_optionals: bool = False,
        resizes: bool = False,
    ) -> None:
        self.outer, self.state, self.where, self.always = outer, state, where, always
        self.python_may_run = python_may_run  # if the loop cannot be recorded
        self.memory = memory
        self.first_trip_may_differ = self.changes_sizes = False
        self.optional_error: OptionalCarryError | None = None
        self.carries_optionals, self.resizes = carries_optionals, resizes
        self.entry = initial_values(state, outer)
        self.start = list(self.entry)
        # Outer arrays that the loop updates in place: initially those that the source may update.
        containers = [value.container for value in self.start if isinstance(value, Reference)]
        self.promoted = [array for array in containers if promote_for_region(array)]
        refs = [ref for ref in map(ref_of, containers) if ref is not None]
        self.expected_refs = list({id(ref): ref for ref in refs}.values())
        self.refs = list(self.expected_refs)
        self.slots: list[raises.RaiseSlot] = []
        self.new_slots: list[raises.RaiseSlot] = []
        self.log: WriteLog = {}

    def trace(self, test: Thunk, body: Thunk) -> None:
        """Trace both regions until the carry's types reach a fixpoint."""
        missing = unbound_attributes.forget_missing()
        try:
            self._trace_to_fixpoint(test, body)
        except Exception as error:
            for array in self.promoted:
                demote(array)
            if isinstance(error, OptionalCarryError) and not (
                error.is_known and self.python_may_run
            ):
                self.optional_error = error
            self.changes_sizes = self.types.changes_sizes
            if isinstance(error, (CarryError, StructureError, NameError, StagedRaiseError)):
                self.first_trip_may_differ = True
            raise
        finally:
            unbound_attributes.restore_missing(missing)

    def _trace_to_fixpoint(self, test: Thunk, body: Thunk) -> None:
        self._reset_types()
        discovery = Discovery(self.state)
        while True:
            with write_log() as log:
                self.log = log
                discovery.reached = log_write_operands()
                try:
                    with refuse_escaping_errors(self.where):
                        predicate = self._trace_before(test)
                        ends = self._trace_after(body)
                finally:
                    discovered = discovery.undo(log)
            if discovery.needs_retrace(discovered) or self._add_slots():
                self._extend_carry()
                continue
            check_trip_appends_none(self.where, self.state.names, self.entry, ends)
            changed = start_with_new_variables(self.state, self.entry, ends)
            changed = changed or self._carry_none(ends)
            changed = changed or self._carry_instances(ends)
            if changed or promote_grown_lists(self.state, self.where, self.entry, self.entry, ends):
                discovery.may_retrace = True  # a path that was not traced may change more
                self._restart()
                continue
            if self._find_in_place(ends) or self._drop_unwritten_refs():
                continue
            if add_mutated_refs(self.refs, self.before, self.after) or self._fill_unbound(ends):
                continue
            if not self._unify_types(ends):
                break
        self.predicate, self.ends = predicate, ends
        for k, location in enumerate(self.state.locations, len(self.state.variables)):
            if isinstance(location, AttributeOrder):
                unbound_attributes.check_first_own(location, self.entry[k], ends[k], self.where)
            if not isinstance(location, Attribute) or self.entry[k] is not UNBOUND:
                continue
            if ends[k] is not UNBOUND or unbound_attributes.is_maybe_bound(location):
                unbound_attributes.check_first_bound(location, self.where)

    def _carry_none(self, ends: Sequence[Any]) -> bool:
        """Carry what is None at times with a flag; return whether there is any that had none."""
        has_new, entry = False, list(self.entry)
        for k, values in enumerate(zip(self.start, self.tested, ends, strict=False)):
            if self.carries_optionals and is_optional(self.state.names[k], values):
                self.entry[k] = optional_values(values, placeholders)[0]
                has_new = has_new or self.entry[k] is not self.start[k]
            elif self.carries_optionals and all(value is not UNBOUND for value in values):
                regions = self.outer, self.before, self.after
                self.entry[k] = with_choices(values, [region.active for region in regions])[0]
                has_new = has_new or is_other_choice(self.entry[k], self.start[k])
        unbound_attributes.enter_region(entry, self.entry)
        return has_new

    def _carry_instances(self, ends: Sequence[Any]) -> bool:
        """Carry instances that an iteration replaces; return whether there are new ones."""
        replaced = {
            k
            for k, (start, *later) in enumerate(zip(self.entry, self.tested, ends, strict=False))
            if k not in self.state.instances and any(is_replaced(start, value) for value in later)
        }
        self.state.instances |= replaced
        return bool(replaced)

    def _unify_types(self, ends: Sequence[Any]) -> bool:
        """Unify the types of the carry with those of an iteration; return whether any changed."""
        return self.types.unify(
            self._next_leaves(ends), None if self.python_may_run else self.after
        )

    def _extend_carry(self) -> None:
        """Add the newly discovered locations to the carry."""
        # A new location may be part of a carried value: a list in a list.
        self.state.undo(self.entry)
        discovered = self.state.get()[len(self.start) :]
        self.entry += discovered
        self.start += discovered
        self._reset_types()

    def _restart(self) -> None:
        """Reset the carry to the values on entry."""
        self.start = list(self.entry)
        self._reset_types()

    def _reset_types(self) -> None:
        """Compute which values are carried, and their types before any iteration."""
        if self.state.instances:  # a trace may have left its values in their attributes
            self.state.undo(self.start)
        self.carried = self.state.carried_indices(self.start)
        names = self.state.names
        values = [self.start[k] for k in self.carried]
        labels = [names[k] for k in self.carried]
        self.types = CarriedTypes(self.where, labels, values, resizes=self.resizes)

    def _trace_before(self, test: Thunk) -> Any:
        self.before = Recording(
            "before", self.outer, is_region=True, role=f"the test of {self.where}"
        )
        values = list(self.start)
        self.before_params = self.types.params(self.before)
        self.before.open_for(self.refs)
        for k, value in zip(self.carried, self.before_params, strict=True):
            values[k] = value
        self.set_before = self.state.set(values)
        unbound_attributes.enter_region(self._rebindable(self.start), self.set_before)
        scope = inner_loops_keep()
        with self.before.active(), scope, raises.in_region(self.before) as extent:
            for slot in self.slots:
                raises.open_rest(slot.value[0], [])
            condition = test()
            predicate = (
                truth(condition) if isinstance(condition, Staged) else np.bool_(bool(condition))
            )
            if extent.rests:
                predicate, flags = self._close_rests(extent, "test", predicate)
                for flag in (*(slot.value[0] for slot in self.slots), *flags):
                    predicate = logical_and(predicate, logical_not(flag))
        self.left_before = self.tested = self._flagged(self.state.get(), self.before)
        self.forwarded = self.state.carried_indices(self.tested)
        self._check_kinds(self.tested)
        return predicate

    def _trace_after(self, body: Thunk) -> list[Any]:
        self.after = Recording(
            "after", self.outer, is_region=True, role=f"the body of {self.where}"
        )
        self.after.carry_types = self.types.carry_types.region("after")
        forwarded = [self.tested[k] for k in self.forwarded]
        leaves, self.forward_tree = trees.flatten_deep(
            forwarded, keeps_static=True, with_objects=True
        )
        with self.before.active():
            self.forward_leaves = [as_array(leaf) for leaf in leaves]
        self.forward_types: list[LeafType] = [
            leaf_type_with_flags(leaf) for leaf in self.forward_leaves
        ]
        params = [self.after.param_of(t) for t in self.forward_types]
        self.after.open_for(self.refs)
        values = list(self.tested)
        self.after_params = trees.unflatten(self.forward_tree, params)
        for k, value in zip(self.forwarded, self.after_params, strict=True):
            values[k] = value
        self.set_after = self.state.set(values)
        unbound_attributes.enter_region(self._rebindable(self.left_before), self.set_after)
        nested_before = self.state.nested_containers()
        scope = inner_loops_keep()
        with self.after.active(), scope, raises.in_region(self.after) as extent:
            self.after.frames.save_for_interrupts()
            body()
            if extent.rests:
                self._close_rests(extent, "body", None)
        nested, held = self.state.nested_containers(), self.state.held(self.state.get())
        check_replacements(nested_before, nested, self.where, self.outer, held, is_undone=False)
        self.left_after = self._flagged(self.state.get(), self.after)
        left = self._rebindable(self.left_after)
        for copies in (self.set_before, self.set_after):
            container_phis.check_guards(self._rebindable(copies), left)
        ends = self.state.copied(self.left_after)
        for k, value in enumerate(ends):
            # The attributes of one that the body has made go when its writes are undone.
            if k not in self.state.instances and value is not values[k] and is_mergeable(value):
                ends[k] = copied(value)
        self._check_kinds(ends)
        return ends

    def _close_rests(self, extent: raises.Extent, part: str, value: Any) -> tuple[Any, list[Any]]:
        """Close the rests of a region, and keep what it may raise.

        Return a value of its end, and the flags of what it may raise.
        """
        locations = [location for location, _ in self.log.values()]
        value, alternatives = close_rests(extent, self.state, locations, (value,))
        for number, (flag, raised) in enumerate(alternatives):
            leaves = raised.local_leaves(extent.base)
            slots = [slot for slot in self.slots if slot.fits(part, number, leaves)]
            if slots:
                slots[0].fill(flag, raised, leaves)
            else:
                self.new_slots.append(raises.RaiseSlot(part, number, raised, leaves))
        return value[0], [flag for flag, _ in alternatives]

    def _add_slots(self) -> bool:
        """Carry what the last trace has found to be raised; return whether that is new."""
        new, self.new_slots = self.new_slots, []
        for slot in new:
            slot.write(slot.start)
        self.slots += new
        self.state.extend(new, is_private=True)
        return bool(new)

    def _find_in_place(self, ends: Sequence[Any]) -> bool:
        """Keep the arrays that variables and attributes hold throughout, whose elements change."""
        self.ends = list(ends)
        changed = {
            k
            for k in range(len(self.start))
            if (self._is_in_place(k) or self._is_written_through_alias(k)) and self.state.keep(k)
        }
        if changed:
            self.entry = [
                Reference(value) if k in changed else value for k, value in enumerate(self.entry)
            ]
            self._restart()
        return bool(changed)

    def _drop_unwritten_refs(self) -> bool:
        """Drop expected arrays that no region writes; return whether there were any."""
        regions = self.before, self.after
        unwritten = [
            ref for ref in self.expected_refs if all(not region.changes(ref) for region in regions)
        ]
        for array in self.promoted:
            if any(ref_of(array) is ref for ref in unwritten):
                demote(array)
        self.expected_refs = []
        self.refs = [ref for ref in self.refs if all(ref is not other for other in unwritten)]
        return bool(unwritten)

    def _fill_unbound(self, ends: Sequence[Any]) -> bool:
        """Carry what the loop binds first and always; return whether there was any."""
        names = self.state.names
        newly_bound = [
            k
            for k, value in enumerate(ends)
            if k not in self.carried
            and k not in self.forwarded
            and (is_carried(value) or is_mergeable(value))
            and names[k] not in self.state.not_live
            and (self.start[k] is UNBOUND or self.start[k] is None)
            and (
                self.always
                or names[k] == RETURN_VALUE
                or (
                    self.start[k] is UNBOUND
                    and names[k] in self.state.possibly_unbound
                    and names[k] not in unbound.reasons()
                )
            )
        ]
        for k in newly_bound:
            if is_mergeable(ends[k]):
                self.state.instances.add(k)
            self.start[k] = placeholders(ends[k])
            if not self.always and names[k] != RETURN_VALUE:
                self.start[k] = as_bound_in_run(self.start[k], UNBOUND)
        if newly_bound:
            self._reset_types()
        return bool(newly_bound)

    def _flagged(self, values: Sequence[Any], region: Recording) -> list[Any]:
        count = len(self.start)
        with_flags = [*map(partial(flagged, region), self.state.names, self.start, values)]
        unbound_attributes.enter_region(values[:count], with_flags)
        return [*with_flags, *values[count:]]

    def _check_kinds(self, values: Sequence[Any]) -> None:
        """Check that values which cannot be carried do not change."""
        fixed = self.where, self.state, self.carried, self.start
        check_not_carried(*fixed, values, carries_optionals=self.carries_optionals)

    def _next_leaves(self, ends: Sequence[Any]) -> list[Any]:
        names = self.state.names
        for k in self.carried:
            if ends[k] is UNBOUND:
                if (error := unbound.error_of(names[k])) is not None:
                    raise error
                raise CarryError(
                    explain(
                        f"{self.where}: `{names[k]}` is deleted in the loop, "
                        "but the next iteration may read it.",
                        cure=f"leave out `del {names[k]}`, or give it a value again.",
                    )
                )
        return self.types.leaves_of([ends[k] for k in self.carried])

    def check_unchanged(self, arrays: Sequence[Any]) -> None:
        """Refuse in-place updates of iterated arrays: their rows are read before the loop."""
        changed = [self.start[k] for k in self.carried if self._is_in_place(k)]
        for array in arrays:
            if any(ref_of(array) is other for other in (*self.refs, *changed)):
                raise refusal(
                    TypeError(
                        explain(
                            f"{self.where}: {array!r} changes in the loop that goes through it.",
                            cure="go through its positions (for i in range(len(x))), or a .copy().",
                        )
                    )
                )

    def finish(self) -> None:
        """Record the node, and set the state to its results."""
        outer, before, after = self.outer, self.before, self.after
        with before.active():
            test = before.lift(self.predicate)
            forwarded = [
                before.lift(as_type(leaf, t))
                for leaf, t in zip(self.forward_leaves, self.forward_types, strict=True)
            ]
        with after.active():
            following = self.types.next_carry(self._next_leaves(self.ends), after)
        start = self.types.start(outer)
        regions = before, [test, *forwarded], after, following
        node = join_loop(outer, start, *regions, self.refs, memory=self.memory)
        tracers = [
            Tracer(value, outer, weak=t.weak, zero_dim=t.zero_dim)
            for value, t in zip(node.results, self.forward_types, strict=False)
        ]
        for tracer, t in zip(tracers, self.forward_types, strict=True):
            tracer.writeable = t.writeable
        values = list(self.start)
        unchanged = {k for k in self.forwarded if self._is_unchanged(k)}
        for k in range(len(values)):
            if isinstance(values[k], AttributeNames):
                first, last = values[k], self.ends[k]
                values[k] = first.merged(last, f"set only inside the {self.where}")
                if self.always:
                    values[k] = AttributeNames(values[k].names, last.partial)
            elif k not in self.forwarded and not self.state.is_same(k, values[k], self.ends[k]):
                values[k] = UNBOUND
                self.state.note_unbound(k, f"inside the {self.where}", "before the loop")
            elif k not in self.forwarded and self._is_rebound(
                k
            ):  # only the run knows which of them it is
                values[k] = copy_containers(values[k])
        for k, value in zip(
            self.forwarded, trees.unflatten(self.forward_tree, tracers), strict=True
        ):
            if self._is_in_place(k):
                values[k].replace(value)  # for all who hold the array
            elif k not in unchanged:
                values[k] = value
        self.state.restore(values)
        self._check_aliases(tracers, unchanged)
        self._check_containers(values)
        for slot in self.slots:
            slot.reopen()

    def _rebindable(self, values: Sequence[Any]) -> list[Any]:
        """Return the values of the state except the contents of containers."""
        return [None if self.state.is_contents(k) else value for k, value in enumerate(values)]

    def _check_containers(self, values: Sequence[Any]) -> None:
        """Record container phis for the results; refuse the mutated ones of unknown identity."""
        indices = [k for k in range(len(self.start)) if values[k] is not self.start[k]]
        options = [
            [self._rebindable(row)[k] for k in indices]
            for row in (self.start, self.left_before, self.left_after)
        ]
        results = [values[k] for k in indices]
        unbound_attributes.merge_paths(results, options, self.outer, repeats=True)
        for k in indices:
            if container_phis.any_mutated(self.set_before[k], self.set_after[k]):
                container_phis.check_mutation(values[k], self.state.names[k])
        for location, _ in self.log.values():  # a later trip changes what a list was given before
            if location.key in self.state.keys and isinstance(location, (Attribute, Contents)):
                changed = location.owner if isinstance(location, Attribute) else location.container
                container_phis.check_listed(changed, location.label)

    def _check_aliases(self, results: list[Tracer], unchanged: set[int]) -> None:
        """Refuse in-place updates of arrays that another name may share: NumPy would show them."""
        result_values = trees.unflatten(self.forward_tree, results)
        indices: list[int] = []
        rows: list[Any] = []
        for j, k in enumerate(self.forwarded):
            if k in unchanged:
                continue
            if k in self.carried:
                entered = self.before_params[self.carried.index(k)]
                parts = self.start[k], self.ends[k], entered, self.after_params[j], result_values[j]
            else:  # bound by the test
                parts = (
                    self.tested[k],
                    self.tested[k],
                    self.after_params[j],
                    self.after_params[j],
                    result_values[j],
                )
            leaves = [
                trees.flatten_deep(part, keeps_static=True, with_objects=True)[0] for part in parts
            ]
            indices += [k] * len(leaves[0])
            rows += zip(*leaves, strict=True)
        if not rows:
            return
        starts, ends, entered, params, result_values = zip(*rows, strict=True)
        shared = record_merge(result_values, [starts, ends], self.outer, params)
        changed = {id(ref) for ref in self.refs}
        written = {
            id(result)
            for result, *inside in zip(result_values, entered, params, strict=True)
            if any(map(_is_written, inside))
        }
        entries = {
            id(root)
            for start, result in zip(starts, result_values, strict=True)
            if id(result) in written and not is_list(result)
            for root in roots(start)
        }
        for k, result, others, start in zip(indices, result_values, shared, starts, strict=True):
            name = self.state.names[k]
            label = "what it returns" if name == RETURN_VALUE else name
            if id(result) in written:
                result.mark_may_aliases()
            if is_list(result):
                if (changed | entries) & {id(origin) for origin in result.may_aliases}:
                    raise alias_error(
                        f"{self.where}: `{label}` holds an array that changes in the loop: in "
                        "NumPy its items would change too.",
                        "append a copy: out.append(x.copy()).",
                    )
            elif others and written & {id(result), *others}:
                error = alias_error(
                    f"{self.where}: `{label}` may be another array, depending on the trip, and "
                    "one of them changes there: in NumPy both would."
                )
                if type(start) is np.ndarray:
                    held = self.state.location_of(k)
                    error.changed_outside = (start,) if held is None else tuple(held.places())
                raise error
            elif is_array(result) and changed & {id(origin) for origin in result.may_aliases}:
                raise alias_error(
                    f"{self.where}: `{label}` may be an array that changes there: it would change "
                    "too."
                )

    def _is_unchanged(self, k: int) -> bool:
        """Return whether every iteration passes a variable through."""
        if k not in self.carried:
            return False
        entered = self.before_params[self.carried.index(k)]
        param = self.after_params[self.forwarded.index(k)]
        is_same = partial(self.state.is_same, k)
        same = is_same(entered, self.tested[k]) and is_same(param, self.ends[k])
        same = same and not self._is_rebound(k)
        return same and not any(map(_is_written, trees.flatten_deep((entered, param))[0]))

    def _is_rebound(self, k: int) -> bool:
        """Return whether an iteration leaves a different container, even if it is equal."""
        if self.state.is_contents(k):
            return False
        pairs = (self.left_before, self.set_before), (self.left_after, self.set_after)
        return any(container_phis.are_others(left[k], entered[k]) for left, entered in pairs)

    def _is_in_place(self, k: int) -> bool:
        """Return whether a variable holds one array whose elements change."""
        if k not in self.carried or not isinstance(self.start[k], Tracer):
            return False
        entered = self.before_params[self.carried.index(k)]
        param = self.after_params[self.forwarded.index(k)]
        same = self.tested[k] is entered and self.ends[k] is param
        return same and (_is_written(entered) or _is_written(param))

    def _is_written_through_alias(self, k: int) -> bool:
        """Return whether a variable is passed through while an alias updates an array in it."""
        if not self._is_unchanged(k) or not self.refs:
            return False
        leaves = [leaf for leaf in trees.flatten_deep(self.start[k])[0] if not is_list(leaf)]
        root_ids = {id(root) for leaf in leaves for root in roots(leaf)}
        regions = self.before, self.after
        return any(id(ref) in root_ids for r in regions for ref in self.refs if r.changes(ref))


def _is_written(leaf: Any) -> bool:
    """Return whether a region param was updated in place."""
    if not isinstance(leaf, Tracer):
        return False
    return leaf.value.node is not None or leaf.changes_through_alias
