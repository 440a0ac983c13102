"""The instruction set on one page: a method for every operation, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import ShapeError
from wend.ir.builder import Builder, new_symbol
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import TABLE, Op
from wend.ir.types import Dim, ListType, MaybeType, Shape, Symbol, TensorType, Type, without_maybe
from wend.ops import (
    chunked_map,
    contracting,
    control,
    creating,
    custom,
    decompositions,
    effects,
    elementwise,
    factors,
    fourier,
    frame_states,
    hosting,
    indexing,
    linalg,
    lists,
    maybe,
    parallel_map,
    parts,
    random,
    reducing,
    scanning,
    schedules,
    searching,
    shaping,
    sharding,
    special,
    spilling,
    state,
    updating,
)
from wend.ops.effects import ErrorClass
from wend.ops.shapes import WHOLE, Slices, size_of
from wend.runtime.storage import Storage

FAMILIES = (
    creating,
    elementwise,
    shaping,
    indexing,
    reducing,
    contracting,
    searching,
    linalg,
    updating,
    parts,
    lists,
    maybe,
    effects,
    frame_states,
    state,
    hosting,
    control,
    parallel_map,
    chunked_map,
    special,
    scanning,
    decompositions,
    factors,
    fourier,
    random,
    custom,
    schedules,
    sharding,
    spilling,
)
for _family in FAMILIES:
    TABLE.add(value for value in vars(_family).values() if isinstance(value, Op))

Axes = tuple[int, ...]


def _unary(op: Op) -> Callable[[Build, Value], Value]:
    return lambda self, x: self.emit(op, x)


def _binary(op: Op) -> Callable[[Build, Value, Value], Value]:
    return lambda self, x, y: self.emit(op, x, y)


class Build(Builder):
    """A graph under construction, with a method for every operation.

    Derivative rules speak to this and to the node they differentiate, and to nothing else.
    """

    # Constants
    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A constant; the array is copied and frozen."""
        array = np.array(value, dtype)
        array.flags.writeable = False
        return self.emit(creating.constant, value=array)

    def integer(self, value: int) -> Value:
        return self.constant(value, np.int64)

    def iota(self, length: int | Value, dtype: Any = np.int64) -> Value:
        """0, 1, … length − 1."""
        if isinstance(length, Value):
            return self.emit(creating.iota, length, dtype=np.dtype(dtype), length=None)
        return self.emit(creating.iota, dtype=np.dtype(dtype), length=length)

    def from_elements(self, xs: Sequence[Value], shape: Axes) -> Value:
        """The array of some scalars, in C order."""
        return self.emit(creating.from_elements, *xs, shape=shape)

    def positions(self, like: Value, *, axis: int) -> Value:
        """The index of each element along an axis: integers of the shape of `like`."""
        dims = like.tensor.dims
        size = dims[axis]
        indices = self.iota(size if isinstance(size, int) else self.size_of(like, axis))
        column = self.insert_axes(indices, axes=tuple(range(1, len(dims) - axis)))
        return self.broadcast_like(column, like)

    def full_like(self, like: Value, number: complex) -> Value:
        """An array of one number, of the type of `like`."""
        return self.broadcast_like(self.constant(number, like.tensor.dtype), like)

    def ones_like(self, like: Value) -> Value:
        return self.full_like(like, 1)

    def zeros_like(self, like: Value) -> Value:
        """Zeros of the type of `like`: an array, or a list of arrays."""
        if isinstance(like.type, ListType):
            return self.emit(lists.list_zeros, like)
        if isinstance(like.type, MaybeType):
            return self.zero(like.type)
        return self.full_like(like, 0)

    # Arithmetic
    add = _binary(elementwise.add)
    sub = _binary(elementwise.sub)
    mul = _binary(elementwise.mul)
    div = _binary(elementwise.div)
    neg = _unary(elementwise.neg)
    reciprocal = _unary(elementwise.reciprocal)
    floor_divide = _binary(elementwise.floor_divide)
    pow = _binary(elementwise.pow)

    def square(self, x: Value) -> Value:
        return self.mul(x, x)

    def one_minus(self, x: Value) -> Value:
        return self.sub(self.ones_like(x), x)

    def scale(self, x: Value, number: float) -> Value:
        return self.mul(x, self.full_like(x, number))

    # Functions
    sign = _unary(elementwise.sign)
    sqrt = _unary(elementwise.sqrt)
    log = _unary(elementwise.log)
    sin = _unary(elementwise.sin)
    cos = _unary(elementwise.cos)
    sinh = _unary(elementwise.sinh)
    cosh = _unary(elementwise.cosh)
    real = _unary(elementwise.real)
    imag = _unary(elementwise.imag)
    conj = _unary(elementwise.conj)
    complex = _binary(elementwise.complex)

    # Comparison, choice, conversion
    eq = _binary(elementwise.eq)
    lt = _binary(elementwise.lt)
    gt = _binary(elementwise.gt)
    ge = _binary(elementwise.ge)

    def select(self, pred: Value, x: Value, y: Value) -> Value:
        """`x` where `pred` holds, else `y`."""
        return self.emit(elementwise.select, pred, x, y)

    def cast(self, x: Value, dtype: Any) -> Value:
        dtype = np.dtype(dtype)
        return x if x.tensor.dtype == dtype else self.emit(elementwise.cast, x, dtype=dtype)

    # Shapes
    def shape_of(self, x: Value) -> Value:
        """The shape as an i64 vector."""
        if x.tensor.is_static:
            return self.constant(x.tensor.dims, np.int64)
        return self.emit(shaping.shape_of, x)

    def size_of(self, x: Value, axis: int) -> Value:
        """One size as an i64 scalar."""
        dim = x.tensor.dims[axis]
        return (
            self.integer(dim) if isinstance(dim, int) else self.emit(shaping.dim_of, x, axis=axis)
        )

    def broadcast_to(self, x: Value, shape: Axes) -> Value:
        """Broadcast to a static shape."""
        return x if x.tensor.shape == shape else self.emit(shaping.broadcast_to, x, shape=shape)

    def spread(self, x: Value, sizes: Value, shape: Shape) -> Value:
        """Broadcast to a shape that is a value; `shape` declares what is known of it."""
        return self.emit(shaping.broadcast_to, x, sizes, shape=shape)

    def broadcast_like(self, x: Value, like: Value) -> Value:
        """Broadcast to the shape of another value."""
        if x.tensor.shape == like.tensor.shape and x.tensor.shape is not None:
            return x
        sizes = () if like.tensor.is_static else (self.shape_of(like),)
        return self.emit(shaping.broadcast_to, x, *sizes, shape=like.tensor.shape)

    def sum_like(self, x: Value, like: Value) -> Value:
        """The transpose of `broadcast_like`: sum down to the shape of another value."""
        shape, target = x.tensor.shape, like.tensor.shape
        if shape is None or target is None:
            return self.emit(shaping.sum_to, x, self.shape_of(like), shape=target)
        if shape == target:
            return x
        leading = len(shape) - len(target)
        pairs = list(zip(shape[leading:], target, strict=True))
        if any(a != b and b != 1 for a, b in pairs):
            # Only the run knows whether an axis of symbolic size was broadcast.
            return self.emit(shaping.sum_to, x, self.shape_of(like), shape=target)
        axes = [k + leading for k, (a, b) in enumerate(pairs) if a != b]
        if axes:
            x = self.reduce_sum(x, axes=tuple(axes), keepdims=True)
        return self.reduce_sum(x, axes=tuple(range(leading))) if leading else x

    def refine(self, x: Value, type: Type) -> Value:
        """The same value under a type whose dimensions have other names."""
        return x if x.type == type else self.emit(shaping.refine, x, type=type)

    def reshape(self, x: Value, shape: Shape) -> Value:
        """Reshape; one −1 stands for the remaining size."""
        return x if x.tensor.shape == shape else self.emit(shaping.reshape, x, shape=shape)

    def reshape_like(self, x: Value, like: Value) -> Value:
        if x.tensor.shape == like.tensor.shape and x.tensor.shape is not None:
            return x
        sizes = () if like.tensor.is_static else (self.shape_of(like),)
        return self.emit(shaping.reshape, x, *sizes, shape=like.tensor.shape)

    def insert_axes(self, x: Value, *, axes: Axes) -> Value:
        """Insert axes of size 1 at these positions of the result."""
        dims: list[Dim] = list(x.tensor.dims)
        for axis in sorted(axes):
            dims.insert(axis, 1)
        if not any(isinstance(dim, Symbol) for dim in dims):
            return self.reshape(x, tuple(dims))
        sizes = [self.insert_axes(self.size_of(x, k), axes=(0,)) for k in range(len(x.tensor.dims))]
        for axis in sorted(axes):
            sizes.insert(axis, self.constant([1], np.int64))
        return self.emit(shaping.reshape, x, self.concat(*sizes, axis=0), shape=tuple(dims))

    def merge_axes(self, x: Value, *, start: int) -> Value:
        """Merge all axes from `start` on into one."""
        dims = x.tensor.dims
        merged = size_of(dims[start:])
        if x.tensor.is_static and merged is not None:
            return self.reshape(x, (*dims[:start], merged))
        if start == len(dims) - 1:
            return x
        sizes = self.shape_of(x)
        merged_sizes = self.slice(sizes, slices=((start, None, None),))
        product = self.reduce_prod(merged_sizes, axes=(0,), keepdims=True)
        new_sizes = self.concat(self.slice(sizes, slices=((None, start, None),)), product, axis=0)
        shape = (*dims[:start], new_symbol() if merged is None else merged)
        return self.emit(shaping.reshape, x, new_sizes, shape=shape)

    def transpose(self, x: Value, *, perm: Axes) -> Value:
        in_order = perm == tuple(range(len(perm)))
        return x if in_order else self.emit(shaping.transpose, x, perm=perm)

    def matrix_transpose(self, x: Value) -> Value:
        rank = len(x.tensor.dims)
        return self.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))

    def concat(self, *xs: Value, axis: int) -> Value:
        return xs[0] if len(xs) == 1 else self.emit(shaping.concat, *xs, axis=axis)

    def slice(self, x: Value, *, slices: Slices) -> Value:
        """`x[start:stop:step, …]` with static bounds, a triple per axis."""
        return self.emit(shaping.slice_, x, slices=slices)

    def part(self, x: Value, start: int, stop: int) -> Value:
        """A slice of the last axis."""
        whole = (WHOLE,) * (len(x.tensor.dims) - 1)
        return self.slice(x, slices=(*whole, (start, stop, None)))

    def add_slice(self, into: Value, x: Value, *, slices: Slices) -> Value:
        return self.emit(shaping.add_slice, into, x, slices=slices)

    def narrow(self, x: Value, start: Value, stop: Value, *, axis: int, size: Dim | None) -> Value:
        """A slice of one axis whose bounds are values."""
        return self.emit(shaping.narrow, x, start, stop, axis=axis, size=size)

    def add_narrow(self, into: Value, x: Value, start: Value, stop: Value, *, axis: int) -> Value:
        return self.emit(shaping.add_narrow, into, x, start, stop, axis=axis)

    # Parts at positions
    def take_part(
        self, x: Value, *positions: Value, entries: parts.Entries, cuts: tuple[Dim, ...]
    ) -> Value:
        """A part with some positions that are values; `cuts` are the sizes of its `"cut"` axes."""
        return self.emit(parts.take_part, x, *positions, entries=entries, cuts=cuts)

    def set_part(self, into: Value, x: Value, *positions: Value, entries: parts.Entries) -> Value:
        """`into` with a part replaced."""
        return self.emit(parts.set_part, into, x, *positions, entries=entries)

    def add_part(self, into: Value, x: Value, *positions: Value, entries: parts.Entries) -> Value:
        return self.emit(parts.add_part, into, x, *positions, entries=entries)

    # Positions
    def gather(self, x: Value, *indices: Value) -> Value:
        """`x[i, j, …]` along the leading axes."""
        return self.emit(indexing.gather, x, *indices)

    def scatter_add(self, into: Value, x: Value, *indices: Value) -> Value:
        return self.emit(indexing.scatter_add, into, x, *indices)

    def set_slice(self, into: Value, x: Value, *, slices: Slices) -> Value:
        """`into` with a part replaced."""
        return self.emit(updating.set_slice, into, x, slices=slices)

    def scatter_set(self, into: Value, x: Value, *indices: Value) -> Value:
        """`into` with the elements at positions of its leading axes replaced."""
        return self.emit(updating.scatter_set, into, x, *indices)

    def take_along(self, x: Value, indices: Value, *, axis: int) -> Value:
        return self.emit(indexing.take_along, x, indices, axis=axis)

    def add_along(self, into: Value, x: Value, indices: Value, *, axis: int) -> Value:
        return self.emit(indexing.add_along, into, x, indices, axis=axis)

    def argsort(self, x: Value, *, axis: int) -> Value:
        return self.emit(searching.argsort, x, axis=axis)

    # Reductions and products
    def reduce_sum(self, x: Value, *, axes: Axes, keepdims: bool = False) -> Value:
        return self.emit(reducing.reduce_sum, x, axes=axes, keepdims=keepdims)

    def reduce_prod(self, x: Value, *, axes: Axes, keepdims: bool = False) -> Value:
        return self.emit(reducing.reduce_prod, x, axes=axes, keepdims=keepdims)

    def cumsum(self, x: Value, *, axis: int, reverse: bool = False) -> Value:
        return self.emit(reducing.cumsum, x, axis=axis, reverse=reverse)

    def dot_general(
        self, x: Value, y: Value, *, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]
    ) -> Value:
        return self.emit(contracting.dot_general, x, y, contract=contract, batch=batch)

    def matmul(self, x: Value, y: Value) -> Value:
        """The product of two stacks of matrices of one rank."""
        rank = len(x.tensor.dims)
        stack = tuple(range(rank - 2))
        return self.dot_general(x, y, contract=((rank - 1,), (rank - 2,)), batch=(stack, stack))

    solve = _binary(linalg.solve)

    def half_lower(self, x: Value) -> Value:
        """The lower triangle with half the diagonal, of a stack of square matrices."""
        rank = len(x.tensor.dims)
        row, column = (self.positions(x, axis=axis) for axis in (rank - 2, rank - 1))
        on_diagonal = self.select(self.eq(row, column), self.full_like(x, 0.5), self.zeros_like(x))
        return self.mul(x, self.select(self.gt(row, column), self.ones_like(x), on_diagonal))

    # Lists
    def list_new(self, element: Type) -> Value:
        return self.emit(lists.list_new, element=element)

    list_push = _binary(lists.list_push)

    def list_pop(self, list: Value) -> tuple[Value, ...]:
        """The list without its last element, and that element."""
        return self.emit_node(lists.list_pop, [list]).results

    list_get = _binary(lists.list_get)

    def list_set(self, list: Value, index: Value, x: Value) -> Value:
        return self.emit(lists.list_set, list, index, x)

    def list_add_at(self, list: Value, index: Value, x: Value) -> Value:
        return self.emit(lists.list_add_at, list, index, x)

    list_len = _unary(lists.list_len)

    def list_stack(self, list: Value, element_shape: Value | None = None) -> Value:
        """The elements as one array; `element_shape` is needed where their shape is not static."""
        assert isinstance(list.type, ListType)
        element = list.type.element
        assert isinstance(element, TensorType)
        if element.is_static:
            element_shape = self.constant(element.dims, np.int64)
        if element_shape is None:
            raise ShapeError(f"the shape of the items of {list.type} is not known here")
        return self.emit(lists.list_stack, list, element_shape, dtype=element.dtype)

    def list_stack_like(self, list: Value, like: Value) -> Value:
        """The elements as one array of the shape of `like`."""
        element_shape = self.slice(self.shape_of(like), slices=((1, None, None),))
        return self.reshape_like(self.list_stack(list, element_shape), like)

    list_unstack = _unary(lists.list_unstack)

    # Cotangents that may be Zero
    def zero(self, type: Type) -> Value:
        return self.emit(maybe.zero, type=without_maybe(type))

    def autograd_add(self, x: Value, y: Value) -> Value:
        """The sum of two contributions to a cotangent, either of which may be a maybe."""
        if isinstance(x.type, MaybeType) or isinstance(y.type, MaybeType):
            return self.emit(maybe.autograd_add, x, y)
        if isinstance(x.type, ListType):
            return self.emit(lists.list_add, x, y)
        return self.add(x, y)

    def instantiate(self, x: Value, like: Value) -> Value:
        """The value of a maybe, zeros where it is Zero; unchanged if `like` is a maybe, too."""
        if not isinstance(x.type, MaybeType) or isinstance(like.type, MaybeType):
            return x
        return self.emit(maybe.instantiate, x, self.zeros_like(like))

    def any_nonzero(self, *xs: Value) -> Value:
        """Whether any of some cotangents arrived."""
        return self.emit(maybe.any_nonzero, *xs)

    def present(self, x: Value) -> Value:
        """The value of a maybe that is known to be present."""
        return self.emit(maybe.present, x) if isinstance(x.type, MaybeType) else x

    # Effects
    def print(self, token: Value, *values: Value, format: str) -> Value:
        return self.emit(effects.print_, token, *values, format=format)

    def raise_if(
        self, token: Value, predicate: Value, *values: Value, error: ErrorClass, text: str | None
    ) -> Value:
        return self.emit(effects.raise_if, token, predicate, *values, error=error, text=text)

    def token(self) -> Value:
        """A token that nothing precedes."""
        return self.emit(effects.token)

    def after(self, x: Value, token: Value) -> Value:
        """A value, where the checks before a token have passed."""
        return self.emit(effects.after, x, token)

    def store(self, previous: Value, value: Value, *, variable: Storage) -> Value:
        """The value of a variable after a store; `previous` is its value before."""
        return self.emit(state.store, previous, value, variable=variable)

    # Regions
    def while_(
        self,
        carry: Sequence[Value],
        invariants: Sequence[Value],
        before: Graph,
        after: Graph,
        *,
        memory: str = "keep",
        applied: str = "",
        limit: int = 0,
        parallel_iterations: int = 0,
    ) -> Node:
        """Emit a loop.

        `memory` names the tape policy of its backward pass, `applied` the one that made it; `limit`
        is the number of bytes that it may record. `parallel_iterations`: see `WhileParts`.
        """
        operands = (*carry, *invariants)
        attrs: dict[str, Any] = {} if memory == "keep" else {"memory": memory}
        attrs |= {"applied": applied} if applied else {}
        attrs |= {"limit": limit} if limit else {}
        attrs |= {"parallel_iterations": parallel_iterations} if parallel_iterations else {}
        return self.emit_node(control.while_, operands, (before, after), carry=len(carry), **attrs)

    def if_(self, selector: Value, operands: Sequence[Value], branches: Sequence[Graph]) -> Node:
        return self.emit_node(control.if_, (selector, *operands), branches)

    def parallel_map(
        self,
        mapped: Sequence[Value],
        starts: Sequence[Value],
        invariants: Sequence[Value],
        body: Graph,
        forms: Sequence[str],
        **options: int,
    ) -> Node:
        """A region applied to each element of the mapped values; a form for each of its results."""
        operands, count = (*mapped, *starts, *invariants), len(mapped)
        op, results = parallel_map.parallel_map, tuple(forms)
        return self.emit_node(op, operands, (body,), mapped=count, results=results, **options)

    def chunked_map(
        self,
        mapped: Sequence[Value],
        invariants: Sequence[Value],
        body: Graph,
        chunk: int,
        rows: Sequence[bool],
        threads: int | None = None,
    ) -> Node:
        """A region applied to chunks of the mapped values; which results have a row an element."""
        count, op = len(mapped), chunked_map.chunked_map
        attrs: dict[str, Any] = {"mapped": count, "chunk": chunk, "rows": tuple(rows)}
        attrs |= {} if threads is None else {"threads": threads}
        return self.emit_node(op, (*mapped, *invariants), (body,), **attrs)

    def linear_block(
        self, of: str, cotangents: Sequence[Value], forward: Sequence[Value], body: Graph
    ) -> Node:
        operands, count = (*cotangents, *forward), len(cotangents)
        return self.emit_node(control.linear_block, operands, (body,), of=of, cotangents=count)

    def call(self, callee: Graph, operands: Sequence[Value], *, recompute: bool = False) -> Node:
        """A call; with `recompute` the backward pass runs it again and keeps no residuals."""
        attrs = {"recompute": True} if recompute else {}
        return self.emit_node(control.call, operands, (callee,), **attrs)

    def scheduled(
        self, operands: Sequence[Value], callee: Graph, plain: Graph, *, outs: int
    ) -> Node:
        """A call of `callee`, whose derivatives are those of `plain`."""
        return self.emit_node(schedules.scheduled, operands, (callee, plain), outs=outs)

    def spill(self, values: Sequence[Value], *, limit: int, loop: str, memory: str) -> Value:
        """A segment of some values; lists of arrays of one shape become arrays first."""
        stacked = [self.list_stack(x) if spilling.is_stacked(x.type) else x for x in values]
        return self.emit(spilling.spill, *stacked, limit=limit, loop=loop, memory=memory)

    def unspill(self, segment: Value, index: int, type: Type, *, loop: str) -> Value:
        """The value at an index of a segment, of a type like that it had."""
        rows = spilling.is_stacked(type)
        x = self.emit(spilling.unspill, segment, index=index, type=type, is_stacked=rows, loop=loop)
        return self.list_unstack(x) if rows else x

    def custom_vjp_forward(self, parts: custom.CustomVjpParts, operands: Sequence[Value]) -> Node:
        """The forward form of a call with a rule: it also gives residuals, perhaps more results."""
        return self.emit_node(
            custom.custom_vjp_forward,
            operands,
            (parts.forward, *(backward.graph for backward in parts.backwards)),
            name=parts.name,
            captured=parts.captured,
            outs=parts.outs,
            residuals=parts.residuals,
            seeded=tuple(backward.seeded for backward in parts.backwards),
            wrt=tuple(backward.wrt for backward in parts.backwards),
        )
