"""Random graphs of operations on arrays, of sizes that are known or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from wend.ir import TABLE, Graph, Symbol, TensorType, Value, verify
from wend.ops.build import Build

SIZES = (3, 1, 5, 0, 17, 2)
SHAPES = (
    *((5,), (3, 5), (2, 3, 5), (1, 5), (3, 1), (17,), (0,), (3, 0), (2, 1, 5), (1,)),
    *((600,), (3, 600)),
)


class Maker:
    """Adds operations to a graph, on values that it has."""

    def __init__(self, draw: Any, b: Build, values: Sequence[Value]) -> None:
        self.draw, self.b = draw, b
        self.values = list(values)

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def real(self) -> Value:
        """An array of floats."""
        return self.choose([v for v in self.values if v.tensor.dims][::-1])

    def like(self, x: Value) -> Value:
        """A value of the same type, perhaps itself."""
        return self.choose([v for v in self.values if v.type == x.type][::-1])

    def step(self) -> None:
        made = [self.unary, self.binary, self.select, self.spread, self.number, self.moved]
        made += [self.cut, self.part, self.reduced, self.put, self.counted, self.joined]
        made += [self.rolled, self.stacked, self.padded]
        made += [self.centred, self.centred, self.looped, self.looked_up, self.looked_up]
        self.values.append(self.choose(made)())

    def unary(self) -> Value:
        return getattr(self.b, self.choose(["sin", "neg", "cos"]))(self.real())

    def binary(self) -> Value:
        x = self.real()
        return getattr(self.b, self.choose(["add", "mul", "sub"]))(x, self.like(x))

    def select(self) -> Value:
        """Numbers chosen by where they are."""
        x, b = self.real(), self.b
        places = b.positions(x, axis=self.choose(range(len(x.tensor.dims))))
        flag = b.lt(places, b.broadcast_like(b.integer(self.choose([1, 2, 0])), places))
        return b.select(flag, x, self.like(x))

    def spread(self) -> Value:
        """An array broadcast to the sizes of another, if they fit; else to a further axis."""
        x, like = self.real(), self.real()
        mine, theirs = x.tensor.dims, like.tensor.dims
        pairs = zip(mine[::-1], theirs[::-1], strict=False)
        if len(mine) <= len(theirs) and all(a in (1, b) for a, b in pairs):
            return self.b.broadcast_like(x, like)
        return self.b.insert_axes(x, axes=(self.choose([0, len(mine)]),))

    def number(self) -> Value:
        """An array of one number, which may have been computed."""
        x = self.real()
        scalars = [v for v in self.values if not v.tensor.dims]
        constant = self.b.constant(self.choose([0.5, -2.0]), x.tensor.dtype)
        return self.b.mul(x, self.b.broadcast_like(self.choose([*scalars, constant]), x))

    def moved(self) -> Value:
        x = self.real()
        perm = self.draw(st.permutations(range(len(x.tensor.dims))))
        return self.b.transpose(x, perm=tuple(perm))

    def cut(self) -> Value:
        bounds = [(None, None, None), (1, None, None), (None, -1, None), (None, None, -1)]
        bounds += [(None, None, 2), (-1, 0, -2)]
        x = self.real()
        return self.b.slice(x, slices=tuple(self.choose(bounds) for _ in x.tensor.dims))

    def part(self) -> Value:
        x, b = self.real(), self.b
        axis = self.choose(range(len(x.tensor.dims)))
        places = [b.integer(self.choose(options)) for options in ([0, 1, -2], [2, 9, -1])]
        return b.narrow(x, *places, axis=axis, size=None)

    def reduced(self) -> Value:
        x = self.real()
        axes = self.draw(st.sets(st.sampled_from(range(len(x.tensor.dims))), min_size=1))
        if self.choose([False, False, True]) and x.tensor.is_static and 0 not in x.tensor.dims:
            return self.b.emit(_reduction(self.choose(["max", "min", "prod"])), x,
                               axes=tuple(axes), keepdims=self.choose([False, True]))  # fmt: skip
        keepdims = self.choose([False, True])
        return self.b.reduce_sum(x, axes=tuple(axes), keepdims=keepdims)

    def put(self) -> Value:
        """A change of an array, which may happen in place."""
        x, b = self.real(), self.b
        slices = tuple(self.choose([(None, None, None), (1, None, None)]) for _ in x.tensor.dims)
        y = b.slice(self.like(x), slices=slices)
        return (b.set_slice if self.choose([False, True]) else b.add_slice)(x, y, slices=slices)

    def counted(self) -> Value:
        x, b = self.real(), self.b
        axis = self.choose(range(len(x.tensor.dims)))
        line = b.iota(b.size_of(x, axis)) if self.choose([False, True]) else None
        return b.cast(b.positions(x, axis=axis) if line is None else line, x.tensor.dtype)

    def centred(self) -> Value:
        """What is done with the rows of an array and a number of each, as in a softmax."""
        x, b = self.real(), self.b
        last = (len(x.tensor.dims) - 1,)
        total = b.reduce_sum(self.choose([b.sin, b.neg, lambda x: x])(x), axes=last, keepdims=True)
        total = self.choose([b.cos, lambda x: x])(total)
        return getattr(b, self.choose(["sub", "mul"]))(x, b.broadcast_like(total, x))

    def looped(self) -> Value:
        """A loop that carries an array, which it may write in place."""
        x, b, trips = self.real(), self.b, self.choose([2, 0, 1, 3])
        y = self.like(x)
        before, after = Build("before"), Build("after")
        for region in (before, after):
            region.param(TensorType(np.dtype("i8"), ()))
            for value in (x, y):
                region.param(value.type)
        test = before.lt(before.params[0], before.integer(trips))
        maker = Maker(self.draw, after, after.params[1:])
        for _ in range(self.choose([2, 1, 4])):
            maker.step()
        following = maker.choose([v for v in maker.values if v.type == x.type][::-1])
        count = after.add(after.params[0], after.integer(1))
        return b.while_(
            [b.integer(0), x],
            [y],
            before.finish([test, *before.params[:2]]),
            after.finish([count, following]),
        ).results[1]

    def looked_up(self) -> Value:
        """What arrays of positions say, which are computed or not, and perhaps not there."""
        x, like, b = self.real(), self.real(), self.b
        axis = self.choose(range(len(like.tensor.dims)))
        places = b.cast(b.scale(like, self.choose([2.0, 1.0])), self.choose(["i8", "i4"]))
        if self.choose([False, True]):
            places = b.positions(like, axis=axis)
        size = b.size_of(x, 0)
        kind = self.choose(["as they are", "within", "row", "along", "from the end"])
        if kind == "row":
            return b.gather(x, b.integer(self.choose([0, 1, -1])))
        if kind == "along":
            x, size = like, b.size_of(like, axis)
        if kind != "as they are":
            ones = b.cast(b.broadcast_like(size, places), places.tensor.dtype)
            places = b.emit(TABLE["remainder"], places, ones)
            if kind == "from the end":
                places = b.sub(places, ones)
        return b.take_along(x, places, axis=axis) if kind == "along" else b.gather(x, places)

    def joined(self) -> Value:
        x = self.real()
        return self.b.concat(x, self.like(x), axis=self.choose(range(len(x.tensor.dims))))

    def rolled(self) -> Value:
        """Two parts in the other order."""
        x, b = self.real(), self.b
        rest = [(None, None, None)] * (len(x.tensor.dims) - 1)
        cuts = self.choose([((1, None, None), (None, 1, None)), ((-2, None, -1), (2, 9, None))])
        return b.concat(*(b.slice(x, slices=(cut, *rest)) for cut in cuts), axis=0)

    def stacked(self) -> Value:
        """Arrays, perhaps just computed, along a new axis."""
        x, b = self.real(), self.b
        axis = self.choose([0, len(x.tensor.dims)])
        given = [self.choose([b.sin, b.neg, lambda x: x])(self.like(x)) for _ in range(2)]
        return b.concat(*(b.insert_axes(y, axes=(axis,)) for y in given), axis=axis)

    def padded(self) -> Value:
        x, b = self.real(), self.b
        widths = tuple(self.choose([(0, 0), (1, 2), (0, 3)]) for _ in x.tensor.dims)
        return b.emit(TABLE["pad"], x, widths=widths, value=self.choose([0.0, 2.5]))


def _reduction(name: str) -> Any:
    from wend.ops import reducing

    return getattr(reducing, f"reduce_{name}")


@st.composite
def array_graphs(draw: Any, length: int = 12) -> tuple[Graph, list[np.ndarray]]:
    """A sound graph with several results, and what to run it on."""
    b = Build("arrays")
    dtype = np.dtype(draw(st.sampled_from(["f8", "f8", "f4"])))
    is_static = draw(st.booleans())
    args = []
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(SHAPES))
        dims = tuple(n if is_static or n == 1 else Symbol(f"n{n}") for n in shape)
        b.param(TensorType(dtype, dims))
        args.append(rng.uniform(-1, 1, shape).astype(dtype))
    b.param(TensorType(dtype, ()))
    args.append(dtype.type(0.75))
    maker = Maker(draw, b, b.params)
    for _ in range(draw(st.integers(1, length))):
        maker.step()
    count = len(maker.values)
    results = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
    return verify(b.finish([maker.values[-1], *(maker.values[k] for k in results)])), args
