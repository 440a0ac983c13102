"""RNN, GRU and LSTM: loops over the time steps, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import wend.numpy as wnp
from wend.interop.onnx.operators import elementwise
from wend.trace.control.scan import scan

Step = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]

_ACTIVATIONS: Mapping[str, Callable[..., Any]] = {
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "elu": lambda x, alpha, beta: elementwise.elu(x, alpha),
    "hardsigmoid": lambda x, alpha, beta: elementwise.hard_sigmoid(x, alpha, beta),
    "leakyrelu": lambda x, alpha, beta: elementwise.leaky_relu(x, alpha),
    "relu": lambda x, alpha, beta: wnp.maximum(x, 0),
    "scaledtanh": lambda x, alpha, beta: alpha * wnp.tanh(beta * x),
    "sigmoid": lambda x, alpha, beta: elementwise.sigmoid(x),
    "softplus": lambda x, alpha, beta: elementwise.softplus(x),
    "softsign": lambda x, alpha, beta: elementwise.softsign(x),
    "tanh": lambda x, alpha, beta: wnp.tanh(x),
    "thresholdedrelu": lambda x, alpha, beta: elementwise.thresholded_relu(x, alpha),
}
_DEFAULTS: Mapping[str, tuple[float, float]] = {
    "affine": (1.0, 0.0),
    "elu": (1.0, 0.0),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, 0.0),
    "scaledtanh": (1.0, 1.0),
    "thresholdedrelu": (1.0, 0.0),
}


def _functions(
    names: Sequence[str] | None,
    defaults: Sequence[str],
    directions: int,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    limit: float | None,
) -> list[Callable[[Any], Any]]:
    """Return the activations of all directions; their inputs are limited if asked."""
    chosen = list(names) if names else list(defaults) * directions
    alpha_values, beta_values = iter(alphas or ()), iter(betas or ())

    def function(name: str) -> Callable[[Any], Any]:
        key = name.lower()
        alpha, beta = _DEFAULTS.get(key, (0.0, 0.0))
        if key in _DEFAULTS:
            alpha = next(alpha_values, alpha)
            if key in ("affine", "hardsigmoid", "scaledtanh"):
                beta = next(beta_values, beta)
        activation = _ACTIVATIONS[key]

        def activate(x: Any) -> Any:
            x = x if limit is None else wnp.clip(x, -limit, limit)
            return activation(x, alpha, beta).astype(x.dtype)

        return activate

    return [function(name) for name in chosen]


def _run(
    x: Any,
    lengths: Any,
    states: Sequence[tuple[Any, ...]],
    steps: Sequence[Step],
    direction: str,
    layout: int,
) -> tuple[Any, ...]:
    """Return all outputs, and the last states, of the directions of a layer.

    Args:
        x: the inputs: by time, batch and feature.
        lengths: the number of time steps of each sequence; None: all.
        states: the first states of each direction.
        steps: the step of each direction: from states and an input to states, whose first is the
            output.
        direction: `forward`, `reverse` or `bidirectional`.
        layout: 1 if the batch comes first.
    """
    times = wnp.arange(x.shape[0])
    outputs, last = [], []
    for k, step in enumerate(steps):
        is_reverse = direction == "reverse" or k == 1

        def advance(carry: Any, at: Any, step: Step = step) -> Any:
            time, features = at
            new = step(carry, features)
            if lengths is None:
                return new, new[0]
            runs = (time < lengths).reshape(-1, 1)
            limited = tuple(wnp.where(runs, a, b) for a, b in zip(new, carry, strict=True))
            return limited, wnp.where(runs, new[0], wnp.zeros_like(new[0]))

        final, y = scan(advance, tuple(states[k]), (times, x), reverse=is_reverse)
        outputs.append(y)
        last.append(final)
    y = wnp.stack(outputs, axis=1)
    ends = tuple(wnp.stack([final[j] for final in last]) for j in range(len(states[0])))
    if layout:
        y = wnp.transpose(y, (2, 0, 1, 3))
        ends = tuple(wnp.swapaxes(end, 0, 1) for end in ends)
    return (y, *ends)


def _prepared(
    x: Any, w: Any, states: Sequence[Any], hidden: int, layout: int
) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return the inputs by time, and the first states of each direction."""
    x = wnp.swapaxes(x, 0, 1) if layout else x
    directions, batch = w.shape[0], x.shape[1]
    first = []
    for state in states:
        if state is None:
            state = wnp.zeros((directions, batch, hidden), x.dtype)
        elif layout:
            state = wnp.swapaxes(state, 0, 1)
        first.append(state)
    return x, [tuple(state[k] for state in first) for k in range(directions)]


def rnn(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    outputs: int = 2,
) -> Any:
    """Return all outputs and the last ones: f(W x + R h + b)."""
    hidden = r.shape[-1]
    x, states = _prepared(x, w, [initial_h], hidden, layout)
    b = wnp.zeros((w.shape[0], 2 * hidden), x.dtype) if b is None else b
    functions = _functions(
        activations, ["Tanh"], w.shape[0], activation_alpha, activation_beta, clip
    )

    def step(k: int) -> Step:
        bias = b[k, :hidden] + b[k, hidden:]
        return lambda carry, at: (functions[k](at @ w[k].T + carry[0] @ r[k].T + bias),)

    return _run(x, sequence_lens, states, [*map(step, range(w.shape[0]))], direction, layout)


def gru(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    outputs: int = 2,
) -> Any:
    """Return all outputs and the last ones of gated recurrent units; gates are z, r, h."""
    hidden = r.shape[-1]
    x, states = _prepared(x, w, [initial_h], hidden, layout)
    b = wnp.zeros((w.shape[0], 6 * hidden), x.dtype) if b is None else b
    functions = _functions(
        activations, ["Sigmoid", "Tanh"], w.shape[0], activation_alpha, activation_beta, clip
    )

    def step(k: int) -> Step:
        gate, new = functions[2 * k], functions[2 * k + 1]
        wb, rb = b[k, : 3 * hidden], b[k, 3 * hidden :]
        h = slice(2 * hidden, None)

        def advance(carry: tuple[Any, ...], at: Any) -> tuple[Any, ...]:
            (before,) = carry
            inputs = at @ w[k].T + wb
            gates = inputs[:, : 2 * hidden] + before @ r[k, : 2 * hidden].T + rb[: 2 * hidden]
            update, reset = gate(gates[:, :hidden]), gate(gates[:, hidden:])
            if linear_before_reset:
                candidate = new(inputs[:, h] + reset * (before @ r[k, h].T + rb[h]))
            else:
                candidate = new(inputs[:, h] + (reset * before) @ r[k, h].T + rb[h])
            return ((1 - update) * candidate + update * before,)

        return advance

    return _run(x, sequence_lens, states, [*map(step, range(w.shape[0]))], direction, layout)


def lstm(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    p: Any = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    outputs: int = 3,
) -> Any:
    """Return all outputs, the last ones and the last cells; gates are i, o, f, c."""
    hidden = r.shape[-1]
    x, states = _prepared(x, w, [initial_h, initial_c], hidden, layout)
    b = wnp.zeros((w.shape[0], 8 * hidden), x.dtype) if b is None else b
    p = wnp.zeros((w.shape[0], 3 * hidden), x.dtype) if p is None else p
    functions = _functions(
        activations,
        ["Sigmoid", "Tanh", "Tanh"],
        w.shape[0],
        activation_alpha,
        activation_beta,
        clip,
    )

    def step(k: int) -> Step:
        gate, cell, out = functions[3 * k : 3 * k + 3]
        bias = b[k, : 4 * hidden] + b[k, 4 * hidden :]
        pi, po, pf = (p[k, j * hidden : (j + 1) * hidden] for j in range(3))

        def advance(carry: tuple[Any, ...], at: Any) -> tuple[Any, ...]:
            h, c = carry
            gates = at @ w[k].T + h @ r[k].T + bias
            i, o, f, g = (gates[:, j * hidden : (j + 1) * hidden] for j in range(4))
            i = gate(i + pi * c)
            f = 1 - i if input_forget else gate(f + pf * c)
            c = f * c + i * cell(g)
            return gate(o + po * c) * out(c), c

        return advance

    return _run(x, sequence_lens, states, [*map(step, range(w.shape[0]))], direction, layout)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"GRU": gru, "LSTM": lstm, "RNN": rnn}
