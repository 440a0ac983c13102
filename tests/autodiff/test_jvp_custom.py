"""Forward mode through calls with rules, by itself: results and tangents of one node."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph, traced
from wend.autodiff.jvp_custom import jvp_custom_jvp, jvp_custom_vjp
from wend.autodiff.vjp import vjp
from wend.backends.numpy.backend import BACKEND
from wend.base.errors import NotDifferentiableError
from wend.base.zero import ZERO
from wend.ir.rewrite import copy_node, inline
from wend.ir.types import is_differentiable
from wend.ops.build import Build
from wend.passes.pipeline import OPTIMIZE, run_passes


def jvp_call(b, graph, operands, tangents):
    """A graph's values and tangents, by reverse mode twice."""
    moving = [k for k, tangent in enumerate(tangents) if tangent is not ZERO]
    floats = [k for k, type in enumerate(graph.result_types) if is_differentiable(type)]
    if not moving or not floats:
        return b.call(graph, operands).results, [ZERO] * len(graph.results)
    pair = vjp(graph, moving, floats)
    values = inline(pair.forward, operands, b.nodes)
    results, residuals = values[: len(graph.results)], values[len(graph.results) :]
    first = len(residuals)
    again = vjp(pair.backward, range(first, first + len(floats)), range(len(pair.backward.results)))
    zeros = [b.zeros_like(results[k]) for k in floats]
    kept = inline(again.forward, [*residuals, *zeros], b.nodes)[len(pair.backward.results) :]
    given = [tangents[k] for k, found in zip(moving, pair.connected, strict=True) if found]
    found = iter(inline(again.backward, [*kept, *given], b.nodes))
    moved = {
        k: next(found)
        for k, is_connected in zip(floats, again.connected, strict=True)
        if is_connected
    }
    return results, [moved.get(k, ZERO) for k in range(len(results))]


def pushed(fun, args, tangents):
    """The results and tangents of the one node of a function, run; None where there is none."""
    graph = traced(fun, *args)
    (node,) = graph.nodes
    b = Build("pushed")
    params = [b.param(param.type) for param in graph.params]
    moves = [
        b.param(param.type) if t is not None else ZERO
        for param, t in zip(graph.params, tangents, strict=True)
    ]
    places = dict(zip(graph.params, params, strict=True))
    copy = copy_node(node, [places[operand] for operand in node.operands])
    by_operand = dict(zip(params, moves, strict=True))
    given = [by_operand[operand] for operand in copy.operands]
    if node.op.name == "custom_jvp":
        results, found = jvp_custom_jvp(b, copy, given)
    else:
        results, found = jvp_custom_vjp(jvp_call, b, copy, given)
    order = {result: k for k, result in enumerate(node.results)}
    used = [order[value] for value in graph.results]
    moved = [found[k] for k in used if found[k] is not ZERO]
    whole = b.finish([*(results[k] for k in used), *moved])
    check_graph(whole)
    values = [*args, *(t for t in tangents if t is not None)]
    out = list(BACKEND.compile(run_passes(whole, OPTIMIZE))(values))
    rest = iter(out[len(used) :])
    return out[: len(used)], [None if found[k] is ZERO else next(rest) for k in used]


@wend.custom_vjp
def by_vjp(x, y):
    return wnp.sin(x) * y, x + 0.0 * y


by_vjp.defvjp(
    lambda x, y: (by_vjp(x, y), (x, y)),
    lambda r, cts: (3.0 * cts[0] * r[1] * wnp.cos(r[0]) + cts[1], 5.0 * cts[0] * wnp.sin(r[0])),
)


@wend.custom_jvp
def by_jvp(x, y):
    return wnp.sin(x) * y, x + 0.0 * y


@by_jvp.defjvp
def _jvp(primals, tangents):
    x, y = primals
    t, s = tangents
    return by_jvp(x, y), (3.0 * t * y * wnp.cos(x) + 5.0 * s * wnp.sin(x), t)


X, Y = np.float64(0.4), np.float64(2.0)
T, S = np.float64(0.7), np.float64(-1.3)
VALUES = [np.sin(X) * Y, X]


@pytest.mark.parametrize("fun", [by_vjp, by_jvp], ids=["vjp", "jvp"])
def test_the_rule_is_what_moves(fun):
    call = lambda x, y: fun(x, y)  # noqa: E731
    by_x, by_y = 3 * Y * np.cos(X), 5 * np.sin(X)
    values, tangents = pushed(call, (X, Y), (T, S))
    np.testing.assert_allclose(values, VALUES)
    np.testing.assert_allclose(tangents, [by_x * T + by_y * S, T])
    _, tangents = pushed(call, (X, Y), (T, None))
    np.testing.assert_allclose(tangents, [by_x * T, T])
    _, tangents = pushed(call, (X, Y), (None, S))
    np.testing.assert_allclose(tangents, [by_y * S, 0.0])
    values, tangents = pushed(call, (X, Y), (None, None))
    np.testing.assert_allclose(values, VALUES)
    assert tangents == [None, None]


def test_vectors_of_unknown_size():
    @wend.custom_vjp
    def fun(v):
        return v * 2.0

    fun.defvjp(lambda v: (v * 2.0, v), lambda v, ct: (ct * wnp.sum(v),))
    whole = wend.function(lambda v: fun(v), input_signature=[wend.TensorSpec([None])])
    graph = whole.get_concrete_function().graph
    (node,) = graph.nodes
    b = Build("pushed")
    x, t = (b.param(graph.params[0].type) for _ in range(2))
    results, tangents = jvp_custom_vjp(jvp_call, b, copy_node(node, [x]), [t])
    done = run_passes(check_graph(b.finish([*results, *tangents])), OPTIMIZE)
    v = np.array([1.0, 2.0, 4.0])
    value, moved = BACKEND.compile(done)([v, v])
    np.testing.assert_allclose(value, v * 2)
    np.testing.assert_allclose(moved, v * 7)


def test_forward_over_reverse():
    """The tangent of a gradient: residuals of the forward form move as they are computed."""

    @wend.custom_vjp
    def fun(x):
        return wnp.sin(x)

    fun.defvjp(lambda x: (fun(x), wnp.cos(x)), lambda r, ct: (3.0 * ct * r,))
    joint = traced(wend.value_and_grad(fun), X)
    b = Build("whole")
    x, t = (b.param(joint.params[0].type) for _ in range(2))
    (called,) = joint.nodes
    values, moved = {called.regions[0].params[0]: x}, {x: t}
    for node in called.regions[0].nodes:
        copy = copy_node(node, [values[operand] for operand in node.operands])
        given = [moved.get(operand, ZERO) for operand in copy.operands]
        if node.op.name == "custom_vjp_forward":
            results, tangents = jvp_custom_vjp(jvp_call, b, copy, given)
        elif node.op.name == "call":
            results, tangents = jvp_call(b, copy.regions[0], copy.operands, given)
        else:
            b.nodes.append(copy)
            results, tangents = copy.results, [ZERO] * len(copy.results)
        values.update(zip(node.results, results, strict=True))
        moved.update((r, t) for r, t in zip(results, tangents, strict=True) if t is not ZERO)
    wanted = [values[result] for result in called.regions[0].results]
    graph = check_graph(b.finish([*wanted, *(moved[value] for value in wanted)]))
    found = BACKEND.compile(run_passes(graph, OPTIMIZE))([X, T])
    expected = [np.sin(X), 3 * np.cos(X), 3 * np.cos(X) * T, -3 * np.sin(X) * T]
    np.testing.assert_allclose(found, expected)


def test_a_bwd_that_is_not_linear_is_refused():
    fun = wend.custom_vjp(lambda x: x * 1.0)
    fun.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (wnp.clip(ct, -1.0, 1.0),))
    with pytest.raises(NotDifferentiableError, match="bwd is not linear in the cotangents"):
        pushed(lambda x: fun(x), (X,), (T,))


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_what_is_closed_over_is_refused(kind):
    def outer(x, w):
        if kind == "vjp":
            fun = wend.custom_vjp(lambda y: y * w)
            fun.defvjp(lambda y: (y * w, None), lambda _, ct: (ct * 2.0,))
        else:
            fun = wend.custom_jvp(lambda y: y * w)
            fun.defjvp(lambda p, t: (p[0] * w, 2.0 * t[0]))
        return fun(x)

    assert pushed(outer, (X, Y), (T, None))[1] == [2 * T]
    with pytest.raises(NotDifferentiableError, match="closes over"):
        pushed(outer, (X, Y), (T, S))
