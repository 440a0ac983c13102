"""Conjugate gradients (Hestenes and Stiefel 1952), differentiated through its iterations."""

import numpy as np

import wend


def solve(a, b, tolerance=1e-10):
    """x with a·x = b, for a symmetric positive definite.

    Returns:
        The solution and the number of iterations.
    """
    x = np.zeros_like(b)
    residual = b - a @ x
    direction = residual
    size = residual @ residual
    count = 0
    while size > tolerance**2 and count < 10 * len(b):
        moved = a @ direction
        step = size / (direction @ moved)
        x = x + step * direction
        residual = residual - step * moved
        previous, size = size, residual @ residual
        direction = residual + (size / previous) * direction
        count += 1
    return x, count


def example_data(n=30, seed=0):
    """A well-conditioned system."""
    rng = np.random.default_rng(seed)
    m = rng.normal(size=(n, n))
    return m @ m.T / n + np.eye(n), rng.normal(size=n)


if __name__ == "__main__":
    a, b = example_data()
    x, count = wend.function(solve)(a, b)
    print(f"{count} iterations, residual {np.linalg.norm(a @ x - b):.1e}")
    gradient = wend.grad(lambda b: solve(a, b)[0].sum())(b)
    error = np.abs(gradient - np.linalg.inv(a).sum(axis=0)).max()
    print(f"gradient of the sum of x: off by {error:.1e}")
