"""Lotka and Volterra's rates fitted to counts from many starts at once, each until it fits.

python examples/predator_prey.py [NUMBER OF STARTS] [PICTURE.svg]
"""

import sys
from pathlib import Path

import numpy as np

import wend
import wend.numpy as wnp

COUNT, STEP, EVERY = 100, 0.1, 10  # steps of the method; one in ten has been observed


def slope(state, rates):
    prey, hunters = state[0], state[1]
    born, eaten, died, fed = rates[0], rates[1], rates[2], rates[3]
    return wnp.stack([(born - eaten * hunters) * prey, (fed * prey - died) * hunters])


def runge_kutta(rates):
    """Both populations after each step of the classical Runge-Kutta method."""
    state, rows = wnp.asarray([10.0, 5.0]), []
    for _ in range(COUNT):
        rows.append(state)
        a = slope(state, rates)
        b = slope(state + STEP / 2 * a, rates)
        c = slope(state + STEP / 2 * b, rates)
        d = slope(state + STEP * c, rates)
        state = state + STEP / 6 * (a + 2 * b + 2 * c + d)
    return wnp.stack(rows)


def counts(rates):
    """Both populations at the times of the observations."""
    return runge_kutta(rates)[::EVERY]


def misfit(logs, observed):
    """How far the logarithms of the counts are from those observed."""
    difference = wnp.log(counts(wnp.exp(logs))) - observed
    return wnp.sum(difference * difference)


def fit(logs, observed, most=2000):
    """Descend until the misfit is small; a step that loses is taken back and shortened."""
    value, gradient = wend.value_and_grad(misfit)(logs, observed)
    rate, steps = 1e-2, 0
    while value > 1e-4 and steps < most:
        following = logs - rate * gradient
        new_value, new_gradient = wend.value_and_grad(misfit)(following, observed)
        if new_value < value:
            logs, value, gradient, rate = following, new_value, new_gradient, 1.5 * rate
        else:
            rate = rate / 4
        steps += 1
    return logs, value, steps


def example_data(starts=200, seed=0):
    """Starts around the truth, and what was observed of that."""
    rng = np.random.default_rng(seed)
    truth = np.log([0.6, 0.1, 0.5, 0.04])
    observed = np.log(wend.function(lambda logs: counts(wnp.exp(logs)))(truth))
    return truth + 0.1 * rng.normal(size=(starts, 4)), observed


def picture(rates, observed, steps):
    """An SVG: the populations by the best rates, the counts, and how many fits took how many steps.

    Its left half has both populations over time, its right half the histogram.
    """
    every_step = runge_kutta(rates)
    scale = 200 / every_step.max()
    parts = []
    for k, colour in enumerate(("#c2571a", "#1f5c7a")):
        line = " ".join(
            f"{20 + 3 * t},{220 - scale * y:.1f}" for t, y in enumerate(every_step[:, k])
        )
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{20 + 3 * EVERY * t}" cy="{220 - scale * y:.1f}" r="3" fill="{colour}"/>'
            for t, y in enumerate(np.exp(observed[:, k]))
        ]
    totals, edges = np.histogram(steps, 24)
    for k, total in enumerate(totals):
        height = 200 * total / totals.max()
        parts.append(
            f'<rect x="{370 + 13 * k}" y="{220 - height:.1f}" width="12" height="{height:.1f}" '
            'fill="#8a8a8a"/>'
        )
    text = '<text y="240" font-family="sans-serif" font-size="12" fill="#2b2b2b" x="'
    parts.append(f'{text}20">prey and predators, and ten counts of each</text>')
    parts.append(
        f'{text}370">{len(steps):,} fits by steps, {edges[0]:.0f} to {edges[-1]:.0f}</text>'
    )
    return "\n".join(
        ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 250">', *parts, "</svg>", "")
    )


if __name__ == "__main__":
    starts, observed = example_data(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    logs, values, steps = wend.vmap(fit, in_axes=(0, None))(starts, observed)
    best = np.exp(logs[np.argmin(values)])
    print(
        f"{len(starts)} fits, {steps.min()} to {steps.max()} steps; the best rates: {best.round(3)}"
    )
    totals, edges = np.histogram(steps, 12)
    for low, high, total in zip(edges, edges[1:], totals, strict=False):
        bar = "#" * round(60 * total / totals.max())
        print(f"{low:5.0f} to {high:5.0f} steps {bar}")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(picture(best, observed, steps))
