"""`scan`, `map` and `associative_scan`: over the rows of arrays; signatures as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from wend.base import trees
from wend.base.errors import ShapeError, StructureError, explain
from wend.base.memory import Memory, memory_text
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, tensor_type
from wend.ir.builder import new_symbol
from wend.ir.dtypes import INT64
from wend.ir.graph import Value
from wend.ir.types import Dim, ListType, TensorType
from wend.numpy import concatenate, flip, moveaxis, reshape, stack
from wend.numpy import elementwise as ew
from wend.ops import shaping as shaping_ops
from wend.ops.shapes import WHOLE
from wend.trace.arrays.attributes import class_name
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.loop_types import LoopTypes
from wend.trace.immediate import run_now
from wend.trace.recording.checks import (
    check_functions,
    check_integer,
    check_leaves,
    check_unroll,
)
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import add_mutated_refs, inner_loops_keep, join_loop
from wend.trace.recording.run_errors import refuse_escaping_errors
from wend.trace.sizes.lengths import items_shape


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    memory: Memory | None = None,
) -> tuple[Any, Any]:
    """Run `carry, y = f(carry, x)` over the rows x of `xs`, and stack the ys; records one node.

    Args:
        f: (carry, x) → (next carry, y).
        init: the carry to start from, a pytree of arrays and numbers.
        xs: a pytree of arrays with first axes of one size, or None.
        length: the number of steps if `xs` is None; an integer, plain or traced.
        reverse: go from the last row to the first; each y is stacked at the position of its x.
        unroll: steps per trip, as in JAX; the backend decides, whatever is asked for.
        memory: what the loop keeps for the backward pass; by default what
            `config(memory=…)` says.

    Returns:
        The last carry, and the ys stacked along a new first axis.

    Raises:
        ShapeError: the sizes of first axes differ, or the number of steps is not determined.
        CarryError, StructureError: the next carry does not match the carry.
        ValueError: `unroll` is neither a bool nor a positive int.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.scan(lambda c, x: (c + x, c), 0.0, wnp.arange(3.0))
        (np.float64(3.0), array([0., 0., 1.]))
    """
    if not callable(f):
        raise TypeError(f"f must be callable, not {f!r}")
    check_unroll(unroll, "scan")
    if memory is not None:
        memory_text(memory)
    if length is not None:
        check_integer(length, f"scan{at(user_source())}: length")
        length = length if isinstance(length, Staged) else int(length)
    if current() is None:
        result: tuple[Any, Any] = run_now(
            lambda c, rows: scan(f, c, rows, length, reverse, memory=memory), init, xs
        )
        return result
    return _Scan(f, init, xs, length, reverse, f"scan{at(user_source())}").record(memory)


def scan_until(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, length: Any, where: str
) -> tuple[Any, Any, Any]:
    """Run `carry, y = f(carry, x)` as `scan` does, until the carry says so; records one node.

    Args:
        f: (carry, x) → (next carry, y). The carry is a pair, whose second part is a bool scalar:
            whether this step is the last one.
        init: the carry to start from.
        xs: a pytree of arrays with first axes of one size, or None.
        length: the largest number of steps if `xs` is None.
        where: the function and the user's line, for messages.

    Returns:
        The last carry, the ys of the steps made, and their number.
    """
    if current() is None:
        result: tuple[Any, Any, Any] = run_now(
            lambda c, rows: scan_until(f, c, rows, length, where), init, xs
        )
        return result
    scan = _Scan(f, init, xs, length, False, where, stops=True)
    carry, ys = scan.record(None)
    return carry, ys, scan.steps


class _Scan:
    """A `scan` that is being recorded: a loop over i that reads row i and pushes y.

    Where it `stops`, the last leaf of the carry tells whether it does.
    """

    def __init__(
        self,
        f: Any,
        init: Any,
        xs: Any,
        length: Any,
        reverse: bool,
        where: str,
        stops: bool = False,
    ) -> None:
        outer = current()
        assert outer is not None
        self.f, self.reverse, self.outer, self.stops = f, reverse, outer, stops
        self.where = where
        self.steps: Any = None
        self.rows, self.rows_tree = trees.flatten_deep(xs)
        paths = trees.paths(self.rows_tree, "xs")
        check_leaves(self.where, self.rows, paths)
        self.types = LoopTypes(self.where, init)
        self.count, self.size = self._count(length, paths)

    def _count(self, length: Any, paths: Sequence[str]) -> tuple[Any, Dim]:
        """Return the number of steps, as a plain or traced number, and as a dimension."""
        sizes: list[Dim] = []
        for row, path in zip(self.rows, paths, strict=True):
            dims = tensor_type(row).dims
            if not dims:
                raise ShapeError(f"{self.where}: {path} is a scalar, it has no rows")
            sizes.append(dims[0])
        if isinstance(length, Staged) and sizes:
            raise ShapeError(
                explain(
                    f"{self.where}: xs determine the number of steps, and so does a traced length.",
                    cure="leave length out, or xs; xs[i] may be read in f.",
                )
            )
        static_sizes = {size for size in (*sizes, length) if isinstance(size, int)}
        if len(static_sizes) > 1:
            raise ShapeError(
                f"{self.where}: first axes and length differ: "
                f"{', '.join(f'{p}: {s}' for p, s in zip(paths, sizes, strict=True))}"
                f"{'' if length is None else f', length: {length}'}"
            )
        if static_sizes:
            (number,) = static_sizes
            return number, number
        if length is not None:
            return ew.maximum(length, 0), new_symbol()
        if not sizes:
            raise ShapeError(f"{self.where}: give xs or length, to determine the number of steps")
        size = self.outer.b.size_of(self.outer.lift(self.rows[0]), 0)
        return Tracer(size, self.outer), sizes[0]

    def record(self, memory: Memory | None) -> tuple[Any, Any]:
        outer = self.outer
        lists = [outer.b.list_unstack(outer.lift(row)) for row in self.rows]
        refs: list[Tracer] = []
        while True:
            after, following, results, ys, ys_tree = self._trace_body(lists, refs)
            if not add_mutated_refs(refs, after) and not self.types.unify(results, after):
                break
        before = Recording("before", outer, is_region=True)
        step = before.param(_INDEX)
        carried = [before.param(t.type).value for t in self.types.types]
        before.open_for(refs)
        with before.active():
            goes_on = step < self.count
            if self.stops:
                goes_on = ew.logical_and(goes_on, ew.logical_not(before.wrap(carried[-1])))
            predicate = before.lift(goes_on)
        with after.active():
            following += self.types.next_carry(results, after)
            y_values = [after.lift(y) for y in ys]
        # The lists precede the arrays changed in place, whose params exist already.
        stacks = [ListType(value.type) for value in y_values]
        list_params = [_insert(before, Value(stack), len(refs)) for stack in stacks]
        pushed = [
            after.b.list_push(_insert(after, Value(stack), len(refs)), value)
            for stack, value in zip(stacks, y_values, strict=True)
        ]
        empty = [outer.b.list_new(stack.element) for stack in stacks]
        starts = [outer.b.integer(0), *self.types.start(outer), *empty]
        node = join_loop(
            outer,
            starts,
            before,
            [predicate, step.value, *carried, *list_params],
            after,
            [*following, *pushed],
            refs,
            memory=memory,
        )
        first = 1 + len(carried)
        self.steps = outer.wrap(node.results[0])
        if self.stops:
            self.size = new_symbol()
        carry = self.types.rebuild(outer, node.results[1:first])
        stacked = [
            self._stack(list, value, after)
            for list, value in zip(
                node.results[first : first + len(y_values)], y_values, strict=True
            )
        ]
        return carry, trees.unflatten(ys_tree, stacked)

    def _trace_body(
        self, lists: Sequence[Value], refs: Sequence[Tracer]
    ) -> tuple[Recording, list[Value], list[Any], list[Any], trees.TreeDef]:
        """Trace `f`.

        Returns:
            The region, the next index, the next carry's leaves, y's leaves, and the structure of y.
        """
        outer = self.outer
        after = Recording("after", outer, is_region=True, role=f"f of {self.where}")
        index = after.param(_INDEX)
        carry = self.types.params(after)
        after.open_for(refs)
        with after.active():
            after.frames.save_for_interrupts()
            position = after.lift(self.count - 1 - index if self.reverse else index)
            rows = [
                after.wrap(after.b.list_get(after.lift(Tracer(list, outer)), position))
                for list in lists
            ]
            following = [after.lift(index + 1)]
            with refuse_escaping_errors(self.where), inner_loops_keep():
                result = self.f(carry, trees.unflatten(self.rows_tree, rows))
            if not isinstance(result, tuple) or len(result) != 2:
                traced = isinstance(result, Tracer)
                kind = class_name(result) if traced else type(result).__name__
                raise StructureError(
                    explain(
                        f"{self.where}: f must return a pair (carry, y), not {kind}.",
                        cure="return (carry, None) where there is no y.",
                    )
                )
            ys, ys_tree = trees.flatten_deep(result[1])
            check_leaves(self.where, ys, trees.paths(ys_tree, "y"))
            ys = [as_array(y) for y in ys]
            return after, following, self.types.leaves_of(result[0]), ys, ys_tree

    def _stack(self, list: Value, item: Value, body: Recording) -> Tracer:
        b, outer = self.outer.b, self.outer
        assert isinstance(item.type, TensorType)
        arrays = [*(outer.lift(row) for row in self.rows), *body.region_params]
        shape = items_shape(outer.b, item.type, arrays)
        if shape is None:
            raise ShapeError(
                explain(
                    f"{self.where}: y is {item.type}, whose size is known only inside the scan.",
                    cure="give y a size that is known before the scan, as that of an argument.",
                )
            )
        stacked = b.list_stack(list, shape)
        stacked = b.refine(stacked, item.type.with_shape((self.size, *item.type.dims)))
        if self.reverse:
            inner_slices = (WHOLE,) * len(item.type.dims)
            stacked = b.emit(shaping_ops.slice_, stacked, slices=((None, None, -1), *inner_slices))
        return outer.wrap(stacked)


def _insert(region: Recording, param: Value, before_last: int) -> Value:
    """Insert a param before the last ones."""
    region.b.params.insert(len(region.b.params) - before_last, param)
    return param


_INDEX = TensorType(INT64, ())


def map(
    f: Callable[[Any], Any],
    xs: Any,
    *,
    batch_size: int | None = None,
    memory: Memory | None = None,
) -> Any:
    """Apply `f` to each row of `xs` and stack the results; records one node.

    Args:
        f: row → a pytree of arrays.
        xs: a pytree of arrays with first axes of one size.
        batch_size: rows at once, as in JAX; the backend decides, whatever is asked for.
        memory: what the loop keeps for the backward pass; by default what
            `config(memory=…)` says.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.map(lambda x: x * x, wnp.arange(3.0))
        array([0., 1., 4.])
    """
    del batch_size
    _, ys = scan(lambda carry, x: (carry, f(x)), None, xs, memory=memory)
    return ys


# Associative operations
_Arrays: TypeAlias = Sequence[Any]
_Combine: TypeAlias = Callable[[_Arrays, _Arrays], _Arrays]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Return the partial results of an associative operation along an axis.

    Row k of the result combines the rows 0 to k. `fn` is called for many pairs of rows at once, of
    which there are at most two a row, in about 2 log₂ n calls (G. Blelloch, Prefix sums and their
    applications, 1990).

    Args:
        fn: (earlier, later) → combined, where `fn(fn(a, b), c)` is `fn(a, fn(b, c))`: two pytrees
            of arrays like `elems` with k rows along the axis → one of the same kind, row by row.
        elems: a pytree of arrays that have one known size along the axis.
        reverse: combine from the last row to the first.
        axis: the axis of the rows.

    Raises:
        ShapeError: the sizes along the axis differ, only the run knows them, or `fn` changes
            a shape.
        StructureError: `fn` returns another structure.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.associative_scan(wnp.add, wnp.arange(1.0, 5.0))
        array([ 1.,  3.,  6., 10.])
        >>> def after(f, g):  # x → a·x + b
        ...     return f[0] * g[0], f[1] * g[0] + g[1]
        >>> wend.associative_scan(after, (wnp.full(3, 2.0), wnp.ones(3)))[1]
        array([1., 3., 7.])
    """
    check_functions(fn=fn)
    if current() is None:
        return run_now(lambda xs: associative_scan(fn, xs, reverse, axis), elems)
    where = f"associative_scan{at(user_source())}"
    leaves, treedef = trees.flatten_deep(elems)
    paths = trees.paths(treedef, "elems")
    check_leaves(where, leaves, paths)
    size = _size(leaves, paths, axis, where)
    rows = [moveaxis(leaf, axis, 0) for leaf in leaves]

    def combine(earlier: _Arrays, later: _Arrays) -> _Arrays:
        parts = [[moveaxis(x, 0, axis) for x in rows] for rows in (earlier, later)]
        results, structure = trees.flatten_deep(fn(*(trees.unflatten(treedef, x) for x in parts)))
        if not trees.is_same_structure(structure, treedef):
            raise StructureError(
                explain(
                    f"{where}: fn returns another structure than elems.",
                    cure="return a pytree like its arguments.",
                )
            )
        for result, part, path in zip(results, parts[0], paths, strict=True):
            shape, wanted_shape = tensor_type(result).shape, tensor_type(part).shape
            if shape != wanted_shape:
                raise ShapeError(
                    f"{where}: fn gives {path} the shape {shape}, where its arguments have "
                    f"{wanted_shape}."
                )
        return [moveaxis(x, axis, 0) for x in results]

    if size > 1:
        ordered = [flip(x, 0) for x in rows] if reverse else rows
        scanned = _partial(combine, ordered, size)
        rows = [flip(x, 0) for x in scanned] if reverse else [*scanned]
    return trees.unflatten(treedef, [moveaxis(x, 0, axis) for x in rows])


def _size(leaves: _Arrays, paths: Sequence[str], axis: int, where: str) -> int:
    """Return the number of rows."""
    sizes: dict[str, Any] = {}
    for leaf, path in zip(leaves, paths, strict=True):
        dims = tensor_type(leaf).dims
        if not -len(dims) <= axis < len(dims):
            raise ShapeError(f"{where}: {path} has no axis {axis}, it is {tensor_type(leaf)}.")
        sizes[path] = dims[axis]
    if len({*sizes.values()}) > 1:
        listed = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        raise ShapeError(f"{where}: the sizes along axis {axis} differ: {listed}.")
    size = next(iter(sizes.values()), 0)
    if not isinstance(size, int):
        raise ShapeError(
            explain(
                f"{where}: only the run knows how many rows there are.",
                cure="use wend.scan, which takes one row a trip.",
            )
        )
    return size


def _partial(combine: _Combine, rows: _Arrays, size: int) -> _Arrays:
    """Return the partial results of two rows or more.

    Pairs are combined, and scanned: these are the rows with odd numbers. The others combine with
    the one before.
    """
    pairs = size // 2
    odd = combine([x[: 2 * pairs : 2] for x in rows], [x[1 : 2 * pairs : 2] for x in rows])
    odd = _partial(combine, odd, pairs) if pairs > 1 else odd
    first = [x[:1] for x in rows]
    if size == 2:
        return [concatenate([x, y]) for x, y in zip(first, odd, strict=True)]
    later = [x[2::2] for x in rows]
    others = combine([x[: (size - 1) // 2] for x in odd], later)
    even = [concatenate([x, y]) for x, y in zip(first, others, strict=True)]
    return [_interleaved(x, y, size) for x, y in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any, size: int) -> Any:
    """Return the rows of two arrays in turn; the first may have one more."""
    pairs, inner = size // 2, tensor_type(even).dims[1:]
    joined = reshape(stack([even[:pairs], odd], axis=1), (2 * pairs, *inner))
    return concatenate([joined, even[pairs:]]) if size % 2 else joined
