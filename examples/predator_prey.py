"""Lotka and Volterra's rates fitted to counts from many starts at once, each until it fits."""

import numpy as np

import wend
import wend.numpy as wnp

COUNT, STEP, EVERY = 100, 0.1, 10  # steps of the method; one in ten has been observed


def slope(state, rates):
    prey, hunters = state[0], state[1]
    born, eaten, died, fed = rates[0], rates[1], rates[2], rates[3]
    return wnp.stack([(born - eaten * hunters) * prey, (fed * prey - died) * hunters])


def counts(rates):
    """Both populations at the times of the observations, by the classical Runge-Kutta method."""
    state, rows = wnp.asarray([10.0, 5.0]), []
    for k in range(COUNT):
        if k % EVERY == 0:
            rows.append(state)
        a = slope(state, rates)
        b = slope(state + STEP / 2 * a, rates)
        c = slope(state + STEP / 2 * b, rates)
        d = slope(state + STEP * c, rates)
        state = state + STEP / 6 * (a + 2 * b + 2 * c + d)
    return wnp.stack(rows)


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


if __name__ == "__main__":
    starts, observed = example_data()
    logs, values, steps = wend.vmap(fit, in_axes=(0, None))(starts, observed)
    best = np.exp(logs[np.argmin(values)])
    print(
        f"{len(starts)} fits, {steps.min()} to {steps.max()} steps; the best rates: {best.round(3)}"
    )
    totals, edges = np.histogram(steps, 12)
    for low, high, total in zip(edges, edges[1:], totals, strict=False):
        print(f"{low:5.0f} to {high:5.0f} steps {'#' * total}")
