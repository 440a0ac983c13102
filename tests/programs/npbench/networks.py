"""Deep learning: layers and nets, channels last."""

from __future__ import annotations

import numpy as np

from tests.programs.npbench.kernel import Kernel


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    top = np.max(x, axis=-1, keepdims=True)
    weight = np.exp(x - top)
    total = np.sum(weight, axis=-1, keepdims=True)
    return weight / total


def mlp(input, w1, b1, w2, b2, w3, b3):
    x = relu(input @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax(x @ w3 + b3)


def conv2d(input, weights):
    K = weights.shape[0]
    N = input.shape[0]
    H_out = input.shape[1] - K + 1
    W_out = input.shape[2] - K + 1
    C_out = weights.shape[3]
    output = np.empty((N, H_out, W_out, C_out), dtype=input.dtype)
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(
                input[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return output


def conv2d_bias(input, weights, bias):
    return conv2d(input, weights) + bias


def maxpool2d(x):
    output = np.empty([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            output[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return output


def lenet(
    input, conv1, conv1bias, conv2, conv2bias, fc1w, fc1b, fc2w, fc2b, fc3w, fc3b, N, C_before_fc1
):
    x = relu(conv2d(input, conv1) + conv1bias)
    x = maxpool2d(x)
    x = relu(conv2d(x, conv2) + conv2bias)
    x = maxpool2d(x)
    x = np.reshape(x, (N, C_before_fc1))
    x = relu(x @ fc1w + fc1b)
    x = relu(x @ fc2w + fc2b)
    return x @ fc3w + fc3b


def batchnorm2d(x, eps=1e-5):
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


def resnet(input, conv1, conv2, conv3):
    padded = np.zeros(
        (input.shape[0], input.shape[1] + 2, input.shape[2] + 2, conv1.shape[3]),
        dtype=input.dtype,
    )
    padded[:, 1:-1, 1:-1, :] = conv2d(input, conv1)
    x = relu(batchnorm2d(padded))
    x = relu(batchnorm2d(conv2d(x, conv2)))
    x = batchnorm2d(conv2d(x, conv3))
    return relu(x + input)


def _random(*shapes):
    return lambda rng, dtype: [0.5 * rng.normal(size=shape).astype(dtype) for shape in shapes]


def _lenet(rng, dtype):
    image, fc = (2, 14, 14, 1), 2 * 2 * 4
    # 14 → conv 3 → 12 → pool → 6 → conv 3 → 4 → pool → 2
    shapes = [image, (3, 3, 1, 2), 2, (3, 3, 2, 4), 4, (fc, 6), 6, (6, 5), 5, (5, 3), 3]
    return [*_random(*shapes)(rng, dtype), 2, fc]


FLOATS = ("f4", "f8")
KERNELS = [
    Kernel(softmax, _random((2, 3, 4, 4)), FLOATS),
    Kernel(mlp, _random((3, 2), (2, 6), 6, (6, 5), 5, (5, 4), 4), FLOATS),
    Kernel(conv2d_bias, _random((2, 6, 5, 3), (3, 3, 3, 4), 4), FLOATS),
    Kernel(lenet, _lenet, FLOATS),
    Kernel(resnet, _random((2, 4, 4, 6), (1, 1, 6, 3), (3, 3, 3, 3), (1, 1, 3, 6)), FLOATS),
]
