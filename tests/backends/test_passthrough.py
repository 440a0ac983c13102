"""Results that are arguments."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.build import executable
from wend.backends.passthrough import PassThrough
from wend.ir.graph import Graph
from wend.ir.types import ListType, MaybeType, tensor
from wend.ops.build import Build
from wend.passes.pipeline import LazyOptimized
from wend.runtime.sequence import Sequence

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])


def handing() -> Graph:
    """Gives what it takes, and a sum between."""
    b = Build("handing")
    x, y = b.param(tensor("f8", 3)), b.param(tensor("f8", 3))
    list, maybe = b.param(ListType(tensor("f8"))), b.param(MaybeType(ListType(tensor("f8"))))
    return b.finish([list, x, b.add(x, y), maybe, x])


@BACKENDS
def test_arguments_are_handed_on_as_they_are(backend: str) -> None:
    run = executable(backend, LazyOptimized(handing()), forwards_inputs=True)
    assert isinstance(run, PassThrough)
    assert not run.host_nodes
    x, y, list = np.ones(3), np.arange(3.0), Sequence.of([1.0])
    for maybe in (list, wend.base.zero.ZERO):
        found = run([x, y, list, maybe])
        assert [k for k, result in enumerate(found) if result is (list, x, None, maybe, x)[k]] == [
            *(0, 1, 3, 4)
        ]
        np.testing.assert_array_equal(found[2], [1.0, 2.0, 3.0])


@BACKENDS
def test_an_argument_of_another_dtype_is_cast(backend: str) -> None:
    found = executable(backend, LazyOptimized(handing()), forwards_inputs=True)(
        [[1, 2, 3], np.zeros(3), Sequence.of([]), Sequence.of([])]
    )
    assert found[1].dtype == np.float64
    np.testing.assert_array_equal(found[1], [1.0, 2.0, 3.0])


@BACKENDS
def test_what_is_computed_is_compiled_as_it_is(backend: str) -> None:
    b = Build("computed")
    x = b.param(tensor("f8"))
    assert not isinstance(
        executable(backend, LazyOptimized(b.finish([x, b.neg(x)])), forwards_inputs=True),
        PassThrough,
    )


@BACKENDS
def test_the_caller_gets_arrays_of_its_own(backend: str) -> None:
    fun = wend.function(lambda x: (x, wnp.sin(x), x), backend=backend)
    x = np.ones(3)
    first, _, last = fun(x)
    value, pullback = wend.vjp(wend.function(lambda x: x * x, backend=backend), x)
    first[0], last[1], value[2], x[:] = 5.0, 6.0, 7.0, 0.0
    np.testing.assert_array_equal(first, [5.0, 1.0, 1.0])
    np.testing.assert_array_equal(last, [1.0, 6.0, 1.0])
    np.testing.assert_array_equal(pullback(np.ones(3))[0], [2.0, 2.0, 2.0])


def test_an_argument_is_copied_once() -> None:
    """The caller may write to it; the pullback reads that copy."""
    x, y = np.ones(1_000_000), np.ones(1_000_000)
    fun = wend.function(lambda x, y: wnp.sum(x * y), backend="native")
    wend.vjp(fun, x, y)
    tracemalloc.start()
    try:
        pullback = wend.vjp(fun, x, y)[1]
        assert tracemalloc.get_traced_memory()[1] < 1.1 * (x.nbytes + y.nbytes)
    finally:
        tracemalloc.stop()
    x[:] = 5.0
    np.testing.assert_array_equal(pullback(2.0), [np.full(x.size, 2.0)] * 2)
