"""Bundle adjustment of ADBench (Srajer, Kukelova and Fitzgibbon, 2018): the squared errors.

A camera is a rotation vector, a centre, a focal length, a principal point and two coefficients of
radial distortion. An observation is of one point by one camera, and has a weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload

PEERS = ("wend", "python", "jax", "torch", "tensorflow", "autograd")


def plain(lib: Library) -> Program:
    np, take = lib.np, lib.take

    def rotated(vector: Any, x: Any, y: Any, z: Any) -> Any:
        """Rodrigues' formula."""
        angle = np.sqrt(np.sum(vector * vector, axis=1))
        a, b, c = (vector[:, k] / angle for k in range(3))
        cos, sin = np.cos(angle), np.sin(angle)
        along = (a * x + b * y + c * z) * (1.0 - cos)
        return (
            x * cos + (b * z - c * y) * sin + a * along,
            y * cos + (c * x - a * z) * sin + b * along,
            z * cos + (a * y - b * x) * sin + c * along,
        )

    def program(cameras: Any, points: Any, weights: Any, camera: Any, point: Any, seen: Any) -> Any:
        view, place = take(cameras, camera), take(points, point)
        x, y, z = rotated(view[:, :3], *(place[:, k] - view[:, 3 + k] for k in range(3)))
        x, y = x / z, y / z
        square = x * x + y * y
        scale = view[:, 6] * (1.0 + square * (view[:, 9] + square * view[:, 10]))
        across = weights * (scale * x + view[:, 7] - seen[:, 0])
        down = weights * (scale * y + view[:, 8] - seen[:, 1])
        rest = 1.0 - weights * weights
        return np.sum(across * across) + np.sum(down * down) + np.sum(rest * rest)

    return program


def arguments(cameras: int, points: int, observations: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(49)
    views = rng.standard_normal((cameras, 11)) * 0.1
    views[:, 5] -= 5.0
    views[:, 6] += 1.0
    return (
        views,
        rng.standard_normal((points, 3)),
        rng.uniform(0.5, 1.0, observations),
        rng.integers(0, cameras, observations),
        rng.integers(0, points, observations),
        rng.standard_normal((observations, 2)),
    )


WORKLOADS = [
    Workload(
        name="bundle",
        title="ADBench's bundle adjustment: 31,843 views of 7,776 points by 49 cameras",
        arguments=arguments(49, 7776, 31843),
        small=arguments(3, 5, 11),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=plain,
        differentiable=(0, 1, 2),
        answer=differences(plain(LIBRARY), (0, 1, 2)),
        peers=PEERS,
        tolerance=1e-6,
    )
]
