"""`scipy.spatial.transform.Rotation` of traced angles, vectors and quaternions."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager.dispatch import any_staged
from wend.numpy import creating, matrices, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import require

_AXES = "xyz"
_DEGREE = np.pi / 180


class TracedRotation:
    """A rotation, or a row of them, as SciPy's: a quaternion with its scalar last."""

    def __init__(self, quaternion: Any) -> None:
        self._quaternion = quaternion

    def __repr__(self) -> str:
        return f"<traced rotation of {self._quaternion!r}>"

    def __getattr__(self, name: str) -> Any:
        raise _refused(f"`.{name}` of a traced Rotation")

    def __mul__(self, other: Any) -> TracedRotation:
        ours = other if isinstance(other, TracedRotation) else TracedRotation(other.as_quat())
        return TracedRotation(_product(self._quaternion, ours._quaternion))

    def __rmul__(self, other: Any) -> TracedRotation:
        return TracedRotation(_product(other.as_quat(), self._quaternion))

    def as_quat(self) -> Any:
        """Return the quaternions."""
        return self._quaternion

    def as_matrix(self) -> Any:
        """Return the matrices."""
        x, y, z, w = _parts(self._quaternion)
        x2, y2, z2, w2 = x * x, y * y, z * z, w * w
        rows = [
            [x2 - y2 - z2 + w2, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x2 + y2 - z2 + w2, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x2 - y2 + z2 + w2],
        ]
        return shaping.stack([shaping.stack(row, axis=-1) for row in rows], axis=-2)

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Return vectors rotated."""
        matrix = self.as_matrix()
        matrix = shaping.matrix_transpose(matrix) if inverse else matrix
        return matrices.matvec(matrix, creating.asarray(vectors) + 0.0)

    def inv(self) -> TracedRotation:
        """Return the inverse."""
        return TracedRotation(self._quaternion * np.array([-1.0, -1.0, -1.0, 1.0]))

    def magnitude(self) -> Any:
        """Return the angles, between 0 and π."""
        *vector, w = _parts(self._quaternion)
        length = ew.sqrt(functools.reduce(lambda total, v: total + v * v, vector, 0.0))
        return 2 * ew.arctan2(length, ew.absolute(w))


def _refused(what: str) -> Exception:
    what = f"{what}{at(user_source())} is not recorded."
    cure = (
        "use as_matrix, as_quat, apply, inv, magnitude or a product; give an angle for each axis."
    )
    return refusal(UnsupportedError(explain(what, cure=cure)))


def _parts(quaternion: Any) -> list[Any]:
    return [quaternion[..., k] for k in range(4)]


def _product(p: Any, q: Any) -> Any:
    """Return the quaternion of the rotation q and then p."""
    (px, py, pz, pw), (qx, qy, qz, qw) = _parts(p), _parts(q)
    parts = [
        pw * qx + qw * px + (py * qz - pz * qy),
        pw * qy + qw * py + (pz * qx - px * qz),
        pw * qz + qw * pz + (px * qy - py * qx),
        pw * qw - px * qx - py * qy - pz * qz,
    ]
    return shaping.stack(parts, axis=-1)


def _from_euler(seq: str, angles: Any, degrees: bool = False) -> TracedRotation:
    is_intrinsic, axes = seq.isupper(), seq.lower()
    is_valid = 0 < len(seq) < 4 and (is_intrinsic or seq.islower()) and {*axes} <= {*_AXES}
    if not is_valid or any(one == other for one, other in itertools.pairwise(axes)):
        _rotation().from_euler(seq, [0.0] * len(seq))  # SciPy's error
    angles = creating.asarray(angles) + 0.0
    angles = angles * _DEGREE if degrees else angles
    if not shaping.rank_of(angles):
        angles = shaping.reshape(angles, (1,))
    if shaping.shape(angles)[-1] != len(seq) or shaping.rank_of(angles) > 2:
        raise _refused("Rotation.from_euler of traced angles of this shape")
    total: Any = None
    for k, axis in enumerate(axes):
        half = angles[..., k] / 2
        sine, zero = ew.sin(half), half * 0.0
        parts = [sine if axis == name else zero for name in _AXES]
        one = shaping.stack([*parts, ew.cos(half)], axis=-1)
        total = (
            one if total is None else _product(*((total, one) if is_intrinsic else (one, total)))
        )
    return TracedRotation(total)


def _from_rotvec(rotvec: Any, degrees: bool = False) -> TracedRotation:
    rotvec = creating.asarray(rotvec) + 0.0
    rotvec = rotvec * _DEGREE if degrees else rotvec
    square = reducing.sum(rotvec * rotvec, axis=-1, keepdims=True)
    is_near = square <= 1e-6
    angle = ew.sqrt(ew.where(is_near, 1.0, square))
    near = 0.5 - square / 48 + square * square / 3840
    scale = ew.where(is_near, near, ew.sin(angle / 2) / angle)
    cosine = ew.where(is_near, 1 - square / 8 + square * square / 384, ew.cos(angle / 2))
    return TracedRotation(shaping.concatenate([scale * rotvec, cosine], axis=-1))


def _from_quat(quat: Any, *, scalar_first: bool = False) -> TracedRotation:
    quat = creating.asarray(quat) + 0.0
    if scalar_first:
        quat = shaping.concatenate([quat[..., 1:], quat[..., :1]], axis=-1)
    square = reducing.sum(quat * quat, axis=-1, keepdims=True)
    text = "Found zero norm quaternions in `quat`."
    square = require(square, reducing.any(ew.equal(square, 0)), ValueError, text)
    return TracedRotation(quat / ew.sqrt(square))


_MAKERS: Mapping[str, Callable[..., TracedRotation]] = {
    "Rotation.from_euler": _from_euler,
    "Rotation.from_rotvec": _from_rotvec,
    "Rotation.from_quat": _from_quat,
}


def _rotation() -> Any:
    return getattr(sys.modules.get("scipy.spatial.transform"), "Rotation", None)


def maker_of_rotations(fun: Any, name: str) -> Callable[..., Any] | None:
    """Return wend's version of a function that makes a `Rotation` of traced values, or None."""
    ours = _MAKERS.get(getattr(fun, "__qualname__", ""))
    if ours is None or getattr(_rotation(), name, None) != fun:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        is_traced = any_staged(trees.flatten((args, kwargs))[0])
        return (ours if is_traced else fun)(*args, **kwargs)

    return run
