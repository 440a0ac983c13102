"""A Kalman filter for a point that moves at constant speed; its noise found by gradient."""

import numpy as np
from scipy.optimize import minimize

import wend


def negative_log_likelihood(log_noise, positions):
    """How unlikely the measured positions are.

    Args:
        log_noise: [2], the logs of the variances of acceleration and of measurement.
        positions: [n], measured once a second.
    """
    q, r = np.exp(log_noise)
    move = np.array([[1.0, 1.0], [0.0, 1.0]])
    drift = q * np.array([[0.25, 0.5], [0.5, 1.0]])
    state = np.zeros(2)
    spread = np.eye(2) * 100.0
    total = 0.0
    for measured in positions:
        state = move @ state
        spread = move @ spread @ move.T + drift
        surprise = measured - state[0]
        variance = spread[0, 0] + r
        gain = spread[:, 0] / variance
        state = state + gain * surprise
        spread = spread - np.outer(gain, spread[0])
        total = total + 0.5 * (np.log(2 * np.pi * variance) + surprise**2 / variance)
    return total


def example_data(n=100, seed=0):
    """Positions measured with noise, of a point whose speed drifts."""
    rng = np.random.default_rng(seed)
    speed = np.cumsum(0.3 * rng.normal(size=n))
    return np.cumsum(speed) + rng.normal(size=n)


if __name__ == "__main__":
    positions = example_data()
    fun = wend.value_and_grad(negative_log_likelihood)
    fit = minimize(lambda p: fun(p, positions), np.zeros(2), jac=True, method="L-BFGS-B")
    print(f"variances: acceleration {np.exp(fit.x[0]):.3f}, measurement {np.exp(fit.x[1]):.3f}")
    print(f"after {fit.nfev} gradients")
