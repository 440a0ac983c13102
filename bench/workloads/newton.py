"""Newton's method for two equations in two unknowns, until both hold."""

from __future__ import annotations

from typing import Any

from bench.peer import Peer
from bench.workload import GRADIENT, VALUE, Library, Program, Workload
from bench.workloads import warp_kernels

TOLERANCE = 1e-10


def plain(lib: Library) -> Program:
    exp = lib.exp

    def program(p: Any, q: Any) -> Any:
        u, v = 1.0 + 0.0 * p, 2.0 + 0.0 * q
        e = exp(u)
        f, g = u * u + v * v - p, v * e - q
        while abs(f) + abs(g) > TOLERANCE:
            det = 2.0 * e * (u - v * v)
            u, v = u - e * (f - 2.0 * v * g / e) / det, v - (2.0 * u * g - f * v * e) / det
            e = exp(u)
            f, g = u * u + v * v - p, v * e - q
        return u + v

    return program


def functional(lib: Library) -> Program:
    def program(p: Any, q: Any) -> Any:
        def residual(u: Any, v: Any) -> tuple[Any, Any, Any]:
            e = lib.exp(u)
            return e, u * u + v * v - p, v * e - q

        def step(u: Any, v: Any, e: Any, f: Any, g: Any) -> tuple[Any, ...]:
            det = 2.0 * e * (u - v * v)
            u, v = u - e * (f - 2.0 * v * g / e) / det, v - (2.0 * u * g - f * v * e) / det
            return u, v, *residual(u, v)

        u, v = 1.0 + 0.0 * p, 2.0 + 0.0 * q
        u, v, *_ = lib.while_loop(
            lambda u, v, e, f, g: abs(f) + abs(g) > TOLERANCE,
            step,
            (u, v, *residual(u, v)),
            1 << 4,
        )
        return u + v

    return program


def in_casadi(peer: Peer, measure: str) -> Program:
    """CasADi's own Newton method, which differentiates the equations and not its steps."""
    ca = peer.library
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    equations = ca.vertcat(x[0] ** 2 + x[1] ** 2 - p[0], x[1] * ca.exp(x[0]) - p[1])
    solver = ca.rootfinder("solver", "newton", {"x": x, "p": p, "g": equations}, {"abstol": 1e-10})
    given = ca.MX.sym("p", 2)
    value = ca.sum1(solver(x0=[1.0, 2.0], p=given)["x"])
    results = [value] if measure == VALUE else [value, ca.gradient(value, given)]
    function = ca.Function("newton", [given], results)
    return lambda p, q: function([p, q])


WORKLOADS = [
    Workload(
        name="newton",
        title="Newton's method for two equations, until both hold to 1e-10",
        arguments=(4.0, 3.0),
        small=(4.0, 3.0),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0, 1),
        own={"casadi": in_casadi, "warp": warp_kernels.newton},
        tolerance=1e-8,
    )
]
