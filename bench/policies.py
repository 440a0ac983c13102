"""`python -m bench.policies`: time and memory of the gradient of a loop, by policy of `memory=`.

The program makes explicit steps of a nonlinear heat equation on 10,000 points, 80,000 bytes a step.
Each figure is taken in a process of its own, after a short call has compiled the program. With
jax, equinox or torch in the environment, what they offer runs beside.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.memory import growth

POINTS = 10_000
POLICIES = ("keep", "spill", "recompute", "Every(32)", "thin", "Checkpoints(8)", "Checkpoints(32)")
OTHERS = {
    "jax, scan of checkpoints": "jax",
    "equinox, checkpointed, 32": "equinox",
    "torch, checkpoint a step": "torch",
}
WARM_UP = 3  # trips


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


def measure(name: str, trips: int, order: int) -> dict[str, float]:
    """Return the milliseconds and the megabytes of one gradient, in this process."""
    others = {"jax": jax_gradient, "equinox": equinox_gradient, "torch": torch_gradient}
    module = OTHERS.get(name)
    run = wend_gradient(name, order) if module is None else others[module](order)
    # Compiled for every number of trips at once, except by jax.
    run(trips if module == "jax" else WARM_UP)
    size = growth(lambda: run(trips))
    start = time.process_time()
    run(trips)
    return {"ms": 1e3 * (time.process_time() - start), "MB": size / 1e6}


def in_a_process(name: str, trips: int, order: int) -> dict[str, float] | None:
    """Return what `measure` gives in a process of its own; None where it fails."""
    command = [sys.executable, "-m", "bench.policies", "--one", name, str(trips), str(order)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode:
        print(run.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    result: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return result


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
    parser.add_argument("--one", nargs=3)
    options = parser.parse_args()
    if options.one:
        name, trips, order = options.one
        print(json.dumps(measure(name, int(trips), int(order))))
        return
    installed = [name for name, module in OTHERS.items() if importlib.util.find_spec(module)]
    rows: dict[str, list[tuple[int, float, float]]] = {}
    print(f"{'policy':<28}" + "".join(f"{f'{t:,} trips':>24}" for t in options.trips))
    for name in (*POLICIES, *installed):
        cells = []
        for trips in options.trips:
            result = in_a_process(name, trips, options.order)
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
