"""Runs of programs of XLA: arrays, variables, errors, Python calls, and how often they run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.helpers.golden import Golden

import wend
from wend.backends.jax import executable, lowering
from wend.base.errors import UnsupportedError


@pytest.fixture(autouse=True)
def _on_jax() -> Any:
    with wend.config(backend="jax"):
        yield


def test_arrays_stay_on_their_device() -> None:
    double = wend.function(lambda x: x + x)
    once = double(np.ones(3))
    assert isinstance(once, jax.Array)
    assert double(once).tolist() == [4.0, 4.0, 4.0]
    assert double.trace_count == 1  # NumPy's arrays and JAX's are one signature


def test_arrays_of_jax_are_arguments_on_other_backends() -> None:
    result = wend.function(lambda x: x * 3.0, backend="native")(jnp.ones(3))
    np.testing.assert_array_equal(result, np.full(3, 3.0))


def test_each_set_of_shapes_has_a_program() -> None:
    total = wend.function(lambda x: np.sum(x * x))
    concrete = total.get_concrete_function(wend.TensorSpec((None,), float))
    for size in (1, 2, 5, 2, 1):
        assert float(concrete(np.ones(size))) == size
    assert "compiled 3 programs, for 3 sets of shapes" in concrete.explain()


def test_an_array_that_the_caller_changes_later_does_not_reach_the_result() -> None:
    x = np.ones(1000)
    result = wend.function(lambda x: x * 1.0)(x)
    x[:] = 7.0
    assert float(result[0]) == 1.0


def test_arrays_that_no_program_can_take_are_told(golden: Golden) -> None:
    @wend.function
    def walk(x, step):
        while np.sum(x) < 10.0:
            x = 1.5 * x * step
        return x

    deleted = jnp.ones(3)
    deleted.delete()
    texts = []
    narrow = jnp.ones(3, jnp.bfloat16), np.asarray(jnp.ones(3, jnp.int4))
    for step in (deleted, *narrow, jax.random.key(0)):
        for fun in (walk, wend.grad(lambda x, step: np.sum(walk(x, step)))):
            with pytest.raises((TypeError, RuntimeError)) as caught:
                fun(jnp.ones(3), step)
            assert not getattr(caught.value, "__notes__", [])
            texts.append(f"{type(caught.value).__name__}: {caught.value}")
    walk(jnp.ones(3), 1.0)  # as before
    golden.check("errors/arrays_of_jax.txt", "\n".join(texts))


def test_an_argument_of_numpy_is_changed_in_place_and_one_of_jax_refused() -> None:
    @wend.function
    def first(x):
        x[0] = 5.0

    x = np.zeros(2)
    first(x)
    assert x.tolist() == [5.0, 0.0]
    with pytest.raises(ValueError, match=r"read-only(.|\n)*To fix it: pass an array of NumPy"):
        first(jnp.zeros(2))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)])
@pytest.mark.parametrize("ones", [np.int64(1), np.array([1, 1])])
def test_writes_to_arrays_without_elements_are_numpys_error(shape: Any, ones: Any) -> None:
    def put(x: Any, k: Any) -> Any:
        x = x.copy()
        x[k, k] = 1.0
        return x

    with pytest.raises(IndexError) as expected:
        put(np.zeros(shape), ones)
    with pytest.raises(IndexError) as found:
        wend.function(put)(np.zeros(shape), ones)
    assert str(found.value) == str(expected.value)


def test_variables_are_arrays_of_the_device_and_as_before_after_a_failing_call() -> None:
    v = wend.Variable(np.zeros(2))

    @wend.function
    def add(x):
        for _ in range(3):
            v.assign_add(x)
            assert np.sum(v.value) < 20.0, f"now {np.sum(v.value)}"

    add(np.ones(2))
    assert isinstance(v.concrete, jax.Array)
    assert v.value.tolist() == [3.0, 3.0]
    with pytest.raises(AssertionError, match=r"now 26\.0") as raised:
        add(np.full(2, 10.0))
    assert "in assert at test_executable.py" in raised.value.__notes__[0]
    assert v.value.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("position", [7, -8])
def test_a_position_out_of_range_is_numpys_error(position: int) -> None:
    pick = wend.function(lambda x, i: x[i])
    assert float(pick(np.arange(7.0), np.int64(-7))) == 0.0
    with pytest.raises(IndexError, match=f"index {position} is out of bounds .* with size 7"):
        pick(np.arange(7.0), np.int64(position))


def test_the_first_error_in_program_order_is_raised() -> None:
    @wend.function
    def both(x):
        if x > 1.0:
            raise ValueError(f"first {x}")
        for k in range(10):
            if k * x > 1.0:
                raise KeyError(k)
        return x

    assert float(both(0.1)) == 0.1
    with pytest.raises(ValueError, match=r"first 2\.0"):
        both(2.0)
    with pytest.raises(KeyError, match="3"):
        both(0.4)


def test_a_singular_matrix_is_numpys_error() -> None:
    solve = wend.function(lambda a: np.linalg.solve(a, np.ones(2)))
    assert solve(np.eye(2)).tolist() == [1.0, 1.0]
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        solve(np.zeros((2, 2)))


def test_python_is_called_once_though_a_tape_has_to_grow(capsys: Any) -> None:
    seen: list[int] = []

    def noted(y):
        seen.append(len(seen))
        return np.sin(y)

    def walk(x):
        while x < 40.0:
            x = x + 1.0 + 0.1 * wend.py_function(noted, wend.TensorSpec((), float), x)
            print("at", x)
        return x

    value, slope = wend.value_and_grad(walk)(1.0)
    trips = len(seen)
    assert trips > 16
    assert capsys.readouterr().out.count("at") == trips
    with wend.config(backend="numpy"):
        np.testing.assert_allclose([value, slope], wend.value_and_grad(walk)(1.0))
    assert len(seen) == 2 * trips


def test_an_error_of_python_ends_the_run_and_later_calls_are_not_made() -> None:
    seen = []

    def fails(y):
        seen.append(float(y))
        if y > 2.5:
            raise OSError("disk full")
        return y

    @wend.function
    def walk(x):
        for _ in range(np.int64(8)):
            x = x + wend.py_function(fails, wend.TensorSpec((), float), x) * 0.0 + 1.0
        return x

    with pytest.raises(OSError, match="disk full"):
        walk(0.0)
    assert seen == [0.0, 1.0, 2.0, 3.0]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that run, one after another."""
    runs: list[Any] = []
    run = executable.XlaProgram.__call__

    def counted(self: Any, leaves: Any) -> Any:
        runs.append(self)
        return run(self, leaves)

    monkeypatch.setattr(executable.XlaProgram, "__call__", counted)
    return runs


def climb(x: Any, n: Any) -> Any:
    return wend.fori_loop(0, n, lambda i, x: np.sin(x) + x, x)


def nest(x: Any, n: Any) -> Any:
    for _ in range(n):
        for _ in range(n):
            x = np.sin(x) + x
    return x


def test_a_tape_costs_two_runs_at_first_and_one_later(
    runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "_FIRST_BYTES", 0)
    slope = wend.grad(climb)
    slope(0.1, np.int64(200))
    assert len(runs) == len(set(runs)) == 2
    slope(0.2, np.int64(200))
    assert len(runs) == 3
    slope(0.2, np.int64(250))  # within the next power of two
    assert len(runs) == 4


def three_deep(x: Any, n: Any) -> Any:
    for _ in range(n):
        for k in range(n):
            for _ in range(k):
                x = np.sin(x) + x
    return x


def listed(x: Any, n: Any) -> Any:
    out = []
    for k in range(n):
        x = np.sin(x) + x
        if k % 2 == 0:
            out.append(x)
    total = 0.0
    for v in out:
        total = total + v * v
    return total


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fun", [nest, three_deep, listed])
@pytest.mark.parametrize("order", [1, 2])
def test_all_tapes_grow_at_once(
    fun: Any, order: int, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "_FIRST_BYTES", 0)
    slope = fun
    for _ in range(order):
        slope = wend.grad(slope)
    for x in 0.1, 0.2:
        slope(x, np.int64(24))
    assert len(runs) <= 3
    assert len(set(runs)) <= 2


def test_a_call_does_not_wait_for_what_it_computes(
    runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    total = wend.function(climb)
    args = jnp.float64(0.1), jnp.int64(100)
    total(*args)

    def waits(*_: Any, **options: Any) -> Any:
        raise AssertionError("it asks the device")

    with monkeypatch.context() as patched:
        for name in (
            "__array__",
            "__bool__",
            "__float__",
            "__int__",
            "__index__",
            "block_until_ready",
        ):
            patched.setattr(type(args[0]), name, waits)
        result = total(*args)
    assert np.isfinite(float(result))
    assert len(runs) == 2


def test_arrays_of_numpy_are_put_on_the_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = wend.function(lambda x: np.sum(x * x) + np.sum(np.sin(x)))
    x = np.arange(1000.0)
    scale(x)
    put: list[Any] = []
    asarray = jnp.asarray

    def counted(value: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(value, np.ndarray) and value.size == x.size:
            put.append(value)
        return asarray(value, *rest, **options)

    monkeypatch.setattr(jnp, "asarray", counted)
    with jax.transfer_guard_host_to_device("disallow"):  # explicit ones are allowed
        scale(x)
    assert len(put) == 1


@pytest.mark.parametrize(("fun", "trips"), [(climb, 10_000), (nest, 100)])
def test_a_tape_of_some_kilobytes_costs_one_run(runs: list[Any], fun: Any, trips: int) -> None:
    wend.grad(fun)(0.1, np.int64(trips))
    assert len(runs) == 1


def primitives(jaxpr: Any) -> set[str]:
    """The names of all primitives, in loops too."""
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(part, "jaxpr", part)
                names |= primitives(inner) if hasattr(inner, "eqns") else set()
    return names


@pytest.mark.parametrize("fun", [climb, nest])
def test_a_call_asks_the_device_once_however_many_trips_it_makes(
    fun: Any, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    slope = wend.grad(fun)
    args = jnp.float64(0.1), jnp.int64(100)
    slope(*args)
    names = primitives(jax.make_jaxpr(runs[-1]._function)(list(args)))
    assert "while" in names
    assert not any("callback" in name for name in names), names
    transfers: list[Any] = []
    asarray = np.asarray

    def counted(x: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(x, jax.Array):
            transfers.append(x)
        return asarray(x, *rest, **options)

    monkeypatch.setattr(np, "asarray", counted)
    with jax.transfer_guard_host_to_device("disallow"):
        slope(*args)
    assert len(transfers) == 1
    assert transfers[0].size <= 8


REMEMBERED = """
import sys, jax, numpy as np, wend
from wend.backends.jax import executable, lowering

jax.config.update("jax_enable_x64", True)
lowering._FIRST_BYTES = 0
runs, run = [], executable.XlaProgram.__call__
executable.XlaProgram.__call__ = lambda self, leaves: runs.append(self) or run(self, leaves)

def climb(x, n):
    while x < n:
        x = x + 0.1 * np.sin(x) ** 2 + 0.1
    return np.sum(x * x)

slope = wend.function(wend.grad(climb), backend="jax")
for call in 1, 2:
    print(slope(0.1, 40.0), len(runs))
"""


def test_another_process_begins_with_the_room_that_was_needed(tmp_path: Path) -> None:
    script = tmp_path / "climb.py"
    script.write_text(REMEMBERED, encoding="utf-8")

    def printed(folder: str) -> list[str]:
        run = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "WEND_CACHE_DIR": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return run.stdout.split()

    folder = str(tmp_path / "cache")
    value, runs, *later = printed(folder)
    assert (runs, later) == ("2", [value, "3"])
    assert printed(folder) == [value, "1", value, "2"]
    assert printed("") == [value, "2", value, "3"]


def test_elements_of_a_map_have_little_room_at_first(runs: list[Any]) -> None:
    """Else a batch of many would take gigabytes for tapes of a few records."""
    numbers = np.linspace(0.1, 0.2, 10_000)
    wend.vmap(wend.grad(climb), (0, None))(numbers, np.int64(3))
    assert len(runs) == 1
    assert {*runs[0]._capacities.values()} == {16}


def test_the_residuals_of_one_run_are_read_by_another() -> None:
    def climb(x, n):
        for _ in range(n):
            x = np.sin(x) + x
        return x

    concrete = wend.function(climb).get_concrete_function(0.1, np.int64(3))
    _, run = concrete.forward(0.1, np.int64(40))
    (found, _) = concrete.backward(run, 1.0)
    np.testing.assert_allclose(found, wend.grad(climb)(0.1, np.int64(40)))


def test_what_has_a_shape_that_depends_on_data_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"nonzero at test_executable.py.*\n.*np.where"):
        wend.function(lambda x: x[x > 0])(np.ones(3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "sort", "argsort", "median"])
def test_complex_numbers_are_ordered_as_numpy_orders_them(name: str) -> None:
    for x in np.array([1 + 2j, 1 - 1j, -3j, 2.0]), np.array([1 + 2j, np.nan + 1j, -3j]):
        fun = getattr(np, name)
        np.testing.assert_array_equal(wend.function(fun, backend="jax")(x), fun(x))


def test_operations_without_a_lowering_call_numpy_and_are_listed() -> None:
    total = wend.function(lambda x: np.linalg.det(x) + np.sum(x))
    assert float(total(np.eye(2) * 2.0)) == 8.0
    assert "runs in Python: det" in total.explain()


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:backend=.jax. gives 64-bit")
@pytest.mark.parametrize("is_on", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "c16", "i8", "u8", "f4", "c8"])
def test_python_is_passed_all_bits_of_numbers(dtype: str, is_on: bool) -> None:
    """JAX calls Python in threads of XLA, which know the setting of the process only."""
    jax.config.update("jax_enable_x64", is_on)
    seen = []

    def note(x: Any) -> Any:
        seen.append(x)
        return x[::-1].copy()

    def run(x: Any) -> Any:
        return wend.py_function(note, wend.TensorSpec(x.shape, dtype), x)

    for shape in (2, 3), (0, 2), (1,):
        x = (np.arange(np.prod(shape)).reshape(shape) * 1e6 / 7 + 3**22).astype(dtype)
        found = wend.function(run)(x)
        for y, expected in (seen[-1], x), (np.asarray(found), x[::-1]):
            assert y.dtype == dtype
            np.testing.assert_array_equal(y, expected)


@pytest.mark.filterwarnings("ignore:backend=.jax. gives 64-bit")
def test_operations_without_a_lowering_compute_with_all_bits() -> None:
    jax.config.update("jax_enable_x64", False)
    x = np.array([1.0 + 1e-12j, 1.0, 3.0 - 1e-12j])
    for fun in np.sqrt, np.arcsin, lambda x: x > 1.0, lambda x: np.linalg.det(x.real * np.eye(3)):
        np.testing.assert_array_equal(wend.function(fun)(x), fun(x))


def test_arrays_of_jax_are_arguments_where_the_environment_chooses_the_backend(
    tmp_path: Path,
) -> None:
    script = tmp_path / "double.py"
    script.write_text(
        "import jax.numpy as jnp, wend\n"
        "x = wend.function(lambda x: x * 2)(jnp.ones(3, 'float32'))\n"
        "assert x.tolist() == [2.0, 2.0, 2.0], x\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "WEND_BACKEND": "jax"}
    subprocess.run([sys.executable, str(script)], check=True, env=environment)


def test_a_call_of_native_code_that_jax_traces_is_refused_with_the_cure() -> None:
    double = wend.function(lambda x: 2.0 * x, backend="native")
    with pytest.raises(TypeError, match=r"To fix it: JAX is tracing this call: .*as_jax"):
        jax.jit(lambda x: double(x))(jnp.ones(3))


def test_a_warning_names_the_setting_where_jax_computes_in_32_bits() -> None:
    code = (
        "import warnings, wend, numpy as np\n"
        "f = wend.function(lambda x: x + 1.0, backend='jax')\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    assert f(np.ones(2)).dtype == np.float64\n"
        "    f(np.ones(3))\n"
        "    f(np.ones(2, np.float32))\n"
        "assert len(told) == 1 and 'jax_enable_x64' in str(told[0].message), told\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_backward_gives_cotangents_of_captures() -> None:
    v, w = wend.Variable(3.0), np.array([1.0, 2.0])
    fun = wend.function(lambda x: np.sum(x * v * w), backend="jax")
    concrete = fun.get_concrete_function(2.0)
    _, run = concrete.forward(2.0)
    dx, *others = concrete.backward(run, 1.0, captures=True)
    cts = dict(zip(map(id, concrete.captured_inputs), others, strict=True))
    assert float(dx) == 9.0
    assert float(cts[id(v)]) == 6.0
    np.testing.assert_array_equal(cts[id(w)], [6.0, 6.0])


@pytest.mark.parametrize("parallel", [5, 10])
def test_explain_says_where_a_hint_has_an_effect(parallel: int) -> None:
    @wend.function(backend="jax")
    def fun(x: Any) -> Any:
        return wend.while_loop(
            lambda v: v < 100.0, lambda v: v * 2.0, x, parallel_iterations=parallel
        )

    assert float(fun(1.0)) == 128.0
    assert f"parallel_iterations={parallel} of while_loop" in str(fun.explain())


def test_a_residual_that_is_an_earlier_value_of_a_variable() -> None:
    v = wend.Variable(1.0)

    def fun(x: Any) -> Any:
        v.assign(x * x)
        y = np.sin(v.value)
        if x > 0.0:
            v.assign(v + 1.0)
        return y * x

    concrete = wend.function(fun, backend="jax").get_concrete_function(0.5)
    for x, left in (0.5, 1.25), (-0.5, 0.25):
        _, run = concrete.forward(x)
        assert float(v.value) == left
        expected = np.sin(x * x) + 2.0 * x * x * np.cos(x * x)
        np.testing.assert_allclose(concrete.backward(run, 1.0)[0], expected)
        assert float(v.value) == left
