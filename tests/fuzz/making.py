"""Makes random graphs of arrays, views, positions, orders, lists, loops and branches.

Floats are of two kinds. *Exact* ones are whole numbers, small enough that every order of adding
gives the same: programs may decide by them, sort them, look up by them. *Rounded* ones come of
functions such as `sin`; what is done with them is smooth, and how large they may be is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.example import Example
from wend.base.errors import WendError
from wend.ir import TABLE, Graph, ListType, Symbol, TensorType, Value, verify
from wend.ir.types import Dim
from wend.ops.build import Build

F8, F4, I8, BOOL = (np.dtype(name) for name in ("f8", "f4", "i8", "?"))
DTYPES = [F8, F8, F8, F4, I8, I8, np.dtype("i4"), np.dtype("u1"), BOOL]
MOVED_ONLY = [np.dtype("f2"), np.dtype("c16")]
SHAPES: list[tuple[Dim | str, ...]] = [
    *((), (), (3,), (5,), (2, 3), (3, 3), (1, 3), (0,), (17,), (4, 5), (2, 3, 2)),
    *(("n",), ("n",), ("m",), ("n", 3), (3, "n"), ("n", "m")),
]
CUTS = (
    *((None, None, None), (1, None, None), (None, -1, None), (0, 2, None)),
    *((None, None, 2), (-1, None, -2), (1, 1, None), (-2, None, None)),
)
_MOST = {F8: 2.0**50, F4: 2.0**22}
_MOST_ROUNDED = 1e4
CARRY = 8.0  # how large exact carries are kept


class Unfit(Exception):
    """A step for which there is nothing."""


@dataclass(frozen=True)
class Known:
    """A value, whether it is exact, and how large it may be, if it is a float."""

    value: Value
    exact: bool = True
    bound: float = np.inf

    @property
    def type(self) -> TensorType:
        return self.value.tensor

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def rank(self) -> int:
        return len(self.type.dims)

    @property
    def is_float(self) -> bool:
        return self.dtype in _MOST


class Maker:
    """Adds steps to a graph or region; `env` holds what there is to compute with."""

    def __init__(self, draw: Any, b: Build, env: Sequence[Known]) -> None:
        self.draw, self.b, self.env = draw, b, [*env]

    # Choices
    def choose(self, options: Sequence[Any]) -> Any:
        if not options:
            raise Unfit
        return options[self.draw(st.integers(0, len(options) - 1))]

    def pick(self, fits: Callable[[Known], bool] = lambda known: True) -> Known:
        """One of the values, the newest first."""
        return self.choose([known for known in reversed(self.env) if fits(known)][:8])

    def give(self, value: Value, exact: bool = True, bound: float = np.inf) -> Known:
        known = Known(value, exact, bound)
        if known.is_float:
            limit = _MOST[known.dtype] if exact else _MOST_ROUNDED
            if not bound <= limit:
                raise Unfit
        self.env.append(known)
        return known

    def like(self, x: Known, *, exact: bool = False) -> Known:
        """Another value of a type, or one spread over its shape; exact if wanted."""
        fits = [
            y
            for y in reversed(self.env)
            if y.dtype == x.dtype
            and (y.exact or not exact)
            and (y.type == x.type or y.rank == 0 or y.type.dims == x.type.dims[x.rank - y.rank :])
        ][:6]
        k = self.draw(st.integers(0, len(fits)))
        if k < len(fits):
            y = fits[k]
            return Known(self.b.broadcast_like(y.value, x.value), y.exact, y.bound)
        number = self.draw(st.integers(0, 3))
        return Known(self.b.full_like(x.value, number), True, 3.0)

    def place(self, size: Value, of: Known) -> Value:
        """Positions under a size, made of whole numbers."""
        return self.b.emit(TABLE["remainder"], of.value, self.b.broadcast_like(size, of.value))

    def index(self, size: Value, of: Known) -> Value:
        """The same, perhaps counted from the end."""
        within = self.place(size, of)
        if self.draw(st.booleans()):
            return within
        return self.b.sub(within, self.b.broadcast_like(size, within))

    # Steps
    def step(self, depth: int) -> None:
        """Add one; where there is nothing for it, another."""
        steps, count = [*STEPS, *(NESTED if depth else [])], len(self.env)
        for _ in range(4):
            name = self.choose(steps)
            try:
                getattr(self, name)(*([depth - 1] if name in NESTED else []))
            except (Unfit, WendError):
                del self.env[count:]
            else:
                return

    def arithmetic(self) -> None:
        x = self.pick(lambda k: k.dtype.kind in "fiu" and k.dtype not in MOVED_ONLY)
        y = self.like(x)
        exact = x.exact and y.exact
        name = self.choose(["add", "sub", "mul", "maximum", "minimum"])
        if name in ("maximum", "minimum") and not exact:
            raise Unfit  # ties are decided by the last bit
        bound = x.bound * y.bound if name == "mul" else x.bound + y.bound
        self.give(self.b.emit(TABLE[name], x.value, y.value), exact, bound)

    def of_one(self) -> None:
        x = self.pick(lambda k: k.is_float or k.dtype.kind in "iu")
        name = self.choose(["neg", "abs", "sign", "floor"])
        if (name != "neg" and not x.exact) or (name == "floor" and not x.is_float):
            raise Unfit
        self.give(self.b.emit(TABLE[name], x.value), x.exact, x.bound)

    def function(self) -> None:
        x = self.pick(lambda k: k.is_float)
        name = self.choose(["sin", "cos", "tanh", "exp", "root", "log1p", "half"])
        b, v = self.b, x.value
        if name == "root":
            found = b.sqrt(b.add(b.ones_like(v), b.square(v)))
            self.give(found, False, 1 + x.bound)
        elif name == "log1p":
            self.give(b.emit(TABLE["log1p"], b.square(v)), False, 40.0 + x.bound)
        elif name == "half":
            self.give(b.scale(v, 0.37), False, x.bound)
        elif x.bound > (4 if name == "exp" else 50):
            raise Unfit
        else:
            bound = float(np.exp(x.bound)) if name == "exp" else 1.0
            self.give(b.emit(TABLE[name], v), False, bound)

    def of_whole_numbers(self) -> None:
        x = self.pick(lambda k: k.dtype.kind in "iu")
        names = ["floor_divide", "remainder", "and", "or", "xor", "shift_left", "shift_right"]
        self.give(self.b.emit(TABLE[self.choose([*names, "gcd"])], x.value, self.like(x).value))

    def of_flags(self) -> None:
        x = self.pick(lambda k: k.dtype == BOOL)
        self.give(
            self.b.emit(TABLE[self.choose(["and", "or", "xor"])], x.value, self.like(x).value)
        )

    def compare(self) -> None:
        x = self.pick(lambda k: k.exact and k.dtype != np.dtype("c16"))
        name = self.choose(["lt", "le", "gt", "ge", "eq", "ne"])
        self.give(self.b.emit(TABLE[name], x.value, self.like(x, exact=True).value))

    def select(self) -> None:
        flag = self.pick(lambda k: k.dtype == BOOL)
        x = self.pick(lambda k: k.type.dims == flag.type.dims)
        y = self.like(x)
        bound = max(x.bound, y.bound)
        self.give(self.b.select(flag.value, x.value, y.value), x.exact and y.exact, bound)

    def cast(self) -> None:
        x = self.pick(lambda k: k.exact and k.dtype not in MOVED_ONLY)
        value, bound, dtype = x.value, x.bound, self.choose(DTYPES)
        if dtype in _MOST and not x.is_float:
            if x.dtype.kind in "iu":
                seven = self.b.full_like(value, 7)
                value = self.b.emit(TABLE["remainder"], value, seven)
            bound = 7.0
        self.give(self.b.cast(value, dtype), True, bound)

    # Shapes
    def view(self) -> None:
        x = self.pick(lambda k: k.rank > 0)
        b, v, dims = self.b, x.value, x.type.dims
        match self.choose(["transpose", "slice", "reverse", "flat", "axis", "narrow", "spread"]):
            case "transpose":
                found = b.transpose(v, perm=tuple(self.draw(st.permutations(range(x.rank)))))
            case "slice":
                found = b.slice(v, slices=tuple(self.cut() for _ in dims))
            case "reverse":
                found = b.slice(v, slices=((None, None, -1),) * x.rank)
            case "flat":
                found = b.merge_axes(v, start=0)
            case "axis":
                found = b.insert_axes(v, axes=(self.choose(range(x.rank + 1)),))
            case "narrow":
                start, stop = (self.index(b.size_of(v, 0), self.whole()) for _ in range(2))
                found = b.narrow(v, start, stop, axis=0, size=None)
            case _:
                if not x.type.is_static:
                    raise Unfit
                found = b.broadcast_to(v, (2, *dims))  # type: ignore[arg-type]
        self.give(found, x.exact, x.bound)

    def cut(self) -> tuple[int | None, int | None, int | None]:
        return self.choose(CUTS)

    def join(self) -> None:
        x, b = self.pick(lambda k: k.rank > 0), self.b
        how = self.choose(["concat", "stack", "pad"])
        if how == "pad":
            widths = tuple(self.choose([(0, 0), (1, 0), (2, 1)]) for _ in range(x.rank))
            found = b.emit(TABLE["pad"], x.value, widths=widths, value=3)
            self.give(found, x.exact, x.bound + 3.0)
            return
        if how == "stack":
            y, axis = self.like(x), self.choose(range(x.rank + 1))
            parts = [b.insert_axes(k.value, axes=(axis,)) for k in (x, y)]
        else:
            same = [k for k in reversed(self.env) if k.dtype == x.dtype and k.rank == x.rank][:6]
            y, axis = self.choose(same), self.choose(range(x.rank))
            parts = [x.value, y.value]
        self.give(b.concat(*parts, axis=axis), x.exact and y.exact, max(x.bound, y.bound))

    def put_part(self) -> None:
        x = self.pick(lambda k: k.rank > 0)
        slices = tuple(self.cut() for _ in x.type.dims)
        part = self.b.slice(self.like(x).value, slices=slices)
        name = self.choose(["set_slice", "add_slice"])
        if name == "add_slice" and not (x.is_float or x.dtype.kind in "iu"):
            raise Unfit
        found = self.b.emit(TABLE[name], x.value, part, slices=slices)
        self.give(found, False, 2 * x.bound + 10) if x.is_float else self.give(found)

    # Reductions and products
    def reduce(self) -> None:
        x = self.pick(lambda k: k.rank > 0 and k.dtype not in MOVED_ONLY)
        axes = tuple(k for k in range(x.rank) if self.draw(st.booleans())) or (x.rank - 1,)
        name = self.choose(["sum", "sum", "max", "min", "prod"])
        if x.dtype == BOOL:
            name = self.choose(["any", "all"])
        if (name in ("max", "min") and not x.exact) or (name == "prod" and x.is_float):
            raise Unfit
        count = np.prod([self.most(x.type.dims[k]) for k in axes]) if name == "sum" else 1
        found = self.b.emit(
            TABLE[f"reduce_{name}"], x.value, axes=axes, keepdims=self.draw(st.booleans())
        )
        self.give(found, x.exact, x.bound * max(count, 1))

    def most(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else 200

    def running(self) -> None:
        x = self.pick(lambda k: k.rank > 0 and (k.is_float or k.dtype.kind in "iu"))
        axis = self.choose(range(x.rank))
        found = self.b.cumsum(x.value, axis=axis, reverse=self.draw(st.booleans()))
        self.give(found, x.exact, x.bound * max(self.most(x.type.dims[axis]), 1))

    def product(self) -> None:
        x = self.pick(lambda k: k.rank == 2 and k.is_float)
        y = self.pick(lambda k: k.rank == 2 and k.dtype == x.dtype)
        bound = x.bound * y.bound * max(self.most(x.type.dims[1]), 1)
        self.give(self.b.matmul(x.value, y.value), x.exact and y.exact, bound)

    # Orders and positions
    def order(self) -> None:
        x = self.pick(lambda k: k.rank > 0 and k.exact)
        axis = self.choose(range(x.rank))
        name = self.choose(["sort", "argsort", "argmax", "argmin"])
        if x.dtype.kind == "c":
            raise Unfit
        attrs = {"keepdims": self.draw(st.booleans())} if name in ("argmax", "argmin") else {}
        self.give(self.b.emit(TABLE[name], x.value, axis=axis, **attrs), True, x.bound)

    def search(self) -> None:
        x = self.pick(lambda k: k.rank == 1 and k.exact and k.dtype.kind in "fiu")
        y = self.pick(lambda k: k.dtype == x.dtype and k.exact)
        ordered = self.b.emit(TABLE["sort"], x.value, axis=0)
        side = self.choose(["left", "right"])
        self.give(self.b.emit(TABLE["searchsorted"], ordered, y.value, side=side))

    def masked(self) -> None:
        mask = self.pick(lambda k: k.dtype == BOOL and k.rank > 0)
        places = self.b.emit_node(TABLE["nonzero"], [mask.value]).results
        x = self.pick(lambda k: k.type.dims == mask.type.dims)
        self.give(self.b.gather(x.value, *places), x.exact, x.bound)

    def gather(self) -> None:
        x = self.pick(lambda k: k.rank > 0)
        where = self.pick(lambda k: k.dtype == I8)
        place = self.index(self.b.size_of(x.value, 0), where)
        self.give(self.b.gather(x.value, place), x.exact, x.bound)

    def scatter(self) -> None:
        into = self.pick(lambda k: k.rank > 0 and (k.is_float or k.dtype.kind in "iu"))
        where = self.pick(lambda k: k.dtype == I8 and k.rank < 2)
        b = self.b
        place = self.index(b.size_of(into.value, 0), where)
        row = b.gather(into.value, place)
        x = self.like(Known(row, into.exact, into.bound))
        name = self.choose(["scatter_add", "scatter_set"])
        found = b.emit(TABLE[name], into.value, x.value, place)
        bound = into.bound + x.bound * (200 if name == "scatter_add" else 1)
        self.give(found, into.exact and x.exact, bound)

    def along(self) -> None:
        x = self.pick(lambda k: k.rank > 0 and k.exact and k.dtype.kind in "fiu")
        axis = self.choose(range(x.rank))
        b = self.b
        places = b.argsort(x.value, axis=axis)
        y = self.pick(lambda k: k.type.dims == x.type.dims and k.dtype not in MOVED_ONLY)
        if y.dtype == BOOL or self.draw(st.booleans()):
            self.give(b.take_along(y.value, places, axis=axis), y.exact, y.bound)
            return
        z = self.like(y)
        name = self.choose(["add_along", "set_along"])
        found = b.emit(TABLE[name], y.value, z.value, places, axis=axis)
        self.give(found, y.exact and z.exact, y.bound + z.bound)

    def items(self) -> None:
        """A list of some values, read at a position and stacked."""
        x = self.pick(lambda k: k.type.is_static)
        b, chosen = self.b, [x, self.like(x), self.like(x)]
        items = b.list_new(x.type)
        for item in chosen:
            items = b.list_push(items, item.value)
        exact, bound = all(k.exact for k in chosen), max(k.bound for k in chosen)
        place = self.index(b.list_len(items), self.whole())
        self.give(b.list_get(items, place), exact, bound)
        items = b.list_set(items, place, self.like(x).value)
        self.give(b.list_stack(items), exact and x.dtype.kind in "iub", max(bound, 3.0))

    def whole(self) -> Known:
        return self.pick(lambda k: k.dtype == I8 and k.rank == 0)

    def flag(self) -> Value:
        """Something to decide by."""
        x = self.pick(lambda k: k.exact and k.dtype.kind in "fiub" and k.dtype not in MOVED_ONLY)
        b, v = self.b, x.value
        flags = v if x.dtype == BOOL else b.gt(v, b.zeros_like(v))
        name = self.choose(["reduce_any", "reduce_all"])
        axes = tuple(range(x.rank))
        return b.emit(TABLE[name], flags, axes=axes, keepdims=False) if axes else flags

    # Regions
    def region(
        self, name: str, given: Sequence[Known | ListType]
    ) -> tuple[Maker, list[Known], list[Value]]:
        """A region with a param for each of what it is given; its values, and its lists."""
        b, params, lists = Build(name), [], []
        for x in given:
            if isinstance(x, Known):
                params.append(Known(b.param(x.type), x.exact, x.bound))
            else:
                lists.append(b.param(x))
        return Maker(self.draw, b, params), params, lists

    def fill(self, depth: int, most: int) -> None:
        for _ in range(self.draw(st.integers(0, most))):
            self.step(depth)

    def branch(self, depth: int) -> None:
        given = [self.pick() for _ in range(self.draw(st.integers(1, 4)))]
        if self.draw(st.booleans()):
            selector, count = self.flag(), 2
        else:
            selector, count = self.place(self.b.integer(3), self.whole()), 3
        wanted = given[: self.draw(st.integers(1, 3))]
        graphs, found = [], []
        for k in range(count):
            inner, _, _ = self.region(f"branch{k}", given)
            inner.fill(depth, 4)
            chosen = [inner.pick(lambda k, w=w: k.type == w.type) for w in wanted]
            graphs.append(inner.b.finish([k.value for k in chosen]))
            found.append(chosen)
        results = self.b.if_(selector, [k.value for k in given], graphs).results
        for k, result in enumerate(results):
            arms = [chosen[k] for chosen in found]
            self.give(result, all(a.exact for a in arms), max(a.bound for a in arms))

    def call(self, depth: int) -> None:
        given = [self.pick() for _ in range(self.draw(st.integers(1, 3)))]
        inner, _, _ = self.region("callee", given)
        inner.fill(depth, 4)
        chosen = [inner.pick(), inner.pick()]
        graph = inner.b.finish([k.value for k in chosen])
        results = self.b.call(graph, [k.value for k in given]).results
        for k, result in zip(chosen, results, strict=True):
            self.give(result, k.exact, k.bound)

    def loop(self, depth: int) -> None:
        """A counted loop that may end early, perhaps with a list of what it carried."""
        b = self.b
        limit = Known(self.place(b.integer(5), self.whole()))
        start = [self.kept(self.pick()) for _ in range(self.draw(st.integers(1, 3)))]
        carry = [Known(b.integer(0)), *start]
        invariants = [limit, *(self.pick() for _ in range(self.draw(st.integers(0, 3))))]
        is_taped = start[0].type.is_static and self.draw(st.booleans())
        lists = [b.list_new(start[0].type)] * is_taped
        given = [*carry, *(items.type for items in lists), *invariants]

        before, params, held = self.region("before", given)
        before.fill(depth, 2)
        test = before.b.lt(params[0].value, params[len(carry)].value)
        if self.draw(st.integers(0, 3)) == 3:
            test = before.b.emit(TABLE["and"], test, before.flag())
        handed = [k.value for k in params[: len(carry)]]
        test_graph = before.b.finish([test, *handed, *held])

        after, params, tape = self.region("after", given)
        after.fill(depth, 5)
        following = [after.b.add(params[0].value, after.b.integer(1))]
        for k in carry[1:]:
            new = after.pick(lambda n, k=k: n.type == k.type and (n.exact or not k.exact))
            following.append(after.kept(new, exact=k.exact).value)
        tape = [after.b.list_push(items, params[1].value) for items in tape]
        body = after.b.finish([*following, *tape])

        start_values = [*(k.value for k in carry), *lists]
        node = b.while_(start_values, [k.value for k in invariants], test_graph, body)
        for k, result in zip(carry, node.results, strict=False):
            self.give(result, k.exact, k.bound)
        for items in node.results[len(carry) :]:
            self.give(b.list_len(items))
            self.give(b.list_stack(items), start[0].exact, start[0].bound)

    def kept(self, x: Known, *, exact: bool | None = None) -> Known:
        """What is carried: floats no larger than they may be however many trips there are."""
        if not x.is_float:
            return x
        b, v = self.b, x.value
        if x.exact if exact is None else exact:
            v = b.emit(TABLE["minimum"], v, b.full_like(v, CARRY))
            return Known(b.emit(TABLE["maximum"], v, b.full_like(v, -CARRY)), True, CARRY)
        v = b.scale(v, 1 / max(x.bound, 1.0))
        return Known(b.emit(TABLE["tanh"], v), False, 1.0)

    def growing(self, depth: int) -> None:
        """A loop whose carry gets longer."""
        start = self.kept(self.pick(lambda k: k.rank == 1 and k.type.is_static))
        b, dtype = self.b, start.dtype
        if not start.type.dims[0]:
            raise Unfit
        before, after = Build("before"), Build("after")
        carry = before.param(TensorType(dtype, (Symbol("s"),)))
        test = before.lt(before.size_of(carry, 0), before.integer(9))
        given = after.param(TensorType(dtype, (Symbol("t"),)))
        inner = Maker(self.draw, after, [Known(given, start.exact, start.bound)])
        inner.fill(0, 3)
        new = inner.pick(
            lambda k: k.rank == 1 and k.dtype == dtype and (k.exact or not start.exact)
        )
        grown = after.concat(given, inner.kept(new, exact=start.exact).value, given, axis=0)
        graphs = before.finish([test, carry]), after.finish([grown])
        (result,) = b.while_([start.value], [], *graphs).results
        self.give(result, start.exact, start.bound)


STEPS = (
    *("arithmetic", "arithmetic", "of_one", "function", "function", "of_whole_numbers"),
    *("of_flags", "compare", "select", "cast", "view", "view", "join", "put_part", "reduce"),
    *("reduce", "running", "product", "order", "search", "masked", "gather", "scatter"),
    *("along", "items"),
)
NESTED = ("branch", "call", "loop", "loop", "loop", "growing")


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """Graphs of every kind of step, and arguments for them."""
    b = Build("example")
    symbols = {name: Symbol(name) for name in "nm"}
    sizes = {name: draw(st.integers(0, 5)) for name in "nm"}
    is_odd = draw(st.integers(0, 5)) == 5
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    env, args = [], []
    for k in range(draw(st.integers(1, 5))):
        dtype = draw(st.sampled_from(DTYPES if k else [F8]))
        if draw(st.integers(0, 19)) == 19:
            dtype = draw(st.sampled_from(MOVED_ONLY))
        shape = draw(st.sampled_from(SHAPES))
        dims = tuple(symbols.get(d, d) if isinstance(d, str) else d for d in shape)
        args.append(_numbers(rng, dtype, tuple(sizes.get(d, d) for d in shape), is_odd))  # type: ignore[misc]
        env.append(Known(b.param(TensorType(dtype, dims)), True, 4.0))
    env.append(Known(b.integer(2)))
    maker = Maker(draw, b, env)
    for _ in range(draw(st.integers(1, 8))):
        maker.step(2)
    found = maker.env[len(env) :][-5:]
    total = Known(b.constant(0.0), True, 0.0)
    for k in [*env[:1], *found]:
        if k.is_float:
            axes = tuple(range(k.rank))
            part = b.reduce_sum(k.value, axes=axes) if axes else k.value
            part = b.cast(b.scale(part, 1 / max(k.bound, 1.0)), F8)
            total = Known(b.add(total.value, part), False, total.bound + 200.0)
    results = [*found, total]
    graph = verify(b.finish([k.value for k in results]))
    is_single = any(
        v.type.dtype == F4
        for g in _all(graph)
        for v in (*g.params, *(r for n in g.nodes for r in n.results))
        if isinstance(v.type, TensorType)
    )
    bounds = [k.bound if k.is_float and not k.exact else None for k in results]
    return Example(graph, args, bounds, is_single)


def _all(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.walk():
        yield from node.regions


def _numbers(
    rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], is_odd: bool
) -> np.ndarray:
    low = 0 if dtype.kind in "ub" else -4
    x = rng.integers(low, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
    if is_odd and dtype.kind == "f":
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0, 2.0], dtype)
        x = np.where(rng.random(shape) < 0.4, rng.choice(odd, shape), x).astype(dtype)
    return x
