"""Layers whose loops the data end: a solver, an ODE solve, an LSTM; each a function of (w, x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def newton(w: Any, x: Any) -> Any:
    """Return the root of z + w₀ z³ = w₁ x + w₂, by Newton's method."""
    target = w[1] * x + w[2]
    z = target
    while np.max(np.abs(z + w[0] * z**3 - target)) > 1e-13:
        z = z - (z + w[0] * z**3 - target) / (1.0 + 3.0 * w[0] * z**2)
    return z


def ode(w: Any, x: Any) -> Any:
    """Return the solution of y' = w₁ sin(w₀ y) + w₂ at t = 1 from x, in steps of its own choice."""

    def slope(y: Any) -> Any:
        return w[1] * np.sin(w[0] * y) + w[2]

    y, t, h = x, 0.0, 0.25
    while t < 1.0:
        h = h if t + h < 1.0 else 1.0 - t
        k = slope(y)
        middle = slope(y + 0.5 * h * k)
        if np.max(np.abs(h * (middle - k))) < 0.06:
            y, t, h = y + h * middle, t + h, 1.5 * h
        else:
            h = 0.5 * h
    return y


def lstm(w: Any, x: Any) -> Any:
    """Return the states of an LSTM of one unit, until its cell is large or the sequence ends."""
    h, c = np.zeros(()), np.zeros(())
    states = []
    for k in range(len(x)):
        gates = w[0] * x[k] + w[1] * h + w[2] * np.array([1.0, -1.0, 0.5, 2.0])
        forget, keep, out = 1.0 / (1.0 + np.exp(-gates[:3]))
        c = forget * c + keep * np.tanh(gates[3])
        h = out * np.tanh(c)
        states.append(h)
    return np.stack(states)


Layer = Callable[[Any, Any], Any]
LAYERS: dict[str, Layer] = {"newton": newton, "ode": ode, "lstm": lstm}
WEIGHTS = np.array([0.7, 0.9, 0.4])
INPUTS = np.array([0.3, -0.6, 0.8])
TRUE_WEIGHTS = np.array([0.4, 1.2, 0.1])
