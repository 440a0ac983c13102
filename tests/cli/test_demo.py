"""The demo: its likelihood, its gradient, its fit, and the command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import lognorm

import wend
from tests.helpers.graphs import loops
from wend.cli import demo
from wend.cli.demo import PUBLISHED, START, Parameters

TOL = 1e-10
LOG_START = Parameters(*np.log(START))
RATES = slice(0, 4)


@pytest.fixture(scope="module")
def pelts():
    return demo.read_pelts()


@pytest.fixture(scope="module")
def found(pelts):
    return demo.fit(pelts, 1e-8)


@pytest.fixture(scope="module")
def loss(pelts):
    compiled = wend.function(demo.negative_log_likelihood)
    return lambda log_parameters: float(compiled(Parameters(*log_parameters), pelts, TOL)[0])


def _solution(p, times):
    def slope(_, y):
        hare, lynx = y
        return [(p.alpha - p.beta * lynx) * hare, (p.delta * hare - p.gamma) * lynx]

    span = times[0], times[-1]
    start = [p.hare, p.lynx]
    return solve_ivp(slope, span, start, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-12).y


def test_the_table_is_the_company_s(pelts):
    year, hare, lynx = pelts.columns
    assert list(year) == list(range(1900, 1921))
    assert hare.sum() == pytest.approx(715.7)
    assert lynx.sum() == pytest.approx(423.5)
    assert pelts[3] == (1903.0, 77.4, 35.2)
    assert wend.function(lambda k: pelts[k])(3) == (1903.0, 77.4, 35.2)


@pytest.mark.parametrize("p", [START, PUBLISHED])
def test_likelihood_is_scipy_s(loss, pelts, p):
    year, counted_hare, counted_lynx = pelts.columns
    hare, lynx = _solution(p, year)
    expected = -(
        lognorm.logpdf(counted_hare, p.sigma_hare, scale=hare).sum()
        + lognorm.logpdf(counted_lynx, p.sigma_lynx, scale=lynx).sum()
    )
    assert loss(np.log(p)) == pytest.approx(expected, rel=1e-8)


def test_trajectory_is_scipy_s():
    times = np.array([1900.0, 1900.25, 1901.0, 1907.5, 1920.0])
    hare, lynx, steps = wend.function(demo.trajectory)(PUBLISHED, times, TOL)
    np.testing.assert_allclose((hare, lynx), _solution(PUBLISHED, times)[:, 1:], rtol=1e-8)
    assert (steps > 0).all()


def test_the_model_is_plain_python(pelts):
    # Not recorded, it computes the same with numbers.
    plain = demo.negative_log_likelihood(LOG_START, pelts, 1e-6)
    compiled = wend.function(demo.negative_log_likelihood)(LOG_START, pelts, 1e-6)
    assert plain == pytest.approx(compiled, rel=1e-12)
    times = np.array([1900.0, 1901.0, 1907.5])
    plain = demo.trajectory(PUBLISHED, times, 1e-6)
    for mine, theirs in zip(
        wend.function(demo.trajectory)(PUBLISHED, times, 1e-6), plain, strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_gradient_is_that_of_finite_differences(loss, pelts):
    gradient = wend.value_and_grad(demo.negative_log_likelihood, has_aux=True)
    (value, steps), found = gradient(LOG_START, pelts, TOL)
    assert value == pytest.approx(loss(LOG_START), rel=1e-14)
    assert steps > 100
    h = 1e-4
    for name, slope, way in zip(Parameters._fields, found, np.eye(len(START)), strict=True):
        near, far = (
            (loss(LOG_START + k * h * way) - loss(LOG_START - k * h * way)) / (2 * k * h)
            for k in (1, 2)
        )
        assert slope == pytest.approx((4 * near - far) / 3, rel=1e-6), name


def test_native_backend_agrees(pelts):
    gradient = wend.value_and_grad(demo.negative_log_likelihood, has_aux=True)
    (loss, steps), slopes = gradient(LOG_START, pelts, TOL)
    with wend.config(backend="native"):
        (native_loss, native_steps), native_slopes = gradient(LOG_START, pelts, TOL)
    assert native_steps == steps
    assert native_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(native_slopes, slopes, rtol=1e-9)


def test_the_model_is_one_loop_over_years_around_one_over_steps(pelts):
    model = wend.function(demo.negative_log_likelihood)
    (years,) = loops(model.get_concrete_function(LOG_START, pelts, TOL).graph)
    _, body = years.regions
    assert len(loops(body)) == 1


def test_a_few_iterations_improve(loss, pelts):
    told = []
    found = demo.fit(pelts, 1e-6, told.append, iterations=3)
    assert found.iterations == 3
    assert found.complaint
    assert found.loss < loss(LOG_START) - 100
    assert len(told) == found.gradients + 1


def test_fit_finds_the_published_rates(found):
    assert not found.complaint
    np.testing.assert_allclose(found.parameters[RATES], PUBLISHED[RATES], rtol=0.05)
    np.testing.assert_allclose(found.parameters[4:6], PUBLISHED[4:6], rtol=0.05)
    assert found.seconds < 60


def test_number_of_steps_varies_with_the_parameters(found):
    assert found.steps != found.first_steps


def test_fit_is_a_minimum(found, loss):
    at = np.log(found.parameters)
    for way in np.eye(len(START)):
        assert loss(at + 0.01 * way) > loss(at)
        assert loss(at - 0.01 * way) > loss(at)


def test_standard_errors_are_those_of_finite_differences(found, pelts):
    gradient = wend.grad(demo.negative_log_likelihood, has_aux=True)
    at, h = np.log(found.parameters), 1e-4
    hessian = [
        np.subtract(*(gradient(Parameters(*x), pelts, 1e-8)[0] for x in (at + h * e, at - h * e)))
        for e in np.eye(len(START))
    ]
    spread = np.sqrt(np.diag(np.linalg.inv(np.array(hessian) / (2 * h))))
    errors = demo.standard_errors(found.parameters, pelts, 1e-8)
    np.testing.assert_allclose(errors, spread * found.parameters, rtol=1e-4)


def test_table_has_a_row_for_each_parameter(found):
    text = demo.table(found, Parameters(*(0.1 * np.array(found.parameters))))
    for name in Parameters._fields:
        assert name in text
    assert "0.540" in text
    assert f"{found.first_steps} steps of the solver at the start, {found.steps} at" in text


def test_a_backend_that_cannot_is_told_in_one_line(monkeypatch, capsys):
    def refuse(*_):
        raise wend.base.errors.UnsupportedError("native does not know `gather` (demo.py:1)")

    monkeypatch.setattr(demo, "fit", refuse)
    assert demo.run(1e-8, "numpy", None) == 1
    assert "gather" in capsys.readouterr().err


def test_a_fit_that_fails_is_told(monkeypatch, capsys):
    fit = demo.fit
    monkeypatch.setattr(demo, "fit", lambda *given: fit(*given, iterations=1))
    assert demo.run(1e-4, "numpy", None) == 1
    assert "did not converge" in capsys.readouterr().err


def test_the_command_where_wend_is_installed(tmp_path):
    # Not in a folder of its sources, as `pip install wend` leaves it.
    packages, here = tmp_path / "site-packages", tmp_path / "here"
    shutil.copytree(Path(wend.__file__).parent, packages / "wend")
    here.mkdir()
    command = [sys.executable, "-m", "wend", "demo", "--no-plot", "--tol", "1e-4"]
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(packages)},
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""  # nobody watches: no progress line
    for word in ("alpha", "0.540", "published", "steps of the solver"):
        assert word in run.stdout
    assert not list(here.iterdir())


def test_without_matplotlib_a_line_says_how_to_get_it(monkeypatch, capsys, tmp_path, found):
    monkeypatch.setattr(demo, "fit", lambda *_: found)
    monkeypatch.setattr(demo, "standard_errors", lambda *_: found.parameters)
    monkeypatch.setattr(demo, "can_draw", lambda: False)
    assert demo.run(1e-8, "numpy", tmp_path / "fit.png") == 0
    assert "pip install" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_plot(pelts, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "fit.png"
    assert str(file) in demo.plot(pelts, PUBLISHED, 1e-6, file)
    assert file.read_bytes().startswith(b"\x89PNG")
