"""A barrier option by Monte-Carlo, and its Greeks: each path ends where it meets the barrier.

The numbers are drawn in the loop, from a key for each path. The payoff of a path that comes near
the barrier is smoothed, so that its derivative tells what happens there.

    python examples/barrier_option.py [NUMBER OF PATHS] [PICTURE.svg]
"""

import sys
from pathlib import Path

import numpy as np

import wend
import wend.numpy as wnp

STEPS, YEARS, RATE = 24, 0.5, 0.03
STRIKE, BARRIER, WIDTH = 100.0, 80.0, 1.0


def survival(price):
    """How much of a path is alive at a price: none below the barrier, all well above."""
    return 1 / (1 + wnp.exp((BARRIER - price) / WIDTH))


def payoff(key, spot, volatility):
    """The discounted payoff of one path of a call that is knocked out below the barrier."""
    dt = YEARS / STEPS
    price, alive, step = spot, 1.0, 0
    while step < STEPS and alive > 1e-6:
        key, draw = wend.random.split(key)
        noise = wnp.sqrt(dt) * wend.random.normal(draw)
        drift = (RATE - volatility * volatility / 2) * dt
        price = price * wnp.exp(drift + volatility * noise)
        alive = alive * survival(price)
        step = step + 1
    return alive * wnp.maximum(price - STRIKE, 0.0) * np.exp(-RATE * YEARS)


def price(keys, spot, volatility):
    """The mean over all paths."""
    return wnp.mean(wend.vmap(payoff, in_axes=(0, None, None))(keys, spot, volatility))


def example_data(paths=400, seed=0):
    """A key for each path."""
    return wend.random.split(wend.random.key(seed), paths)


def picture(spots, values, deltas, vegas):
    """An SVG: the price and its derivatives, each to its own scale, against the spot price."""
    parts = []
    curves = (
        ("price", values, "#2b2b2b"),
        ("delta", deltas, "#c2571a"),
        ("vega", vegas, "#1f5c7a"),
    )
    for row, (name, ys, colour) in enumerate(curves):
        top = max(map(abs, ys))
        points = [(40 + 6 * (x - BARRIER), 220 - 200 * y / top) for x, y in zip(spots, ys)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="60" y="{30 + 16 * row}" fill="{colour}">{name}, up to {top:.2f}</text>'
        )
    parts.append('<line x1="40" y1="10" x2="40" y2="220" stroke="#8a8a8a" stroke-dasharray="4"/>')
    parts.append('<line x1="20" y1="220" x2="320" y2="220" stroke="#8a8a8a"/>')
    parts.append(f'<text x="20" y="240">spot, from the barrier at {BARRIER:.0f} on</text>')
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 250"'
    return "\n".join((f'{head} font-family="sans-serif" font-size="12">', *parts, "</svg>", ""))


if __name__ == "__main__":
    keys = example_data(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
    greeks = wend.value_and_grad(price, argnums=(1, 2))
    print("spot   price    delta    vega")
    for spot in (82.0, 90.0, 100.0, 110.0):
        value, (delta, vega) = greeks(keys, spot, 0.25)
        print(f"{spot:5.0f} {value:7.2f} {delta:8.3f} {vega:7.2f} {'#' * int(2 * value)}")
    if len(sys.argv) > 2:
        spots = np.linspace(BARRIER, 125.0, 46)
        rows = [(value, *slopes) for value, slopes in (greeks(keys, x, 0.25) for x in spots)]
        Path(sys.argv[2]).write_text(picture(spots, *zip(*rows, strict=True)))
