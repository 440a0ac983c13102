"""Bodies, springs and particles."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import uniform, workload


def double_pendulum(lib: Library) -> Program:
    np = lib.np

    def program(state: Any, m: Any) -> Any:
        for _ in range(300):
            total, k = np.zeros(4), np.zeros(4)
            for stage in range(4):
                h = 0.0 if stage == 0 else (0.01 if stage == 3 else 0.005)
                at = state + h * k
                a, b, u, v = at[0], at[1], at[2], at[3]
                c, s = np.cos(a - b), np.sin(a - b)
                inertia = 1.0 + m - m * c * c
                pull = m * 9.81 * np.sin(b) * c - m * s * (u * u * c + v * v)
                turn = u * u * s - 9.81 * np.sin(b) + 9.81 * np.sin(a) * c
                k = np.zeros(4)
                k[0], k[1] = u, v
                k[2] = (pull - (1.0 + m) * 9.81 * np.sin(a)) / inertia
                k[3] = ((1.0 + m) * turn + m * v * v * s * c) / inertia
                total = total + (1.0 if stage == 0 or stage == 3 else 2.0) * k
            state = state + 0.01 / 6.0 * total
        return np.sum(state)

    return program


def double_pendulum_scan(lib: Library) -> Program:
    np = lib.np

    def program(state: Any, m: Any) -> Any:
        def slope(at: Any) -> Any:
            a, b, u, v = at
            c, s = np.cos(a - b), np.sin(a - b)
            inertia = 1.0 + m - m * c * c
            pull = m * 9.81 * np.sin(b) * c - m * s * (u * u * c + v * v)
            turn = u * u * s - 9.81 * np.sin(b) + 9.81 * np.sin(a) * c
            du = (pull - (1.0 + m) * 9.81 * np.sin(a)) / inertia
            return np.array([u, v, du, ((1.0 + m) * turn + m * v * v * s * c) / inertia])

        return np.sum(lib.scan(runge_kutta(slope, 0.01), state, None, length=300)[0])

    return program


def runge_kutta(slope: Program, h: float) -> Program:
    """Return a step of a scan by the classical method of four stages."""

    def step(x: Any, _: Any) -> Any:
        k1 = slope(x)
        k2 = slope(x + 0.5 * h * k1)
        k3 = slope(x + 0.5 * h * k2)
        k4 = slope(x + h * k3)
        return x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

    return step


def rigid_body(lib: Library) -> Program:
    np = lib.np

    def program(q: Any, w: Any, inertia: Any) -> Any:
        i = inertia
        for _ in range(500):
            torque = np.array(
                [
                    (i[1] - i[2]) * w[1] * w[2],
                    (i[2] - i[0]) * w[2] * w[0],
                    (i[0] - i[1]) * w[0] * w[1],
                ]
            )
            w = w + 0.01 * (torque / i)
            turn = 0.5 * np.array(
                [
                    -q[1] * w[0] - q[2] * w[1] - q[3] * w[2],
                    q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
                    q[0] * w[1] - q[1] * w[2] + q[3] * w[0],
                    q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
                ]
            )
            q = q + 0.01 * turn
            q = q / np.sqrt(np.sum(q * q))
        return q[0] * w[0] + q[1] * w[1] + q[2] * w[2]

    return program


def rigid_body_scan(lib: Library) -> Program:
    np = lib.np

    def program(q: Any, w: Any, i: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            q, (x, y, z) = carry
            torque = [(i[1] - i[2]) * y * z, (i[2] - i[0]) * z * x, (i[0] - i[1]) * x * y]
            w = np.array([x, y, z]) + 0.01 * np.array(torque) / i
            (a, b, c, d), (x, y, z) = q, w
            turn = 0.5 * np.array(
                [
                    -b * x - c * y - d * z,
                    a * x + c * z - d * y,
                    a * y - b * z + d * x,
                    a * z + b * y - c * x,
                ]
            )
            q = q + 0.01 * turn
            return (q / np.sqrt(np.sum(q * q)), w), None

        (q, w), _ = lib.scan(step, (q, w), None, length=500)
        return q[0] * w[0] + q[1] * w[1] + q[2] * w[2]

    return program


def springs(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, stiffness: Any) -> Any:
        v = np.zeros(x.shape)
        for _ in range(200):
            d = x[1:] - x[:-1]
            length = np.sqrt(np.sum(d * d, axis=1))
            force = stiffness * (1.0 - 0.02 / length)[:, None] * d
            a = np.zeros(x.shape)
            a[:-1] += force
            a[1:] -= force
            a[:, 1] -= 9.81
            v = 0.999 * v + 0.001 * a
            v[0] = 0.0
            x = x + 0.001 * v
        return np.sum(x[-1] ** 2)

    return program


def springs_scan(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, stiffness: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            x, v = carry
            d = x[1:] - x[:-1]
            length = np.sqrt(np.sum(d * d, axis=1))
            force = stiffness * (1.0 - 0.02 / length)[:, None] * d
            a = np.zeros_like(x).at[:-1].add(force).at[1:].add(-force)
            a = a.at[:, 1].add(-9.81)
            v = (0.999 * v + 0.001 * a).at[0].set(0.0)
            return (x + 0.001 * v, v), None

        (x, _), _ = lib.scan(step, (x, np.zeros_like(x)), None, length=200)
        return np.sum(x[-1] ** 2)

    return program


def of_springs(count: int) -> tuple[Any, ...]:
    return np.stack([np.linspace(0.0, 1.0, count), np.zeros(count)], axis=1), 1000.0


def rope(lib: Library) -> Program:
    np = lib.np

    def program(stiffness: Any, start: Any) -> Any:
        x, v = start, np.zeros_like(start)
        for _ in range(100):
            force = np.zeros_like(start)
            force[:, 2] = -0.01
            d = x[1:] - x[:-1]
            length = np.sqrt(np.sum(d * d, axis=1))
            pull = (stiffness * (length - 1.0) / length)[:, None] * d
            force[:-1] += pull
            force[1:] -= pull
            v = (v + 0.05 * force) * 0.999
            v[0] = 0.0
            x = x + 0.05 * v
        return np.sum(x[:, 2])

    return program


def rope_scan(lib: Library) -> Program:
    np = lib.np

    def program(stiffness: Any, start: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            x, v = carry
            force = np.zeros_like(x).at[:, 2].set(-0.01)
            d = x[1:] - x[:-1]
            length = np.sqrt(np.sum(d * d, axis=1))
            pull = (stiffness * (length - 1.0) / length)[:, None] * d
            force = force.at[:-1].add(pull).at[1:].add(-pull)
            v = ((v + 0.05 * force) * 0.999).at[0].set(0.0)
            return (x + 0.05 * v, v), None

        (x, _), _ = lib.scan(step, (start, np.zeros_like(start)), None, length=100)
        return np.sum(x[:, 2])

    return program


def of_rope(count: int) -> tuple[Any, ...]:
    return 5.0, np.stack([np.arange(float(count)), np.zeros(count), np.zeros(count)], axis=1)


def smoothed_particles(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        n = x.shape[0]
        density = np.zeros(n)
        for i in range(n):
            for j in range(n):
                dx, dy = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
                square = dx * dx + dy * dy
                if square < 0.04:
                    density[i] += (0.04 - square) ** 3 * 1e4
        pressure = density - 1.0
        total = np.sum(pressure * pressure)
        for i in range(n):
            for j in range(n):
                dx, dy = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
                square = dx * dx + dy * dy
                if square < 0.04:
                    total += (pressure[i] + pressure[j]) * (0.2 - np.sqrt(square + 1e-12))
        return total

    return program


def smoothed_particles_at_once(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        d = x[:, None] - x[None]
        square = np.sum(d * d, axis=-1)
        near = square < 0.04
        pressure = np.sum(np.where(near, (0.04 - square) ** 3, 0.0), axis=1) * 1e4 - 1.0
        both = pressure[:, None] + pressure[None]
        repulsion = np.where(near, both * (0.2 - np.sqrt(square + 1e-12)), 0.0)
        return np.sum(pressure * pressure) + np.sum(repulsion)

    return program


def fehlberg(lib: Library) -> Program:
    np = lib.np

    def program(mu: Any) -> Any:
        x, v, t, h, steps = 2.0, 0.0, 0.0, 0.01, 0
        while t < 20.0 and steps < 100_000:
            k1, l1 = v, mu * (1.0 - x * x) * v - x
            a, b = x + h * k1 / 4.0, v + h * l1 / 4.0
            k2, l2 = b, mu * (1.0 - a * a) * b - a
            a, b = x + h * (3 * k1 + 9 * k2) / 32, v + h * (3 * l1 + 9 * l2) / 32
            k3, l3 = b, mu * (1.0 - a * a) * b - a
            a = x + h * (1932 * k1 - 7200 * k2 + 7296 * k3) / 2197
            b = v + h * (1932 * l1 - 7200 * l2 + 7296 * l3) / 2197
            k4, l4 = b, mu * (1.0 - a * a) * b - a
            a = x + h * (439 / 216 * k1 - 8 * k2 + 3680 / 513 * k3 - 845 / 4104 * k4)
            b = v + h * (439 / 216 * l1 - 8 * l2 + 3680 / 513 * l3 - 845 / 4104 * l4)
            k5, l5 = b, mu * (1.0 - a * a) * b - a
            error_x = h * (k1 / 360 - 128 * k3 / 4275 - 2197 * k4 / 75240 + k5 / 50)
            error_v = h * (l1 / 360 - 128 * l3 / 4275 - 2197 * l4 / 75240 + l5 / 50)
            error = np.sqrt(error_x * error_x + error_v * error_v) + 1e-16
            if error < 1e-8:
                x = x + h * (25 * k1 / 216 + 1408 * k3 / 2565 + 2197 * k4 / 4104 - k5 / 5)
                v = v + h * (25 * l1 / 216 + 1408 * l3 / 2565 + 2197 * l4 / 4104 - l5 / 5)
                t = t + h
            h = min(0.1, 0.9 * h * (1e-8 / error) ** 0.2)
            steps += 1
        return x

    return program


WORKLOADS = [
    workload(
        "double_pendulum",
        "a double pendulum, 300 steps of Runge and Kutta's method",
        double_pendulum,
        double_pendulum_scan,
        (np.array([1.0, 0.5, 0.0, 0.0]), 1.0),
        (np.array([0.3, 0.5, 0.1, 0.0]), 0.7),
        (0, 1),
    ),
    workload(
        "rigid_body",
        "a rigid body's attitude as a quaternion, 500 steps",
        rigid_body,
        rigid_body_scan,
        (np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.1, 1.0, 0.05]), np.array([1.0, 2.0, 3.0])),
        (np.array([0.6, 0.0, 0.8, 0.0]), np.array([0.3, 0.7, 0.2]), np.array([1.0, 1.5, 2.5])),
        (0, 1, 2),
    ),
    workload(
        "springs",
        "a chain of 50 masses in the plane, 200 steps",
        springs,
        springs_scan,
        of_springs(50),
        of_springs(4),
        (0, 1),
        tolerance=1e-4,  # of the central differences: they are of 200 steps
    ),
    workload(
        "rope",
        "a rope of 40 masses in space, 100 steps",
        rope,
        rope_scan,
        of_rope(40),
        of_rope(4),
        (0, 1),
    ),
    workload(
        "smoothed_particles",
        "pressure between 60 smoothed particles, pair by pair",
        smoothed_particles,
        smoothed_particles_at_once,
        (uniform(60, 2),),
        (0.3 * uniform(5, 2),),
        (0,),
    ),
    workload(
        "fehlberg",
        "van der Pol's equation by Runge, Kutta and Fehlberg's adaptive method",
        fehlberg,
        None,
        (2.0,),
        (0.1,),
    ),
]
