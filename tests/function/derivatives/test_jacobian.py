"""`jacfwd`, `jacrev`, `hessian`: interface, shapes, one loop, and what they agree with."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.graphs import check_graph, traced

import wend
import wend.numpy as wnp
from wend.autodiff import jacobian
from wend.autodiff.jacobian import jacobian_by_columns, jacobian_by_rows
from wend.backends.build import executable, passes_of
from wend.base.errors import NotDifferentiableError, StructureError
from wend.passes.pipeline import CANONICALIZE, OPTIMIZE, LazyOptimized, run_passes

BOTH = pytest.mark.parametrize("transform", [wend.jacfwd, wend.jacrev])
X = np.array([0.3, -0.4, 1.2])
MATRIX = np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]])


def measured(fun, x, step=1e-6):
    """The Jacobian by central differences."""
    x = np.asarray(x, float)
    columns = []
    for place in np.ndindex(x.shape):
        move = np.zeros(x.shape)
        move[place] = step
        columns.append((np.asarray(fun((x + move)[()])) - fun((x - move)[()])) / (2 * step))
    return np.moveaxis(np.array(columns), 0, -1).reshape(columns[0].shape + x.shape)


@pytest.mark.sampled(3)
@BOTH
@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: wnp.sin(x), 0.5),
        (lambda x: x * wnp.sum(x * x), X),
        (lambda x: wnp.sum(wnp.exp(x)), X),
        (lambda x: wnp.stack([x, x * x]), 2.0),
        (lambda x: wnp.outer(x, wnp.sin(x)), X),
        (lambda x: x @ x.T, np.arange(6.0).reshape(2, 3)),
        (lambda x: wend.fori_loop(0, 4, lambda i, v: wnp.tanh(v) * v[0] + x, x), X),
        (lambda x: x[:0] * 2.0, X),
        (lambda x: wnp.linalg.inv(x), np.array([[2.0, 1.0], [0.5, 3.0]])),
    ],
)
def test_jacobian(transform, fun, x):
    found, expected = transform(fun)(x), measured(fun, x)
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@BOTH
def test_an_empty_argument(transform):
    assert transform(lambda x: wnp.sum(x) + wnp.ones(2))(np.zeros((0, 3))).shape == (2, 0, 3)


@BOTH
def test_pytrees(transform):
    def fun(p, y):
        return {"a": p["x"] * y, "b": (wnp.sum(p["x"]) * p["s"], None)}

    p = {"x": X, "s": 2.0, "n": 3, "i": np.arange(2)}
    found = transform(fun)(p, 5.0)
    assert sorted(found) == ["a", "b"]
    assert sorted(found["a"]) == ["i", "n", "s", "x"]
    np.testing.assert_allclose(found["a"]["x"], 5 * np.eye(3))
    np.testing.assert_allclose(found["a"]["s"], np.zeros(3))
    np.testing.assert_allclose(found["b"][0]["x"], np.full(3, 2.0))
    np.testing.assert_allclose(found["b"][0]["s"], np.sum(X))
    assert found["b"][1] is found["a"]["n"] is found["a"]["i"] is None
    by_both = transform(fun, (1, 0))(p, 5.0)
    np.testing.assert_allclose(by_both["a"][0], X)
    np.testing.assert_allclose(by_both["a"][1]["x"], found["a"]["x"])


@BOTH
def test_argnums_keywords_and_aux(transform):
    def fun(x, y, *, k=1.0):
        return x * y * k, {"k": k, "n": 3}

    found, aux = transform(fun, 1, has_aux=True)(2.0, X, k=3.0)
    np.testing.assert_allclose(found, 6 * np.eye(3))
    assert aux == {"k": 3.0, "n": 3}
    with pytest.raises(StructureError, match="pair"):
        transform(lambda x: x, has_aux=True)(2.0)
    with pytest.raises(TypeError, match="argnums=3"):
        transform(fun, 3, has_aux=True)(2.0, X)


def test_a_pass_of_array_operations_is_batched():
    """There is one product for all columns, and one loop makes the trips of all of them."""

    def straight(x):
        return wnp.tanh(MATRIX @ x) * wnp.sum(x)

    def loops(x):
        return wend.while_loop(lambda v: wnp.sum(v) < 9.0, lambda v: MATRIX @ v + 1.0, x)

    for transform in (wend.jacfwd, wend.jacrev):
        graph = run_passes(traced(transform(straight), X), OPTIMIZE)
        check_graph(graph)
        assert (graph.count("while"), graph.count("dot_general")) == (0, 2)
    graph = run_passes(traced(wend.jacfwd(loops), X), OPTIMIZE)
    assert (graph.count("while"), graph.count("dot_general")) == (1, 2)
    assert graph.count("list_get") == 0  # no records
    graph = run_passes(traced(wend.jacrev(loops), X), OPTIMIZE)
    assert (graph.count("while"), graph.count("dot_general")) == (2, 2)
    hessian = wend.hessian(lambda x: wnp.sum(wnp.sin(loops(x))))
    assert run_passes(traced(hessian, X), OPTIMIZE).count("while") == 2


@BOTH
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: wnp.linalg.inv(wnp.diag(x) + 1.0),
        lambda x: x[wnp.argsort(x)] * wnp.cumsum(x),
        lambda x: wnp.broadcast_to(x, (1 << 23, 3)).sum(0) * x,
    ],
    ids=["no rule", "positions", "memory"],
)
def test_other_passes_are_one_while(transform, fun):
    graph = traced(transform(fun), X)
    assert (graph.count("parallel_map"), graph.count("while")) == (0, 1)


@BOTH
def test_a_single_column_needs_no_loop(transform):
    graph = traced(transform(lambda x: wnp.sin(x) * x), 1.0)
    assert graph.count("parallel_map") == graph.count("while") == 0


def of_tree(x):
    return x[:2] * wnp.sum(x), wnp.outer(x, wnp.cos(x)), x[0] * 2.0


BY_MODE = pytest.mark.parametrize("build", [jacobian_by_columns, jacobian_by_rows])


@pytest.mark.sampled(3)
@BY_MODE
@pytest.mark.parametrize(
    "fun",
    [
        lambda x, m: of_tree(x),
        lambda x, m: x[:0] * wnp.sum(x),
        lambda x, m: wnp.tanh(m @ wnp.tanh(m @ x)),
        lambda x, m: wend.fori_loop(0, 9, lambda i, v: wnp.sin(m @ v) + x, x),
        lambda x, m: wend.while_loop(
            lambda v: wnp.sum(v * v) > 0.1, lambda v: 0.7 * v * v[::-1], x
        ),
        lambda x, m: wend.cond(x[0] < 1.0, lambda: x * x, lambda: wnp.exp(x)),
        lambda x, m: wend.grad(lambda y: wnp.sum(wend.fori_loop(0, 5, lambda i, v: v * y, y)))(x),
        lambda x, m: wend.jacrev(lambda y: wnp.sin(y) * wnp.sum(y))(x).sum(0),
    ],
    ids=["tree", "empty", "products", "for", "while", "cond", "gradient", "jacobian"],
)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_batched_and_looped_agree(build, fun, backend, monkeypatch):
    """To rounding; in strict mode to the last bit, as nothing is batched then."""
    graph = run_passes(traced(fun, X, MATRIX), CANONICALIZE)
    outputs = tuple(range(len(graph.results)))
    batched = build(graph, (0,), outputs)
    monkeypatch.setattr(jacobian, "_MAX_BATCHED_NUMBERS", 0)
    looped = build(graph, (0,), outputs)
    for is_strict in (False, True):
        with wend.config(strict=is_strict):
            found, expected = (
                executable(backend, LazyOptimized(one, passes_of(backend)))([X, MATRIX])
                for one in (batched, looped)
            )
        for x, y in zip(found, expected, strict=True):
            assert x.dtype == y.dtype
            if is_strict:
                np.testing.assert_array_equal(x, y)
            else:
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


def test_jacrev_runs_the_function_once():
    def fun(x):
        return wnp.exp(wnp.linalg.inv(x))

    graph = run_passes(traced(wend.jacrev(fun), np.eye(2)), OPTIMIZE)
    (loop,) = [node for node in graph.nodes if node.op.name == "while"]
    assert "exp" not in [node.op.name for region in loop.regions for node in region.walk()]


@BOTH
def test_dtypes(transform):
    x, y = np.ones(2, np.float32), np.ones(2)
    found = transform(lambda x, y: (x * 2, y * x.astype("f8")), (0, 1))(x, y)
    if transform is wend.jacrev:
        wanted = [["f4", "f8"], ["f4", "f8"]]
    else:
        wanted = [["f4", "f4"], ["f8", "f8"]]
    assert [[part.dtype for part in row] for row in found] == wanted


@BOTH
def test_python_integers_become_floats(transform):
    assert transform(lambda x: x * x)(3) == 6.0
    assert wend.hessian(lambda x: x * x * x)(2) == 12.0


@BOTH
def test_effects_happen_once(transform, capsys):
    def fun(x):
        wend.print("x is {}", x)
        return x * x

    np.testing.assert_allclose(transform(fun)(X), np.diag(2 * X))
    assert capsys.readouterr().out.count("x is") == 1


@BOTH
def test_unknown_sizes(transform):
    """Even the size of the Jacobian is only known when it runs."""

    def fun(x, m):
        return (m @ x, wnp.sum(x * x))

    spec = wend.TensorSpec
    whole = wend.function(transform(fun), input_signature=[spec([None]), spec([None, None])])
    check_graph(whole.get_concrete_function().graph)
    for rows, columns in ((2, 3), (1, 1), (4, 2)):
        m, x = np.arange(float(rows * columns)).reshape(rows, columns), np.arange(float(columns))
        first, second = whole(x, m)
        np.testing.assert_allclose(first, m)
        np.testing.assert_allclose(second, 2 * x)
    unconnected = wend.function(
        transform(lambda x, m: wnp.floor(x), 1), input_signature=[spec([None]), spec([None, None])]
    )
    assert unconnected(np.ones(2), np.ones((3, 4))).shape == (2, 3, 4)


def test_every_composition():
    def fun(x):
        return wend.fori_loop(0, 3, lambda i, v: wnp.sin(v) * v[::-1], x)

    modes = (wend.jacfwd, wend.jacrev)
    found = [outer(inner(fun))(X) for outer in modes for inner in modes]
    expected = measured(wend.jacrev(fun), X)
    assert expected.shape == (3, 3, 3)
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wend.hessian(fun)(X), expected, rtol=1e-6, atol=1e-7)


def test_third_derivatives_through_a_list_that_is_stacked():
    """Where a part of a pass stays in the map, so does what reads values of unknown sizes."""

    def fun(x):
        out = []
        for _ in range(3):
            x = wnp.sin(MATRIX @ x)
            out.append(x)
        return wnp.sum(wnp.stack(out) ** 2)

    third = wend.jacrev(wend.jacfwd(wend.jacrev(fun)))(X)
    np.testing.assert_allclose(third, measured(wend.hessian(fun), X), rtol=1e-5, atol=1e-6)


def test_hessian():
    def fun(x):
        v, steps = x, 0
        while wnp.sum(v * v) > 0.1:
            v = 0.8 * v * wnp.cos(v[::-1])
            steps += 1
        return wnp.sum(v * v * x)

    expected = measured(wend.grad(fun), X)
    found = wend.hessian(fun)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found, found.T, rtol=1e-10)
    third = wend.jacfwd(wend.hessian(fun))(X)
    np.testing.assert_allclose(third, measured(wend.hessian(fun), X), rtol=1e-5, atol=1e-6)


def test_hessian_of_two_arguments():
    def fun(x, y):
        return wnp.sum(x * x) * y**3

    (xx, xy), (yx, yy) = wend.hessian(fun, (0, 1))(X, 2.0)
    np.testing.assert_allclose(xx, 16 * np.eye(3))
    np.testing.assert_allclose(xy, 24 * X)
    np.testing.assert_allclose(yx, 24 * X)
    np.testing.assert_allclose(yy, 12 * np.sum(X * X))
    found, aux = wend.hessian(lambda x: (x**3, {"x": x}), has_aux=True)(2.0)
    assert (found, aux) == (12.0, {"x": 2.0})


def test_inside_functions_loops_and_gradients():
    def fun(x):
        return x * wnp.sum(x * x)

    @wend.function
    def newton(x):
        def step(i, x):
            return x - wnp.linalg.solve(wend.jacfwd(fun)(x), fun(x) - 1.0)

        return wend.fori_loop(0, 20, step, x)

    np.testing.assert_allclose(fun(newton(np.ones(3))), 1.0)

    def trace(x):
        return wnp.trace(wend.jacrev(fun)(x))

    np.testing.assert_allclose(wend.grad(trace)(X), measured(trace, X), rtol=1e-6)

    def directional(x):
        return wend.jvp(wend.jacfwd(fun), (x,), (np.ones(3),))[1]

    np.testing.assert_allclose(directional(X), wend.hessian(fun)(X).sum(-1), rtol=1e-12)


def test_of_a_decorated_function():
    fun = wend.function(lambda x, power: x**power, static_argnums=1, backend="numpy")
    jacobian = wend.jacfwd(fun)
    np.testing.assert_allclose(jacobian(X, 2), np.diag(2 * X))
    assert jacobian.name == "jacfwd_<lambda>"
    spec = wend.function(lambda x: x * x, input_signature=[wend.TensorSpec([None])])
    for size in (1, 2, 3):
        np.testing.assert_allclose(wend.jacrev(spec)(X[:size]), np.diag(2 * X[:size]))
    assert wend.hessian(spec)(X).shape == (3, 3, 3)


def test_native_scalars():
    def fun(x):
        return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)

    with wend.config(backend="native"):
        assert wend.hessian(fun)(2.0) == 48.0
        assert wend.jacfwd(fun)(2.0) == wend.jacrev(fun)(2.0) == 32.0


def test_complex_numbers():
    z = 1.0 + 2.0j
    assert wend.jacrev(lambda z: wnp.real(z * z))(z) == wend.grad(lambda z: wnp.real(z * z))(z)
    np.testing.assert_allclose(wend.jacfwd(lambda x: x * x * z)(X), np.diag(2 * X * z))
    with pytest.raises(NotDifferentiableError, match=r"argument z is c128\[\].*\n.*jacrev"):
        wend.jacfwd(lambda z: z * z)(z)
    with pytest.raises(NotDifferentiableError, match=r"result is c128\[\].*\n.*jacfwd"):
        wend.jacrev(lambda z: z * z)(z)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_integers_are_refused(name):
    transform = getattr(wend, name)

    def fun(x):
        return x * 1.0

    for bad in (np.arange(3), True, np.int64(2)):
        with pytest.raises(
            NotDifferentiableError, match=rf"{name} of fun: argument 0 .*\n.*astype"
        ):
            transform(fun)(bad)
    with pytest.raises(NotDifferentiableError, match=rf"{name} of .*: result\['n'\] is i64\[\]"):
        transform(lambda x: {"x": x, "n": 3})(1.0)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_an_argument_changed_in_place_is_refused(name):
    def fun(x):
        x[0] = 2.0
        return x

    with pytest.raises(NotDifferentiableError, match="changed in place"):
        getattr(wend, name)(fun)(np.ones(2))
