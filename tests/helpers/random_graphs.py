"""Random graphs made by the builder: attrs of every kind, regions, lists, tokens, symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from wend.ir import Graph, ListType, MaybeType, Symbol, TensorType, verify
from wend.ir.types import TOKEN, tensor
from wend.ops.build import Build

F64 = tensor("f8")
_NAMES = st.sampled_from(
    ["f", "g1", "<lambda>", "a b", "it's", 'say "x"', "naïve", "nan", "inf", ""]
)
_NUMBERS = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-300, 5e-324]),
)
_DTYPES = st.sampled_from(
    [np.dtype(name) for name in ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8", "?", "c8", "c16")]
)


@st.composite
def constants(draw: Any) -> np.ndarray:
    dtype = draw(_DTYPES)
    shape = draw(st.sampled_from([(), (1,), (2, 2), (0,), (0, 3), (17,), (4, 5), (1, 1, 1)]))
    size = int(np.prod(shape))
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            numbers = [draw(st.integers(limits.min, limits.max)) for _ in range(min(size, 4))]
        elif dtype.kind == "c":
            numbers = [complex(draw(_NUMBERS), draw(_NUMBERS)) for _ in range(min(size, 4))]
        else:
            numbers = [draw(_NUMBERS) for _ in range(min(size, 4))]
        return np.resize(np.array(numbers or [0]), shape).astype(dtype)


class _Maker:
    def __init__(self, draw: Any, b: Build, scalars: list[Any]) -> None:
        self.draw, self.b, self.scalars = draw, b, scalars

    def scalar(self) -> Any:
        return self.draw(st.sampled_from(self.scalars[::-1]))

    def fill(self, depth: int, length: int) -> None:
        makers = [self.arithmetic, self.constant, self.shapes, self.list]
        if depth:
            makers += [self.loop, self.branch, self.call, self.growing]
        for _ in range(self.draw(st.integers(0, length))):
            self.draw(st.sampled_from(makers))(depth - 1)

    def region(self, name: str, count: int, depth: int) -> tuple[Build, list[Any], list[Any]]:
        b = Build(name)
        params = [b.param(F64) for _ in range(count)]
        inner = _Maker(self.draw, b, [*params, b.constant(1.0)])
        inner.fill(depth, 3)
        return b, params, [inner.scalar() for _ in range(max(count, 1))]

    def arithmetic(self, depth: int) -> None:
        op = self.draw(st.sampled_from(["add", "mul", "sub", "sin", "neg", "sqrt"]))
        count = 2 if op in ("add", "mul", "sub") else 1
        self.scalars.append(getattr(self.b, op)(*(self.scalar() for _ in range(count))))

    def constant(self, depth: int) -> None:
        self.b.constant(self.draw(constants()))

    def shapes(self, depth: int) -> None:
        b = self.b
        wide = b.broadcast_to(self.scalar(), (2, 3, 4))
        part = b.slice(wide, slices=((None, None, -1), (0, 2, None), (1, -1, 2)))
        b.cast(b.transpose(part, perm=(2, 0, 1)), self.draw(_DTYPES))
        self.scalars.append(b.reduce_sum(part, axes=(0, 1, 2)))

    def list(self, depth: int) -> None:
        b = self.b
        items = b.list_new(F64)
        for _ in range(2):
            items = b.list_push(items, self.scalar())
        self.scalars.append(b.list_get(items, b.integer(0)))
        maybe = b.zero(F64)
        self.scalars.append(b.instantiate(b.autograd_add(maybe, maybe), self.scalar()))

    def loop(self, depth: int) -> None:
        count = self.draw(st.integers(1, 3))
        before, _, handed = self.region("before", count + 1, depth)
        after, _, following = self.region("after", len(handed) + 1, depth)
        test = before.lt(handed[0], before.constant(3.0))
        node = self.b.while_(
            [self.scalar() for _ in range(count)],
            [self.scalar()],
            before.finish([test, *handed]),
            after.finish(following[:count]),
        )
        self.scalars.extend(node.results)

    def growing(self, depth: int) -> None:
        """A loop whose carry has a size of its own."""
        b = self.b
        start = b.broadcast_to(self.scalar(), (2,))
        size = Symbol("s")
        before, after = Build("before"), Build("after")
        carry = before.param(TensorType(np.dtype("f8"), (size,)))
        total = before.reduce_sum(carry, axes=(0,))
        before_graph = before.finish([before.lt(total, before.constant(3.0)), carry])
        given = after.param(TensorType(np.dtype("f8"), (Symbol("t"),)))
        after_graph = after.finish([after.concat(given, after.sin(given), axis=0)])
        (grown,) = b.while_([start], [], before_graph, after_graph).results
        self.scalars.append(b.reduce_sum(grown, axes=(0,)))

    def branch(self, depth: int) -> None:
        count = self.draw(st.integers(2, 3))
        given = [self.scalar() for _ in range(2)]
        graphs = []
        for k in range(count):
            b, _, results = self.region(f"branch{k}", 2, depth)
            graphs.append(b.finish(results[:1]))
        test = self.b.lt(given[0], given[1])
        selector = test if count == 2 else self.b.cast(test, np.int64)
        self.scalars.extend(self.b.if_(selector, given, graphs).results)

    def call(self, depth: int) -> None:
        b, _, results = self.region(self.draw(_NAMES), 2, depth)
        callee = b.finish(results)
        for _ in range(2):  # a graph may be called twice
            given = [self.scalar(), self.scalar()]
            self.scalars.extend(self.b.call(callee, given).results)


@st.composite
def graphs(draw: Any) -> Graph:
    """Sound graphs."""
    b = Build(draw(_NAMES))
    token = b.param(TOKEN, "world")
    matrix = b.param(TensorType(np.dtype("f4"), (Symbol("rows"), 3)), "matrix")
    b.param(TensorType(np.dtype("i8"), None))
    b.param(ListType(MaybeType(F64)))
    scalars = [b.param(F64, "x"), b.param(F64)]
    maker = _Maker(draw, b, scalars)
    maker.fill(2, 5)
    token = b.print(token, maker.scalar(), format=draw(_NAMES) + " {}\n%1 @0 ; <tab>\t")
    holds = b.lt(scalars[0], scalars[1])
    token = b.raise_if(token, holds, error="ValueError", text=draw(st.text(max_size=8)))
    rows = b.sin(matrix)
    return verify(b.finish([maker.scalar(), rows, token], captures=draw(st.integers(0, 2))))
