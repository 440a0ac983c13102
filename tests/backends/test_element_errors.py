"""Array operations that fail in maps: the error is that of a Python loop over the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

BACKENDS = ["native", "numpy", "dataflow"]  # and JAX in `jax/test_element_errors.py`
TABLE = np.linspace(0.5, 2.0, 9)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def inverse(a: Any, n: Any) -> Any:
    return np.linalg.inv(a).sum()


def root(a: Any, n: Any) -> Any:
    return np.linalg.cholesky(a)[0, 0] * n


def two_operations(a: Any, n: Any) -> Any:
    """Some elements fail in the first, others in the second."""
    return np.linalg.solve(a, np.ones(2)).sum() + np.linalg.cholesky(a)[0, 0] * TABLE[n]


def in_a_loop(a: Any, n: Any) -> Any:
    """Each makes trips of its own."""
    k, x = 0, np.ones(2)
    while k < n:
        x = np.linalg.solve(a, x) * 0.5
        a, k = a + np.array([[0.0, 0.7], [0.7, 0.0]]), k + 1
    return x.sum()


def in_a_branch(a: Any, n: Any) -> Any:
    if n > 3:
        return np.linalg.solve(a, np.ones(2)).sum()
    return a[0, 1]


def at_positions(a: Any, n: Any) -> Any:
    y, k = a[0, 0], 0
    while k < n:
        y, k = y + TABLE[k * k], k + 1
    return y


FUNCTIONS = (inverse, root, two_operations, in_a_loop, in_a_branch, at_positions)


def elements(count: int, failing: Sequence[int], *, position: int = 5) -> tuple[Any, Any]:
    """Matrices, of which some are singular, and positions, of which one is out of range."""
    rng = np.random.default_rng(count)
    a = np.eye(2) + rng.uniform(0.0, 0.3, (count, 1, 1)) * np.ones((2, 2))
    n = rng.integers(0, 3, count)
    for k in failing:
        a[k], n[k] = np.ones((2, 2)), position
    return a, n


def failing_like(fun: Any, mapped: Callable[..., Any], args: Sequence[Any]) -> None:
    """Check that a map raises the first error of a loop over the elements."""
    alone = wend.function(fun, backend="numpy")
    for k, row in enumerate(zip(*args, strict=True)):
        try:
            alone(*row)
        except (np.linalg.LinAlgError, IndexError) as error:
            expected, at = error, k
            break
    with pytest.raises(type(expected)) as caught:
        mapped(*args)
    assert str(caught.value) == str(expected)
    notes = caught.value.__notes__
    assert notes == [*expected.__notes__, f"in element {at} of vmap"]


@pytest.mark.sampled
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_the_error_is_that_of_the_first_element(fun: Any, backend: str) -> None:
    mapped = wend.function(wend.vmap(fun), backend=backend)
    failing_like(fun, mapped, elements(1, [0]))
    for failing in ([0], [6], [3, 5]):
        failing_like(fun, mapped, elements(7, failing))
    mapped(*elements(7, []))
    failing_like(fun, mapped, elements(40, [39]))
    mapped(*elements(40, []))


def test_it_is_that_of_the_first_element_not_of_the_first_operation(backend: str) -> None:
    a, n = elements(12, [8])
    n[2] = 11  # a later operation of an earlier element
    a[5] = -np.eye(2)
    failing_like(two_operations, wend.function(wend.vmap(two_operations), backend=backend), (a, n))


def tells_a_number(error: BaseException) -> bool:
    return any(note.startswith("in element") for note in error.__notes__)


def total(fun: Any) -> Any:
    return lambda a, n: wnp.sum(wend.vmap(fun)(a, n))


def tape(fun: Any) -> Any:
    def gradient(a: Any, n: Any) -> Any:
        with wend.GradientTape() as tape:
            tape.watch(a)
            y = wend.function(total(fun))(a, n)
        return tape.gradient(y, a)

    return gradient


DERIVATIVES = {
    "gradients": lambda fun: wend.vmap(wend.grad(fun)),
    "the gradient of a sum": lambda fun: wend.grad(total(fun)),
    "tangents": lambda fun: lambda a, n: wend.jvp(lambda a: total(fun)(a, n), (a,), (a,)),
    "a pullback": lambda fun: lambda a, n: wend.vjp(lambda a: total(fun)(a, n), a)[1](1.0),
    "second derivatives": lambda fun: wend.grad(
        lambda a, n: wnp.sum(wend.grad(total(fun))(a, n) ** 2)
    ),
    "a tape": tape,
}


@pytest.mark.sampled
@pytest.mark.parametrize("what", DERIVATIVES)
@pytest.mark.parametrize("fun", [two_operations, in_a_loop])
def test_derivatives(fun: Any, what: str, backend: str) -> None:
    with wend.config(backend=backend):
        failing_like(fun, DERIVATIVES[what](fun), elements(7, [4, 6]))


def reads(t: Any, n: Any) -> Any:
    """Its gradient needs no value that it reads; several trips read at positions out of range."""
    y, k = 0.0, 0
    while k < n:
        for j in range(3):
            y = y + t[k * k + j]
        k = k + 1
    return y


def test_the_error_of_a_gradient_is_that_of_the_first_trip(backend: str) -> None:
    t = np.stack([TABLE] * 7)
    n = np.array([1, 2, 3, 5, 1, 6, 3])
    for fun in (wend.vmap(wend.grad(reads)), wend.grad(total(reads))):
        failing_like(reads, wend.function(fun, backend=backend), (t, n))


def nested(fun: Any, **options: int) -> Any:
    return wend.vmap(wend.vmap(fun, **options), **options)


MAPS = {
    "two": nested,
    "in chunks": lambda fun: nested(fun, chunk_size=3),
    "gradients in chunks": lambda fun: nested(wend.grad(fun), chunk_size=3),
    "a map in the element": lambda fun: wend.vmap(lambda a, n: wnp.sum(wend.vmap(fun)(a, n))),
    "a map in a function": lambda fun: wend.vmap(wend.function(lambda a, n: wend.vmap(fun)(a, n))),
    "a map in a loop": lambda fun: wend.vmap(
        lambda a, n: wend.fori_loop(0, 3, lambda k, y: y + wend.vmap(fun)(a, n), np.zeros(4))
    ),
    "a map in a branch": lambda fun: wend.vmap(
        lambda a, n: wend.cond(n[0] < 9, lambda: wend.vmap(fun)(a, n), lambda: np.zeros(4))
    ),
    "gradients": lambda fun: nested(wend.grad(fun)),
    "the gradient of a sum": lambda fun: wend.grad(lambda a, n: wnp.sum(nested(fun)(a, n))),
}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("what", MAPS)
@pytest.mark.parametrize("fun", [inverse, in_a_loop])
def test_nested_maps_tell_all_numbers(fun: Any, what: str, backend: str) -> None:
    a, n = elements(20, [13, 14, 18])
    call = wend.function(MAPS[what](fun), backend=backend)
    with pytest.raises(np.linalg.LinAlgError) as caught:
        call(a.reshape(5, 4, 2, 2), n.reshape(5, 4))
    assert caught.value.__notes__[-1] == "in element (3, 1) of vmap"


def test_what_the_elements_share(backend: str) -> None:
    """A loop over the elements fails in the first one, and nowhere if there is none."""
    a = np.ones((2, 2))
    call = wend.function(wend.vmap(lambda x: np.linalg.inv(a) @ x), backend=backend)
    with pytest.raises(np.linalg.LinAlgError) as caught:
        call(np.ones((3, 2)))
    assert caught.value.__notes__[-1] == "in element 0 of vmap"


def test_operations_outside_of_maps_have_no_number(backend: str) -> None:
    @wend.function(backend=backend)
    def fun(a: Any, n: Any) -> Any:
        return wend.vmap(inverse)(a, n).sum() + np.linalg.inv(a[0] - a[1])[0, 0]

    a, n = elements(5, [])
    a[1] = a[0]
    with pytest.raises(np.linalg.LinAlgError) as caught:
        fun(a, n)
    assert not tells_a_number(caught.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("jacobian", [wend.jacrev, wend.jacfwd])
def test_directions_of_jacobians_are_no_elements(jacobian: Any, backend: str) -> None:
    def fun(y: Any) -> Any:
        return np.linalg.solve(np.ones((2, 2)), y)

    with pytest.raises(np.linalg.LinAlgError) as caught:
        wend.function(jacobian(fun), backend=backend)(np.ones(2))
    assert not tells_a_number(caught.value)
    with pytest.raises(np.linalg.LinAlgError) as caught:
        wend.function(wend.vmap(jacobian(fun)), backend=backend)(np.ones((3, 2)))
    assert caught.value.__notes__[-1] == "in element 0 of vmap"


def test_calls_by_compiled_code(backend: str) -> None:
    mapped = wend.function(wend.vmap(two_operations), backend=backend)
    for _ in range(12):
        mapped(*elements(7, []))
    failing_like(two_operations, mapped, elements(7, [2, 3]))
    mapped(*elements(7, []))
    captured, n = elements(7, [3])
    call = wend.function(lambda n: wend.vmap(in_a_loop)(captured, n), backend=backend)
    for _ in range(12):
        call(np.zeros(7, int))
    failing_like(in_a_loop, lambda a, n: call(n), (captured, n))


@pytest.mark.parametrize("backend", ["native", "numpy", "dataflow"])
def test_changed_arguments_are_as_at_the_error(backend: str) -> None:
    @wend.function(backend=backend)
    def fun(out: Any, a: Any, n: Any) -> Any:
        for k in range(4):
            out[k] = k + 1.0
            out[4] = wend.vmap(in_a_loop)(a - k * 0.25, n)[0]
        return out.sum()

    out, n = np.zeros(5), np.ones(6, int)
    a = np.stack([5.0 * np.eye(2)] * 6)
    a[4] = np.diag([1.0, 0.0]) + 0.25
    with pytest.raises(np.linalg.LinAlgError) as caught:
        fun(out, a, n)
    assert caught.value.__notes__[-1] == "in element 4 of vmap"
    np.testing.assert_array_equal(out[:4], [1.0, 2.0, 0.0, 0.0])


def test_effects_happen_once(backend: str, capsys: Any) -> None:
    """Prints and assignments are left out where a run is repeated."""
    count = wend.Variable(0.0, name="count")

    @wend.function(backend=backend)
    def fun(a: Any, n: Any) -> Any:
        k = 0
        while k < 3:
            print("round", k)
            count.assign_add(1.0)
            y = wend.vmap(inverse)(a + count, n)
            k += 1
        return y

    a, n = np.stack([5.0 * np.eye(2)] * 6), np.ones(6, int)
    a[4] = np.diag([1.0, 0.0]) - 2.0
    with pytest.raises(np.linalg.LinAlgError) as caught:
        fun(a, n)
    assert caught.value.__notes__[-1] == "in element 4 of vmap"
    assert capsys.readouterr().out == "round 0\nround 1\n"
    assert float(count) == (0.0 if backend == "jax" else 2.0)  # which assigns at the end


def test_python_is_not_called_again(backend: str) -> None:
    """What it gave is given again; JAX calls it from threads of its own, where nothing is noted."""
    calls: list[int] = []
    kept = np.zeros((6, 2, 2))

    def noted(x: Any) -> Any:
        kept[...] = x  # an array that it changes in the next call
        kept[4] -= 0.5 * np.eye(2)
        calls.append(1)
        return kept

    @wend.function(backend=backend)
    def fun(a: Any, n: Any) -> Any:
        k = 0
        while k < 3:
            a = wend.py_function(noted, wend.TensorSpec(a.shape, a.dtype), a)
            y = wend.vmap(two_operations)(a, n + 3 * k)
            k += 1
        return y

    for _ in range(12):
        a, n = elements(6, [])
        a[4] = np.eye(2)
        calls.clear()
        with pytest.raises(np.linalg.LinAlgError, match="Singular") as caught:
            fun(a, n)
        assert len(calls) == 2
        assert caught.value.__notes__[1:] == ["in element 4 of vmap"] * (backend != "jax")
        a[4], n[5] = 9.0 * np.eye(2), 3
        with pytest.raises(IndexError, match="index 9") as other:
            fun(a, n)
        assert other.value.__notes__[1:] == ["in element 5 of vmap"] * (backend != "jax")
        n[5] = 0
        fun(a, n)


def test_draws_are_not_repeated(backend: str) -> None:
    rng = np.random.default_rng(0)

    @wend.function(backend=backend)
    def fun(a: Any) -> Any:
        n = np.where(np.arange(6) == rng.integers(0, 6), 9, 0)
        return wend.vmap(two_operations)(a, n).sum() + rng.integers(0, 6)

    a, _ = elements(6, [])
    state = rng.bit_generator.state
    expected = rng.integers(0, 6, 12)
    rng.bit_generator.state = state
    for at in expected:
        with pytest.raises(IndexError, match="index 9") as caught:
            fun(a)
        assert caught.value.__notes__[1:] == [f"in element {at} of vmap"] * (backend != "jax")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_python_are_not_repeated(order: int, backend: str) -> None:
    """The map that fails is that of the derivative, after Python has pulled back."""
    calls: list[int] = []

    def noted(x: Any) -> Any:
        calls.append(1)
        return x * x * x

    def total(x: Any) -> Any:
        return wnp.sum(wend.py_function(noted, wend.TensorSpec(x.shape, x.dtype), x))

    for _ in range(order):
        total = wend.grad(lambda x, f=total: wnp.sum(f(x)))

    @wend.function(backend=backend)
    def fun(x: Any) -> Any:
        return wend.vmap(lambda d: np.linalg.inv(d * np.eye(2)).sum())(total(x))

    x = np.arange(1.0, 7.0)
    fun(x)
    x[3] = 0.0
    calls.clear()
    with pytest.raises(np.linalg.LinAlgError) as caught:
        fun(x)
    assert len(calls) == 1
    assert caught.value.__notes__[1:] == ["in element 3 of vmap"] * (backend != "jax")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("chunk_size", [1, 5, 6, 12, 20])
def test_chunks_of_elements(chunk_size: int, backend: str) -> None:
    """The number is that among all elements."""
    a, n = elements(12, [8])
    mapped = wend.vmap(two_operations, chunk_size=chunk_size)
    failing_like(two_operations, wend.function(mapped, backend=backend), (a, n))
    n[6] = 11
    failing_like(two_operations, wend.function(mapped, backend=backend), (a, n))
    spec = [wend.TensorSpec([None, *x.shape[1:]], x.dtype) for x in (a, n)]
    of_any = wend.function(mapped, input_signature=spec, backend=backend)
    failing_like(two_operations, of_any, (a, n))


def test_lists_of_elements(backend: str) -> None:
    def fun(rows: Any) -> Any:
        out = []
        for row in rows:
            out.append(np.linalg.inv(row))
        return np.stack(out)

    a, _ = elements(12, [7])
    with pytest.raises(np.linalg.LinAlgError) as caught:
        wend.function(wend.vmap(fun), backend=backend)(a.reshape(4, 3, 2, 2))
    assert caught.value.__notes__[-1] == "in element 2 of vmap"
