"""One compilation serves every number of rows: values, gradients, and those of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.golden import Golden
from tests.helpers.sized_programs import PROGRAMS, Sized

import wend
import wend.numpy as wnp
from wend.backends.native.backend import NativeBackend
from wend.backends.numpy.backend import NumpyBackend

BACKENDS = ["numpy", "native"]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the graphs that are compiled."""
    names: list[str] = []

    def count(backend: Any) -> None:
        compile = backend.compile

        def counted(self: Any, graph: Any) -> Any:
            names.append(graph.name)
            return compile(self, graph)

        monkeypatch.setattr(backend, "compile", counted)

    count(NumpyBackend)
    count(NativeBackend)
    return names


def value(fun: Callable[..., Any]) -> Callable[..., Any]:
    return fun


def second(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the sum of the squares of the gradient."""
    slope = wend.grad(fun)
    return wend.grad(lambda *args: wnp.sum(slope(*args) ** 2))


@np.errstate(all="ignore")
def check(found: Any, expected: Any) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("order", [value, wend.grad, second])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_declared(
    program: Sized, backend: str, order: Callable[..., Any], compiled: list[str]
) -> None:
    fun = wend.function(order(program.run), input_signature=program.signature(), backend=backend)
    exact = wend.function(order(program.run), reduce_retracing=False, backend="numpy")
    results = [fun(*program.arguments(n)) for n in program.sizes]
    assert (fun.trace_count, len(compiled)) == (1, 1)
    for n, found in zip(program.sizes, results, strict=True):
        check(found, exact(*program.arguments(n)))
        if order is value:  # on plain arrays it is NumPy that runs
            check(found, np.float64(program.run(*program.arguments(n))))


@pytest.mark.sampled(30)
@pytest.mark.filterwarnings("ignore::wend.RetraceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_relaxed(program: Sized, backend: str, compiled: list[str]) -> None:
    """From the second size on; 0 and 1, of which broadcasting makes something else, are apart."""
    fun = wend.function(wend.grad(program.run), backend=backend)
    exact = wend.function(wend.grad(program.run), reduce_retracing=False, backend="numpy")
    sizes = (7, 11, *(n for n in program.sizes if n > 1), 12)
    results = [fun(*program.arguments(n)) for n in sizes]
    assert (fun.trace_count, len(compiled)) == (2, 2)
    special = tuple(n for n in program.sizes if n < 2)
    sizes += special
    results += [fun(*program.arguments(n)) for n in special]
    for n, found in zip(sizes, results, strict=True):
        check(found, exact(*program.arguments(n)))


def on_a_diagonal(x):
    return np.diag(x) * 2.0


def on_the_other_diagonal(x):
    i = np.arange(len(x))
    return x[i, i[::-1]] + x[i[::-1], i]


def on_a_diagonal_of_each(x):
    i = np.arange(len(x))
    return np.stack([x, 2.0 * x])[:, i, i] + 1.0


@pytest.mark.parametrize("fun", [on_a_diagonal, on_the_other_diagonal, on_a_diagonal_of_each])
def test_diagonals(fun: Callable[..., Any]) -> None:
    function = wend.function(fun, input_signature=[wend.TensorSpec([None, None])])
    for n in (0, 1, 2, 40):
        x = np.arange(float(n * n)).reshape(n, n)
        np.testing.assert_array_equal(function(x), fun(x))


# Sizes that do not fit
def added(x, y):
    return x + y


def spread(x):
    return x * np.ones(3)


def product(a, b):
    return a @ b


def filled_in(x, y):
    x = x.copy()
    x[: len(y)] = y
    x[1:] = y
    return x


def carried(x, y):
    while wnp.sum(x) < 100:
        x = x + y
    return x


def joined(x, y):
    return wnp.concatenate([x[:, None], y], axis=0)


def reshaped(x):
    return wnp.reshape(x, (-1, 4))


def pointed(x, y):
    return x[y.astype("int64")]


def picked(x, y):
    return x[y > 0]


def solved(a, b):
    return wnp.linalg.solve(a, b)


VECTOR, MATRIX = wend.TensorSpec([None]), wend.TensorSpec([None, None])
UNFIT: list[tuple[Callable[..., Any], list[wend.TensorSpec], tuple[Any, ...]]] = [
    (added, [VECTOR, VECTOR], (np.ones(3), np.ones(4))),
    (added, [MATRIX, VECTOR], (np.ones((2, 3)), np.ones(2))),
    (spread, [VECTOR], (np.ones(4),)),
    (product, [MATRIX, MATRIX], (np.ones((2, 3)), np.ones((4, 2)))),
    (product, [MATRIX, VECTOR], (np.ones((2, 3)), np.ones(2))),
    (filled_in, [VECTOR, VECTOR], (np.ones(3), np.ones(3))),
    (carried, [VECTOR, VECTOR], (np.ones(1), np.ones(3))),
    (joined, [VECTOR, MATRIX], (np.ones(3), np.ones((3, 2)))),
    (reshaped, [VECTOR], (np.ones(6),)),
    (pointed, [VECTOR, VECTOR], (np.ones(3), np.array([0.0, 3.0]))),
    (picked, [VECTOR, VECTOR], (np.ones(3), np.ones(4))),
    (solved, [MATRIX, VECTOR], (np.ones((2, 3)), np.ones(2))),
]


def test_what_does_not_fit_is_told_alike(golden: Golden) -> None:
    """With the user's line, on both backends."""
    texts = []
    for fun, signature, args in UNFIT:
        found = []
        for backend in BACKENDS:
            with pytest.raises((ValueError, IndexError)) as caught:
                wend.function(fun, input_signature=signature, backend=backend)(*args)
            lines = [str(caught.value), *getattr(caught.value, "__notes__", [])]
            found.append(f"{fun.__name__}: {type(caught.value).__name__}: " + "\n  ".join(lines))
        assert found[0] == found[1]
        texts.append(found[0])
    golden.check("errors/unknown_sizes.txt", "\n".join(texts) + "\n")
