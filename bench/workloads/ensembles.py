"""One loop for many elements, each as long as it needs: what `wend.vmap` is for.

Python and Numba run a loop over the elements, as one would write it there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload

Written = Callable[[Library], Program]
# NumPy's functions raise nothing, unlike those of `math`
ARRAYS = SimpleNamespace(
    **{
        **vars(LIBRARY),
        "sin": np.sin,
        "exp": np.exp,
        "sqrt": np.sqrt,
        "maximum": np.maximum,
        "minimum": np.minimum,
    }
)


def root(lib: Library) -> Program:
    def program(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    return program


def checked_root(lib: Library) -> Program:
    def program(a: Any) -> Any:
        if a < 0.0:
            raise ValueError("a negative number")
        x, trips = a, 0
        while abs(x * x - a) > 1e-12 * a:
            x, trips = 0.5 * (x + a / x), trips + 1
            if trips > 100:
                raise RuntimeError("no root")
        return x

    return program


def growth(lib: Library) -> Program:
    def program(limit: Any) -> Any:
        x = 0.1 + 0.0 * limit
        while x < limit:
            x = 1.01 * x + 1e-3 / x
        return x

    return program


def steps_with_newton(lib: Library) -> Program:
    """100 steps, each with a loop of its own."""

    def program(a: Any) -> Any:
        x = a
        for _ in range(100):
            y = 0.5 * (x + a)
            while abs(y * y - a) > 1e-12 * a:
                y = 0.5 * (y + a / y)
            x = 0.9 * x + 0.2 * y
        return x

    return program


def steps_with_geometric(lib: Library) -> Program:
    """100 steps, each with a damped Newton method of a precision of its own, evenly distributed:
    the trips are geometric, seven in the mean.
    """

    def program(a: Any) -> Any:
        x, u = a, (a - 0.5) / 1.5
        for _ in range(100):
            u = u + 0.6180339887498949
            if u >= 1.0:
                u = u - 1.0
            y, error = 0.5 * (x + a), 0.2 * a * (u + 1e-4)
            while abs(y * y - a) > error:
                y = y + 0.08 * (a / y - y)
            x = 0.9 * x + 0.1 * y
        return x

    return program


def mandelbrot(lib: Library) -> Program:
    """The trips of a point of an 800 x 800 grid, by its number."""

    def program(pixel: Any) -> Any:
        row = pixel // 800.0
        a, b = -2.0 + 2.5 * (pixel - 800.0 * row) / 800.0, -1.25 + 2.5 * row / 800.0
        x, y, trips = 0.0, 0.0, 0.0
        while x * x + y * y <= 4.0 and trips < 200.0:
            x, y, trips = x * x - y * y + a, 2.0 * x * y + b, trips + 1.0
        return trips

    return program


def mandelbrot_complex(lib: Library) -> Program:
    """The same, on complex numbers."""

    def program(pixel: Any) -> Any:
        row = pixel // 800.0
        c = complex(-2.0 + 2.5 * (pixel - 800.0 * row) / 800.0, -1.25 + 2.5 * row / 800.0)
        z, trips = 0.0 * c, 0.0
        while z.real * z.real + z.imag * z.imag <= 4.0 and trips < 200.0:
            z, trips = z * z + c, trips + 1.0
        return trips

    return program


def total(element: Written) -> Written:
    """Return the program that adds up what an element gives, one after the other."""

    def plain(lib: Library) -> Program:
        one = lib.helper(element(lib))

        def program(xs: Any) -> Any:
            sum = 0.0
            for k in range(xs.shape[0]):
                sum = sum + one(xs[k])
            return sum

        return program

    return plain


def mapped(element: Written) -> dict[str, Callable[[Peer, str], Program]]:
    """Return what makes the program by `wend.vmap`, and by one that takes elements in turn."""

    def make(lanes: int | None, peer: Peer, measure: str) -> Program:
        import wend

        wend.config(cache_dir="")
        library = SimpleNamespace(**vars(ARRAYS) | {"stop_gradient": wend.stop_gradient})
        vmapped = wend.vmap(element(library), lanes=lanes)

        def program(*arrays: Any) -> Any:
            return np.sum(vmapped(*arrays))

        return wend.function(program) if measure == VALUE else wend.value_and_grad(program)

    return {"wend": partial(make, None), "wend-loop": partial(make, 1)}


def ensemble(
    name: str,
    title: str,
    element: Written,
    full: Any,
    small: Any,
    measures: tuple[str, ...] = (VALUE, GRADIENT),
) -> Workload:
    plain = total(element)
    return Workload(
        name=name,
        title=title,
        arguments=(full,),
        small=(small,),
        measures=measures,
        plain=plain,
        differentiable=(0,) if GRADIENT in measures else (),
        answer=differences(plain(LIBRARY), (0,)) if GRADIENT in measures else None,
        own=mapped(element),
        peers=("wend", "wend-loop", "python", "numba"),
        tolerance=1e-5,
    )


def lengths(count: int) -> Any:
    """Return limits with geometric numbers of trips, the longest some ten times the mean."""
    trips = np.random.default_rng(3).exponential(size=count)
    return 0.2 * np.exp(trips)


SPOT, STRIKE, BARRIER, STEPS = 90.0, 100.0, 80.0, 24
DRIFT, SPREAD = (0.03 - 0.25 * 0.25 / 2) / 48, 0.25 * (1 / 48) ** 0.5


def barrier_by_wend(peer: Peer, measure: str) -> Program:
    """Paths with keys of their own, which end where they meet the barrier."""
    import wend

    wend.config(cache_dir="")

    def payoff(key: Any) -> Any:
        price, step = SPOT, 0
        while step < STEPS and price > BARRIER:
            key, draw = wend.random.split(key)
            price = price * np.exp(DRIFT + SPREAD * wend.random.normal(draw))
            step = step + 1
        return np.maximum(price - STRIKE, 0.0) if price > BARRIER else 0.0

    def program(paths: Any) -> Any:
        keys = wend.random.split(wend.random.key(0), paths.shape[0])
        return np.sum(wend.vmap(payoff)(keys))

    return wend.function(program)


def barrier(lib: Library) -> Program:
    """The same paths with the draws of `numpy.random`."""

    def program(paths: Any) -> Any:
        total = 0.0
        for _ in range(paths.shape[0]):
            price, step = SPOT, 0
            while step < STEPS and price > BARRIER:
                price = price * np.exp(DRIFT + SPREAD * np.random.standard_normal())  # noqa: NPY002 (Numba)
                step = step + 1
            if price > BARRIER:
                total = total + max(price - STRIKE, 0.0)
        return total

    return program


_rng = np.random.default_rng(6)
FIRST, SECOND = _rng.normal(size=(64, 128)) / 8, _rng.normal(size=128) / 11


def examples_by_hand(lib: Library) -> Program:
    """The squares of the gradients of each example, by products that are written for all."""

    def program(xs: Any) -> Any:
        hidden = np.tanh(xs @ FIRST)
        slopes = 2.0 * (hidden @ SECOND - 1.0)
        seconds = slopes[:, None] * hidden
        inner = slopes[:, None] * SECOND * (1.0 - hidden * hidden)
        firsts = xs[:, :, None] * inner[:, None, :]
        return np.sum(firsts * firsts) + np.sum(seconds * seconds)

    return program


def examples(peer: Peer, measure: str) -> Program:
    """The same by `vmap` of the gradient for one."""
    import wend

    wend.config(cache_dir="")

    def loss(weights: Any, x: Any) -> Any:
        return (np.tanh(x @ weights[0]) @ weights[1] - 1.0) ** 2

    def program(xs: Any) -> Any:
        first, second = wend.vmap(wend.grad(loss), (None, 0))((FIRST, SECOND), xs)
        return np.sum(first * first) + np.sum(second * second)

    return wend.function(program)


def rows(count: int) -> Any:
    return np.random.default_rng(7).normal(size=(count, 64))


_UNITS, _INPUTS = 16, 16
INPUT_WEIGHTS = _rng.normal(size=(_INPUTS, 4 * _UNITS)) / 6
STATE_WEIGHTS = _rng.normal(size=(_UNITS, 4 * _UNITS)) / 6


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def sequences_by_hand(lib: Library) -> Program:
    """The squares of an LSTM's gradients by sequence, written for all sequences at once."""
    n, w, u = _UNITS, INPUT_WEIGHTS, STATE_WEIGHTS

    def program(xs: Any) -> Any:
        count, steps = xs.shape[0], xs.shape[1]
        h, c = np.zeros((count, n)), np.zeros((count, n))
        hs, cs = np.zeros((steps + 1, count, n)), np.zeros((steps + 1, count, n))
        gates, slopes = np.zeros((steps, count, 4 * n)), np.zeros((steps, count, 4 * n))
        for t in range(steps):
            z = xs[:, t] @ w + h @ u
            gates[t, :, : 2 * n] = _sigmoid(z[:, : 2 * n])
            gates[t, :, 2 * n : 3 * n] = np.tanh(z[:, 2 * n : 3 * n])
            gates[t, :, 3 * n :] = _sigmoid(z[:, 3 * n :])
            c = gates[t, :, n : 2 * n] * c + gates[t, :, :n] * gates[t, :, 2 * n : 3 * n]
            h = gates[t, :, 3 * n :] * np.tanh(c)
            hs[t + 1], cs[t + 1] = h, c
        dh, dc = np.zeros((count, n)), np.zeros((count, n))
        for k in range(steps):
            t = steps - 1 - k
            i, f = gates[t, :, :n], gates[t, :, n : 2 * n]
            g, o = gates[t, :, 2 * n : 3 * n], gates[t, :, 3 * n :]
            cell = np.tanh(cs[t + 1])
            dh = dh + 2.0 * hs[t + 1]
            dc = dc + dh * o * (1.0 - cell * cell)
            slopes[t, :, :n] = dc * g * i * (1.0 - i)
            slopes[t, :, n : 2 * n] = dc * cs[t] * f * (1.0 - f)
            slopes[t, :, 2 * n : 3 * n] = dc * i * (1.0 - g * g)
            slopes[t, :, 3 * n :] = dh * cell * o * (1.0 - o)
            dh, dc = slopes[t] @ u.T, dc * f
        own = np.transpose(slopes, (1, 0, 2))
        first = np.swapaxes(xs, 1, 2) @ own
        second = np.transpose(hs[:-1], (1, 2, 0)) @ own
        return np.sum(first * first) + np.sum(second * second)

    return program


def sequences(peer: Peer, measure: str) -> Program:
    """The same by `vmap` of the gradient for one."""
    import wend

    wend.config(cache_dir="")
    n = _UNITS

    def loss(weights: Any, xs: Any) -> Any:
        h = c = np.zeros(n)
        total = 0.0
        for x in xs:
            z = x @ weights[0] + h @ weights[1]
            c = _sigmoid(z[n : 2 * n]) * c + _sigmoid(z[:n]) * np.tanh(z[2 * n : 3 * n])
            h = _sigmoid(z[3 * n :]) * np.tanh(c)
            total = total + np.sum(h * h)
        return total

    def program(xs: Any) -> Any:
        weights = INPUT_WEIGHTS, STATE_WEIGHTS
        first, second = wend.vmap(wend.grad(loss), (None, 0))(weights, xs)
        return np.sum(first * first) + np.sum(second * second)

    return wend.function(program)


def batch_of_sequences(count: int, steps: int) -> Any:
    return np.random.default_rng(8).normal(size=(count, steps, _INPUTS))


# Whose roots are computed: all, and few
NUMBERS = (
    np.exp(3 * np.random.default_rng(2).standard_normal(100_000)),
    np.exp(np.random.default_rng(2).standard_normal(40)),
)
WORKLOADS = [
    ensemble(
        "roots",
        "100,000 square roots by Newton's method",
        root,
        *NUMBERS,
    ),
    ensemble(
        "checked_roots",
        "the same, with checks of the number and of the number of trips",
        checked_root,
        *NUMBERS,
    ),
    ensemble(
        "lengths",
        "10,000 loops of geometric numbers of trips",
        growth,
        lengths(10_000),
        lengths(40),
    ),
    ensemble(
        "steps_newton",
        "2,000 times 100 steps with Newton's method inside",
        steps_with_newton,
        np.exp(2 * np.random.default_rng(2).standard_normal(2_000)),
        np.exp(np.random.default_rng(2).standard_normal(40)),
    ),
    ensemble(
        "steps_geometric",
        "the same 10,000 times, the loops inside of geometric numbers of trips",
        steps_with_geometric,
        np.random.default_rng(9).uniform(0.5, 2.0, size=10_000),
        np.random.default_rng(9).uniform(0.5, 2.0, size=40),
        (VALUE,),
    ),
    ensemble(
        "mandelbrot_real",
        "Mandelbrot's set by a loop for each of 800 x 800 points",
        mandelbrot,
        np.arange(640_000.0),
        np.arange(320_300.0, 320_340.0),
        (VALUE,),
    ),
    ensemble(
        "mandelbrot_complex",
        "the same with complex numbers",
        mandelbrot_complex,
        np.arange(640_000.0),
        np.arange(320_300.0, 320_340.0),
        (VALUE,),
    ),
    Workload(
        name="barrier",
        title="a barrier option, 100,000 paths that draw in their loops",
        arguments=(np.zeros(100_000),),
        small=(np.zeros(40),),
        measures=(VALUE,),
        plain=barrier,
        own={"wend": barrier_by_wend},
        peers=("wend", "python", "numba"),
        checked=False,
    ),
    Workload(
        name="examples",
        title="the gradient of a small network for each of 256 examples",
        arguments=(rows(256),),
        small=(rows(8),),
        measures=(VALUE,),
        plain=examples_by_hand,
        own={"wend": examples},
        peers=("wend", "python"),
    ),
    Workload(
        name="examples_by_hand",
        title="the same by products that are written for all examples",
        arguments=(rows(256),),
        small=(rows(8),),
        measures=(VALUE,),
        plain=examples_by_hand,
        peers=("wend", "python"),
    ),
    Workload(
        name="sequences",
        title="the gradient of a small LSTM for each of 64 sequences of 20",
        arguments=(batch_of_sequences(64, 20),),
        small=(batch_of_sequences(3, 4),),
        measures=(VALUE,),
        plain=sequences_by_hand,
        own={"wend": sequences},
        peers=("wend", "python"),
    ),
    Workload(
        name="sequences_by_hand",
        title="the same by a backward loop that is written for all sequences",
        arguments=(batch_of_sequences(64, 20),),
        small=(batch_of_sequences(3, 4),),
        measures=(VALUE,),
        plain=sequences_by_hand,
        peers=("wend", "python"),
    ),
]
