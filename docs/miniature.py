"""The idea of wend in one sitting, under the same names: trace, While, gradient, run.

A plain Python function is recorded once as a *graph*. A loop in it is one `While` node, however
often it will run. The derivative of a graph is a graph, in which the derivative of a loop is again
a loop: it can be printed, run, and differentiated once more. Here all numbers are scalars.
Read from top to bottom, then try `python docs/miniature.py`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

# ---- 1. The graph ------------------------------------------------------------------------------
# A Graph has params, nodes in program order and results; each value is defined once. A Value is
# only a name with a type ("f64", "i64", "bool", "list[f64]", …) and means something only in a
# graph that defines it. Graphs held by a node, its *regions*, are closed: what they read from
# outside comes in as a param. So two graphs may use one name, each for a value of its own.
# The *cotangent* (ct) of a value is the derivative of the final result with respect to it.

Fun = Any  # a Python function


@dataclass(frozen=True, eq=False)
class Value:
    type: str


class Op(NamedTuple):
    name: str
    kernel: Fun  # what it computes: (*operands, **attrs) -> result
    vjp: Fun = lambda *_: ()  # (b, ct of the result, *operands) -> a cotangent for each operand
    infer: Fun = lambda x, *_: [x.type]  # (*operands, **attrs) -> the types of its results


class Node(NamedTuple):
    op: Op
    operands: tuple[Value, ...]
    attrs: dict[str, Any]
    regions: tuple["Graph", ...]
    results: tuple[Value, ...]


class Graph(NamedTuple):
    name: str
    params: tuple[Value, ...]
    nodes: tuple[Node, ...]
    results: tuple[Value, ...]

    def __str__(self) -> str:
        return to_text(self, f"graph {self.name}", "", {})


class Zero(NamedTuple):
    """A cotangent known to be zero. Nothing is computed with it; as a condition it is false."""


ZERO = Zero()
Cotangent = Value | Zero

# ---- 2. The builder ----------------------------------------------------------------------------
# Whatever makes a graph speaks to a Build: `b.mul(x, y)` appends a node and returns its result.
# Nothing edits a finished graph. A param or result that is ZERO is left out.


class Build:
    def __init__(self, name: str, params: Any = (), nodes: Any = ()) -> None:
        self.name, self.params, self.nodes = name, tuple(filter(None, params)), list(nodes)
        self.captured: dict[Value, None] = {}  # the outer values that tracing saw in use here

    def emit(self, op: Op, operands: Any, regions: Any = (), **attrs: Any) -> tuple[Value, ...]:
        results = tuple(map(Value, op.infer(*regions, *operands, **attrs)))
        self.nodes.append(Node(op, tuple(operands), attrs, regions, results))
        return results

    def __getattr__(self, name: str) -> Fun:  # in wend, a page with one method per operation
        return lambda *operands, **attrs: self.emit(OPS[name], operands, **attrs)[0]

    def last(self, xs: Value) -> Value:
        return self.list_get(xs, self.constant(value=-1))

    def zero(self, like: Value) -> Value:
        is_list = like.type.startswith("list")
        return self.list_zero(like) if is_list else self.constant(value=0.0)

    def autograd_add(self, x: Cotangent, y: Cotangent) -> Cotangent:
        return self.add(x, y) if x and y else x or y

    def finish(self, *results: Cotangent) -> Graph:
        """Return the graph, without the nodes that no result depends on."""
        values = tuple(value for value in results if value)
        needed, kept = set(values), []
        for node in reversed(self.nodes):
            if needed.intersection(node.results):
                needed.update(node.operands)
                kept.append(node)
        return Graph(self.name, self.params, tuple(reversed(kept)), values)


# ---- 3. The operations -------------------------------------------------------------------------
# One record each. The derivative rule gives the operands their cotangents; it speaks only to the
# builder, so what it makes can be differentiated like anything else. Lists are values, too:
# pushing gives a new list. The adjoint of reading at a position is adding at that position, that
# of pushing is popping; so a loop that keeps records in lists is nothing special, to any order.
# (Here each such read costs a new list; wend adds into the one that is there.)
#
# A loop is While(carry, invariants; before, after), where
#     before(carry…, invariants…)    -> predicate, forwarded…
#     after(forwarded…, invariants…) -> carry…
# `before` forwards values to `after` while the predicate holds, and to the results once it does
# not. In T trips it runs T + 1 times, and `after` T times. A loop that tests first, one that tests
# last and one that is left in mid-body are all of this form.


class While(NamedTuple):
    carry: tuple[Any, ...]
    invariants: tuple[Any, ...]
    before: Graph
    after: Graph


def while_parts(before: Graph, after: Graph, *operands: Any) -> While:
    return While(operands[: len(after.results)], operands[len(after.results) :], before, after)


def run_while(*regions_and_operands: Any) -> list[Any]:
    carry, invariants, before, after = while_parts(*regions_and_operands)
    while True:
        pred, *forwarded = run(before, (*carry, *invariants))
        if not pred:
            return forwarded
        carry = tuple(run(after, (*forwarded, *invariants)))


def deep(fun: Fun, *xs: Any) -> Any:
    """Apply a function to the numbers in lists, and in lists of lists, of equal structure."""
    is_list = isinstance(xs[0], list)
    return [deep(fun, *x) for x in zip(*xs, strict=True)] if is_list else fun(*xs)


# fmt: off
ALL = [
    Op("constant", lambda value: value,
       infer=lambda value: ["f64" if isinstance(value, float) else "i64"]),
    Op("add", lambda x, y: deep(np.add, x, y), lambda _b, ct, *_: (ct, ct)),
    Op("sub", np.subtract, lambda b, ct, *_: (ct, b.neg(ct))),
    Op("mul", np.multiply, lambda b, ct, x, y: (b.mul(ct, y), b.mul(ct, x))),
    Op("div", np.divide,
       lambda b, ct, x, y: (b.div(ct, y), b.neg(b.div(b.mul(ct, x), b.mul(y, y))))),
    Op("neg", np.negative, lambda b, ct, _: [b.neg(ct)]),
    Op("sin", np.sin, lambda b, ct, x: [b.mul(ct, b.cos(x))]),
    Op("cos", np.cos, lambda b, ct, x: [b.neg(b.mul(ct, b.sin(x)))]),
    Op("less", np.less, infer=lambda *_: ["bool"]),
    Op("list_new", lambda element: [], infer=lambda element: [f"list[{element}]"]),
    Op("list_push", lambda xs, x: [*xs, x], lambda b, ct, *_: (b.list_pop(ct), b.last(ct))),
    Op("list_pop", lambda xs: xs[:-1], lambda b, ct, xs: [b.list_push(ct, b.zero(b.last(xs)))]),
    Op("list_get", lambda xs, i: xs[i],
       lambda b, ct, xs, i: (b.list_add_at(b.zero(xs), i, ct), ZERO),
       infer=lambda xs, _: [xs.type[5:-1]]),  # f64 of list[f64]
    Op("list_add_at", lambda xs, i, x: [*xs[:i], deep(np.add, xs[i], x), *xs[i:][1:]],
       lambda b, ct, _xs, i, _x: (ct, ZERO, b.list_get(ct, i))),
    Op("list_zero", lambda xs: deep(lambda _: 0.0, xs), lambda *_: [ZERO]),
    Op("while", run_while, infer=lambda before, *_: [v.type for v in before.results[1:]]),
]
# fmt: on
OPS = {op.name: op for op in ALL}

# ---- 4. Tracing --------------------------------------------------------------------------------
# To record a function, call it with Tracers: what it does to them lands in the innermost recording.
# The regions of a loop are recorded like functions. An outer value used in one becomes an invariant
# of the loop, and so of each loop in between; being only a name, it enters under its own.

RECORDINGS: list[Build] = []


def lift(x: Any) -> Value:
    """Return the value that a tracer or a number is in the innermost recording."""
    if not isinstance(x, Tracer):
        return RECORDINGS[-1].constant(value=float(x))
    for recording in RECORDINGS[RECORDINGS.index(x.recording) + 1 :]:
        recording.captured[x.value] = None
    return x.value


def staged(name: str, step: int = 1) -> Fun:
    """Return what records an operation; step -1 takes its operands in reverse."""
    return lambda *xs: Tracer(getattr(RECORDINGS[-1], name)(*map(lift, xs[::step])), RECORDINGS[-1])


class Tracer:
    """Stands for a value of a recording."""

    def __init__(self, value: Value, recording: Build) -> None:
        self.value, self.recording = value, recording

    __add__, __radd__ = staged("add"), staged("add", -1)
    __sub__, __rsub__ = staged("sub"), staged("sub", -1)
    __mul__, __rmul__ = staged("mul"), staged("mul", -1)
    __truediv__, __rtruediv__ = staged("div"), staged("div", -1)
    __lt__, __gt__ = staged("less"), staged("less", -1)
    __neg__, sin, cos = staged("neg"), staged("sin"), staged("cos")  # np.sin(x) calls x.sin()

    def __bool__(self) -> bool:
        raise TypeError("a recorded value is not known yet; to loop over it, use while_loop")


def record(name: str, fun: Fun, types: list[str]) -> tuple[Build, list[Value]]:
    b = Build(name, map(Value, types))
    RECORDINGS.append(b)
    try:
        results = fun(*(Tracer(param, b) for param in b.params))
        return b, [lift(x) for x in (results if isinstance(results, tuple) else (results,))]
    finally:
        RECORDINGS.pop()


def trace(fun: Fun, arity: int = 1) -> Graph:
    b, results = record(getattr(fun, "__name__", "fun"), fun, ["f64"] * arity)
    return b.finish(*results)


def while_loop(cond_fun: Fun, body_fun: Fun, init: Any) -> Any:
    """Repeat `carry = body_fun(carry)` while `cond_fun(carry)`; a carry is a number or a tuple."""

    def pack(carry: Any) -> Any:
        return tuple(carry) if isinstance(init, tuple) else carry[0]

    carry = [lift(x) for x in (init if isinstance(init, tuple) else (init,))]
    types = [value.type for value in carry]
    before, pred = record("before", lambda *carry: cond_fun(pack(carry)), types)
    after, changed = record("after", lambda *carry: body_fun(pack(carry)), types)
    if len(changed) != len(carry):
        raise TypeError(f"while_loop: {len(carry)} values enter, body_fun returns {len(changed)}")
    forwarded, invariants = before.params, tuple(before.captured | after.captured)
    before.params, after.params = before.params + invariants, after.params + invariants
    regions = before.finish(*pred, *forwarded), after.finish(*changed)
    b = RECORDINGS[-1]
    return pack([Tracer(v, b) for v in b.emit(OPS["while"], (*carry, *invariants), regions)])


# ---- 5. Running --------------------------------------------------------------------------------
# The interpreter gives each node the meaning of its kernel; section 8 will give it another.
def compute(node: Node, operands: list[Any]) -> Any:
    result = node.op.kernel(*node.regions, *operands, **node.attrs)
    return result if node.regions else [result]


def run(graph: Graph, args: Any, meaning: Fun = compute) -> list[Any]:
    env = dict(zip(graph.params, args, strict=True))
    for node in graph.nodes:
        results = meaning(node, [env.get(value, value) for value in node.operands])
        env.update(zip(node.results, results, strict=True))
    return [env.get(value, value) for value in graph.results]


# ---- 6. Printing -------------------------------------------------------------------------------
def to_text(graph: Graph, head: str, indent: str, numbers: dict[Value, int]) -> str:
    def names(values: Any, typed: bool = False) -> str:
        numbered = [(numbers.setdefault(value, len(numbers)), value.type) for value in values]
        return ", ".join(f"%{n}: {type}" if typed else f"%{n}" for n, type in numbered)

    lines = [f"{indent}{head}({names(graph.params, typed=True)}) {{"]
    for node in graph.nodes:
        attrs = "".join(f" {{{key}={value!r}}}" for key, value in node.attrs.items())
        call = f"{node.op.name}({names(node.operands)}){attrs}"
        lines.append(f"{indent}  {names(node.results, typed=True)} = {call}")
        lines += [to_text(region, region.name, indent + "    ", numbers) for region in node.regions]
    return "\n".join([*lines, f"{indent}  return {names(graph.results)}", f"{indent}}}"])


# ---- 7. Reverse mode ---------------------------------------------------------------------------
# pull_back goes through a graph backwards and adds up, for each value, the cotangents that its uses
# send. Nodes whose results all have ZERO are passed over. It returns the cotangents of the params,
# and the forward nodes: a loop that is pulled back makes room for one that keeps records.
def pull_back(b: Build, graph: Graph, cts: Any) -> tuple[list[Node], list[Cotangent]]:
    ct_of: dict[Value, Cotangent] = {}

    def send(values: tuple[Value, ...], cts: Any) -> None:
        for value, ct in zip(values, cts, strict=True):
            ct_of[value] = b.autograd_add(ct_of.get(value, ZERO), ct)

    send(graph.results, cts)
    forward: list[Node] = []
    for node in reversed(graph.nodes):
        cts, replaced = [ct_of.get(value, ZERO) for value in node.results], [node]
        if any(cts) and node.regions:
            replaced, operand_cts = pull_back_while(b, node, cts)
            send(node.operands, operand_cts)
        elif any(cts):
            send(node.operands, node.op.vjp(b, *cts, *node.operands))
        forward[:0] = replaced
    return forward, [ct_of.get(param, ZERO) for param in graph.params]


# Residuals are found, not declared: pull the region back, then see which forward values that reads.
# Its constants, which are cheap to repeat, and its invariants need no record. The others get a
# tape, a list with a record per trip; reading it defines the value again, under its old name.
class Transposed(NamedTuple):
    forward: list[Node]  # the nodes of the region, inner loops keeping records
    tapes: dict[Value, Value]  # by residual
    given: tuple[Value, ...]  # the cotangents of its results, but for ZEROs, from which …
    back: list[Node]  # … these nodes compute …
    cts: list[Cotangent]  # … those of its params


def transpose(region: Graph, live: Any, changing: int, count: Value, wanted: Any) -> Transposed:
    """Pull back a region whose `live` results have a cotangent; `wanted` params must get one."""
    flagged = zip(region.results, live, strict=True)
    result_cts = [Value(result.type) if is_live else ZERO for result, is_live in flagged]
    b = Build("back", result_cts)
    forward, cts = pull_back(b, region, result_cts)
    for i, is_wanted in enumerate(wanted):
        cts[i] = cts[i] or (b.zero(region.params[i]) if is_wanted else ZERO)
    b.nodes[:0] = [node for node in forward if node.op.name == "constant"]
    back = b.finish(*cts)
    known = {*back.params, *region.params[changing:]}.union(*(node.results for node in back.nodes))
    read = dict.fromkeys(value for node in back.nodes for value in node.operands)
    tapes = {value: Value(f"list[{value.type}]") for value in read if value not in known}
    get = OPS["list_get"]
    records = [Node(get, (tape, count), {}, (), (value,)) for value, tape in tapes.items()]
    return Transposed(forward, tapes, back.params, [*records, *back.nodes], cts)


# The adjoint of a While is a While: its `before` is the transpose of `before`, its `after` that of
# `after`, and what goes in and what comes out change places. It never tests the predicate again
# but counts down from the trip count T, a value: at count t it transposes `before` from record t,
# then, if 0 < t, `after` from record t - 1.
def pull_back_while(b: Build, node: Node, cts: Any) -> tuple[list[Node], list[Cotangent]]:
    w = while_parts(*node.regions, *node.operands)
    n, m = len(w.carry), len(node.results)  # so many are carried, so many forwarded
    count = Value("i64")

    # A result without cotangent may still have one in earlier trips: repeat until no more do.
    live: list[bool] = []
    found = [bool(ct) for ct in cts]
    while live != found:
        live = found
        before = transpose(w.before, [False, *live], n, count, wanted=())
        after = transpose(w.after, map(bool, before.cts[:n]), m, count, wanted=live)
        found = [bool(ct) for ct in after.cts[:m]]

    # Forward: the same loop, which now also counts its trips and pushes residuals on the tapes.
    before_tapes, after_tapes = before.tapes.values(), after.tapes.values()
    kept = (count, *before_tapes, *after_tapes)
    f = Build("before", (*w.before.params[:n], *kept, *w.before.params[n:]), before.forward)
    pushed = map(f.list_push, before_tapes, before.tapes)
    new_before = f.finish(*w.before.results, count, *pushed, *after_tapes)
    f = Build("after", (*w.after.params[:m], *kept, *w.after.params[m:]), after.forward)
    pushed = map(f.list_push, after_tapes, after.tapes)
    new_count = f.add(count, f.constant(value=1))
    new_after = f.finish(*w.after.results, new_count, *before_tapes, *pushed)
    f = Build("forward")
    empty = [f.list_new(element=value.type) for value in (*before.tapes, *after.tapes)]
    operands = (*w.carry, f.constant(value=0), *empty, *w.invariants)
    f.nodes.append(Node(node.op, operands, {}, (new_before, new_after), (*node.results, *kept)))

    # Backward: a loop over the cotangents, with sums for those of the invariants, and the count,
    # which `before` lowers on its way to `after`.
    touched = zip(w.invariants, before.cts[n:], after.cts[m:], strict=True)
    sums = [Value(v.type) if any(pair) else ZERO for v, *pair in touched]
    g = Build("before", (*before.given, *sums, count, *w.before.params[n:], *kept[1:]), before.back)
    totals = map(g.autograd_add, sums, before.cts[n:])
    going, new_count = g.less(g.constant(value=0), count), g.sub(count, g.constant(value=1))
    back_before = g.finish(going, *before.cts[:n], *totals, new_count)
    g = Build("after", (*after.given, *sums, count, *w.after.params[m:], *kept[1:]), after.back)
    totals = map(g.autograd_add, sums, after.cts[m:])
    back_after = g.finish(*after.cts[:m], *totals, count)
    flagged = zip(cts, node.results, live, strict=True)
    start = [ct or b.zero(like) for ct, like, is_live in flagged if is_live]
    start += [b.zero(v) for v, total in zip(w.invariants, sums, strict=True) if total]
    operands = (*start, count, *w.invariants, *kept[1:])
    given = iter(b.emit(node.op, operands, (back_before, back_after)))
    return f.nodes, [next(given) if ct else ZERO for ct in (*before.cts[:n], *sums)]


# ---- 8. Gradients ------------------------------------------------------------------------------
def gradient(graph: Graph) -> Graph:
    """Return the graph of the first result and its derivatives with respect to the params."""
    b = Build(f"gradient_of_{graph.name}", graph.params)
    seeds = [b.constant(value=1.0), *(ZERO for _ in graph.results[1:])]
    forward, cts = pull_back(b, graph, seeds)
    b.nodes[:0] = forward
    return b.finish(graph.results[0], *(ct or b.constant(value=0.0) for ct in cts))


def grad(fun: Fun, argnum: int = 0) -> Fun:
    """Return the derivative of a function: again a function, to call, trace or differentiate."""

    def grad_of_fun(*args: Any) -> Any:
        graph = gradient(trace(fun, len(args)))
        if not RECORDINGS:
            return run(graph, args)[1 + argnum]
        b = RECORDINGS[-1]  # while recording, a node means: emit it there
        values = run(graph, map(lift, args), lambda n, xs: b.emit(n.op, xs, n.regions, **n.attrs))
        return Tracer(values[1 + argnum], b)

    return grad_of_fun


# ---- 9. Does it hold? --------------------------------------------------------------------------
def square(x: Any) -> Any:
    return while_loop(lambda v: v < 8, lambda v: v * v, x)


def repeat(times: int, body_fun: Fun, x: Any) -> Any:
    return while_loop(lambda c: c[0] < times, lambda c: (c[0] + 1, body_fun(c[1])), (0, x))[1]


def leave_in_mid_body() -> Graph:
    """Build by hand: p = x * y; leave unless p < 10; x = p + 1."""
    x, y, p = Value("f64"), Value("f64"), Value("f64")
    before, after, b = Build("before", (x, y)), Build("after", (p, y)), Build("mid_body", (x, y))
    product = before.mul(x, y)
    going = before.less(product, before.constant(value=10.0))
    next_x = after.add(p, after.constant(value=1.0))
    regions = before.finish(going, product), after.finish(next_x)
    return b.finish(*b.emit(OPS["while"], (x, y), regions))


def check() -> None:
    """Compare with values and derivatives known from elsewhere."""

    def expect(graph: Graph, args: Any, *results: float) -> None:
        np.testing.assert_allclose(run(graph, args), results, rtol=1e-8)

    def expect_derivatives(fun: Fun, x: float, *derivatives: float) -> None:
        for value in derivatives:
            expect(trace(fun), [x], value)
            fun = grad(fun)

    expect_derivatives(square, 2.0, 16, 32, 48)
    expect_derivatives(square, 9.0, 9, 1, 0)  # no trips
    eighth_power = (2.14358881, 15.5897368, 99.207416, 541.13136)
    expect_derivatives(lambda x: repeat(3, lambda v: v * v, x), 1.1, *eighth_power)

    grow = trace(lambda x, a: while_loop(lambda v: v < 100, lambda v: v * a, x), 2)
    expect(gradient(grow), (1.5, 2.0), 192, 128, 672)

    mid_body = gradient(leave_in_mid_body())
    expect(mid_body, (1.0, 2.0), 14, 8, 17)
    expect(mid_body, (6.0, 2.0), 12, 2, 6)

    def nest(x: Any, w: Any, b: Any) -> Any:
        return repeat(5, lambda x: x + repeat(5, lambda v: w * v + b, x), x)

    expected = (2.197544312, 1.166325599, 4.141151083, 10.312187135)
    expect(gradient(trace(nest, 3)), (1.0, 0.5, 0.1), *expected)


if __name__ == "__main__":
    print(trace(square), gradient(trace(square)), sep="\n\n")
    check()
    print("\nThe gradients hold, to third order, nested, with no trips, and left in mid-body.")
