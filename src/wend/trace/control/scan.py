"""`scan` and `map`: loops over the rows of arrays; signatures as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.autodiff.tape_policy import POLICIES
from wend.base import trees
from wend.base.errors import ShapeError, StructureError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, tensor_type
from wend.ir.builder import new_symbol
from wend.ir.dtypes import INT64
from wend.ir.graph import Value
from wend.ir.types import Dim, ListType, TensorType
from wend.numpy import elementwise as ew
from wend.ops import shaping as shaping_ops
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.loop_types import LoopTypes
from wend.trace.immediate import run_now
from wend.trace.recording.checks import check_integer, check_leaves
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import join_loop, refs_to_open
from wend.trace.sizes.lengths import items_shape


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int = 1,
    memory: str | None = None,
) -> tuple[Any, Any]:
    """Run `carry, y = f(carry, x)` over the rows x of `xs`; stack the ys. One node.

    Args:
        f: (carry, x) → (next carry, y).
        init: the carry to start from, a pytree of arrays and numbers.
        xs: a pytree of arrays with first axes of one size, or None.
        length: the number of steps, where `xs` does not tell; an integer, plain or traced.
        reverse: go from the last row to the first; ys stand where their xs do.
        unroll: steps per trip; 1 is built.
        memory: how the backward pass gets its residuals; `"keep"` (the default).

    Returns:
        The last carry, and the ys stacked along a new first axis.

    Raises:
        ShapeError: the sizes of first axes differ, or nothing tells the number of steps.
        CarryError, StructureError: the next carry is unlike the carry.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.scan(lambda c, x: (c + x, c), 0.0, wnp.arange(3.0))
        (np.float64(3.0), array([0., 0., 1.]))
    """
    if not callable(f):
        raise TypeError(f"f must be callable, not {f!r}")
    if unroll != 1:
        raise NotImplementedError(f"scan(unroll={unroll!r}) is not built yet")
    if memory not in (None, *POLICIES):
        raise NotImplementedError(f"scan(memory={memory!r}) is not built yet")
    if length is not None:
        check_integer(length, f"scan{at(user_source())}: length")
        length = length if isinstance(length, Staged) else int(length)
    if current() is None:
        result: tuple[Any, Any] = run_now(
            lambda c, rows: scan(f, c, rows, length, reverse, memory=memory), init, xs
        )
        return result
    return _Scan(f, init, xs, length, reverse).record(memory or "keep")


class _Scan:
    """A `scan` that is being recorded: a loop over i that reads row i and pushes y."""

    def __init__(self, f: Any, init: Any, xs: Any, length: Any, reverse: bool) -> None:
        outer = current()
        assert outer is not None
        self.f, self.reverse, self.outer = f, reverse, outer
        self.where = f"scan{at(user_source())}"
        self.rows, self.rows_tree = trees.flatten(xs)
        paths = trees.paths(self.rows_tree, "xs")
        check_leaves(self.where, self.rows, paths)
        self.types = LoopTypes(self.where, init)
        self.count, self.size = self._count(length, paths)

    def _count(self, length: Any, paths: Sequence[str]) -> tuple[Any, Dim]:
        """The number of steps, as a number, plain or traced, and as a dimension."""
        sizes: list[Dim] = []
        for row, path in zip(self.rows, paths, strict=True):
            dims = tensor_type(row).dims
            if not dims:
                raise ShapeError(f"{self.where}: {path} is a scalar, it has no rows")
            sizes.append(dims[0])
        if isinstance(length, Staged) and sizes:
            raise ShapeError(
                explain(
                    f"{self.where}: xs tell the number of steps, and so does a traced length.",
                    cure="leave length out, or xs; xs[i] may be read in f.",
                )
            )
        known = {size for size in (*sizes, length) if isinstance(size, int)}
        if len(known) > 1:
            raise ShapeError(
                f"{self.where}: first axes and length differ: "
                f"{', '.join(f'{p}: {s}' for p, s in zip(paths, sizes, strict=True))}"
                f"{'' if length is None else f', length: {length}'}"
            )
        if known:
            (number,) = known
            return number, number
        if length is not None:
            return ew.maximum(length, 0), new_symbol()
        if not sizes:
            raise ShapeError(f"{self.where}: give xs or length, to tell the number of steps")
        size = self.outer.b.size_of(self.outer.lift(self.rows[0]), 0)
        return Tracer(size, self.outer), sizes[0]

    def record(self, memory: str) -> tuple[Any, Any]:
        outer = self.outer
        lists = [outer.b.list_unstack(outer.lift(row)) for row in self.rows]
        refs: list[Tracer] = []
        while True:
            after, following, results, ys, ys_tree = self._trace_body(lists, refs)
            if not refs_to_open(refs, after) and not self.types.settle(results, after):
                break
        before = Recording("before", outer, is_region=True)
        step = before.param(_INDEX)
        carried = [before.param(t.type).value for t in self.types.types]
        before.open_for(refs)
        with before.active():
            goes_on = before.lift(step < self.count)
        with after.active():
            following += self.types.following(results, after)
            made = [after.lift(y) for y in ys]
        # The lists come before the arrays changed in place, whose params are there already.
        stacks = [ListType(value.type) for value in made]
        waiting = [_insert(before, Value(stack), len(refs)) for stack in stacks]
        grown = [
            after.b.list_push(_insert(after, Value(stack), len(refs)), value)
            for stack, value in zip(stacks, made, strict=True)
        ]
        empty = [outer.b.list_new(stack.element) for stack in stacks]
        starts = [outer.b.integer(0), *self.types.start(outer), *empty]
        node = join_loop(
            outer,
            starts,
            before,
            [goes_on, step.value, *carried, *waiting],
            after,
            [*following, *grown],
            refs,
            memory=memory,
        )
        first = 1 + len(carried)
        carry = self.types.rebuild(outer, node.results[1:first])
        stacked = [
            self._stack(list, value, after)
            for list, value in zip(node.results[first : first + len(made)], made, strict=True)
        ]
        return carry, trees.unflatten(ys_tree, stacked)

    def _trace_body(
        self, lists: Sequence[Value], refs: Sequence[Tracer]
    ) -> tuple[Recording, list[Value], list[Any], list[Any], trees.TreeDef]:
        """The region; the next index, the next carry's leaves, y's leaves and their structure."""
        outer = self.outer
        after = Recording("after", outer, is_region=True, role=f"f of {self.where}")
        index = after.param(_INDEX)
        carry = self.types.params(after)
        after.open_for(refs)
        with after.active():
            place = after.lift(self.count - 1 - index if self.reverse else index)
            rows = [
                after.wrap(after.b.list_get(after.lift(Tracer(list, outer)), place))
                for list in lists
            ]
            following = [after.lift(index + 1)]
            result = self.f(carry, trees.unflatten(self.rows_tree, rows))
            if not isinstance(result, tuple) or len(result) != 2:
                raise StructureError(
                    explain(
                        f"{self.where}: f must return a pair (carry, y), not "
                        f"{type(result).__name__}.",
                        cure="return (carry, None) where there is no y.",
                    )
                )
            ys, ys_tree = trees.flatten(result[1])
            check_leaves(self.where, ys, trees.paths(ys_tree, "y"))
            ys = [as_array(y) for y in ys]
            return after, following, self.types.leaves_of(result[0]), ys, ys_tree

    def _stack(self, list: Value, like: Value, body: Recording) -> Tracer:
        b, outer = self.outer.b, self.outer
        assert isinstance(like.type, TensorType)
        arrays = [*(outer.lift(row) for row in self.rows), *body.region_params]
        shape = items_shape(outer.b, like.type, arrays)
        if shape is None:
            raise ShapeError(
                explain(
                    f"{self.where}: y is {like.type}, of a size that is only known inside.",
                    cure="give y a size that is known before the scan, as that of an argument.",
                )
            )
        stacked = b.list_stack(list, shape)
        stacked = b.refine(stacked, like.type.with_shape((self.size, *like.type.dims)))
        if self.reverse:
            whole = ((None, None, None),) * len(like.type.dims)
            stacked = b.emit(shaping_ops.slice_, stacked, slices=((None, None, -1), *whole))
        return outer.wrap(stacked)


def _insert(region: Recording, param: Value, before_last: int) -> Value:
    """Put a param in front of the last ones."""
    region.b.params.insert(len(region.b.params) - before_last, param)
    return param


_INDEX = TensorType(INT64, ())


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply `f` to each row of `xs` and stack what it gives; one node.

    Args:
        f: row → a pytree of arrays.
        xs: a pytree of arrays with first axes of one size.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.map(lambda x: x * x, wnp.arange(3.0))
        array([0., 1., 4.])
    """
    _, ys = scan(lambda carry, x: (carry, f(x)), None, xs)
    return ys
