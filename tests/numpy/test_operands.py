"""What NumPy refuses is refused with an error of its class: at once, and by compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.arrays import quiet
from tests.helpers.bad_calls import BAD_CALLS
from wend.backends.native.module import prepare_for_emission
from wend.ir import Graph, Node, Value
from wend.passes.pipeline import OPTIMIZE, run_passes


def error_of(call: Any, args: Any) -> Exception:
    try:
        quiet(lambda: call(*(x.copy() if isinstance(x, np.ndarray) else x for x in args)))
    except Exception as error:
        return error
    raise AssertionError("no error")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("call", "args"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_the_class_is_numpys(call: Any, args: Any) -> None:
    expected = error_of(call, args)
    kinds = (c for c in type(expected).__mro__ if c.__module__ == "builtins")
    is_linalg = isinstance(expected, np.linalg.LinAlgError)
    kind = np.linalg.LinAlgError if is_linalg else next(kinds)
    for options in ({"backend": "numpy"}, {"backend": "native"}, {"eager": True}):
        with wend.config(**options):
            error = error_of(wend.function(call), args)
        assert isinstance(error, kind), f"{options}: {error!r}, in NumPy {expected!r}"


def function_of_unknown_sizes(fun: Any, args: Any, backend: str) -> Any:
    """Return a function with a trace for arguments of any sizes; None if there can be none."""
    arrays = [np.asarray(x) for x in args]
    signature = [wend.TensorSpec((None,) * x.ndim, x.dtype) for x in arrays]
    function = wend.function(fun, input_signature=signature, backend=backend)
    try:
        function.get_concrete_function()
    except Exception:
        return None
    return function


def fails(call: Any, args: Any) -> bool:
    try:
        quiet(lambda: call(*args))
    except Exception:
        return True
    return False


@pytest.mark.sampled(30)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("call", "args"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_what_precedes_an_error_of_the_run_is_seen(call: Any, args: Any, backend: str) -> None:
    """Where a run finds the error, what was written before it is in the caller's array."""

    def fun(out: Any, *args: Any) -> Any:
        out[0] = 5.0
        result = call(*args)
        out[1] = 7.0
        return result

    out, args = np.zeros(2), [np.asarray(x)[()] for x in args]
    function = function_of_unknown_sizes(fun, (out, *args), backend)
    if function is None or not fails(call, args):
        return
    error = error_of(lambda *args: function(out, *args), args)
    expected = error_of(call, args)
    kinds = [c for c in type(expected).__mro__ if c.__module__ == "builtins"]
    assert isinstance(error, kinds[0]), f"{error!r}, in NumPy {expected!r}"
    assert out.tolist() == [5.0, 0.0]


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("call", "args"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_handlers_of_errors_of_the_run_catch_them(call: Any, args: Any, backend: str) -> None:
    """A handler catches an error that a run finds, or is refused; it is never passed by."""

    def fun(*args: Any) -> Any:
        try:
            result = call(*args)
        except (ValueError, TypeError, LookupError, ArithmeticError, np.linalg.LinAlgError):
            return -1.0
        return 1.0 + 0.0 * np.sum(np.asarray(result[0] if type(result) is tuple else result))

    args = [np.asarray(x)[()] for x in args]
    function = function_of_unknown_sizes(fun, args, backend)
    if function is None or not fails(call, args):
        return
    assert quiet(lambda: function(*args)) == -1.0


def entry(v: Any, x: Any) -> None:
    v[0] = x


def part(v: Any, x: Any) -> None:
    v[:2] = x


def whole(v: Any, x: Any) -> None:
    v[...] = x


def selected(v: Any, x: Any) -> None:
    v[v != 0] = x


def positions(v: Any, x: Any) -> None:
    v[[0, 1]] = x


WRITES = {
    **{f.__name__: f for f in (entry, part, whole, selected, positions)},
    "fill": lambda v, x: v.fill(x),
    "put": lambda v, x: np.put(v, 0, x),
    "place": lambda v, x: np.place(v, v != 0, x),
    "putmask": lambda v, x: np.putmask(v, v != 0, x),
    "fill_diagonal": lambda v, x: np.fill_diagonal(v[:, None] * v, x),
    "put_along_axis": lambda v, x: np.put_along_axis(v, np.array([0]), x, 0),
    "insert": lambda v, x: np.copyto(v, np.insert(v, 0, x)[:3]),
}
PUT = [
    *("a", "1", "1.5", "", " 1 ", "nan", b"a", np.str_("2"), ["a", 1], ["1", "2"], ["1"]),
    *(None, [None, 1], object(), {}, {1, 2}, len, ..., slice(1), np.timedelta64(1)),
    *([1], [1, 2], (1,), [[1], [2]], range(2), 1j, [1j], np.longdouble(1)),
    *([300], [1, -1], [2.7, 1], 300, [1e3], range(255, 257), [True, 2**70]),
]
# NumPy takes the truth of a list there.
LISTED = {("?", write) for write in ("entry", "fill")}


def outcome(f: Any, v: np.ndarray) -> Any:
    try:
        return quiet(lambda: f(v.copy()))
    except Exception as error:
        return error


@pytest.mark.sampled(30)
@pytest.mark.parametrize("options", [{"backend": "numpy"}, {"eager": True}], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize("write", WRITES)
def test_what_is_put_in_is_converted_as_by_numpy(write: str, dtype: str, options: Any) -> None:
    v, put = np.array([3, 1, 2]).astype(dtype), WRITES[write]
    for x in PUT:
        if (dtype, write) in LISTED and isinstance(x, (list, tuple, range)):
            continue

        def f(v: Any, x: Any = x) -> Any:
            put(v, x)
            return v

        expected = outcome(f, v)
        with wend.config(**options):
            found = outcome(wend.function(lambda v: f(v)), v)
        if isinstance(expected, Exception):
            kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
            assert isinstance(found, kind), f"{x!r}: {found!r}, in NumPy {expected!r}"
        else:
            assert not isinstance(found, Exception), f"{x!r}: {found!r}"
            np.testing.assert_array_equal(found, expected, err_msg=repr(x))
            assert found.dtype == expected.dtype


# Scans of operands
N = 50  # more than what becomes scalars
X, Y = np.linspace(0.5, 9.0, N), np.linspace(0.0, 1.0, N)
I = np.arange(N) % 3

# Calls that check their operands, with how often the first of these is read as a whole, at most:
# each read of NumPy's own algorithm, and one for the check where it can be in none of them.
SCANS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "bincount": (np.bincount, (I,), 2),  # how many there are, and the counts
    "bincount, weights": (np.bincount, (I, X), 2),
    "digitize": (np.digitize, (X, np.linspace(0.0, 1.0, N + 1)), 1),
    "digitize, bins": (lambda b, x: np.digitize(x, b), (Y, X[:7]), 2),
    "average": (lambda w, x: np.average(x, weights=w), (Y, X), 2),
    "average, rows": (lambda w, x: np.average(x, 0, w), (np.stack([Y, X]), np.stack([X, Y])), 2),
    "choose": (lambda i, x, y: np.choose(i, [x, y]), (I % 2, X, Y), 2),
    "take": (lambda i, x: np.take(x, i), (I, X), 1),  # as it reads
    "percentile": (lambda q, x: np.percentile(x, q), (Y * 100, X[:7]), 2),
    "quantile": (lambda q, x: np.quantile(x, q), (Y, X[:7]), 2),
    "median": (lambda x: np.median(x), (X,), 1),  # sorts
    "partition": (lambda x: np.partition(x, 3), (X,), 1),
    "argpartition": (lambda x: np.argpartition(x, 3), (X,), 1),
    "histogram": (lambda x: np.histogram(x, 5, (0.0, 9.0))[0], (X,), 2),
    "histogram, bins": (lambda b, x: np.histogram(x, b)[0], (Y, X[:7]), 2),
}


def reads(node: Node) -> bool:
    """Whether an operation reads an array as a whole."""
    if node.op.name in ("check_number", "shape_of", "dim_of"):
        return False
    arrays = [x for x in node.operands if x.tensor.dims]
    return bool(arrays) and (node.op.name != "gather" or len(node.operands[1].tensor.dims) > 0)


def whole_reads(graph: Graph, operand: Value) -> int:
    """How many operations of a graph read an array as a whole."""
    return sum(operand in node.operands and reads(node) for node in graph.nodes)


def checking(graph: Graph) -> list[Node]:
    """The operations that checks need, and results do not: what is checked passes through."""
    of_results, of_checks = {*graph.results}, set()
    found = []
    for node in reversed(graph.nodes):
        is_check = node.op.name == "check_number"
        if of_results & {*node.results}:
            of_results |= {*node.operands[: 1 if is_check else None]}
            of_checks |= {*node.operands[1:]} if is_check else set()
        elif of_checks & {*node.results}:
            of_checks |= {*node.operands}
            found.append(node)
    return found


@pytest.mark.parametrize(
    ("name", "has_sizes"),
    [(name, True) for name in SCANS]
    + [(name, False) for name in SCANS if name[:4] not in ("aver", "hist")],  # refused
)
def test_a_check_is_one_scan(name: str, has_sizes: bool) -> None:
    fun, args, most = SCANS[name]
    unknown = [wend.TensorSpec((None,) * x.ndim, x.dtype) for x in args]
    traced = wend.function(fun).get_concrete_function(*(args if has_sizes else unknown)).graph
    graph = prepare_for_emission(run_passes(traced, OPTIMIZE))
    scans = [node for node in checking(graph) if reads(node)]
    assert len(scans) <= 1, graph
    # Without sizes the range of what may be empty is that of a copy with one element more.
    assert whole_reads(graph, graph.params[0]) <= most + (not has_sizes), graph
