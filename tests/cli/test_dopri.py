"""The Dormand–Prince solver: its table, its error, its steps, its gradient."""

from math import factorial

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import wend
from tests.helpers.graphs import loops
from wend.cli import dopri
from wend.cli.dopri import ERROR, STAGES

# Each equation is a new function.
pytestmark = pytest.mark.filterwarnings("ignore::wend.RetraceWarning")

_HOW = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}


@pytest.fixture(params=[dopri.advance, wend.function(dopri.advance)], ids=["plain", "captured"])
def advance(request):
    return request.param


def _pendulum(g):
    return lambda angle, speed: (speed, -g * np.sin(angle))


def _exact_pendulum(g, start, duration):
    def slope(_, y):
        return [y[1], -g * np.sin(y[0])]

    return solve_ivp(slope, (0.0, duration), start, **_HOW).y[:, -1]


def test_table_fulfils_the_conditions_of_order_five():
    # Σ b Π(what hangs on it) = 1/γ for the trees of one chain and of one bush.
    rows = [(), *STAGES]
    a = np.zeros((7, 7))
    for i, row in enumerate(rows):
        a[i, : len(row)] = row
    c, fifth = a.sum(1), a[6]
    fourth = fifth - np.array(ERROR)
    for weights, order in ((fifth, 5), (fourth, 4)):
        for k in range(order):
            assert weights @ c**k == pytest.approx(1 / (k + 1), abs=1e-14)
        chain = np.ones(7)
        for k in range(order):
            assert weights @ chain == pytest.approx(1 / factorial(k + 1), abs=1e-14)
            chain = a @ chain


@pytest.mark.parametrize("tol", [1e-4, 1e-7, 1e-10])
def test_error_follows_the_tolerance(advance, tol):
    found, _, _ = advance(_pendulum(2.0), (1.0, 0.3), 5.0, 0.1, tol)
    exact = _exact_pendulum(2.0, (1.0, 0.3), 5.0)
    assert np.abs(np.array(found) - exact).max() < 50 * tol


def test_a_state_that_rests_takes_few_steps(advance):
    # Its error is 0: no step is too long for it, and none is divided by.
    (y,), _, tried = advance(lambda y: (0.0 * y,), (1.0,), 1e6, 1.0, 1e-9)
    assert (float(y), int(tried)) == (1.0, 10)


def test_number_of_steps_depends_on_the_data(advance):
    taken = [int(advance(_pendulum(g), (1.0, 0.0), 5.0, 0.1, 1e-8)[2]) for g in (0.5, 2.0, 50.0)]
    assert taken[0] < taken[1] < taken[2]
    loose, tight = (advance(_pendulum(2.0), (1.0, 0.0), 5.0, 0.1, tol) for tol in (1e-4, 1e-9))
    assert loose[2] < tight[2]


def test_a_first_step_that_is_too_long_is_tried_again(advance):
    exact = _exact_pendulum(60.0, (1.0, 0.3), 1.0)
    found, _, _ = advance(_pendulum(60.0), (1.0, 0.3), 1.0, 1.0, 1e-9)
    np.testing.assert_allclose(found, exact, rtol=1e-7)


def test_lands_on_the_end_exactly(advance):
    # A clock shows the time: it is late by nothing but the rounding of its own sum.
    for duration in (0.1, 1.0, np.pi, 20.0):
        (time, _), _, _ = advance(lambda t, y: (1.0, -y), (0.0, 1.0), duration, 0.3, 1e-9)
        assert float(time) == pytest.approx(duration, rel=1e-14)


def test_no_time_is_no_step(advance):
    state, step, tried = advance(lambda y: (y,), (3.0,), 0.0, 0.25, 1e-9)
    assert (float(state[0]), float(step), int(tried)) == (3.0, 0.25, 0)


def test_a_state_that_cannot_be_reached_is_nan(advance):
    # y' = y² from 1 is infinite at 1.
    reached, _, _ = advance(lambda y: (y * y,), (1.0,), 0.9, 0.1, 1e-9)
    assert float(reached[0]) == pytest.approx(10.0, rel=1e-6)
    with np.errstate(all="ignore"):  # the numbers of the plain program overflow aloud
        beyond, _, _ = advance(lambda y: (y * y,), (1.0,), 2.0, 0.1, 1e-9)
    assert np.isnan(beyond[0])


def _angle(start, speed, g):
    return dopri.advance(_pendulum(g), (start, speed), 5.0, 0.1, 1e-11)[0][0]


def test_gradient_goes_back_through_the_steps():
    at = (1.0, 0.3, 2.0)
    gradient = wend.grad(_angle, argnums=(0, 1, 2))(*at)
    h = 1e-5
    for k, found in enumerate(gradient):
        more, less = (
            _exact_pendulum(p[2], p[:2], 5.0)[0]
            for p in (np.array(at) + h * np.eye(3)[k], np.array(at) - h * np.eye(3)[k])
        )
        assert float(found) == pytest.approx((more - less) / (2 * h), rel=1e-7)


def test_a_rejected_step_leaves_no_trace_in_the_gradient():
    def angle(g, step):
        state, _, tried = dopri.advance(_pendulum(g), (1.0, 0.3), 1.0, step, 1e-11)
        return state[0], tried

    gradient = wend.value_and_grad(angle, has_aux=True)
    (_, few), slope = gradient(60.0, 0.005)
    (_, more), found = gradient(60.0, 1.0)
    assert more > few
    assert found == pytest.approx(slope, rel=1e-8)


def test_however_many_steps_one_node():
    graph = wend.function(_angle).get_concrete_function(1.0, 0.3, 2.0).graph
    assert len(loops(graph)) == 1


def test_the_controller_is_not_differentiated():
    # Through it, the result would depend on the first step's length too, by about the tolerance.
    def angle(step):
        return dopri.advance(_pendulum(2.0), (1.0, 0.3), 5.0, step, 1e-6)[0][0]

    assert angle(0.1) != angle(0.11)
    assert wend.grad(angle)(0.1) == 0.0
