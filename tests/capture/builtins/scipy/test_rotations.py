"""`scipy.spatial.transform.Rotation` of traced values, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import wend
from wend.base.errors import UnsupportedError
from wend.testing import check_grads

is_python = hasattr(Rotation.from_euler, "__code__")
pytestmark = pytest.mark.skipif(not is_python, reason="SciPy's Rotation is written in C here")

PROGRAMS = {
    "plane": lambda a: Rotation.from_euler("z", a[0]).as_matrix()[:2, :2],
    "extrinsic": lambda a: Rotation.from_euler("xyz", a).as_quat(),
    "degrees": lambda a: Rotation.from_euler("ZYX", a * 50, degrees=True).as_matrix(),
    "two_axes": lambda a: Rotation.from_euler("yx", [a[0], a[1]]).apply(a),
    "a_row": lambda a: Rotation.from_euler("zyz", [a, 2 * a]).apply([a, a + 1], inverse=True),
    "vector": lambda a: Rotation.from_rotvec(a).as_matrix(),
    "vector_in_degrees": lambda a: Rotation.from_rotvec(90 * a, degrees=True).as_quat(),
    "small_vector": lambda a: Rotation.from_rotvec(1e-4 * a).as_quat() * 1e4,
    "no_vector": lambda a: Rotation.from_rotvec(a - a).apply(np.ones(3)) + a,
    "product": lambda a: (Rotation.from_rotvec(a) * Rotation.from_euler("y", a[1])).inv().as_quat(),
    "products_with_known": lambda a: (
        (Rotation.from_euler("x", 0.5) * Rotation.from_rotvec(a)).as_quat()
        - (Rotation.from_rotvec(a) * Rotation.from_euler("x", 0.5)).as_quat()
    ),
    "quaternion": lambda a: Rotation.from_quat([a[0], a[1], a[2], 1.5]).magnitude(),
    "scalar_first": lambda a: Rotation.from_quat(a[[0, 1, 2, 0]], scalar_first=True).as_matrix(),
}
POINTS = np.array([0.3, -0.7, 1.1]), np.array([3.0, 2.0, -2.5])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str) -> None:
    compiled = wend.function(PROGRAMS[name])
    for point in POINTS:
        found, expected = compiled(point), PROGRAMS[name](point)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    if name in ("extrinsic", "vector", "no_vector", "quaternion"):
        check_grads(compiled, (POINTS[0],), modes=("rev",))


@pytest.mark.parametrize(
    "function",
    [
        lambda a: Rotation.from_euler("xx", [a[0], a[1]]).as_quat(),
        lambda a: Rotation.from_euler("xY", [a[0], a[1]]).as_quat(),
        lambda a: Rotation.from_quat(0 * a[[0, 1, 2, 0]]).as_quat(),
    ],
)
def test_errors_are_those_of_scipy(function: Any) -> None:
    texts = []
    for run in (function, wend.function(function)):
        with pytest.raises(ValueError, match=r".") as caught:
            run(POINTS[0])
        texts.append(str(caught.value).partition("\n")[0])
    assert texts[0] == texts[1]


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match=r"as_euler.* of a traced Rotation at"):
        wend.function(lambda a: Rotation.from_rotvec(a).as_euler("xyz"))(POINTS[0])
    with pytest.raises(UnsupportedError, match="traced angles of this shape"):
        wend.function(lambda a: Rotation.from_euler("z", a).as_quat())(POINTS[0])
