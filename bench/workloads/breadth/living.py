"""Populations and neurons."""

from __future__ import annotations

from typing import Any

from bench.workload import Library, Program
from bench.workloads.breadth import normal, uniform, workload


def epidemic(lib: Library) -> Program:
    def program(beta: Any, gamma: Any, seen: Any) -> Any:
        s, i, loss = 0.99, 0.01, 0.0
        for t in range(seen.shape[0]):
            infected, recovered = beta * s * i, gamma * i
            s = s - 0.1 * infected
            i = i + 0.1 * (infected - recovered)
            loss += (i - seen[t]) ** 2
        return loss

    return program


def epidemic_scan(lib: Library) -> Program:
    def program(beta: Any, gamma: Any, seen: Any) -> Any:
        def step(carry: Any, seen: Any) -> Any:
            s, i, loss = carry
            infected, recovered = beta * s * i, gamma * i
            s, i = s - 0.1 * infected, i + 0.1 * (infected - recovered)
            return (s, i, loss + (i - seen) ** 2), None

        return lib.scan(step, (0.99, 0.01, 0.0), seen)[0][2]

    return program


def hodgkin_huxley(lib: Library) -> Program:
    np = lib.np

    def program(sodium: Any, potassium: Any, current: Any) -> Any:
        v, m, h, n, total = -64.9, 0.05, 0.6, 0.32, 0.0
        for _ in range(2000):
            m_opens = 0.1 * (v + 40.0) / (1.0 - np.exp(-(v + 40.0) / 10.0))
            m_closes = 4.0 * np.exp(-(v + 65.0) / 18.0)
            h_opens = 0.07 * np.exp(-(v + 65.0) / 20.0)
            h_closes = 1.0 / (1.0 + np.exp(-(v + 35.0) / 10.0))
            n_opens = 0.01 * (v + 55.0) / (1.0 - np.exp(-(v + 55.0) / 10.0))
            n_closes = 0.125 * np.exp(-(v + 65.0) / 80.0)
            inwards = current - sodium * m**3 * h * (v - 50.0)
            dv = inwards - potassium * n**4 * (v + 77.0) - 0.3 * (v + 54.4)
            total += v * v
            v = v + 0.01 * dv
            m = m + 0.01 * (m_opens * (1.0 - m) - m_closes * m)
            h = h + 0.01 * (h_opens * (1.0 - h) - h_closes * h)
            n = n + 0.01 * (n_opens * (1.0 - n) - n_closes * n)
        return total * 1e-4

    return program


def hodgkin_huxley_scan(lib: Library) -> Program:
    np = lib.np

    def program(sodium: Any, potassium: Any, current: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            v, m, h, n, total = carry
            m_opens = 0.1 * (v + 40.0) / (1.0 - np.exp(-(v + 40.0) / 10.0))
            m_closes = 4.0 * np.exp(-(v + 65.0) / 18.0)
            h_opens = 0.07 * np.exp(-(v + 65.0) / 20.0)
            h_closes = 1.0 / (1.0 + np.exp(-(v + 35.0) / 10.0))
            n_opens = 0.01 * (v + 55.0) / (1.0 - np.exp(-(v + 55.0) / 10.0))
            n_closes = 0.125 * np.exp(-(v + 65.0) / 80.0)
            inwards = current - sodium * m**3 * h * (v - 50.0)
            dv = inwards - potassium * n**4 * (v + 77.0) - 0.3 * (v + 54.4)
            m = m + 0.01 * (m_opens * (1.0 - m) - m_closes * m)
            h = h + 0.01 * (h_opens * (1.0 - h) - h_closes * h)
            n = n + 0.01 * (n_opens * (1.0 - n) - n_closes * n)
            return (v + 0.01 * dv, m, h, n, total + v * v), None

        start = -64.9, 0.05, 0.6, 0.32, 0.0
        return lib.scan(step, start, None, length=2000)[0][4] * 1e-4

    return program


def spiking(lib: Library) -> Program:
    np = lib.np

    def program(w: Any, current: Any) -> Any:
        v, total = np.zeros(current.shape[1]), 0.0
        for t in range(current.shape[0]):
            spikes = np.where(v > 1.0, 1.0, 0.0)
            v = np.where(v > 1.0, 0.0, v * 0.9) + w @ spikes + current[t]
            total += np.sum(spikes) + np.sum(v * v)
        return total

    return program


def spiking_scan(lib: Library) -> Program:
    np = lib.np

    def program(w: Any, current: Any) -> Any:
        def step(carry: Any, now: Any) -> Any:
            v, total = carry
            spikes = np.where(v > 1.0, 1.0, 0.0)
            v = np.where(v > 1.0, 0.0, v * 0.9) + w @ spikes + now
            return (v, total + np.sum(spikes) + np.sum(v * v)), None

        return lib.scan(step, (np.zeros(current.shape[1]), 0.0), current)[0][1]

    return program


def of_spiking(neurons: int, steps: int) -> tuple[Any, ...]:
    return 0.05 * normal(neurons, neurons), 0.3 * uniform(steps, neurons)


WORKLOADS = [
    workload(
        "epidemic",
        "the loss of an epidemic's model (SIR), 1000 steps of scalars",
        epidemic,
        epidemic_scan,
        (1.5, 0.5, 0.1 * uniform(1000)),
        (1.2, 0.4, 0.1 * uniform(5)),
        (0, 1),
    ),
    workload(
        "hodgkin_huxley",
        "Hodgkin and Huxley's neuron, 2000 steps of scalars",
        hodgkin_huxley,
        hodgkin_huxley_scan,
        (120.0, 36.0, 10.0),
        (115.0, 35.0, 9.0),
        (0, 1, 2),
    ),
    workload(
        "spiking",
        "100 neurons that integrate and fire, 200 steps",
        spiking,
        spiking_scan,
        of_spiking(100, 200),
        of_spiking(3, 12),
        (0, 1),
    ),
]
