"""The LSTM of ADBench (Srajer, Kukelova and Fitzgibbon, 2018): what comes next in a text.

Weights are vectors: every unit has inputs of its own. Each layer has four gates, of weights and of
biases; besides, what comes in is scaled, and what goes out scaled and moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload

PEERS = ("wend", "python", "jax", "torch", "tensorflow", "autograd", "numba")
BITS = 14


def cell(lib: Library) -> Program:
    np, sigmoid = lib.np, lib.sigmoid

    def step(x: Any, h: Any, c: Any, weight: Any, bias: Any) -> Any:
        forget = sigmoid(x * weight[0] + bias[0])
        write = sigmoid(h * weight[1] + bias[1])
        read = sigmoid(x * weight[2] + bias[2])
        c = c * forget + write * np.tanh(h * weight[3] + bias[3])
        return read * np.tanh(c), c

    made: Program = lib.helper(step)
    return made


def loss(lib: Library) -> Program:
    np = lib.np

    def of(x: Any, extra: Any, following: Any) -> Any:
        guess = x * extra[1] + extra[2]
        return np.sum(following * (guess - np.log(np.sum(np.exp(guess)) + 2.0)))

    made: Program = lib.helper(of)
    return made


def plain(lib: Library) -> Program:
    step, of, rows, steps = cell(lib), loss(lib), lib.rows, lib.range

    def program(weights: Any, biases: Any, extra: Any, hidden: Any, cells: Any, text: Any) -> Any:
        h, k, c, d = hidden[0], hidden[1], cells[0], cells[1]
        total = 0.0 * h[0]
        for t in steps(rows(text) - 1):
            h, c = step(text[t] * extra[0], h, c, weights[0], biases[0])
            k, d = step(h, k, d, weights[1], biases[1])
            total = total + of(k, extra, text[t + 1])
        return -total / ((rows(text) - 1) * BITS)

    return program


def functional(lib: Library) -> Program:
    np, step, of = lib.np, cell(lib), loss(lib)

    def program(weights: Any, biases: Any, extra: Any, hidden: Any, cells: Any, text: Any) -> Any:
        def body(carry: Any, given: Any) -> Any:
            h, k, c, d = carry
            x, following = given
            h, c = step(x * extra[0], h, c, weights[0], biases[0])
            k, d = step(h, k, d, weights[1], biases[1])
            return (h, k, c, d), of(k, extra, following)

        start = (hidden[0], hidden[1], cells[0], cells[1])
        _, losses = lib.scan(body, start, (text[:-1], text[1:]))
        return -np.sum(losses) / losses.size / BITS

    return program


def arguments(length: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(14)
    shapes = (2, 4, BITS), (2, 4, BITS), (3, BITS), (2, BITS), (2, BITS)
    text = rng.integers(0, 2, (length, BITS)).astype(np.float64)
    return (*(rng.standard_normal(shape) for shape in shapes), text)


WORKLOADS = [
    Workload(
        name="letters",
        title="ADBench's LSTM: two layers of 14 units, 1,024 letters",
        arguments=arguments(1024),
        small=arguments(5),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0, 1, 2),
        answer=differences(plain(LIBRARY), (0, 1, 2)),
        peers=PEERS,
        trips=lambda *given: len(given[-1]) - 1,
        tolerance=1e-6,
    )
]
