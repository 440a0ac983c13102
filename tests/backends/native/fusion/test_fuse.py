"""Loop nests: they give what the operations gave one by one, and what can be is in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import hypothesis
import numpy as np
import pytest
from tests.helpers.golden import FOLDER, Golden
from tests.helpers.graphs import traced
from tests.helpers.random_arrays import array_graphs

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.native.fusion import fuse, fusion_group
from wend.backends.native.module import fuse_array_loops, prepare_for_emission
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir import Graph, Node, Symbol, TensorType, verify
from wend.ops.build import Build
from wend.passes.dce import dce
from wend.passes.pipeline import OPTIMIZE, run_passes


def check(graph: Graph, args: Sequence[Any]) -> None:
    """Native code gives what NumPy's kernels give, but for rounding."""
    verify(fuse_array_loops(graph))
    with np.errstate(all="ignore"):
        expected, found = outcomes(graph, args)
        if isinstance(expected, IndexError):
            # What is of no use to any result may be left out, and its error with it.
            expected, found = outcomes(dce(graph), args)
    if isinstance(expected, IndexError):
        assert isinstance(found, IndexError), found
        return
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        eps = float(np.finfo(b.dtype).eps) if b.dtype.kind == "f" else 0.0
        size = max(float(np.max(np.abs(b), initial=0.0)), 1.0)
        np.testing.assert_allclose(a, b, rtol=1e4 * eps, atol=1e4 * eps * size, err_msg=str(graph))


def outcomes(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """What both backends give, or that a position is not there."""
    found: list[Any] = []
    for backend in (NUMPY, NATIVE):
        run = backend.compile(graph)
        try:
            found.append(run(args))
        except IndexError as error:
            found.append(error)
    return found


@hypothesis.given(array_graphs())
def test_random_graphs(drawn: tuple[Graph, list[Any]]) -> None:
    check(*drawn)


@hypothesis.given(array_graphs())
def test_random_graphs_in_small_nests(drawn: tuple[Graph, list[Any]]) -> None:
    with (
        mock.patch.multiple(fusion_group, _MAX_NODES=3, _MAX_ARRAYS=2, _MAX_JOINED=6),
        mock.patch.multiple(fusion_group, _MAX_OTHERS=1),
        mock.patch.multiple(fuse, _MAX_WAITING=2),
    ):
        check(*drawn)


@pytest.mark.parametrize("count", [30, 100])
def test_the_steps_for_an_array_are_in_one_nest(count: int) -> None:
    """All gradients come before the steps that read them; none is stored."""

    def loss(arrays: Any) -> Any:
        return sum(np.sum(a**2) for a in arrays)

    def step(*arrays: Any) -> Any:
        slopes = wend.grad(loss)(arrays)
        moved = [a - 0.1 * slope for a, slope in zip(arrays, slopes, strict=True)]
        return [np.tanh(a) for a in moved]

    rng = np.random.default_rng(0)
    found = nests(step, *(rng.standard_normal((5, 4)) for _ in range(count)))
    assert sum(len(nest.results) for nest in found) == count
    assert len(found) <= count / 20 + 1


def nests(fun: Callable[..., Any], *args: Any) -> list[Node]:
    """The nests that a function becomes, after checking what it gives."""
    same(fun, *args)
    graph = prepare_for_emission(traced(fun, *args, optimize=True))
    return [node for node in graph.walk() if node.op.name == "loop_nest"]


def same(fun: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Both backends give the same, or the same error."""
    expected, found = (
        given(wend.function(fun, backend=backend, **options), args)
        for backend in ("numpy", "native")
    )
    if isinstance(expected, str):
        assert found == expected
        return
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, strict=True)


def given(fun: Any, args: Sequence[Any]) -> Any:
    """What a function gives, as a tuple, or what it raises."""
    try:
        found = fun(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return found if isinstance(found, tuple) else (found,)


X = np.random.default_rng(0).uniform(-1.0, 1.0, (20, 30))


def softmax(x: Any) -> Any:
    e = wnp.exp(x - wnp.max(x, axis=1, keepdims=True))
    return e / wnp.sum(e, axis=1, keepdims=True)


def layer_norm(x: Any) -> Any:
    d = x - wnp.mean(x, axis=1, keepdims=True)
    return d / wnp.sqrt(wnp.mean(d * d, axis=1, keepdims=True) + 1e-5)


def in_windows(x: Any) -> Any:
    return x[1:-1] + 0.5 * (x[2:] - x[:-2])


ONE_NEST = {
    "a chain": lambda x: wnp.tanh(x * 2.0 + 1.0) - x / 3.0,
    "a value read twice": lambda x: (lambda y: y * (y + 1.0))(wnp.exp(x)),
    "several results": lambda x: (wnp.exp(x), wnp.exp(x) * 2.0, x > 0.0),
    "a column and a row": lambda x: x * x[:, :1] + x[0],
    "a transpose": lambda x: wnp.transpose(x[:, :20]) * x[:, :20],
    "parts": in_windows,
    "every second, backwards": lambda x: x[::-2] - x[::2],
    "a choice": lambda x: wnp.where(x > 0.0, x, wnp.float64(0.0)),
    "a sum of products": lambda x: wnp.sum(x * x),
    "a sum of each row": lambda x: wnp.sum(wnp.sin(x), axis=1),
    "a sum of each column": lambda x: wnp.sum(wnp.sin(x), axis=0),
    "several reductions": lambda x: (wnp.sum(x * x, axis=1), wnp.max(x, axis=1), wnp.sum(x, 0)),
    "what is added up and given": lambda x: (lambda y: (y, wnp.sum(y)))(wnp.sin(x)),
    "distances": lambda x: wnp.sum((x[:, None, :] - x[None, :5, :]) ** 2, axis=2),
    "softmax": softmax,
    "layer norm": layer_norm,
    "the largest of several": lambda x: wnp.max(x * x),
    "whether all": lambda x: wnp.all(x > -2.0, axis=1),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ONE_NEST)
def test_is_one_nest(name: str) -> None:
    assert len(nests(ONE_NEST[name], X)) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ONE_NEST)
def test_of_unknown_sizes(name: str) -> None:
    spec = wend.TensorSpec((None, None), np.float64)
    for x in (X, X[:20, :20], X[:1, :25].copy(), X[:0]):
        same(ONE_NEST[name], x, input_signature=[spec])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ONE_NEST)
def test_gradients(name: str) -> None:
    def total(x: Any) -> Any:
        found = ONE_NEST[name](x)
        found = found if isinstance(found, tuple) else (found,)
        return sum(wnp.sum(y * 1.5) for y in found if y.dtype == np.float64)

    if name != "whether all":
        for fun in (wend.grad(total), wend.grad(lambda x: wnp.sum(wend.grad(total)(x) ** 2))):
            same(fun, X)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", [(130, 150), (129, 400), (64, 128), (3, 500)])
def test_arrays_that_lie_across_each_other(sizes: tuple[int, int]) -> None:
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (2, *sizes))
    spec = wend.TensorSpec((None, None, None), np.float64)

    def fun(x: Any) -> Any:
        y = wnp.sin(wnp.transpose(x, (0, 2, 1)))
        return wnp.transpose(y, (0, 2, 1)) * x, wnp.sum(y * 2.0, axis=0), wnp.transpose(x)

    same(fun, x)
    same(fun, x, input_signature=[spec])


def test_a_value_of_one_nest_is_never_in_memory() -> None:
    def takes(fun: Callable[..., Any]) -> int:
        text = NATIVE.text(traced(fun, X, optimize=True))  # type: ignore[attr-defined]
        return text.count("= call noalias ptr @wend.take")

    assert takes(ONE_NEST["a chain"]) == 1
    assert takes(ONE_NEST["distances"]) == 1
    assert takes(ONE_NEST["a sum of products"]) == 0
    assert takes(layer_norm) == 1
    assert takes(softmax) == 2  # the exponentials of one row


def test_different_sizes_are_different_nests() -> None:
    assert len(nests(lambda x: wnp.sum(wnp.sin(wnp.exp(x[0])) * x), X)) == 2


def test_what_is_dear_is_computed_once() -> None:
    """A part of it is read elsewhere, so it is stored; what only moves elements is not."""

    def fun(x: Any) -> Any:
        y = wnp.exp(x)
        return y[1:] * y[:-1]

    first, second = nests(fun, X)
    assert [node.op.name for node in first.regions[0].nodes] == ["exp"]
    assert [node.op.name for node in second.regions[0].nodes] == ["slice", "slice", "mul"]


def test_what_is_read_is_not_written_meanwhile() -> None:
    """A part that is read after the array has changed is copied before."""

    def fun(x: Any) -> Any:
        x = x + 0.0
        first, rest = wnp.sin(x[0]), x[1:]
        x[0] = 7.0
        return rest * 2.0 + first, x

    assert len(nests(fun, X)) == 4  # one of them puts the row


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carries_are_written_in_place(trips: int) -> None:
    def fun(x: Any, y: Any) -> Any:
        for _ in range(trips):
            x, y = x + 0.1 * y, y - 0.1 * x
        return x, y

    (result, _) = wend.function(fun, backend="native")(X, -X)
    np.testing.assert_allclose(result, fun(X, -X)[0], rtol=1e-14)
    run = wend.function(
        lambda x, n: wend.fori_loop(0, n, lambda i, x: wnp.sin(x) * 1.5, x + 0.0), backend="native"
    )
    big = np.ones(1 << 16)
    executable = run.get_concrete_function(big, 3).compiled.executable("native")
    executable((big, trips))
    # One array, and room for the pool's next.
    assert max(len(workspace.pool) for workspace in executable._workspaces.all()) < 2 * big.nbytes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 7, 511, 512, 513, 100_003])
def test_sums_are_as_near_as_numpys(dtype: Any, size: int) -> None:
    """D21: twice NumPy's error, or 8 ε of the sum of sizes."""
    rng = np.random.default_rng(size)
    square = wend.function(lambda x: wnp.sum(x * x), backend="native")
    for x in (rng.uniform(0.0, 1.0, size), rng.uniform(0.1, 0.100001, size), rng.normal(size=size)):
        x = x.astype(dtype)
        terms = (x * x).astype(np.longdouble)
        exact, eps = terms.sum(), np.finfo(dtype).eps
        error = abs(np.longdouble(square(x)) - exact)
        assert error <= max(2 * abs(np.sum(x * x) - exact), 8 * eps * terms.sum())


def test_sums_of_what_is_infinite() -> None:
    total = wend.function(lambda x: wnp.sum(x * 2.0), backend="native")
    x = np.ones(2000)
    x[700] = np.inf
    assert total(x) == np.inf
    x[1900] = -np.inf
    assert np.isnan(total(x))
    assert total(np.full(2000, 1e308)) == np.inf
    largest = wend.function(lambda x: (wnp.max(x), wnp.min(x * 1.0)), backend="native")
    assert largest(x) == (np.inf, -np.inf)
    x[3] = np.nan
    assert all(map(np.isnan, largest(x)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 31, 127, 128, 129, 1001])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sum_of_what_lies_in_memory_is_numpys(dtype: Any, size: int) -> None:
    x = np.random.default_rng(size).normal(size=(7, size)).astype(dtype)
    for fun in (wnp.sum, lambda x: wnp.sum(x, axis=0), lambda x: wnp.sum(x, axis=1) * 1.0):
        np.testing.assert_array_equal(wend.function(fun, backend="native")(x), fun(x))


def test_nothing_has_no_largest() -> None:
    spec = wend.TensorSpec((None, None), np.float64)
    fun = wend.function(
        lambda x: wnp.max(wnp.sin(x), axis=1), input_signature=[spec], backend="native"
    )
    with pytest.raises(
        ValueError, match="zero-size array to reduction operation maximum"
    ) as caught:
        fun(np.zeros((3, 0)))
    assert any("reduce_max at" in note and "test_fuse.py" in note for note in metadata(caught))


def test_sizes_that_differ_are_told_by_the_operation() -> None:
    """Arrays whose sizes a graph says are equal."""
    b = Build("sums")
    x, y = (b.param(TensorType(np.dtype("f8"), (Symbol("n"),))) for _ in range(2))
    graph = b.finish([b.mul(b.sin(x), y)])
    with pytest.raises(
        ValueError, match=r"could not be broadcast together.*\(3,\) \(4,\)"
    ) as caught:
        NATIVE.compile(graph)([np.zeros(3), np.zeros(4)])
    assert any("in mul" in note for note in metadata(caught))


def metadata(caught: Any) -> list[str]:
    return getattr(caught.value, "__notes__", [])


FILES = sorted((FOLDER / "fusion").glob("*.wir"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_texts(file: Any, golden: Golden) -> None:
    golden.check_pass(file, fuse_array_loops)


def test_there_are_texts() -> None:
    assert len(FILES) == 2


def test_dumps_show_nests(tmp_path: Any) -> None:
    with wend.config(backend="native", dump=str(tmp_path)):
        wend.function(softmax)(X)
    (file,) = tmp_path.glob("*/*-fusion.wir")
    assert "= loop_nest(" in file.read_text(encoding="utf-8")


def test_products_are_added_in_place_beside_nests_that_read_the_same() -> None:
    """The gradient of a matrix in a loop; what comes from a trip is summed up for a bias, too."""

    def fun(w: Any, b: Any, xs: Any) -> Any:
        total = 0.0
        for x in xs:
            total = total + wnp.tanh(x @ w + b).sum()
        return total

    rng = np.random.default_rng(3)
    given = [rng.normal(size=shape) for shape in ((20, 30), (30,), (6, 16, 20))]
    grad = wend.grad(fun, argnums=(0, 1))
    graph = run_passes(grad.get_concrete_function(*given).graph, OPTIMIZE)
    assert "call void @wend.add_small_product.f64" in NATIVE.text(graph)
    with wend.config(backend="numpy"):
        expected = grad(*given)
    with wend.config(backend="native"):
        for found, right in zip(grad(*given), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_number_that_is_turned(backend: str) -> None:
    """What is moved about is one number, of which the sizes are not known."""

    def fun(x: Any) -> Any:
        b = wnp.broadcast_to(wnp.asarray(2.0), (x.shape[0], 3))
        return b.T, wnp.zeros((x.shape[0], 4)).T[::-1]

    spec = wend.TensorSpec([None], float)
    turned, zeros = wend.function(fun, input_signature=[spec], backend=backend)(np.ones(40))
    np.testing.assert_array_equal(turned, np.full((3, 40), 2.0))
    np.testing.assert_array_equal(zeros, np.zeros((4, 40)))


def test_arrays_of_unknown_rank_are_left_alone() -> None:
    def fun(x: Any, y: Any, i: Any) -> Any:
        return wnp.sum(wnp.sin(x) * y), wnp.exp(x), wnp.sum(x * x), y[i]

    specs = [
        wend.TensorSpec(None, float),
        wend.TensorSpec((None,), float),
        wend.TensorSpec((None,), int),
    ]
    for x in (X[:, :4], np.ones(4), np.float64(2.0)):
        same(fun, x, np.arange(4.0), np.array([1, -1]), input_signature=specs)


def test_rows_of_one_axis_less() -> None:
    """What is computed of rows may be read through axes of one element that it has got since."""

    def fun(x: Any) -> Any:
        total = wnp.sum(x * x, axis=1)
        scale = wnp.sqrt(total[:, None][:, 0] + 1.0)[:, None]
        return x / scale, wnp.tanh(total[:, None])[:, 0] * 2.0

    same(fun, X)
    same(fun, X, input_signature=[wend.TensorSpec((None, None), float)])


def test_array_operations_fuse_across_a_check_unless_they_may_fail() -> None:
    def fun(x: Any, n: Any) -> Any:
        y = wnp.exp(x)
        assert n > 0
        return wnp.sum(y * 2.0)

    def looked_up(x: Any, i: Any, n: Any) -> Any:
        y = x[i] + 1.0
        assert n > 0
        return wnp.sum(y * 2.0)

    x, i = np.ones(1000), np.arange(1000)
    for program, args, nests in ((fun, (x, 1), 1), (looked_up, (x, i, 1), 2)):
        graph = fuse_array_loops(run_passes(traced(program, *args), OPTIMIZE))
        assert [node.op.name for node in graph.nodes].count("loop_nest") == nests
    compiled = wend.function(looked_up, backend="native")
    with pytest.raises(IndexError):  # as in the program, though the check would fail, too
        compiled(x, i + 1, 0)
    with pytest.raises(AssertionError):
        compiled(x, i, 0)


def solve_before_and_after(a: Any, b: Any, k: Any) -> Any:
    x = np.linalg.solve(a, b)
    row = b[k] * 2.0
    return x, row, np.linalg.solve(b, a)


def solve_in_a_loop_after(a: Any, b: Any, k: Any) -> Any:
    row = b[k]
    for _ in range(3):
        a = np.linalg.solve(b, a)
    return row, a


@pytest.mark.parametrize("fun", [solve_before_and_after, solve_in_a_loop_after])
@pytest.mark.parametrize("k", [0, 3])
@pytest.mark.parametrize("is_singular", [False, True])
def test_the_first_error_of_the_program_is_raised(fun: Any, k: int, is_singular: bool) -> None:
    a = np.eye(3) + 0.1
    args = a, np.zeros((3, 3)) if is_singular else a, np.array([k])
    compiled = wend.function(fun, backend="native")
    try:
        expected = fun(*args)
    except (IndexError, np.linalg.LinAlgError) as error:
        with pytest.raises(type(error)):
            compiled(*args)
    else:
        for x, y in zip(compiled(*args), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
