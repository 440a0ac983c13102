"""A recurrent layer of long short-term memory (LSTM) in f32, its loss at every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peer import Peer
from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import FIRST_GRADIENT, GRADIENT, VALUE, Library, Program, Workload

PEERS = (
    *("wend", "wend-jax", "python", "jax", "torch", "torch-nn", "tensorflow", "tensorflow-xla"),
    *("autograd", "numba"),
)


def cell(lib: Library) -> Program:
    np, sigmoid = lib.np, lib.sigmoid

    def step(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
        n = h.shape[1]
        z = x @ w + h @ u + b
        c = sigmoid(z[:, n : 2 * n]) * c + sigmoid(z[:, :n]) * np.tanh(z[:, 2 * n : 3 * n])
        return sigmoid(z[:, 3 * n :]) * np.tanh(c), c

    made: Program = lib.helper(step)
    return made


def plain(lib: Library) -> Program:
    np, step = lib.np, cell(lib)

    def program(w: Any, u: Any, b: Any, xs: Any) -> Any:
        h = c = np.zeros_like(xs[0])
        total = 0.0
        for x in xs:
            h, c = step(x, h, c, w, u, b)
            total = total + np.sum(h * h)
        return total

    return program


def functional(lib: Library) -> Program:
    np, step = lib.np, cell(lib)

    def program(w: Any, u: Any, b: Any, xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            h, c = step(x, *carry, w, u, b)
            return (h, c), h

        zeros = np.zeros_like(xs[0])
        _, hs = lib.scan(body, (zeros, zeros), xs)
        return np.sum(hs * hs)

    return program


def in_torch_nn(peer: Peer, measure: str) -> Program:
    """`torch.nn.LSTM`, with weights as it keeps them: transposed, and with a second bias of 0."""
    torch = peer.torch  # type: ignore[attr-defined]
    layers: dict[int, Any] = {}

    def layer(w: Any, u: Any, b: Any) -> Any:
        if id(w) not in layers:
            made = layers[id(w)] = torch.nn.LSTM(len(w), len(u), dtype=w.dtype)
            with torch.no_grad():
                made.weight_ih_l0.copy_(w.T)
                made.weight_hh_l0.copy_(u.T)
                made.bias_ih_l0.copy_(b)
                made.bias_hh_l0.zero_()
        return layers[id(w)]

    def value(w: Any, u: Any, b: Any, xs: Any) -> Any:
        with torch.no_grad():
            hs, _ = layer(w, u, b)(xs)
            return torch.sum(hs * hs)

    def gradient(w: Any, u: Any, b: Any, xs: Any) -> Any:
        made = layer(w, u, b)
        hs, _ = made(xs)
        loss = torch.sum(hs * hs)
        leaves = (made.weight_ih_l0, made.weight_hh_l0, made.bias_ih_l0)
        of_w, of_u, of_b = torch.autograd.grad(loss, leaves)
        return loss.detach(), (of_w.T, of_u.T, of_b)

    return value if measure == VALUE else gradient


def arguments(steps: int, batch: int, width: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(200)
    shapes = (width, 4 * width), (width, 4 * width), (4 * width,), (steps, batch, width)
    scales = (width**-0.5,) * 3 + (1.0,)
    arrays = [s * rng.standard_normal(shape) for s, shape in zip(scales, shapes, strict=True)]
    return tuple(array.astype(np.float32) for array in arrays)


def workload(steps: int, batch: int, width: int) -> Workload:
    first = (FIRST_GRADIENT,) if batch == 1 else ()
    return Workload(
        name=f"lstm_{steps}",
        title=f"LSTM in f32, {steps} steps, {batch} sequences, {width} units",
        arguments=arguments(steps, batch, width),
        small=arguments(5, 2, 3),
        measures=(VALUE, GRADIENT, *first),
        plain=plain,
        functional=functional,
        differentiable=(0, 1, 2),
        answer=differences(plain(LIBRARY), (0, 1, 2)),
        own={"torch-nn": in_torch_nn},
        peers=PEERS,
        trips=lambda w, u, b, xs: len(xs),
        tolerance=1e-3,
    )


WORKLOADS = [workload(200, 32, 128), workload(500, 1, 64), workload(1000, 8, 256)]
