"""Calls of a traced function for each element of some arrays, as one `parallel_map` node (D32)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.base.errors import ShapeError, TypeMismatchError, VariableError, explain
from wend.base.lazy.cached_property import cached_property
from wend.eager.promotion import tensor_type
from wend.ir.graph import Graph, Value
from wend.ir.op import Effect
from wend.ir.types import Dim, symbols
from wend.numpy import elementwise as ew
from wend.numpy import reducing
from wend.numpy.elementwise import where
from wend.ops.effects import checked, raise_if
from wend.ops.parallel_map import LIST, STACK, element_type, is_stackable
from wend.passes.dce import select_results
from wend.passes.defer_checks import defer_checks, has_checks
from wend.passes.forward_results import forward_results
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.scan import scan
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import join_branches
from wend.trace.state.creation import described
from wend.trace.traced import Traced


class MappedCall:
    """A function to be called for each element of some of its arguments.

    Args:
        what: the transform, for messages: "vmap of f".
        traced: the function, traced for elements.
        leaves: the array leaves of its arguments; the first axis of mapped ones counts elements.
        is_mapped: which of the leaves are mapped.
        size: the number of elements, where no leaf is mapped.
        limits: how many lanes and threads there are at most, and elements in a chunk, where the
            caller says.

    Raises:
        VariableError: the function assigns to a variable.
        TypeMismatchError: it changes an argument in place.
    """

    def __init__(
        self,
        what: str,
        traced: Traced,
        leaves: Sequence[Any],
        is_mapped: Sequence[bool],
        size: int | None,
        limits: Mapping[str, int],
    ) -> None:
        outer = current()
        assert outer is not None
        self.what, self.traced, self.outer = what, traced, outer
        self.is_mapped = is_mapped
        self._refuse_changes()
        self.size, self.leaves = self._common_size(leaves, size)
        self.limits = limits

    def _refuse_changes(self) -> None:
        for variable in self.traced.assigned:
            if getattr(type(variable), "is_stream", False):
                cure = "split a key, one for each element: vmap(f)(wend.random.split(key, n), …)."
                problem = f"{self.what}: the elements draw from one Generator, in no order."
            else:
                cure = "return the value, and assign it after the vmap."
                problem = f"{self.what}: the elements assign to {described(variable)} in no order."
            raise VariableError(explain(problem, cure=cure))
        for k in self.traced.written:
            name = str(self.traced.graph.params[k].name).removeprefix("argument ")
            raise TypeMismatchError(
                explain(
                    f"{self.what}: argument {name} is changed in place.",
                    cure=f"change a copy of it: {name} = {name}.copy().",
                )
            )

    def _common_size(self, leaves: Sequence[Any], size: int | None) -> tuple[Dim, list[Any]]:
        """Return the number of elements, and the leaves with that size of the mapped axes."""
        outer, b = self.outer, self.outer.b
        mapped = [k for k, flag in enumerate(self.is_mapped) if flag]
        sizes = [tensor_type(leaves[k]).dims[0] for k in mapped]
        if not mapped:
            assert size is not None
            return size, list(leaves)
        known = [dim for dim in (size, *sizes) if isinstance(dim, int)]
        common: Dim = known[0] if known else sizes[0]
        lifted: list[Any] = list(leaves)
        for k, dim in zip(mapped, sizes, strict=True):
            if dim == common:
                continue
            value = outer.lift(leaves[k])
            count = outer.wrap(b.size_of(value, 0))
            expected = (
                common
                if isinstance(common, int)
                else outer.wrap(b.size_of(outer.lift(leaves[mapped[0]]), 0))
            )
            outer.emit_raise(
                ShapeError,
                f"{self.what}: the mapped axes have different sizes, {{}} and {{}}",
                count != expected,
                [expected, count],
            )
            lifted[k] = outer.wrap(
                b.refine(value, value.tensor.with_shape((common, *value.tensor.dims[1:])))
            )
        return common, lifted

    def depends_on_element(self, k: int) -> bool:
        """Return whether a result may differ from element to element."""
        graph, needed = select_results(self._simplified, [k])
        is_mapped = [k < len(self.is_mapped) and self.is_mapped[k] for k in needed]
        varying = {p for p, flag in zip(graph.params, is_mapped, strict=True) if flag}
        for node in graph.nodes:
            has_effects = node.op.effect is not Effect.NONE or any(
                region.effects() for region in node.regions
            )
            if has_effects or not varying.isdisjoint(node.operands):
                varying.update(node.results)
        return graph.results[0] in varying

    @cached_property
    def _simplified(self) -> Graph:
        """The function, in which loops and branches do not give what they only pass on."""
        return forward_results(self.traced.graph)

    def record(self, shared: Sequence[int]) -> list[Tracer]:
        """Record the calls.

        Args:
            shared: results that are the same for every element, and are not stacked.

        Returns:
            The results, stacked along a new first axis.
        """
        mapped = [k for k in range(len(self.traced.result_types)) if k not in shared]
        results: dict[int, Any] = dict(zip(shared, self._record_shared(shared), strict=True))
        needs_order = self.traced.has_world and self._deferred is None
        record = self._record_in_order if needs_order else self._record_node
        results.update(zip(mapped, record(mapped), strict=True))
        return [results[k] for k in range(len(self.traced.result_types))]

    @cached_property
    def _deferred(self) -> Graph | None:
        """The function with a flag for checks, if it has some and no other effects."""
        return defer_checks(self.traced.graph) if has_checks(self.traced.graph) else None

    def _record_shared(self, shared: Sequence[int]) -> list[Tracer]:
        if not shared:
            return []
        graph, needed = select_results(self._simplified, shared)
        count = len(self.leaves)
        operands = [
            self.outer.lift(self.leaves[k] if k < count else self.traced.bindings[k - count])
            for k in needed
        ]
        return [self.outer.wrap(x) for x in self.outer.b.call(graph, operands).results]

    def _call(self, region: Recording, rows: Sequence[Any]) -> Sequence[Value]:
        """Record a call for one element in a region."""
        leaves = self._leaves_of(rows)
        return self.traced.call_graph(region, self.traced.graph, leaves).results

    def _call_deferred(self, region: Recording, rows: Sequence[Any]) -> Sequence[Value]:
        """Record a call whose last result tells whether a check fails."""
        assert self._deferred is not None
        inputs = [*self._leaves_of(rows), *self.traced.bindings]
        return region.b.call(self._deferred, [region.lift(x) for x in inputs]).results

    def _leaves_of(self, rows: Sequence[Any]) -> list[Any]:
        """Return the array leaves of the arguments for one element."""
        remaining = iter(rows)
        return [
            next(remaining) if flag else leaf
            for leaf, flag in zip(self.leaves, self.is_mapped, strict=True)
        ]

    @property
    def _mapped(self) -> list[Any]:
        mapped = [leaf for leaf, flag in zip(self.leaves, self.is_mapped, strict=True) if flag]
        return mapped or [self.outer.wrap(self.outer.b.iota(self._static_size()))]

    def _static_size(self) -> int:
        assert isinstance(self.size, int)
        return self.size

    def _record_in_order(self, results: Sequence[int]) -> list[Tracer]:
        """Record a loop, whose effects come in the order of the elements."""

        def step(number: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
            region = current()
            assert region is not None
            region.element = number
            region.frames.save()
            values = self._call(region, rows)
            return number + 1, [region.wrap(values[k]) for k in results]

        _, stacked = scan(step, 0, self._mapped)
        return list(stacked)

    def _record_node(self, results: Sequence[int]) -> list[Tracer]:
        outer = self.outer
        mapped = [outer.lift(x) for x in self._mapped]
        region = Recording("body", outer, is_region=True, role=f"the body of {self.what}")
        elements = [region.wrap(region.b.param(element_type(x.type))) for x in mapped]
        is_deferred = self._deferred is not None
        with region.active():
            call = self._call_deferred if is_deferred else self._call
            all_values = call(region, elements)
            values = [all_values[k] for k in results]
            flags = [all_values[-1]] if is_deferred else []
            outer_symbols = {s for x in (*mapped, *region.region_params) for s in symbols(x.type)}
            ragged = [k for k, x in enumerate(values) if not is_stackable(x.type, outer_symbols)]
            shapes = [region.b.shape_of(values[k]) for k in ragged]
        invariants = list(region.region_params)
        body = region.finish_region([*values, *shapes, *flags], invariants, has_world=False)
        forms = [LIST if k in ragged else STACK for k in range(len(values))]
        forms += [STACK] * (len(shapes) + len(flags))
        node = outer.b.parallel_map(mapped, [], invariants, body, forms, **self.limits)
        if flags and self.size != 0:
            self._raise_first(outer.wrap(node.results[-1]))
        stacked = list(node.results[: len(values)])
        for k, sizes in zip(ragged, node.results[len(values) :], strict=False):
            stacked[k] = self._stack_of_equal(results[k], stacked[k], outer.wrap(sizes))
        return [outer.wrap(x) for x in stacked]

    def _raise_first(self, flags: Tracer) -> None:
        """Record that the error of the first element that fails is raised.

        That element is computed once more, by itself, with the checks in their order.
        """
        outer = self.outer
        passes, fails = (
            Recording(f"branch{k}", outer, is_region=True, role=f"the checks of {self.what}")
            for k in range(2)
        )
        with fails.active():
            first = reducing.argmax(flags)
            fails.element = first
            fails.frames.save()
            values = self._call(fails, [x[first] for x in self._mapped])
            # It takes the results, for an operation whose value nothing uses raises nothing
            results = values[: len(self.traced.result_types)]
            operands = [fails.world(), fails.b.constant(True), *results]
            fails.set_world(fails.b.emit(raise_if, *operands, **self._otherwise))
        join_branches(outer, outer.lift(reducing.any(flags)), [passes, fails], [[], []])

    @property
    def _otherwise(self) -> dict[str, Any]:
        """The error of an element whose checks pass once it is computed by itself."""
        nodes = [x for x in self.traced.graph.walk() if x.op in (raise_if, checked)]
        errors = [e for x in nodes for e in x.attrs.get("errors", (x.attrs.get("error"),))]
        is_one = isinstance(errors[0], str) and all(e == errors[0] for e in errors)
        text = (
            f"{self.what}: a check failed where the elements were computed together, and passes "
            "where this one is computed alone: its numbers are rounded in another way"
        )
        return {"error": errors[0] if is_one else "RuntimeError", "text": text}

    def _stack_of_equal(self, number: int, items: Value, shapes: Tracer) -> Value:
        """Return a stack of items whose shapes must be equal, which only the run can tell."""
        outer, b = self.outer, self.outer.b
        count = outer.wrap(b.size_of(outer.lift(shapes), 0))
        differs = reducing.any(ew.not_equal(shapes, shapes[:1]), axis=1)
        numbers = outer.wrap(b.iota(outer.lift(count)))
        first = reducing.min(where(differs, numbers, count), initial=count)
        outer.emit_raise(
            ShapeError,
            f"{self.what}: result {number} of element {{}} and that of element 0 differ in shape",
            first < count,
            [first],
        )
        sizes = reducing.max(shapes, axis=0, initial=0)
        stacked = b.list_stack(items, outer.lift(sizes))
        return b.refine(stacked, stacked.tensor.with_shape((self.size, *stacked.tensor.dims[1:])))
