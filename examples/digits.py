"""A two-layer net on scikit-learn's handwritten digits, trained by gradient in plain NumPy.

The data set is read from scikit-learn where it is installed (`pip install scikit-learn`).
"""

import numpy as np

import wend


def scores(weights, images):
    """How much each of the ten digits speaks for itself."""
    w1, b1, w2, b2 = weights
    hidden = np.tanh(images @ w1 + b1)
    return hidden @ w2 + b2


def loss(weights, images, digits):
    """The mean cross-entropy."""
    s = scores(weights, images)
    s = s - s.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(s).sum(axis=1))
    return (log_sum - s[np.arange(len(digits)), digits]).mean()


@wend.function
def train(weights, images, digits, rounds, rate):
    """Descend for so many rounds; one compiled loop, the gradient inside it."""
    gradient = wend.value_and_grad(loss)
    value = 0.0
    for _ in range(rounds):
        value, grads = gradient(weights, images, digits)
        weights = [w - rate * g for w, g in zip(weights, grads)]
    return weights, value


def start(pixels=64, hidden=32, seed=0):
    """Small random weights."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(pixels, hidden)) / np.sqrt(pixels),
        np.zeros(hidden),
        rng.normal(size=(hidden, 10)) / np.sqrt(hidden),
        np.zeros(10),
    ]


if __name__ == "__main__":
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    images = images / 16.0
    weights, value = train(start(), images[:1500], digits[:1500], 300, 1.0)
    right = (scores(weights, images[1500:]).argmax(axis=1) == digits[1500:]).mean()
    print(f"loss {value:.4f}; {right:.1%} of the digits not seen in training are right")
