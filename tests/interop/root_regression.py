"""A model whose prediction is the root of an equation, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

import wend


def predictions(weights: Any, xs: Any) -> Any:
    """Return z of z + z³ = w₀ x + w₁ for each x, by Newton's method."""

    def root(x: Any) -> Any:
        target = weights[0] * x + weights[1]
        z = target
        while np.abs(z + z**3 - target) > 1e-12:
            z = z - (z + z**3 - target) / (1.0 + 3.0 * z**2)
        return z

    return wend.vmap(root)(xs)


@wend.function
def loss(weights: Any, xs: Any, ys: Any, penalty: Any) -> Any:
    return np.mean((predictions(weights, xs) - ys) ** 2) + penalty * np.sum(weights * weights)


class RootRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that is fitted by `value_and_grad`."""

    def __init__(self, penalty: float = 0.0, steps: int = 200, rate: float = 0.5) -> None:
        self.penalty, self.steps, self.rate = penalty, steps, rate

    def fit(self, X: Any, y: Any) -> RootRegression:
        step = wend.value_and_grad(loss)
        weights = np.zeros(2)
        for _ in range(self.steps):
            self.loss_, slope = step(weights, X[:, 0], y, self.penalty)
            weights = weights - self.rate * slope
        self.weights_ = weights
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(wend.function(predictions)(self.weights_, X[:, 0]))


def slope_at(start: float, xs: Any, ys: Any) -> Any:
    return wend.grad(loss)(np.array([start, 0.0]), xs, ys, 0.0)
