"""Fluids in a box and in a channel, by finite differences (the last steps of CFD Python)."""

from __future__ import annotations

import numpy as np

from tests.programs.npbench.kernel import Kernel


def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx) + (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)) ** 2
        - 2 * (
            (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        )
        - ((v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)) ** 2
    )  # fmt: skip


def pressure_poisson(nit, p, dx, dy, b):
    for q in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
    b = np.zeros((ny, nx))
    for n in range(nt):
        un = u.copy()
        vn = v.copy()
        build_up_b(b, rho, dt, u, v, dx, dy)
        pressure_poisson(nit, p, dx, dy, b)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu
            * (
                dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
                + dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[:-2, 1:-1])
            )
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu
            * (
                dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
                + dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
            )
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


def periodic_source(rho, dt, dx, dy, u, v):
    b = np.zeros_like(u)

    def source(east, west, up, down, v_east, v_west, v_up, v_down):
        return rho * (
            1 / dt * ((east - west) / (2 * dx) + (v_up - v_down) / (2 * dy))
            - ((east - west) / (2 * dx)) ** 2
            - 2 * ((up - down) / (2 * dy) * (v_east - v_west) / (2 * dx))
            - ((v_up - v_down) / (2 * dy)) ** 2
        )

    b[1:-1, 1:-1] = source(
        u[1:-1, 2:], u[1:-1, :-2], u[2:, 1:-1], u[:-2, 1:-1],
        v[1:-1, 2:], v[1:-1, :-2], v[2:, 1:-1], v[:-2, 1:-1],
    )  # fmt: skip
    b[1:-1, -1] = source(
        u[1:-1, 0], u[1:-1, -2], u[2:, -1], u[:-2, -1],
        v[1:-1, 0], v[1:-1, -2], v[2:, -1], v[:-2, -1],
    )  # fmt: skip
    b[1:-1, 0] = source(
        u[1:-1, 1], u[1:-1, -1], u[2:, 0], u[:-2, 0],
        v[1:-1, 1], v[1:-1, -1], v[2:, 0], v[:-2, 0],
    )  # fmt: skip
    return b


def periodic_pressure(nit, p, dx, dy, b):
    for q in range(nit):
        pn = p.copy()
        scale = 2 * (dx**2 + dy**2)
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
        ) / scale - dx**2 * dy**2 / scale * b[1:-1, 1:-1]
        p[1:-1, -1] = (
            (pn[1:-1, 0] + pn[1:-1, -2]) * dy**2 + (pn[2:, -1] + pn[:-2, -1]) * dx**2
        ) / scale - dx**2 * dy**2 / scale * b[1:-1, -1]
        p[1:-1, 0] = (
            (pn[1:-1, 1] + pn[1:-1, -1]) * dy**2 + (pn[2:, 0] + pn[:-2, 0]) * dx**2
        ) / scale - dx**2 * dy**2 / scale * b[1:-1, 0]
        p[-1, :] = p[-2, :]
        p[0, :] = p[1, :]


def moved(q, un, vn, east, west, up, down, dt, dx, dy, push, nu):
    """A velocity after a step, from its neighbours."""
    return (
        q
        - un * dt / dx * (q - west)
        - vn * dt / dy * (q - down)
        - push
        + nu * (dt / dx**2 * (east - 2 * q + west) + dt / dy**2 * (up - 2 * q + down))
    )


def channel_flow(nit, u, v, dt, dx, dy, p, rho, nu, F):
    udiff = 1
    stepcount = 0
    while udiff > 0.001:
        un = u.copy()
        vn = v.copy()
        b = periodic_source(rho, dt, dx, dy, u, v)
        periodic_pressure(nit, p, dx, dy, b)
        inner = slice(1, -1)
        for here, east, west in ((inner, slice(2, None), slice(0, -2)), (-1, 0, -2), (0, 1, -1)):
            push = dt / (2 * rho * dx) * (p[1:-1, east] - p[1:-1, west])
            u[1:-1, here] = (
                moved(
                    un[1:-1, here], un[1:-1, here], vn[1:-1, here], un[1:-1, east],
                    un[1:-1, west], un[2:, here], un[:-2, here], dt, dx, dy, push, nu,
                )
                + F * dt
            )  # fmt: skip
            push = dt / (2 * rho * dy) * (p[2:, here] - p[:-2, here])
            v[1:-1, here] = moved(
                vn[1:-1, here], un[1:-1, here], vn[1:-1, here], vn[1:-1, east],
                vn[1:-1, west], vn[2:, here], vn[:-2, here], dt, dx, dy, push, nu,
            )  # fmt: skip
        u[0, :] = 0
        u[-1, :] = 0
        v[0, :] = 0
        v[-1, :] = 0
        udiff = (np.sum(u) - np.sum(un)) / np.sum(u)
        stepcount += 1
    return stepcount


def _cavity(rng, dtype):
    nx, ny = 7, 6
    fields = [0.1 * rng.random((ny, nx)).astype(dtype) for _ in range(3)]
    u, v, p = fields
    return nx, ny, 4, 3, u, v, 0.001, 2 / (nx - 1), 2 / (ny - 1), p, 1.0, 0.1


def _channel(rng, dtype):
    nx, ny = 7, 6
    u, v = np.zeros((ny, nx), dtype), np.zeros((ny, nx), dtype)
    p = np.ones((ny, nx), dtype)
    return 3, u, v, 0.05, 2 / (nx - 1), 2 / (ny - 1), p, 1.0, 0.1, 1.0


KERNELS = [Kernel(cavity_flow, _cavity), Kernel(channel_flow, _channel)]
