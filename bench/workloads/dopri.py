"""Lotka and Volterra's equations by the adaptive method of Dormand and Prince, order 5(4).

The length of a step is the method's choice and no part of the problem, so its derivative is
stopped, by everyone who has a way to. Catalyst has none; the solvers of diffrax and CasADi do
something of their own. They agree to the error that the solution has anyway.

References:
    J. R. Dormand and P. J. Prince: A family of embedded Runge–Kutta formulae.
    Journal of Computational and Applied Mathematics 6 (1980), 19–26.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.workload import FIRST_GRADIENT, GRADIENT, VALUE, Library, Program, Workload

TOL = 1e-8
FIRST_STEP = 0.1
RATES_AND_START = (0.55, 0.028, 0.8, 0.024, 34.0, 5.9)


def make_attempt(lib: Library) -> Callable[..., tuple[Any, ...]]:
    """Return the function that tries a step: the new state, its slope, how much too large an error.

    For the step of length h from (y, z), where the slope is (k1, l1).
    """
    sqrt, maximum = lib.sqrt, lib.maximum

    def attempt(
        alpha: Any, beta: Any, gamma: Any, delta: Any, h: Any, y: Any, z: Any, k1: Any, l1: Any
    ) -> tuple[Any, ...]:
        u, w = y + h * (1 / 5 * k1), z + h * (1 / 5 * l1)
        k2, l2 = (alpha - beta * w) * u, (delta * u - gamma) * w
        u = y + h * (3 / 40 * k1 + 9 / 40 * k2)
        w = z + h * (3 / 40 * l1 + 9 / 40 * l2)
        k3, l3 = (alpha - beta * w) * u, (delta * u - gamma) * w
        u = y + h * (44 / 45 * k1 - 56 / 15 * k2 + 32 / 9 * k3)
        w = z + h * (44 / 45 * l1 - 56 / 15 * l2 + 32 / 9 * l3)
        k4, l4 = (alpha - beta * w) * u, (delta * u - gamma) * w
        u = y + h * (19372 / 6561 * k1 - 25360 / 2187 * k2 + 64448 / 6561 * k3 - 212 / 729 * k4)
        w = z + h * (19372 / 6561 * l1 - 25360 / 2187 * l2 + 64448 / 6561 * l3 - 212 / 729 * l4)
        k5, l5 = (alpha - beta * w) * u, (delta * u - gamma) * w
        u = y + h * (
            9017 / 3168 * k1 - 355 / 33 * k2 + 46732 / 5247 * k3 + 49 / 176 * k4 - 5103 / 18656 * k5
        )
        w = z + h * (
            9017 / 3168 * l1 - 355 / 33 * l2 + 46732 / 5247 * l3 + 49 / 176 * l4 - 5103 / 18656 * l5
        )
        k6, l6 = (alpha - beta * w) * u, (delta * u - gamma) * w
        u = y + h * (
            35 / 384 * k1 + 500 / 1113 * k3 + 125 / 192 * k4 - 2187 / 6784 * k5 + 11 / 84 * k6
        )
        w = z + h * (
            35 / 384 * l1 + 500 / 1113 * l3 + 125 / 192 * l4 - 2187 / 6784 * l5 + 11 / 84 * l6
        )
        k7, l7 = (alpha - beta * w) * u, (delta * u - gamma) * w
        e = 71 / 57600 * k1 - 71 / 16695 * k3 + 71 / 1920 * k4
        e = h * (e - 17253 / 339200 * k5 + 22 / 525 * k6 - 1 / 40 * k7)
        d = 71 / 57600 * l1 - 71 / 16695 * l3 + 71 / 1920 * l4
        d = h * (d - 17253 / 339200 * l5 + 22 / 525 * l6 - 1 / 40 * l7)
        e = e / (TOL + TOL * maximum(abs(y), abs(u)))
        d = d / (TOL + TOL * maximum(abs(z), abs(w)))
        return u, w, k7, l7, sqrt(0.5 * (e * e + d * d))

    return attempt


def plain(lib: Library) -> Program:
    attempt = lib.helper(make_attempt(lib))
    maximum, minimum, stop_gradient = lib.maximum, lib.minimum, lib.stop_gradient

    def program(
        alpha: Any, beta: Any, gamma: Any, delta: Any, y: Any, z: Any, duration: Any
    ) -> Any:
        left, step = duration, 0.0 * duration + FIRST_STEP
        k, l = (alpha - beta * z) * y, (delta * y - gamma) * z
        while left > 0.0:
            h = minimum(step, left)
            u, w, k7, l7, ratio = attempt(alpha, beta, gamma, delta, h, y, z, k, l)
            ratio = stop_gradient(ratio)
            if ratio <= 1.0:
                y, z, k, l = u, w, k7, l7
                left = left - h
                step = h * minimum(0.9 * maximum(ratio, 1e-9) ** -0.2, 5.0)
            else:
                step = 0.5 * h
        return y + z

    return program


def functional(lib: Library) -> Program:
    attempt = make_attempt(lib)

    def program(
        alpha: Any, beta: Any, gamma: Any, delta: Any, y: Any, z: Any, duration: Any
    ) -> Any:
        def body(left: Any, step: Any, y: Any, z: Any, k: Any, l: Any) -> tuple[Any, ...]:
            h = lib.minimum(step, left)
            *new, ratio = attempt(alpha, beta, gamma, delta, h, y, z, k, l)
            ratio = lib.stop_gradient(ratio)
            done = ratio <= 1.0
            longer = h * lib.minimum(0.9 * lib.maximum(ratio, 1e-9) ** -0.2, 5.0)
            return (
                lib.where(done, left - h, left),
                lib.where(done, longer, 0.5 * h),
                *(
                    lib.where(done, there, here)
                    for there, here in zip(new, (y, z, k, l), strict=True)
                ),
            )

        slope = (alpha - beta * z) * y, (delta * y - gamma) * z
        start = (0.0 + duration, 0.0 * duration + FIRST_STEP, y, z, *slope)
        _, _, y, z, *_ = lib.while_loop(lambda left, *_: left > 0.0, body, start, 1 << 9)
        return y + z

    return program


def trips(*arguments: float) -> int:
    """The steps that are tried."""
    from bench.peers.python import LIBRARY

    count = 0

    def counted(function: Program) -> Program:
        def call(*given: Any) -> Any:
            nonlocal count
            count += 1
            return function(*given)

        return call

    plain(SimpleNamespace(**{**vars(LIBRARY), "helper": counted}))(*arguments)
    return count


def by_diffrax() -> Program:
    """Diffrax's own solver, of the same method and tolerance, with a controller of its own."""
    import diffrax

    def field(t: Any, state: Any, rates: Any) -> Any:
        (alpha, beta, gamma, delta), (y, z) = rates, state
        return (alpha - beta * z) * y, (delta * y - gamma) * z

    def program(
        alpha: Any, beta: Any, gamma: Any, delta: Any, y: Any, z: Any, duration: Any
    ) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Dopri5(),
            0.0,
            duration,
            FIRST_STEP,
            (y, z),
            (alpha, beta, gamma, delta),
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(rtol=TOL, atol=TOL),
            max_steps=1 << 10,
        )
        y, z = solution.ys
        return y[-1] + z[-1]

    return program


def in_diffrax(peer: Peer, measure: str) -> Program:
    import jax

    program = by_diffrax()
    made: Program = (
        jax.jit(program)
        if measure == VALUE
        else jax.jit(jax.value_and_grad(program, WORKLOADS[0].differentiable))
    )
    return made


def in_casadi(peer: Peer, measure: str) -> Program:
    """CVODES as CasADi brings it: another method, of the same tolerance, with its own adjoint."""
    ca = peer.library
    p, state = ca.MX.sym("p", 5), ca.MX.sym("state", 2)
    y, z, duration = state[0], state[1], p[4]  # time runs from 0 to 1, so that it is no constant
    slope = duration * ca.vertcat((p[0] - p[1] * z) * y, (p[3] * y - p[2]) * z)
    options = {"abstol": TOL, "reltol": TOL}
    solve = ca.integrator("solve", "cvodes", {"x": state, "p": p, "ode": slope}, 0.0, 1.0, options)
    given = ca.MX.sym("given", 7)
    end = solve(x0=given[4:6], p=ca.vertcat(given[:4], given[6]))["xf"]
    value = ca.sum1(end)
    results = [value] if measure == VALUE else [value, ca.gradient(value, given)[:6]]
    function = ca.Function("dopri", [given], results)
    return lambda *arguments: function(list(arguments))


WORKLOADS = [
    Workload(
        name="dopri",
        title="Lotka and Volterra's equations by Dormand and Prince, steps as the error allows",
        arguments=(*RATES_AND_START, 20.0),
        small=(*RATES_AND_START, 1.0),
        measures=(VALUE, GRADIENT, FIRST_GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0, 1, 2, 3, 4, 5),
        own={"diffrax": in_diffrax, "casadi": in_casadi},
        trips=trips,
        tolerance=1e-9,
        tolerances=dict.fromkeys(("catalyst", "diffrax", "casadi"), 1e-5),
    )
]
