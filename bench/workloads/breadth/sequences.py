"""Alignments, labels, states and transforms of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import integers, normal, uniform, workload


def gotoh(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, b: Any) -> Any:
        n, m = len(a), len(b)
        pair = np.zeros((n + 1, m + 1))
        down, right = np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1))
        for i in range(1, n + 1):
            pair[i, 0] = -1e9
            down[i, 0] = -3.0 - 0.5 * i
            right[i, 0] = -1e9
        for j in range(1, m + 1):
            pair[0, j] = -1e9
            right[0, j] = -3.0 - 0.5 * j
            down[0, j] = -1e9
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                score = 2.0 if a[i - 1] == b[j - 1] else -1.0
                best = max(pair[i - 1, j - 1], down[i - 1, j - 1], right[i - 1, j - 1])
                pair[i, j] = score + best
                down[i, j] = max(pair[i - 1, j] - 3.5, down[i - 1, j] - 0.5)
                right[i, j] = max(pair[i, j - 1] - 3.5, right[i, j - 1] - 0.5)
        return max(pair[n, m], down[n, m], right[n, m])

    return program


def viterbi(lib: Library) -> Program:
    np = lib.np

    def program(moves: Any, emits: Any) -> Any:
        n, states = emits.shape
        score = emits[0].copy()
        back = np.zeros((n, states), np.int64)
        for t in range(1, n):
            new = np.zeros(states)
            for j in range(states):
                best, here = 0, score[0] + moves[0, j]
                for i in range(1, states):
                    by_i = score[i] + moves[i, j]
                    if by_i > here:
                        here = by_i
                        best = i
                new[j] = here + emits[t, j]
                back[t, j] = best
            score = new
        state = np.argmax(score)
        total = 0
        for t in range(n - 1, 0, -1):
            state = back[t, state]
            total += state * (t + 1)
        return total

    return program


def random_field(lib: Library) -> Program:
    np = lib.np

    def program(moves: Any, emits: Any) -> Any:
        alpha = emits[0]
        for t in range(1, emits.shape[0]):
            paths = alpha[:, None] + moves
            top = np.max(paths, axis=0)
            alpha = top + np.log(np.sum(np.exp(paths - top), axis=0)) + emits[t]
        top = np.max(alpha)
        return top + np.log(np.sum(np.exp(alpha - top)))

    return program


def random_field_scan(lib: Library) -> Program:
    np = lib.np

    def program(moves: Any, emits: Any) -> Any:
        def step(alpha: Any, emitted: Any) -> Any:
            paths = alpha[:, None] + moves
            top = np.max(paths, axis=0)
            return top + np.log(np.sum(np.exp(paths - top), axis=0)) + emitted, None

        alpha, _ = lib.scan(step, emits[0], emits[1:])
        top = np.max(alpha)
        return top + np.log(np.sum(np.exp(alpha - top)))

    return program


def ctc(lib: Library) -> Program:
    np = lib.np

    def program(logits: Any, labels: Any) -> Any:
        top = np.max(logits, axis=1, keepdims=True)
        mass = np.sum(np.exp(logits - top), axis=1, keepdims=True)
        scores = logits - (top + np.log(mass))
        states = 2 * len(labels) + 1
        seen = np.zeros(states, int)
        seen[1::2] = labels
        alpha = np.full(states, -1e30)
        alpha[0] = scores[0, 0]
        alpha[1] = scores[0, seen[1]]
        for t in range(1, len(logits)):
            new = np.zeros(states)
            for s in range(states):
                here = alpha[s]
                if s > 0:
                    here = np.logaddexp(here, alpha[s - 1])
                if s > 1 and seen[s] != 0 and seen[s] != seen[s - 2]:
                    here = np.logaddexp(here, alpha[s - 2])
                new[s] = here + scores[t, seen[s]]
            alpha = new
        return -np.logaddexp(alpha[states - 1], alpha[states - 2])

    return program


def ctc_scan(lib: Library) -> Program:
    np = lib.np

    def program(logits: Any, labels: Any) -> Any:
        top = np.max(logits, axis=1, keepdims=True)
        mass = np.sum(np.exp(logits - top), axis=1, keepdims=True)
        scores = logits - (top + np.log(mass))
        states = 2 * labels.shape[0] + 1
        seen = np.zeros(states, int).at[1::2].set(labels)
        skips = (seen[2:] != 0) & (seen[2:] != seen[:-2])
        skips = np.concatenate([np.zeros(2, bool), skips])

        def step(alpha: Any, score: Any) -> Any:
            one = np.concatenate([np.full(1, -1e30), alpha[:-1]])
            two = np.concatenate([np.full(2, -1e30), alpha[:-2]])
            two = np.where(skips, two, -1e30)
            return np.logaddexp(np.logaddexp(alpha, one), two) + score[seen], None

        start = np.full(states, -1e30).at[0].set(scores[0, 0]).at[1].set(scores[0, seen[1]])
        alpha, _ = lib.scan(step, start, scores[1:])
        return -np.logaddexp(alpha[-1], alpha[-2])

    return program


def smoother(lib: Library) -> Program:
    np = lib.np

    def program(q: Any, r: Any, ys: Any) -> Any:
        n = ys.shape[0]
        a = np.array([[1.0, 0.1], [0.0, 1.0]])
        means, covariances = np.zeros((n, 2)), np.zeros((n, 2, 2))
        m, p = np.zeros(2), np.eye(2)
        for t in range(n):
            ahead_m, ahead_p = a @ m, a @ p @ a.T + q * np.eye(2)
            s = ahead_p[0, 0] + r
            gain = ahead_p[:, 0] / s
            m = ahead_m + gain * (ys[t] - ahead_m[0])
            p = ahead_p - gain.reshape(2, 1) * ahead_p[0].reshape(1, 2)
            means[t] = m
            covariances[t] = p
        total = 0.0
        for t in range(n - 2, -1, -1):
            ahead_p = a @ covariances[t] @ a.T + q * np.eye(2)
            gain = np.linalg.solve(ahead_p, a @ covariances[t]).T
            m = means[t] + gain @ (m - a @ means[t])
            p = covariances[t] + gain @ (p - ahead_p) @ gain.T
            total += m[0] ** 2
        return total

    return program


def smoother_scan(lib: Library) -> Program:
    np = lib.np

    def program(q: Any, r: Any, ys: Any) -> Any:
        a = np.array([[1.0, 0.1], [0.0, 1.0]])

        def forward(carry: Any, y: Any) -> Any:
            m, p = carry
            ahead_m, ahead_p = a @ m, a @ p @ a.T + q * np.eye(2)
            s = ahead_p[0, 0] + r
            gain = ahead_p[:, 0] / s
            m = ahead_m + gain * (y - ahead_m[0])
            p = ahead_p - gain[:, None] * ahead_p[0][None, :]
            return (m, p), (m, p)

        def backward(carry: Any, filtered: Any) -> Any:
            (m, p), (mean, covariance) = carry, filtered
            ahead_p = a @ covariance @ a.T + q * np.eye(2)
            gain = np.linalg.solve(ahead_p, a @ covariance).T
            m = mean + gain @ (m - a @ mean)
            p = covariance + gain @ (p - ahead_p) @ gain.T
            return (m, p), m[0]

        last, (means, covariances) = lib.scan(forward, (np.zeros(2), np.eye(2)), ys)
        _, places = lib.scan(backward, last, (means[:-1], covariances[:-1]), reverse=True)
        return np.sum(places**2)

    return program


def lstm_gates(lib: Library) -> Program:
    np = lib.np

    def program(w: Any, u: Any, b: Any, xs: Any) -> Any:
        n = u.shape[0]
        h, c = np.zeros(n), np.zeros(n)
        for t in range(xs.shape[0]):
            z = xs[t] @ w + h @ u + b
            i, f = 1.0 / (1.0 + np.exp(-z[:n])), 1.0 / (1.0 + np.exp(-z[n : 2 * n]))
            g, o = np.tanh(z[2 * n : 3 * n]), 1.0 / (1.0 + np.exp(-z[3 * n :]))
            c = f * c + i * g
            h = o * np.tanh(c)
        return np.sum(h)

    return program


def lstm_gates_scan(lib: Library) -> Program:
    np = lib.np

    def program(w: Any, u: Any, b: Any, xs: Any) -> Any:
        n = u.shape[0]

        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            z = x @ w + h @ u + b
            i, f = 1.0 / (1.0 + np.exp(-z[:n])), 1.0 / (1.0 + np.exp(-z[n : 2 * n]))
            g, o = np.tanh(z[2 * n : 3 * n]), 1.0 / (1.0 + np.exp(-z[3 * n :]))
            c = f * c + i * g
            return (o * np.tanh(c), c), None

        return np.sum(lib.scan(step, (np.zeros(n), np.zeros(n)), xs)[0][0])

    return program


def of_lstm_gates(steps: int, inputs: int, size: int) -> tuple[Any, ...]:
    w, u = 0.1 * normal(inputs, 4 * size), 0.1 * normal(size, 4 * size)
    return w, u, np.zeros(4 * size), normal(steps, inputs)


def decoding(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
        steps, size = 40, x.shape[0]
        keys, values = np.zeros((steps, size)), np.zeros((steps, size))
        for t in range(steps):
            keys[t] = wk @ x
            values[t] = wv @ x
            scores = keys[: t + 1] @ (wq @ x) / np.sqrt(size)
            weights = np.exp(scores - np.max(scores))
            weights = weights / np.sum(weights)
            x = np.tanh(x + weights @ values[: t + 1])
        return np.sum(x * x)

    return program


def decoding_scan(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
        steps, size = 40, x.shape[0]

        def step(carry: Any, t: Any) -> Any:
            x, keys, values = carry
            keys, values = keys.at[t].set(wk @ x), values.at[t].set(wv @ x)
            scores = keys @ (wq @ x) / np.sqrt(size)
            scores = np.where(np.arange(steps) <= t, scores, -np.inf)
            weights = np.exp(scores - np.max(scores))
            weights = weights / np.sum(weights)
            return (np.tanh(x + weights @ values), keys, values), None

        cache = np.zeros((steps, size))
        (x, _, _), _ = lib.scan(step, (x, cache, cache), np.arange(steps))
        return np.sum(x * x)

    return program


def of_decoding(size: int) -> tuple[Any, ...]:
    weights = (0.3 * normal(size, size, seed=seed) for seed in (1, 2, 3))
    return normal(size), *weights


def fourier(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        n = len(x)
        a = x.copy()
        j = 0
        for i in range(1, n):
            bit = n >> 1
            while j & bit:
                j ^= bit
                bit >>= 1
            j ^= bit
            if i < j:
                kept = a[i]
                a[i] = a[j]
                a[j] = kept
        size = 2
        while size <= n:
            root = np.exp(-2j * np.pi / size)
            for start in range(0, n, size):
                w = 1 + 0j
                for k in range(size // 2):
                    u, v = a[start + k], a[start + k + size // 2] * w
                    a[start + k] = u + v
                    a[start + k + size // 2] = u - v
                    w = w * root
            size *= 2
        return np.sum(np.abs(a))

    return program


def de_boor(lib: Library) -> Program:
    np = lib.np

    def program(knots: Any, coefficients: Any, xs: Any) -> Any:
        total = 0.0
        d = np.zeros(4)
        for i in range(len(xs)):
            x = xs[i]
            k = 3
            while knots[k + 1] <= x:
                k += 1
            for j in range(4):
                d[j] = coefficients[j + k - 3]
            for r in range(1, 4):
                for j in range(3, r - 1, -1):
                    low, high = knots[j + k - 3], knots[j + 1 + k - r]
                    a = (x - low) / (high - low)
                    d[j] = (1.0 - a) * d[j - 1] + a * d[j]
            total += d[3] * d[3]
        return total

    return program


def of_de_boor(knots: int, count: int) -> tuple[Any, ...]:
    inner = np.linspace(0.0, 1.0, knots)
    at = np.concatenate([np.zeros(3), inner, np.ones(3)])
    return at, normal(knots + 2), 0.999 * np.sort(uniform(count))


WORKLOADS = [
    workload(
        "gotoh",
        "two texts of 100 and 110 letters aligned with affine gaps by Gotoh's method",
        gotoh,
        None,
        (integers(0, 4, 100), integers(0, 4, 110, seed=1)),
        (integers(0, 4, 4), integers(0, 4, 5, seed=1)),
    ),
    workload(
        "viterbi",
        "the likeliest path of a hidden Markov model of 12 states, 200 steps by loops",
        viterbi,
        None,
        (np.log(uniform(12, 12)), normal(200, 12)),
        (np.log(uniform(3, 3)), normal(5, 3)),
    ),
    workload(
        "random_field",
        "the normalization of a conditional random field of 10 labels, 100 steps",
        random_field,
        random_field_scan,
        (normal(10, 10), normal(100, 10)),
        (normal(3, 3), normal(5, 3)),
        (0, 1),
        refuses={"numba": "np.max along an axis"},
    ),
    workload(
        "ctc",
        "connectionist temporal classification of 60 steps, 15 labels of 12",
        ctc,
        ctc_scan,
        (normal(60, 12), integers(1, 12, 15)),
        (normal(7, 4), integers(1, 4, 3)),
        (0,),
        refuses={"numba": "np.max along an axis"},
    ),
    workload(
        "smoother",
        "Rauch, Tung and Striebel's smoother of 2 states, 100 steps",
        smoother,
        smoother_scan,
        (0.1, 0.5, normal(100)),
        (0.2, 0.4, normal(5)),
        (0, 1),
    ),
    workload(
        "lstm_gates",
        "an LSTM of 32 units with slices for gates, one sequence of 100 steps",
        lstm_gates,
        lstm_gates_scan,
        of_lstm_gates(100, 16, 32),
        of_lstm_gates(4, 2, 3),
        (0, 1, 2),
    ),
    workload(
        "decoding",
        "attention over a cache of keys and values: 40 steps of 32 numbers",
        decoding,
        decoding_scan,
        of_decoding(32),
        of_decoding(3),
        (0, 1, 2, 3),
    ),
    workload(
        "fourier",
        "a fast Fourier transform of 256 complex numbers, by loops",
        fourier,
        None,
        (normal(256) + 1j * normal(256, seed=1),),
        (normal(8) + 1j * normal(8, seed=1),),
    ),
    workload(
        "de_boor",
        "a cubic spline at 200 points by de Boor's method",
        de_boor,
        None,
        of_de_boor(20, 200),
        of_de_boor(4, 5),
        (1,),
    ),
]
