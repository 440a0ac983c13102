"""A row of the op table's tests, and what is checked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.helpers.shares import is_chosen
from wend.autodiff.jvp import jvp
from wend.autodiff.linearize import linearize
from wend.autodiff.vjp import vjp
from wend.backends.numpy.backend import BACKEND
from wend.base.zero import ZERO
from wend.ir import TABLE, Graph, Op, Symbol, TensorType, parse, to_text, verify
from wend.ir.rewrite import inline
from wend.ir.types import (
    HOST,
    ListType,
    MaybeType,
    Type,
    is_differentiable,
    substitute,
    without_maybe,
)
from wend.ops.build import Build
from wend.runtime.sequence import Sequence as Items

STEP = 1e-6
ROUND_TRIPS = 6  # The text of one of so many graphs is read back in short runs.
_LOWER = {np.dtype("f8"): np.dtype("f4"), np.dtype("c16"): np.dtype("c8")}


@dataclass(frozen=True)
class Given:
    """An operand that is no array, with its type: a list, a maybe, a token."""

    value: Any
    type: Type


def a_list(*items: Any, element: Type | None = None) -> Given:
    """A list operand; `element` where it is empty."""
    return Given(Items.of(list(items)), ListType(element or type_of(items[0])))


def maybe(value: Any, type: Type | None = None) -> Given:
    """An operand that may be Zero; `type` where it is."""
    return Given(value, MaybeType(type or type_of(value)))


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        op: the operation's name.
        reference: the same by plain NumPy or SciPy: `(*operands, **attrs) -> result(s)`.
        samples: operand tuples on which kernel and shape rule are checked.
        smooth: operand tuples, of f64 and c128, where derivatives are checked as well.
        attrs: the attributes of the node.
        tol: how far a derivative may be from finite differences, of the size of its terms.
        exact: whether the kernel's numbers must be the reference's to the last bit.
        orders: how often it is differentiated.
        wrt: the operands to differentiate; None: all that can be.
        symbolic: whether derivatives are checked with sizes that are not known as well.
    """

    op: str
    reference: Callable[..., Any]
    samples: Sequence[tuple[Any, ...]] = ()
    smooth: Sequence[tuple[Any, ...]] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    tol: float = 1e-6
    exact: bool = True
    orders: int = 2
    wrt: Sequence[int] | None = None
    symbolic: bool = True

    def __str__(self) -> str:
        attrs = ",".join(f"{key}={value}" for key, value in self.attrs.items())
        return f"{self.op}({attrs})" if len(attrs) < 60 else self.op

    @property
    def record(self) -> Op:
        return TABLE[self.op]


# Values
def value_of(x: Any) -> Any:
    """An operand as backends take it."""
    if isinstance(x, Given):
        return x.value
    return np.asarray(x)[()] if np.ndim(x) == 0 else x


def type_of(x: Any) -> Type:
    if isinstance(x, Given):
        return x.type
    array = np.asarray(x)
    return TensorType(array.dtype, array.shape)


def with_symbols(type: Type) -> Type:
    """The type with a symbol for each size from 2 on, the same for the same size."""
    if isinstance(type, TensorType) and type.shape is not None:
        dims = (Symbol(f"s{dim}") if dim != 1 else 1 for dim in type.shape)
        return type.with_shape(tuple(dims))
    if isinstance(type, ListType):
        return ListType(with_symbols(type.element))
    if isinstance(type, MaybeType):
        return MaybeType(with_symbols(type.of))
    return type


def has_type(x: Any, type: Type) -> bool:
    """Whether a value at run time is of a type; a symbol is any size."""
    if isinstance(type, MaybeType):
        return x is ZERO or has_type(x, type.of)
    if isinstance(type, ListType):
        return isinstance(x, Items) and all(has_type(item, type.element) for item in x.items())
    if not isinstance(type, TensorType):
        return (x is None) != (type == HOST)
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype != type.dtype:
        return False
    if type.shape is None:
        return True
    sizes = zip(type.shape, x.shape, strict=False)
    return x.ndim == len(type.shape) and all(a in (b, None) for a, b in _known(sizes))


def _known(sizes: Any) -> Any:
    return [(None if isinstance(a, Symbol) else a, b) for a, b in sizes]


def like(x: Any, make: Callable[[Any], Any]) -> Any:
    """A value of the structure of `x`, each array made by `make(array)`; None for ints."""
    if isinstance(x, Items):
        return Items.of([like(item, make) for item in x.items()])
    if x is None or x is ZERO or np.asarray(x).dtype.kind not in "fc":
        return None
    return np.asarray(make(np.asarray(x)))[()]


def lowered(values: Sequence[Any]) -> list[Any]:
    """The values in 32 bits where they have 64."""
    return [
        Items.of(lowered(x.items()))
        if isinstance(x, Items)
        else x.astype(_LOWER[x.dtype])
        if getattr(x, "dtype", None) in _LOWER
        else x
        for x in values
    ]


def lowered_type(type: Type) -> Type:
    if isinstance(type, TensorType):
        return type.with_dtype(_LOWER.get(type.dtype, type.dtype))
    if isinstance(type, ListType):
        return ListType(lowered_type(type.element))
    return MaybeType(lowered_type(type.of)) if isinstance(type, MaybeType) else type


def random_like(rng: np.random.Generator) -> Callable[[Any], Any]:
    def make(x: Any) -> Any:
        noise = rng.standard_normal(x.shape)
        return noise + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else noise

    return make


def moved(x: Any, t: Any, step: float) -> Any:
    """x + step·t."""
    if t is None:
        return x
    if isinstance(x, Items):
        pairs = zip(x.items(), t.items(), strict=True)
        return Items.of([moved(a, b, step) for a, b in pairs])
    return x + step * t


def paired(u: Any, v: Any) -> tuple[float, float]:
    """The pairing Re Σ u·v of D19, and the size of its terms."""
    if u is None or v is None or u is ZERO or v is ZERO:
        return 0.0, 0.0
    if isinstance(u, Items):
        parts = [paired(a, b) for a, b in zip(u.items(), v.items(), strict=True)]
        return sum(p[0] for p in parts), sum(p[1] for p in parts)
    assert np.shape(u) == np.shape(v), (np.shape(u), np.shape(v))
    terms = np.real(np.asarray(u) * np.asarray(v))
    return float(np.sum(terms)), float(np.sum(np.abs(terms)))


def assert_same(
    found: Any, expected: Any, *, exact: bool = True, tol: float | None = None, role: str = ""
) -> None:
    """Equal in dtype, shape and value; NaN is NaN, −0 is not 0; anything is `...`.

    `exact` False: but for rounding; `tol`: but for that much.
    """
    if isinstance(expected, (Items, list, tuple)) or isinstance(found, Items):
        found, expected = (v.items() if isinstance(v, Items) else v for v in (found, expected))
        assert len(found) == len(expected), role
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b, exact=exact, tol=tol, role=role)
        return
    if expected is ...:
        return
    if expected is None or expected is ZERO:
        assert found is expected, role
        return
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, f"{role}: {found.dtype}, not {expected.dtype}"
    assert found.shape == expected.shape, f"{role}: {found.shape}, not {expected.shape}"
    if exact and tol is None:
        np.testing.assert_array_equal(found, expected, err_msg=role)
        if found.dtype.kind in "fc":
            for a, b in ((found.real, expected.real), (found.imag, expected.imag)):
                wrong = (np.signbit(a) != np.signbit(b)) & ~np.isnan(a)
                assert not wrong.any(), f"{role}: the sign of a zero differs"
    else:
        eps = np.finfo(found.dtype).eps if found.dtype.kind in "fc" else 0
        tol = 64 * eps if tol is None else tol
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol, err_msg=role)


# Graphs
def graph_of(case: Case, operands: Sequence[Any], types: Sequence[Type] | None = None) -> Graph:
    """The graph of one node."""
    b = Build(case.op)
    params = [b.param(type) for type in (types or [type_of(x) for x in operands])]
    return b.finish(b.emit_node(case.record, params, **case.attrs).results)


def run(graph: Graph, args: Sequence[Any]) -> list[Any]:
    return list(BACKEND.compile(graph)(args))


def assert_round_trip(graph: Graph) -> None:
    """The graph is sound, and its text is read back to the same text (of some, in short runs)."""
    verify(graph)
    if not is_chosen(" ".join([graph.name, *(node.op.name for node in graph.nodes)]), ROUND_TRIPS):
        return
    table: list[Any] = []
    text = to_text(graph, table=table)
    again = verify(parse(text, table=table))
    assert to_text(again, table=list(table)) == text


def pull_back_graph(graph: Graph, only: Sequence[int] | None = None) -> tuple[Graph, list[int]]:
    """The graph (params…, cotangents of float results…) → cotangents of float params.

    Also which params those are.
    """
    wrt = [i for i, type in enumerate(graph.param_types) if is_differentiable(type)]
    wrt = [i for i in wrt if only is None or i in only]
    seeded = [i for i, type in enumerate(graph.result_types) if is_differentiable(type)]
    pair = vjp(graph, wrt, seeded)
    assert_round_trip(pair.forward)
    assert_round_trip(pair.backward)
    b = Build(f"{graph.name}_pulled_back")
    params = [b.param(param.type) for param in graph.params]
    values = inline(pair.forward, params, b.nodes)
    residuals = values[len(graph.results) :]
    dims = dict(_bindings(graph.results, values))
    seeds = [b.param(substitute(without_maybe(graph.results[i].type), dims)) for i in seeded]
    grads = inline(pair.backward, [*residuals, *seeds], b.nodes)
    joined = verify(b.finish(grads))
    return joined, [i for i, is_connected in zip(wrt, pair.connected, strict=True) if is_connected]


def _bindings(results: Sequence[Any], values: Sequence[Any]) -> Any:
    """What the sizes of results are called in a copy."""
    for result, value in zip(results, values, strict=False):
        mine, theirs = without_maybe(result.type), without_maybe(value.type)
        while isinstance(mine, ListType):
            mine, theirs = mine.element, theirs.element
        if isinstance(mine, TensorType) and mine.shape is not None:
            pairs = zip(mine.shape, theirs.shape, strict=True)
            yield from ((a, b) for a, b in pairs if isinstance(a, Symbol))


def check_derivative(
    graph: Graph,
    args: Sequence[Any],
    tol: float,
    orders: int,
    only: Sequence[int] | None = None,
) -> None:
    """⟨ct, J t⟩ = ⟨Jᵀ ct, t⟩ with J t from finite differences; then the same for Jᵀ ct itself."""
    rng = np.random.default_rng(len(graph.nodes) + orders)
    back, wrt = pull_back_graph(graph, only)
    results = run(graph, args)
    cts = [like(result, random_like(rng)) for result in results]
    seeded = [ct for ct in cts if ct is not None]
    grads = dict(zip(wrt, run(back, [*args, *seeded]), strict=True))
    for i, grad in grads.items():
        assert has_type(grad, without_maybe(graph.param_types[i])), f"type of cotangent {i}"
    for _ in range(2):
        tangents = [like(arg, random_like(rng)) for arg in args]
        tangents = [t if only is None or i in only else None for i, t in enumerate(tangents)]
        ahead, behind = (
            run(graph, [moved(x, t, step) for x, t in zip(args, tangents, strict=True)])
            for step in (STEP, -STEP)
        )
        plus = [paired(ct, y) for ct, y in zip(cts, ahead, strict=True)]
        minus = [paired(ct, y) for ct, y in zip(cts, behind, strict=True)]
        measured = sum(a[0] - b[0] for a, b in zip(plus, minus, strict=True)) / (2 * STEP)
        pulled = [paired(grad, tangents[i]) for i, grad in grads.items()]
        size = 1 + sum(p[1] for p in plus) * 1e-2 + sum(p[1] for p in pulled)
        found = sum(p[0] for p in pulled)
        assert abs(found - measured) <= tol * size, (
            f"order {3 - orders} of {graph.name}: ⟨Jᵀct, t⟩ = {found}, measured {measured}\n{back}"
        )
    if orders > 1 and grads:
        check_derivative(back, [*args, *seeded], tol, orders - 1)


# Forward mode
def push_graph(graph: Graph, only: Sequence[int] | None = None) -> tuple[Graph, list[int]]:
    """The graph (params…, tangents of float params…) → tangents of results that have one.

    Also which results those are.
    """
    pushed = jvp(graph, moving(graph, only))
    assert_round_trip(pushed.graph)
    tangents = pushed.graph.results[len(graph.results) :]
    for result, tangent in zip(
        _chosen(pushed.graph.results, pushed.connected), tangents, strict=True
    ):
        assert result.type == tangent.type, f"a tangent of {result.type} is {tangent.type}"
    places = [i for i, is_connected in enumerate(pushed.connected) if is_connected]
    whole = pushed.graph
    return Graph(whole.name, whole.params, whole.nodes, tangents), places


def _chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [value for value, flag in zip(values, flags, strict=False) if flag]


def moving(graph: Graph, only: Sequence[int] | None = None) -> list[int]:
    """The params that can have tangents."""
    wrt = [i for i, type in enumerate(graph.param_types) if is_differentiable(type)]
    return [i for i in wrt if only is None or i in only]


def check_forward(
    graph: Graph,
    args: Sequence[Any],
    tol: float,
    orders: int,
    only: Sequence[int] | None = None,
) -> None:
    """J t against finite differences, against Jᵀ and against linearize; then J of that."""
    rng = np.random.default_rng(len(graph.nodes) + orders)
    ahead, places = push_graph(graph, only)
    wrt = moving(graph, only)
    seeded = [like(args[i], random_like(rng)) for i in wrt]
    tangents = dict(zip(wrt, seeded, strict=True))
    results = run(graph, args)
    found = dict(zip(places, run(ahead, [*args, *seeded]), strict=True))
    for i, tangent in found.items():
        assert has_type(tangent, graph.result_types[i]), f"type of tangent {i}"
    both = [
        run(graph, [moved(x, tangents.get(i), step) for i, x in enumerate(args)])
        for step in (STEP, -STEP)
    ]
    cts = [like(result, random_like(rng)) for result in results]
    size, measured, pushed = 1.0, 0.0, 0.0
    for i, ct in enumerate(cts):
        plus, minus = (paired(ct, side[i]) for side in both)
        measured += (plus[0] - minus[0]) / (2 * STEP)
        here = paired(ct, found.get(i))
        pushed += here[0]
        size += plus[1] * 1e-2 + here[1]
    assert abs(pushed - measured) <= tol * size, (
        f"order {3 - orders} of {graph.name}: ⟨ct, J t⟩ = {pushed}, measured {measured}\n{ahead}"
    )
    back, pulled = pull_back_graph(graph, only)
    grads = run(back, [*args, *(ct for ct in cts if ct is not None)])
    terms = [paired(grad, tangents[i]) for i, grad in zip(pulled, grads, strict=True)]
    other = sum(term[0] for term in terms)
    size += sum(term[1] for term in terms)
    assert abs(pushed - other) <= 1e-9 * size, f"⟨ct, J t⟩ = {pushed}, ⟨Jᵀct, t⟩ = {other}"
    check_linear_part(graph, args, tangents, found)
    if orders > 1 and found:
        check_forward(ahead, [*args, *seeded], tol, orders - 1)


def check_linear_part(
    graph: Graph, args: Sequence[Any], tangents: Mapping[int, Any], found: Mapping[int, Any]
) -> None:
    """`linearize` gives the same tangents."""
    chosen = [i for i, type in enumerate(graph.result_types) if is_differentiable(type)]
    split = linearize(graph, list(tangents), chosen)
    assert_round_trip(split.forward)
    assert_round_trip(split.linear)
    values = run(split.forward, args)
    residuals = values[len(graph.results) :]
    moved_by = run(split.linear, [*(values[i] for i in chosen), *residuals, *tangents.values()])
    connected = [i for i, flag in zip(chosen, split.connected, strict=True) if flag]
    for i, tangent in zip(connected, moved_by, strict=True):
        if i in found:
            assert_same(tangent, found[i], tol=1e-9, role=f"linear part, result {i}")
