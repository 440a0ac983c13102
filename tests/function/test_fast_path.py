"""Calls that go straight into compiled code give what calls by way of Python give."""

from __future__ import annotations

import inspect
import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.traces import at_trace
from wend.base import trees
from wend.base.errors import NotFiniteError, VariableError
from wend.function.fast_path import FastPaths

SHIFT = 1.0


def native(fun: Any, **options: Any) -> Any:
    return wend.function(fun, backend="native", **options)


def count_runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls, from now on, that come by way of Python."""
    runs: list[Any] = []
    kind = type(native(lambda x: x).get_concrete_function(1.0))
    run = kind.run

    def counted(self: Any, *args: Any) -> Any:
        runs.append(self)
        return run(self, *args)

    monkeypatch.setattr(kind, "run", counted)
    return runs


Point = namedtuple("Point", "x y")


@dataclass
class Ball:
    x: float


ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((np.ones(3), np.ones(3)), {}),
    ((np.ones(3), 2.0), {}),
    ((2, np.float32(3)), {}),
    ((2.0,), {"y": np.ones(2)}),
    ((), {"y": 3, "x": 2.0}),
    (({"b": 1.0, "a": np.ones(2)}, [2.0, (3.0, None)]), {}),
    (({"b": 1.0, "a": np.ones(2)},), {"y": {"c": 1.0}}),
    ((Point(1.0, np.ones(2)), Point(2j, (np.ones(2), None))), {}),
    ((np.ones((2, 3)).T, np.ones((3, 4))[:, 1:3]), {}),
    ((Point(np.ones(3)[::-1], 1), np.broadcast_to(2.0, (3, 3))), {}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("args", "kwargs"), ARGUMENTS)
@pytest.mark.parametrize("form", ["one", "pair", "tree"])
def test_arguments_and_results_of_every_structure(
    args: Any, kwargs: Any, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fun(x: Any, y: Any) -> Any:
        leaves, _ = trees.flatten((x, y))
        total = sum((wnp.sum(leaf) for leaf in leaves), 0.0)
        kinds = {"one": total, "pair": (total, x), "tree": {"z": total, "a": [y, None]}}
        return kinds[form]

    fast, slow = native(fun), wend.function(fun, backend="numpy")
    wanted = slow(*args, **kwargs)
    runs = count_runs(monkeypatch)
    for _ in range(100):
        found = fast(*args, **kwargs)
        assert repr(found) == repr(wanted)
        mine, theirs = trees.flatten(found)[0], trees.flatten(wanted)[0]
        assert [type(x) for x in mine] == [type(x) for x in theirs]
    # A list or dict of the caller that is returned is that object, which Python puts there.
    returns_argument = form != "one" and any(
        isinstance(x, dict | list) for x in (*args, *kwargs.values())
    )
    assert len(runs) == 100 if returns_argument else len(runs) < 5


def test_each_kind_of_number_has_its_trace() -> None:
    fun, slow = native(lambda x: x + x), wend.function(lambda x: x + x, backend="numpy")
    given = [1.5, 2, np.float64(1.5), np.asarray(1.5), np.int64(2), np.float32(2), np.ones(2)]
    for x in [x for x in given for _ in range(5)] + given * 10:
        assert repr(fun(x)) == repr(slow(x))
    assert fun.trace_count == 7
    assert fun(True).dtype == np.int64
    assert fun(2**63) == 2**64


def test_traced_and_recorded_arguments() -> None:
    fun = native(lambda x: x * x)
    outer = native(lambda x: fun(x) + fun(2.0))
    for _ in range(5):
        assert fun(2.0) == 4.0
        assert outer(3.0) == 13.0
        assert wend.grad(fun)(3.0) == 6.0
        with wend.GradientTape() as tape:
            x = tape.watch(np.float64(3.0))
            y = fun(x)
            assert float(wend.stop_gradient(y)) == 9.0
        assert tape.gradient(y, x) == 6.0


def test_most_calls_are_of_machine_code_itself() -> None:
    fun = native(lambda x: x * x)
    assert [fun(2.0) for _ in range(5)] == [4.0] * 5
    assert type(fun.__call__) is type(len)
    assert fun(x=3.0) == 9.0
    assert fun(np.ones(2)).tolist() == [1.0, 1.0]
    assert callable(fun)
    assert list(inspect.signature(fun).parameters) == ["x"]
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        fun(1.0, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        fun(1.0, y=2.0)
    assert pickle.loads(pickle.dumps(power))(2.0) == 4.0


@wend.function
def power(x: Any) -> Any:
    return x * x


@pytest.mark.parametrize("calls", [0, 5])
def test_what_calls_a_function_does_not_keep_it(calls: int) -> None:
    fun = native(lambda x: x * x)
    for _ in range(calls):
        fun(2.0)
    call = fun.__call__
    assert call(3.0) == 9.0
    del fun
    with pytest.raises(ReferenceError, match="keep a reference to it"):
        call("an argument that no trace serves")


def test_settings_that_change() -> None:
    runs: list[Any] = []
    note = at_trace(runs)

    @wend.function
    def fun(x: Any) -> Any:
        note(x)
        return x + 1.0

    for _ in range(3):
        for backend in ("native", "numpy"):
            with wend.config(backend=backend):
                for _ in range(10):
                    assert fun(1.0) == 2.0
        with wend.config(backend="native"):
            assert fun(1.0) == 2.0
            with wend.config(eager=True):
                before = len(runs)
                assert fun(1.0) == 2.0
                assert len(runs) == before + 1
    assert fun.trace_count == 1


def test_a_global_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    fun = native(lambda x: x + SHIFT)
    for _ in range(500):
        assert fun(1.0) == 2.0
    monkeypatch.setitem(globals(), "SHIFT", 5.0)
    assert [fun(1.0) for _ in range(100)] == [6.0] * 100
    monkeypatch.undo()
    assert [fun(1.0) for _ in range(100)] == [2.0] * 100
    assert fun.trace_count == 2


def test_variables_captured_arrays_and_generators() -> None:
    array, variable = np.arange(3.0), wend.Variable(np.ones(3))
    fun = native(lambda x: x * array + variable)
    for k in range(10):
        variable.assign(np.full(3, float(k)))
        array[0] = k
        np.testing.assert_array_equal(fun(2.0), 2.0 * array + k)
    counter = wend.Variable(0)

    @native
    def count(x: Any) -> Any:
        counter.assign_add(1)
        return x + counter

    assert [count(0) for _ in range(10)] == [*range(1, 11)]


def test_functions_with_checks_come_by_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.ones(2)

    @native
    def fun(x: Any, n: Any) -> Any:
        assert n < 5, f"{n} for {x}"
        return x * table[0] + n

    assert [fun(1.0, n) for n in (2, 3)] == [3.0, 4.0]
    runs = count_runs(monkeypatch)
    for n in (3, 7, 4):
        if n > 5:
            with pytest.raises(AssertionError, match=r"7 for 1\.0") as caught:
                fun(1.0, n)
            assert "test_fast_path.py" in caught.value.__notes__[0]
        else:
            assert fun(1.0, n) == 1.0 + n
    assert runs == []


NUMBER, ZERO_DIM, VECTOR = np.float32(3), np.array(2.5), np.arange(3.0)


@pytest.mark.parametrize(
    "fun",
    [
        lambda n: n * NUMBER,
        lambda n: n * ZERO_DIM,
        lambda n: n * VECTOR,
        lambda n: np.zeros(n, np.int64),
        lambda n: np.full(n, 2.5).sum(),
    ],
)
def test_captured_numbers_and_arrays_come_by_no_python(
    fun: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = native(fun)
    for _ in range(20):
        compiled(4)
    runs = count_runs(monkeypatch)
    for n, zero_dim in ((4, 2.5), (7, -1.5)):
        ZERO_DIM[...] = zero_dim  # it is read at each call
        found, expected = compiled(n), fun(n)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert runs == []


def test_arguments_that_are_changed_in_place() -> None:
    @native
    def fill(x: Any, value: Any) -> None:
        x[:] = value

    x = np.zeros(3)
    for k in range(10):
        fill(x, float(k))
        assert x.tolist() == [k] * 3


@pytest.mark.parametrize("returns", ["nothing", "one", "pair", "tree"])
def test_calls_that_change_arguments_come_by_no_python(
    returns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(x: Any, y: Any) -> Any:
        x += 2.0 * y
        x[1] = y[0]
        found = {"one": y + 1, "pair": (y + 1, x * 2), "tree": {"a": x * 2, "b": [y]}}
        return found.get(returns)

    changes = native(plain)
    mine, theirs, y = np.ones(3), np.ones(3), np.arange(3.0)
    for _ in range(4):
        changes(mine, y)
        plain(theirs, y)
    runs = count_runs(monkeypatch)
    for _ in range(3):
        found, expected = changes(mine, y), plain(theirs, y)
        assert trees.flatten(found)[1] == trees.flatten(expected)[1]
        for a, b in zip(trees.flatten(found)[0], trees.flatten(expected)[0], strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(mine, theirs)
    assert not runs
    mine.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        changes(mine, y)


def test_methods() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @wend.function
        def __call__(self, x: Any, *, y: Any = 1.0) -> Any:
            return x * self.factor + y

    with wend.config(backend="native"):
        one, two = Scale(2.0), Scale(3.0)
        for _ in range(20):
            assert (one(5.0), two(5.0)) == (11.0, 16.0)
            assert (one(5.0, y=2.0), two(5.0, y=np.float64(3.0))) == (12.0, 18.0)


def test_a_trace_for_many_sizes() -> None:
    fun = native(lambda x: x.sum() if x.shape[0] != 1 else x[0] - 1.0)
    for _ in range(10):
        for size in (3, 4, 5, 1, 0):
            assert fun(np.ones(size)) == (0.0 if size == 1 else size)
    assert fun.trace_count == 4


def test_derivatives_are_functions_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with wend.config(backend="native"):
        both = wend.value_and_grad(lambda p: wnp.sum(p["w"] * p["w"]) + p["b"])
        p = {"w": np.ones(3), "b": 1.0}
        wanted = repr(both(p))
        runs = count_runs(monkeypatch)
        assert {repr(both(p)) for _ in range(40)} == {wanted}
    assert len(runs) < 5


def test_static_arguments_and_defaults() -> None:
    fun = native(lambda x, unit, scale=2.0: x * {"m": 1.0, "km": 1e3}[unit] * scale)
    for _ in range(10):
        assert (fun(1.0, "m"), fun(1.0, "km"), fun(1.0, unit="m")) == (2.0, 2000.0, 2.0)
        assert fun(1.0, "m", 3.0) == fun(scale=3.0, unit="m", x=1.0) == 3.0


def test_an_input_signature() -> None:
    fun = native(lambda x, y: x + y, input_signature=[wend.TensorSpec([None]), wend.TensorSpec([])])
    for n in (1, 0, 5):
        for _ in range(8):
            assert fun(np.ones(n), np.float64(2.0)).tolist() == [3.0] * n
            assert fun(np.ones(n), 2).tolist() == [3.0] * n
    assert fun.trace_count == 1


def test_settings_that_affect_compilation_have_fast_paths_of_their_own() -> None:
    """A fast path of other settings is not taken up again, from the second call on."""
    x = np.linspace(0.1, 3.0, 1000, dtype=np.float32)
    f, g = (wend.function(lambda x: np.exp(np.sin(x))) for _ in range(2))
    plain = [f(x) for _ in range(5)][-1]
    with wend.config(strict=True):
        exact = [g(x) for _ in range(5)][-1]
        assert (exact != plain).any()
        for _ in range(5):
            np.testing.assert_array_equal(f(x), exact)
    np.testing.assert_array_equal([f(x) for _ in range(5)][-1], plain)
    h = wend.function(lambda x: np.log(x))
    for _ in range(5):
        h(x)
    with wend.config(nans=True):
        h(x)
        for _ in range(3):
            with pytest.raises(NotFiniteError):
                h(-x)


# Variables as arguments
CALLS = 12  # the first ones do not enter compiled code directly


def test_variables_that_are_arguments():
    read = wend.function(lambda v, x: v * x, backend="native")
    v, w = wend.Variable(2.0), wend.Variable(3.0)
    for k in range(CALLS):
        v.assign(float(k))
        assert (read(v, 2.0), read(w, 2.0)) == (2.0 * k, 6.0)
        assert read(np.float64(5.0), 2.0) == 10.0  # another trace
        assert read(wend.Variable(np.ones(2)), 2.0).tolist() == [2.0, 2.0]
        assert read(wend.Variable(7), 2.0) == 14.0


def test_variables_that_are_arguments_are_assigned():
    add = wend.function(lambda v, x: v.assign(v + x), backend="native")
    v, w = wend.Variable(0.0), wend.Variable(np.zeros(3))
    for k in range(1, CALLS):
        add(v, 1.0)
        add(w, np.arange(3.0))
        assert v.value == k
        assert w.value.tolist() == [0.0, k, 2.0 * k]


def test_one_variable_passed_twice():
    def move(v, w, x):
        v.assign(v - x)
        w.assign(w + x)
        return v + w

    run = wend.function(move, backend="native")
    for _ in range(CALLS):
        v, w = wend.Variable(10.0), wend.Variable(1.0)
        assert run(v, w, 4.0) == 11.0
        assert (v.value, w.value) == (6.0, 5.0)
        assert run(v, v, 4.0) == 12.0
        assert v.value == 6.0


def test_trees_of_variables():
    def step(params, x):
        params["w"].assign(params["w"] - 0.5 * x)
        return (params["w"] * x).sum() + params["b"][0]

    plain = {"w": wend.Variable(np.ones(3)), "b": [wend.Variable(1.0)]}
    params = {"w": wend.Variable(np.ones(3)), "b": [wend.Variable(1.0)]}
    run = wend.function(step, backend="native")
    for k in range(CALLS):
        x = np.arange(3.0) + k
        assert run(params, x) == step(plain, x)
        assert params["w"].value.tolist() == plain["w"].value.tolist()


def test_a_variable_is_an_argument_and_captured():
    v = wend.Variable(1.0)

    def add(w, x):
        w.assign(w + x)
        return w + v

    run = wend.function(add, backend="native")
    for k in range(1, CALLS):
        w = wend.Variable(10.0)
        assert run(w, float(k)) == 11.0 + k
        with pytest.raises(VariableError, match="which also uses it"):
            run(v, 1.0)
        assert v.value == 1.0


def test_gradients_with_respect_to_variables():
    gradient = wend.grad(lambda p, x: (p["w"] * x).sum() ** 2)
    w = wend.Variable(np.ones(2))
    for k in range(1, CALLS):
        assert gradient({"w": w}, float(k))["w"].tolist() == [4.0 * k * k, 4.0 * k * k]


def test_calls_with_variables_enter_compiled_code(monkeypatch):
    v, w = wend.Variable(0.0), wend.Variable(np.ones(2))
    calls = [
        (native(lambda x: v.assign_add(x)), 1.0),
        (native(lambda v, x: v * x), w, 2.0),
        (native(lambda v, x: v.assign(v + x)), w, 2.0),
        (native(lambda p, x: p["w"] * x + p["b"]), {"w": w, "b": v}, 2.0),
    ]
    for call, *args in calls:
        for _ in range(CALLS):
            call(*args)
    runs = count_runs(monkeypatch)
    for call, *args in calls:
        call(*args)
    assert runs == []


def test_containers_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code is entered directly; lists that are one are none of two."""

    def step(a: list[float], state: dict[str, Any], b: list[float]) -> Any:
        a[0] += b[0]
        state["n"] = state["n"] + 1
        return a, state["n"]

    fun = native(step)
    a, state = [1.0, 2.0], {"n": 0, "name": "s"}
    for _ in range(12):
        fun(a, state, [1.0])
    runs = count_runs(monkeypatch)
    for k in range(20):
        result, n = fun(a, b=[2.0], state=state) if k % 2 else fun(a, state, [2.0])
        assert result is a
        assert n == state["n"] == 13 + k
        assert type(a[0]) is float
    assert a == [1.0 + 12 + 40, 2.0]
    assert len(runs) < 12  # those before the call with names has code of its own
    both = [3.0]
    assert fun(both, state, both)[0] is both
    assert both == [6.0]


@pytest.mark.parametrize(
    ("fun", "one", "other"),
    [
        (lambda a, b: b[-1], [1.0, 2.0], [3.0, 4.0]),
        (lambda a, b: a["x"] - b["x"], {"x": 1.0}, {"x": 5.0}),
        (lambda a, b: a[0]["x"] - b["x"], ({"x": 1.0},), {"x": 5.0}),
        (lambda a, b: a.x - b.x, Ball(1.0), Ball(3.0)),
    ],
    ids=["lists", "dicts", "nested", "instances"],
)
def test_one_container_twice_is_no_two(fun: Any, one: Any, other: Any) -> None:
    """A trace of calls that pass one container twice serves no call that passes two."""
    run = native(fun)
    twice = one[0] if isinstance(one, tuple) else one
    for _ in range(15):
        assert run(one, twice) == fun(one, twice)
    for _ in range(15):
        assert run(one, other) == fun(one, other)
    assert run(one, twice) == fun(one, twice)


@pytest.mark.filterwarnings("ignore:.* was traced")
def test_lists_of_many_lengths_compile_few_fast_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = []
    install = FastPaths.install
    monkeypatch.setattr(
        FastPaths, "install", lambda *args: (installed.append(args), install(*args))[1]
    )
    fun = native(lambda x: sum(x))
    for k in range(400):
        x = [1.0] * (1 + k % 20)
        assert fun(x) == len(x)
    assert 8 < len(installed) < 80
