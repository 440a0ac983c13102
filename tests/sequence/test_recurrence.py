"""Recurrences against the same steps in plain Python, with derivatives; cases of other systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.graphs import loops, traced
from wend.base.errors import ShapeError, StructureError
from wend.sequence import recurrence, until


@pytest.fixture(params=["numpy", "native"], autouse=True)
def backend(request: pytest.FixtureRequest) -> Any:
    with wend.config(backend=request.param):
        yield request.param


X = np.ones(3)


def fibonacci(start: Any) -> Any:
    info = {"initial": start, "taps": [-2, -1]}
    return recurrence(lambda a, b: a + b, outputs_info=info, n_steps=10)


def test_two_taps():
    start = np.array([0.0, 1.0])
    np.testing.assert_array_equal(fibonacci(start), [1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
    np.testing.assert_array_equal(wend.grad(lambda s: fibonacci(s)[-1])(start), [55, 89])


def decay(x: Any, h: Any, a: Any, truncated: int = -1) -> Any:
    """h ← a·h + x; the last h."""
    return recurrence(lambda x, h, a: a * h + x, x, h, a, truncate_gradient=truncated)[-1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("truncated", "dx", "dh", "da"),
    [
        (-1, [0.0625, 0.125, 0.25, 0.5, 1], 0.03125, 9.3125),
        (3, [0, 0, 0.25, 0.5, 1], 0, 9.0625),
        (1, [0, 0, 0, 0, 1], 0, 6.1875),
        (5, [0.0625, 0.125, 0.25, 0.5, 1], 0.03125, 9.3125),
        (9, [0.0625, 0.125, 0.25, 0.5, 1], 0.03125, 9.3125),
    ],
)
@pytest.mark.parametrize("is_traced", [False, True])
def test_truncated_gradients(truncated: int, dx: Any, dh: float, da: float, is_traced: bool):
    args = np.arange(1.0, 6.0), 1.0, 0.5
    fun = wend.grad(lambda *xs: decay(*xs, truncated), (0, 1, 2))
    assert decay(*args, truncated) == 8.09375
    found = (wend.function(fun, reduce_retracing=True) if is_traced else fun)(*args)
    for derivative, expected in zip(found, (dx, dh, da), strict=True):
        np.testing.assert_array_equal(derivative, expected)


def squares(x: Any, truncated: int = -1) -> Any:
    return recurrence(lambda x: (x * x, until(x > 5)), x, truncate_gradient=truncated)


def test_until_gives_the_step_in_which_it_holds():
    x = np.arange(15.0)
    np.testing.assert_array_equal(squares(x), [0, 1, 4, 9, 16, 25, 36])
    expected = np.where(x <= 6, 2 * x, 0)
    np.testing.assert_array_equal(wend.grad(lambda x: squares(x).sum())(x), expected)
    expected[:4] = 0
    np.testing.assert_array_equal(wend.grad(lambda x: squares(x, 3).sum())(x), expected)
    zeros = np.zeros(50)
    zeros[23] = 4
    assert recurrence(lambda x: (x, until(x > 3)), zeros).shape == (24,)


def test_until_never():
    np.testing.assert_array_equal(squares(np.arange(3.0)), [0, 1, 4])
    assert squares(np.zeros(0)).shape == (0,)


def test_taps_of_sequences_read_before_and_after():
    x = np.arange(6.0)
    found = recurrence(lambda a, b, c: a + 10 * b + 100 * c, {"input": x, "taps": [-1, 0, 2]})
    np.testing.assert_array_equal(found, [310, 421, 532])


def test_backwards_outputs_are_in_the_order_of_steps():
    found = recurrence(lambda x, h: h + x, np.arange(1.0, 5.0), 0.0, go_backwards=True)
    np.testing.assert_array_equal(found, [4, 7, 9, 10])


def test_no_steps():
    assert recurrence(lambda h: h + 1, outputs_info=[np.zeros(3)], n_steps=0).shape == (0, 3)
    last = wend.grad(lambda h: recurrence(lambda h: 2 * h, None, h, n_steps=0).sum() + h)
    assert last(1.0) == 1.0


def test_it_is_one_loop():
    graph = traced(lambda x: decay(x, 0.0, 0.5), np.arange(100.0))
    assert len(loops(graph)) == 1


def test_second_derivatives():
    """h ← h² twice is h⁴."""

    def fourth(h: Any) -> Any:
        return recurrence(lambda h: h * h, outputs_info=h, n_steps=2)[-1]

    np.testing.assert_allclose(wend.grad(wend.grad(fourth))(1.1), 12 * 1.1**2)


def test_the_number_of_steps_may_be_traced():
    @wend.function
    def power(n: Any, x: Any) -> Any:
        return recurrence(lambda h: h * x, outputs_info=1.0, n_steps=n)[-1]

    assert power(np.int64(4), 2.0) == 16.0
    assert wend.grad(power, 1)(np.int64(4), 2.0) == 32.0


@settings(deadline=None)
@given(data=st.data())
def test_random_taps(data: st.DataObject):
    """Values and gradients are those of the steps in plain Python."""
    taps = st.lists(st.integers(-3, 3), min_size=1, max_size=3, unique=True)
    x_taps = data.draw(taps)
    y_taps = data.draw(st.lists(st.integers(-3, -1), min_size=1, max_size=3, unique=True))
    reverse, cut = data.draw(st.booleans()), data.draw(st.sampled_from([None, 3, 0]))
    x = np.cos(np.arange(11.0))
    initial = np.sin(np.arange(1.0, 1 - min(y_taps)))
    first, last = min(*x_taps, 0), max(*x_taps, 0)
    steps = 11 - (last - first) if cut is None else cut

    def formula(xs: Any, ys: Any) -> Any:
        return sum((k + 1.0) * v for k, v in enumerate(xs)) * 0.3 + 0.4 * ys[0] * ys[-1]

    @wend.do_not_capture
    def by_steps(x: Any, initial: Any) -> Any:
        rows = x[::-1] if reverse else x
        ys = [initial[k] for k in range(-min(y_taps))]
        for t in range(steps):
            xs = [rows[t + tap - first] for tap in x_taps]
            ys.append(formula(xs, [ys[len(ys) + tap] for tap in y_taps]))
        return wnp.sum(wnp.stack(ys[-min(y_taps) :] or [0.0 * initial[0]]))

    def by_recurrence(x: Any, initial: Any) -> Any:
        start = initial[0] if min(y_taps) == -1 else initial
        return wnp.sum(
            recurrence(
                lambda *vs: formula(vs[: len(x_taps)], vs[len(x_taps) :]),
                {"input": x, "taps": x_taps},
                {"initial": start, "taps": y_taps},
                n_steps=cut,
                go_backwards=reverse,
            )
        )

    expected = wend.value_and_grad(by_steps, (0, 1))(x, initial)
    found = wend.value_and_grad(by_recurrence, (0, 1))(x, initial)
    for a, b in zip(wend.tree.leaves(found), wend.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_ragged_batches_are_their_rows_alone():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4, 3))
    # Exact products: BLAS may round the sums of one row otherwise than those of four.
    w = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, -1.0], [2.0, 0.0, 0.0]])
    lengths = np.array([2, 6, 0, 5])

    def states(x: Any, w: Any, lengths: Any) -> Any:
        start = wnp.zeros(x.shape[1:])
        return recurrence(
            lambda x, h: [wnp.tanh(h @ w + x), x * x], x, [start, None], lengths=lengths
        )

    hs, squares = states(x, w, lengths)
    for k, length in enumerate(lengths):
        alone, squared = states(x[:length, k : k + 1], w, np.array([length]))
        np.testing.assert_allclose(hs[:length, k], alone[:, 0], rtol=1e-14)
        np.testing.assert_array_equal(squares[:length, k], squared[:, 0])
        assert not hs[length:, k].any()
        assert not squares[length:, k].any()

    def loss(w: Any, x: Any, lengths: Any) -> Any:
        return wnp.sum(states(x, w, lengths)[0] ** 2)

    together = wend.grad(loss)(w, x, lengths)
    alone = sum(wend.grad(loss)(w, x[:n, k : k + 1], np.array([n])) for k, n in enumerate(lengths))
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_a_finished_row_keeps_its_state():
    def step(x: Any, h: Any) -> Any:
        return h + x

    found = recurrence(step, np.ones((4, 3)), np.zeros(3), lengths=np.array([1, 4, 0]))
    np.testing.assert_array_equal(found[:, 0], [1, 0, 0, 0])
    np.testing.assert_array_equal(found[:, 1], [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: recurrence(lambda h: h, outputs_info=1.0),
         ShapeError, "give sequences or n_steps"),
        (lambda: recurrence(lambda x: x, np.ones(3), n_steps=4),
         ShapeError, "n_steps=4, and the sequences have"),
        (lambda: recurrence(lambda x: x, 1.0),
         ShapeError, "is a scalar, it has no rows"),
        (lambda: recurrence(lambda h: h, None, {"initial": 1.0, "taps": [0]}, n_steps=1),
         ValueError, "has the tap 0, but a step has earlier outputs only"),
        (lambda: recurrence(lambda h: h, None, {"taps": [-1]}, n_steps=1),
         ValueError, "no initial"),
        (lambda: recurrence(lambda h: h, None, {"start": 1.0}, n_steps=1),
         ValueError, "'start' is"),
        (lambda: recurrence(lambda x: x, {"input": np.ones(3), "taps": 0.5}),
         TypeError, "are ints"),
        (lambda: recurrence(lambda a, b: a, None, {"initial": X, "taps": [-2, -1]}, n_steps=1),
         ShapeError, "need 2 initial rows, the oldest first, not 3"),
        (lambda: recurrence(lambda x: [x, x], np.ones(3), [None]),
         StructureError, "gives 2 outputs"),
        (lambda: recurrence(lambda x: x, np.ones(3), truncate_gradient=0),
         ValueError, "truncate_gradient is a number of steps or -1"),
        (lambda: recurrence(lambda x: x, np.ones((3, 2)), lengths=np.ones(4, int)),
         ShapeError, "outputs have a batch as first axis"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: Any, message: str):
    with pytest.raises(error, match=message):
        call()
