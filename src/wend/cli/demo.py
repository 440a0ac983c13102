"""Lynx and hares: a model of differential equations, fitted by gradients through its solver.

From 1900 to 1920 the Hudson's Bay Company counted the pelts of snowshoe hares and of the lynx that
hunt them. The equations of Lotka and Volterra model the two populations:

    d hare / dt =  (alpha − beta · lynx) · hare
    d lynx / dt = (−gamma + delta · hare) · lynx

The demo finds the maximum likelihood estimates of the rates, the populations of 1900 and the spread
of the counts. The populations of a year come from an adaptive solver (see `dopri`): a loop that
runs until the year is reached, with step sizes that it chooses on the way, inside a loop over the
years. `wend.value_and_grad` differentiates through both loops, and L-BFGS follows the gradient.
Second derivatives through the same loops yield the standard errors.

The estimates are shown beside the posterior means of

    B. Carpenter: Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan. 2018.
    https://mc-stan.org/users/documentation/case-studies/lotka-volterra-predator-prey.html

whose priors are weak, so the two are close but not equal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import wend
from wend.base.errors import UnsupportedError
from wend.base.lazy.dataclass import dataclass
from wend.base.reporting.status_line import reporting
from wend.cli.dopri import Field, State, advance
from wend.cli.figure import HOW_TO_DRAW, can_draw, draw


class Parameters(NamedTuple):
    """The parameters to estimate; all are positive."""

    alpha: Any  # births of hares
    beta: Any  # hares eaten, for each lynx
    gamma: Any  # deaths of lynx
    delta: Any  # births of lynx, for each hare
    hare: Any  # the populations at the start, in thousands of pelts
    lynx: Any
    sigma_hare: Any  # the spread of the counts, on the log scale
    sigma_lynx: Any


class Populations(NamedTuple):
    """Hares and lynx, in thousands of pelts: of one year, or as columns for many years."""

    year: Any
    hare: Any
    lynx: Any


@dataclass(frozen=True)
class Pelts:
    """The counts of each year; not an array, so a constant of the model."""

    rows: tuple[Populations, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, k: Any) -> Populations:
        """Return row k, where k may be a loop counter.

        The row is selected with a switch instead of being read from an array. The model thus
        consists of scalars only, and the native backend runs it unchanged.
        """
        row: Populations = wend.switch(k, [lambda row=row: row for row in self.rows])
        return row

    @property
    def columns(self) -> Populations:
        return Populations(*np.array(self.rows).T)


START = Parameters(0.5, 0.02, 0.5, 0.02, 30.0, 4.0, 0.3, 0.3)
PUBLISHED = Parameters(0.55, 0.028, 0.80, 0.024, 34.0, 5.9, 0.25, 0.25)
MEANING = Parameters(
    "births of hares",
    "hares eaten, for each lynx",
    "deaths of lynx",
    "births of lynx, for each hare",
    "hares in 1900, thousands",
    "lynx in 1900, thousands",
    "spread of the counts of hares",
    "spread of the counts of lynx",
)

FIRST_STEP = 0.1  # years; the solver adapts it


def read_pelts() -> Pelts:
    """Return the counts from the table shipped with wend."""
    text = resources.files("wend.cli").joinpath("data/pelts.csv").read_text()
    _, *lines = text.split()
    return Pelts(tuple(Populations(*map(float, line.split(","))) for line in lines))


# The model


def lotka_volterra(p: Parameters) -> Field:
    """Return the vector field of the two populations."""

    def field(hare: Any, lynx: Any) -> State:
        return (p.alpha - p.beta * lynx) * hare, (p.delta * hare - p.gamma) * lynx

    return field


def lognormal(x: Any, median: Any, sigma: Any) -> Any:
    """Return the logarithm of the log-normal density at x."""
    z = (np.log(x) - np.log(median)) / sigma
    return -0.5 * z * z - np.log(x * sigma) - 0.5 * np.log(2.0 * np.pi)


def year_loss(counted: Populations, state: State, p: Parameters) -> Any:
    """Return the negative log likelihood of the counts of one year."""
    hare, lynx = state
    return -(
        lognormal(counted.hare, hare, p.sigma_hare) + lognormal(counted.lynx, lynx, p.sigma_lynx)
    )


def negative_log_likelihood(log_parameters: Parameters, pelts: Pelts, tol: Any) -> tuple[Any, Any]:
    """Return the negative log likelihood of the counts, and the number of solver steps tried."""
    p = Parameters(*map(np.exp, log_parameters))
    year, state, step, steps = pelts[0].year, (p.hare, p.lynx), FIRST_STEP, 0
    loss = year_loss(pelts[0], state, p)
    for k in range(1, len(pelts)):
        counted = pelts[k]
        state, step, tried = advance(lotka_volterra(p), state, counted.year - year, step, tol)
        year, steps = counted.year, steps + tried
        loss += year_loss(counted, state, p)
    return loss, steps


def trajectory(p: Parameters, times: Any, tol: Any) -> tuple[Any, Any, Any]:
    """Return both populations at all times but the first, and the steps tried for each."""
    state, step = (p.hare, p.lynx), FIRST_STEP
    hares, lynxes, tries = [], [], []
    for gap in np.diff(times):
        state, step, tried = advance(lotka_volterra(p), state, gap, step, tol)
        hares.append(state[0])
        lynxes.append(state[1])
        tries.append(tried)
    return np.array(hares), np.array(lynxes), np.array(tries)


# The fit


class Fit(NamedTuple):
    """The maximum likelihood estimate, and the cost of finding it."""

    parameters: Parameters
    loss: float
    first_steps: int  # of the solver, at START
    steps: int  # of the solver, at `parameters`
    iterations: int
    gradients: int
    gradient_seconds: float  # for one gradient, including the likelihood
    compile_seconds: float
    seconds: float  # in total
    complaint: str  # the reason if the optimizer failed, else empty


def fit(
    pelts: Pelts,
    tol: float,
    report: Callable[[str], None] = lambda text: None,
    iterations: int = 200,
) -> Fit:
    """Find the parameters that maximize the likelihood of the pelts, from START."""
    from scipy.optimize import minimize

    loss_and_gradient = wend.value_and_grad(negative_log_likelihood, has_aux=True)
    times: list[float] = []

    def evaluate(log_parameters: Any) -> tuple[Any, int, Any]:
        began = perf_counter()
        (loss, steps), gradient = loss_and_gradient(Parameters(*log_parameters), pelts, tol)
        times.append(perf_counter() - began)
        return loss, int(steps), np.array(gradient)

    def objective(log_parameters: Any) -> tuple[Any, Any]:
        loss, steps, gradient = evaluate(log_parameters)
        slope = np.linalg.norm(gradient)
        report(
            f"gradient {len(times) - 1}: −log likelihood {loss:.3f}, slope {slope:.3g}, "
            f"{steps} steps of the solver"
        )
        return loss, gradient

    report("recording the model and its gradient")
    began = perf_counter()
    _, first_steps, _ = evaluate(np.log(START))  # traces and compiles
    solution = minimize(
        objective, np.log(START), jac=True, method="L-BFGS-B", options={"maxiter": iterations}
    )
    _, steps, _ = evaluate(solution.x)
    compile_seconds, *gradient_seconds = times
    return Fit(
        Parameters(*np.exp(solution.x)),
        loss=float(solution.fun),
        first_steps=first_steps,
        steps=steps,
        iterations=int(solution.nit),
        gradients=int(solution.nfev),
        gradient_seconds=float(np.median(gradient_seconds)),
        compile_seconds=compile_seconds,
        seconds=perf_counter() - began,
        complaint="" if solution.success else str(solution.message),
    )


def standard_errors(p: Parameters, pelts: Pelts, tol: float) -> Parameters:
    """Return the standard errors at `p`, from the curvature of the likelihood."""
    log_parameters = Parameters(*np.log(p))
    hessian, _ = wend.hessian(negative_log_likelihood, has_aux=True)(log_parameters, pelts, tol)
    # An error on the log scale is a relative error.
    return Parameters(*(np.array(p) * np.sqrt(np.diag(np.linalg.inv(hessian)))))


# The command


def run(tol: float, backend: str, figure: Path | None) -> int:
    """Fit the pelts, print the result and draw it to `figure`; return the exit status."""
    pelts = read_pelts()
    try:
        with wend.config(backend=backend), reporting() as report:
            result = fit(pelts, tol, report)
            if not result.complaint:
                report("second derivatives")
                errors = standard_errors(result.parameters, pelts, tol)
    except UnsupportedError as error:
        print(f"wend demo: backend {backend!r} cannot run this yet. {error}", file=sys.stderr)
        return 1
    if result.complaint:
        print(f"wend demo: the fit did not converge: {result.complaint}", file=sys.stderr)
        return 1
    print(table(result, errors))
    if figure is not None:
        print()
        print(plot(pelts, result.parameters, tol, figure) if can_draw() else HOW_TO_DRAW)
    return 0


def table(best: Fit, errors: Parameters) -> str:
    """Return the estimates beside the published ones, and their cost, as text."""
    rows = [
        f"  {name:12}{meaning:30}{_digits(estimate, 3):>8} ± {_digits(error, 2):8}"
        f"{_digits(published, 2):>9}"
        for name, meaning, estimate, error, published in zip(
            Parameters._fields, MEANING, best.parameters, errors, PUBLISHED, strict=True
        )
    ]
    return "\n".join(
        [
            "Lynx and hares of Hudson's Bay, 1900–1920: Lotka–Volterra, fitted by gradient",
            "",
            f"  {'':42}{'estimate':>8} ± {'error':8}{'published':>9}",
            *rows,
            "",
            f"  −log likelihood {best.loss:.3f}, after {best.iterations} iterations of L-BFGS",
            f"  {best.gradients} gradients, {1e3 * best.gradient_seconds:.3g} ms each",
            f"  {best.first_steps} steps of the solver at the start, {best.steps} at the fit",
            f"  {best.seconds:.2f} s in all, {best.compile_seconds:.2f} s to record and compile",
        ]
    )


def _digits(x: Any, count: int) -> str:
    """Return a number with `count` significant digits, including trailing zeros."""
    return f"{x:#.{count}g}".rstrip(".")


def plot(pelts: Pelts, p: Parameters, tol: float, figure: Path) -> str:
    """Draw the pelts and the fitted populations; return a message with the file."""
    counted = pelts.columns
    times = np.linspace(counted.year[0], counted.year[-1], 601)
    path = wend.function(trajectory, backend="numpy")
    hare, lynx, _ = path(p, times, tol)
    _, _, steps = path(p, counted.year, tol)
    draw(figure, counted, p, Populations(times, np.r_[p.hare, hare], np.r_[p.lynx, lynx]), steps)
    return f"The fit is drawn in {figure}"
