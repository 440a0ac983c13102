"""`python -m bench.policies`: time and memory of the gradient of a loop, by policy of `memory=`.

The program makes explicit steps of a nonlinear heat equation on 10,000 points, 80,000 bytes a step.
Each figure is taken in a process of its own, after a short call has compiled the program; times
are the minimum of several calls. What jax, equinox and torch offer runs beside, where this Python
or an environment of `--peers` has them.

`--spill FOLDER…` instead takes the gradient of an LSTM whose tape is eight times `tape_limit`, and
goes on in a file of each folder. `--demo` takes that of the solver of `wend demo` over 2,000 years.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.environments import first_with, in_a_process
from bench.memory import growth

POINTS = 10_000
POLICIES = ("keep", "spill", "recompute", "Every(32)", "thin", "Checkpoints(8)", "Checkpoints(32)")
OTHERS = {
    "jax, scan of checkpoints": "jax",
    "equinox, checkpointed, 32": "equinox",
    "torch, checkpoint a step": "torch",
}
WARM_UP = 3  # trips
MIN_SECONDS, MAX_CALLS = 2.0, 15  # that are timed

SEQUENCES, UNITS, STEPS = 32, 128, 2000
LIMIT = 32 << 20  # bytes: an eighth of the tape
DEMO_ROUNDS = 60


def wend_gradient(policy: str, order: int) -> Callable[[int], Any]:
    """Return trips → the gradient, of some order, of the program with a policy."""
    import numpy as np

    import wend

    def heat(u: Any, trips: Any) -> Any:
        with wend.config(memory=policy):
            for _ in range(trips):
                left, right = np.roll(u, 1), np.roll(u, -1)
                u = u + 0.1 * (left - 2.0 * u + right) + 0.01 * np.sin(u)
        return np.sum(u * u)

    fun: Any = heat
    for _ in range(order - 1):
        fun = _squared_gradient(fun)
    gradient = wend.grad(fun)
    start = np.sin(np.arange(POINTS) / 50.0)
    return lambda trips: gradient(start, trips)


def _squared_gradient(fun: Any) -> Any:
    import numpy as np

    import wend

    gradient = wend.grad(fun)
    return lambda u, trips: np.sum(gradient(u, trips) ** 2)


def jax_gradient(order: int) -> Callable[[int], Any]:
    """Return the same with `jax.checkpoint` around a scan of 32 steps, in a scan."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def step(u: Any, _: Any) -> Any:
        moved = jnp.roll(u, 1) - 2.0 * u + jnp.roll(u, -1)
        return u + 0.1 * moved + 0.01 * jnp.sin(u), None

    def segment(u: Any, _: Any) -> Any:
        return jax.lax.scan(step, u, None, 32)[0], None

    def heat(u: Any, segments: int) -> Any:
        return jnp.sum(jax.lax.scan(jax.checkpoint(segment), u, None, segments)[0] ** 2)

    gradient = jax.jit(jax.grad(heat), static_argnums=1)
    start = jnp.sin(jnp.arange(POINTS) / 50.0)
    return lambda trips: gradient(start, max(1, trips // 32)).block_until_ready()


def equinox_gradient(order: int) -> Callable[[int], Any]:
    """Return the same with Equinox's checkpointed while loop, of 32 slots."""
    import equinox.internal as eqxi
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def step(carry: Any) -> Any:
        k, u = carry
        moved = jnp.roll(u, 1) - 2.0 * u + jnp.roll(u, -1)
        return k + 1, u + 0.1 * moved + 0.01 * jnp.sin(u)

    def heat(u: Any, trips: Any) -> Any:
        carry = eqxi.while_loop(
            lambda carry: carry[0] < trips, step, (0, u), kind="checkpointed", checkpoints=32
        )
        return jnp.sum(carry[1] ** 2)

    gradient = jax.jit(jax.grad(heat))
    start = jnp.sin(jnp.arange(POINTS) / 50.0)
    return lambda trips: gradient(start, trips).block_until_ready()


def torch_gradient(order: int) -> Callable[[int], Any]:
    """Return the same with `torch.utils.checkpoint` around each step."""
    import torch
    from torch.utils.checkpoint import checkpoint

    torch.set_num_threads(1)

    def step(u: Any) -> Any:
        moved = torch.roll(u, 1) - 2.0 * u + torch.roll(u, -1)
        return u + 0.1 * moved + 0.01 * torch.sin(u)

    def gradient(trips: int) -> Any:
        start = torch.sin(torch.arange(POINTS, dtype=torch.float64) / 50.0).requires_grad_()
        u = start
        for _ in range(trips):
            u = checkpoint(step, u, use_reentrant=False)
        (u * u).sum().backward()
        return start.grad

    return gradient


def lstm_gradient(policy: str) -> Callable[[int], Any]:
    """Return steps → the gradient of the summed squares of the states of an LSTM in f32."""
    import numpy as np

    import wend

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    def loss(w: Any, u: Any, b: Any, xs: Any) -> Any:
        h = c = np.zeros((SEQUENCES, UNITS), np.float32)
        total = np.float32(0.0)
        for t in wend.loop(range(xs.shape[0]), memory=policy):
            z = xs[t] @ w + h @ u + b
            c = sigmoid(z[:, UNITS : 2 * UNITS]) * c + sigmoid(z[:, :UNITS]) * np.tanh(
                z[:, 2 * UNITS : 3 * UNITS]
            )
            h = sigmoid(z[:, 3 * UNITS :]) * np.tanh(c)
            total = total + np.sum(h * h)
        return total

    rng = np.random.default_rng(0)
    w, u = 0.1 * rng.normal(size=(2, UNITS, 4 * UNITS)).astype(np.float32)
    b = np.zeros(4 * UNITS, np.float32)
    xs = rng.normal(size=(STEPS, SEQUENCES, UNITS)).astype(np.float32)
    gradient = wend.function(wend.grad(loss, (0, 1, 2)))
    return lambda steps: gradient(w, u, b, xs[:steps])


def seconds(run: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Return the least time of a call, of as many as fill some seconds."""
    times: list[float] = []
    while len(times) < MAX_CALLS and sum(times) < MIN_SECONDS:
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def measure(name: str, trips: int, order: int) -> dict[str, float]:
    """Return the milliseconds and the megabytes of a gradient, in this process."""
    others = {"jax": jax_gradient, "equinox": equinox_gradient, "torch": torch_gradient}
    module = OTHERS.get(name)
    run = wend_gradient(name, order) if module is None else others[module](order)
    # Compiled for every number of trips at once, except by jax.
    run(trips if module == "jax" else WARM_UP)
    size = growth(lambda: run(trips))
    return {"ms": 1e3 * seconds(lambda: run(trips)), "MB": size / 1e6}


def measure_spilled(folder: str) -> dict[str, float]:
    """Return the same of the LSTM, the bytes that it writes, and those that it holds beyond the
    working arrays; without a folder its tape stays in memory.
    """
    import wend

    written, pwrite = [], os.pwrite

    def counting(file: int, data: Any, offset: int) -> int:
        written.append(pwrite(file, data, offset))
        return written[-1]

    os.pwrite = counting
    if folder:
        wend.config(tape_limit=LIMIT, spill_dir=folder)
    wend.config(tape_keep=0)
    run = lstm_gradient("keep")
    for steps in (2 * WARM_UP, STEPS):
        run(steps)  # a trace, and code, for each
    working = growth(lambda: run(2 * WARM_UP))
    size = growth(lambda: run(STEPS))
    written.clear()
    start = time.perf_counter()
    run(STEPS)
    elapsed, bytes_written = time.perf_counter() - start, sum(written)
    cpu = seconds(lambda: run(STEPS))
    elapsed = min(elapsed, seconds(lambda: run(STEPS), time.perf_counter))
    return {
        "ms": 1e3 * cpu,
        "elapsed": 1e3 * elapsed,
        "MB": (size - working) / 1e6,
        "written": bytes_written / 1e6,
    }


def print_demo() -> None:
    """Print the times and bytes of the demo's solver over 2,000 years, in one process."""
    import wend
    from wend.cli.demo import START, lotka_volterra
    from wend.cli.dopri import advance

    def solve(rates: Any, state: Any, memory: str) -> Any:
        with wend.config(memory=memory):
            ends, _, tried = advance(lotka_volterra(rates), state, 2000.0, 0.1, 1e-8)
        return ends[0] + ends[1], tried

    policies = "keep", "thin", "Checkpoints(8)", "Checkpoints(32)"
    arguments = START, (START.hare, START.lynx)
    gradients = {name: wend.value_and_grad(solve, (0, 1), has_aux=True) for name in policies}
    calls = {name: partial(gradient, *arguments, name) for name, gradient in gradients.items()}
    steps = {int(call()[0][1]) for call in calls.values()}
    least = dict.fromkeys(policies, float("inf"))
    for _ in range(DEMO_ROUNDS):
        for name, call in calls.items():
            start = time.thread_time()
            call()
            least[name] = min(least[name], time.thread_time() - start)
    print(f"{max(steps):,} steps; least of {DEMO_ROUNDS}")
    for name, gradient in gradients.items():
        runs: Any = gradient.get_concrete_function(*arguments, name).compiled.executables()
        size = sum(run.peak_memory() for run in runs)
        print(
            f"{name:<28}{1e3 * least[name]:>8.2f} ms {least[name] / least['keep']:.2f}×"
            f"{size:>14,} bytes"
        )


def print_spilled(folders: list[str]) -> None:
    """Print a row for the tape in memory, and one for the tape in a file of each folder."""
    print(
        f"an LSTM of {SEQUENCES} sequences, {UNITS} units, {STEPS:,} steps; limit {LIMIT / 1e6} MB"
    )
    print(f"{'tape':<28}{'CPU':>16}{'elapsed':>16}{'held':>10}{'written':>12}{'both ways':>14}")
    by_keep: dict[str, float] | None = None
    for folder in ("", *folders):
        result = in_a_process(sys.executable, "bench.policies", "--one-spilled", folder)
        if result is None:
            continue
        by_keep = by_keep or result
        times = [
            f"{result[key]:,.0f} ms {result[key] / by_keep[key]:.2f}×" for key in ("ms", "elapsed")
        ]
        rate = 2e3 * result["written"] / result["elapsed"]
        sizes = f"{result['MB']:,.0f} MB", f"{result['written']:,.0f} MB"
        print(
            f"{folder or 'in memory':<28}{times[0]:>16}{times[1]:>16}{sizes[0]:>10}{sizes[1]:>12}"
            f"{f'{rate:,.0f} MB/s' if folder else '-':>14}",
            flush=True,
        )


def plot(rows: dict[str, list[tuple[int, float, float]]], path: Path) -> None:
    """Draw memory and time against trips, as SVG with logarithmic axes."""
    import math

    colors = (
        "#1b6ca8",
        "#b3541e",
        "#3b7a3b",
        "#7a3b7a",
        "#a8891b",
        "#555555",
        "#cc6677",
        "#44aa99",
        "#882255",
        "#332288",
    )
    width, height, margin = 360, 260, 48
    parts = []
    for panel, (index, title) in enumerate(((2, "peak MB"), (1, "ms"))):
        points = [(p[0], p[index]) for series in rows.values() for p in series]
        xs, ys = [math.log10(x) for x, _ in points], [math.log10(max(y, 0.1)) for _, y in points]
        left, low = min(xs), min(ys)
        wide, high = max(max(xs) - left, 1e-9), max(max(ys) - low, 1e-9)

        def place(
            x: float,
            y: float,
            panel: int = panel,
            left: float = left,
            low: float = low,
            wide: float = wide,
            high: float = high,
        ) -> str:
            across = (math.log10(x) - left) / wide * (width - 2 * margin)
            up = (math.log10(max(y, 0.1)) - low) / high * (height - 2 * margin)
            return f"{panel * width + margin + across:.1f},{height - margin - up:.1f}"

        parts.append(f'<text x="{panel * width + margin}" y="24">{title} against trips</text>')
        for x in sorted({p[0] for p in points}):
            at = place(x, 10**low).split(",")[0]
            parts.append(f'<text x="{at}" y="{height - margin + 18}" class="t">{x:,}</text>')
        for y in (10**low, 10 ** (low + high)):
            at = place(10**left, y).split(",")[1]
            parts.append(f'<text x="{panel * width + 4}" y="{at}" class="t">{y:,.3g}</text>')
        for color, series in zip(colors, rows.values(), strict=False):
            line = " ".join(place(p[0], p[index]) for p in series)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
            )
    for k, (color, name) in enumerate(zip(colors, rows, strict=False)):
        x, y = 20 + 180 * (k % 4), height + 16 * (k // 4)
        parts.append(f'<text x="{x}" y="{y}" fill="{color}" class="t">{name}</text>')
    style = "<style>text{font:14px sans-serif}.t{font-size:11px}</style>"
    size = f'viewBox="0 0 {2 * width} {height + 40}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}{"".join(parts)}</svg>\n'
    path.write_text(svg, encoding="utf-8")


def main() -> None:
    """Print a table, and draw it with `--plot`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trips", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--order", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--peers", type=Path, help="the folder of `python -m bench --peers-setup`")
    parser.add_argument("--spill", nargs="+", metavar="FOLDER")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--one-spilled", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, trips, order = options.one
        print(json.dumps(measure(name, int(trips), int(order))))
        return
    if options.one_spilled is not None:
        print(json.dumps(measure_spilled(options.one_spilled)))
        return
    if options.demo:
        print_demo()
        return
    if options.spill:
        print_spilled(options.spill)
        return
    rows: dict[str, list[tuple[int, float, float]]] = {}
    print(f"{'policy':<28}" + "".join(f"{f'{t:,} trips':>24}" for t in options.trips))
    others = first_with({name: (module,) for name, module in OTHERS.items()}, options.peers)
    pythons = {**dict.fromkeys(POLICIES, sys.executable), **others}
    for name, python in pythons.items():
        cells = []
        for trips in options.trips:
            result = in_a_process(
                python, "bench.policies", "--one", name, str(trips), str(options.order)
            )
            if result is not None:
                rows.setdefault(name, []).append((trips, result["ms"], result["MB"]))
            cells.append(
                "-" if result is None else f"{result['ms']:,.0f} ms {result['MB']:,.1f} MB"
            )
        print(f"{name:<28}" + "".join(f"{cell:>24}" for cell in cells), flush=True)
    if options.plot is not None:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
