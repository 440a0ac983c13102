"""A barrier option by Monte-Carlo, and its Greeks: each path ends where it meets the barrier.

The numbers are drawn in the loop, from a key for each path. The payoff of a path that comes near
the barrier is smoothed, so that its derivative tells what happens there.
"""

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


if __name__ == "__main__":
    keys = example_data(2000)
    greeks = wend.value_and_grad(price, argnums=(1, 2))
    print("spot   price    delta    vega")
    for spot in (82.0, 90.0, 100.0, 110.0):
        value, (delta, vega) = greeks(keys, spot, 0.25)
        print(f"{spot:5.0f} {value:7.2f} {delta:8.3f} {vega:7.2f} {'#' * int(2 * value)}")
