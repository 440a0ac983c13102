"""`wend.numpy.einsum` beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.drawn import check, few

SIZES = {"i": 2, "j": 3, "k": 1, "l": 2, "m": 3}
FIXED = [
    "ij,jk->ik", "ij,jk", "ii->i", "ii", "ij->ji", "ij->", "i,i->", "i,j->ij", "ij,ij->ij",
    "ij,kj,lk->il", "iij,jm->m", "ij,ij,ij->i", "iji->j", "b...i,bi->...b", "...ij,...jk->...ik",
    "...,...", "ij...->...ji", "im,jm,km,lm->ijkl", "ijk,ilm,jlm->kl", "ij, j -> i",
]  # fmt: skip
DIMS = {"b": 2, "...": (2, 1)} | SIZES


def operands_of(subscripts: str, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(len(subscripts))
    found = []
    for labels in subscripts.replace(" ", "").split("->")[0].split(","):
        before, dots, after = labels.partition("...")
        shape = (
            [DIMS[c] for c in before] + list(DIMS["..."] if dots else ()) + [DIMS[c] for c in after]
        )
        found.append(rng.integers(-4, 5, shape).astype(dtype))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["f8", "i4", "c16", "f4"])
@pytest.mark.parametrize("subscripts", FIXED)
def test_subscripts(subscripts: str, dtype: str) -> None:
    check(lambda m, *xs: m.einsum(subscripts, *xs), *operands_of(subscripts, dtype))


@few
@given(
    inputs=st.lists(st.text("ijklm", min_size=1, max_size=3), min_size=1, max_size=4),
    data=st.data(),
)
def test_drawn_subscripts(inputs: list[str], data: st.DataObject) -> None:
    labels = sorted(set("".join(inputs)))
    result = "".join(data.draw(st.lists(st.sampled_from(labels), unique=True, max_size=4)))
    subscripts = ",".join(inputs) + "->" + result
    check(lambda m, *xs: m.einsum(subscripts, *xs), *operands_of(subscripts, "f8"))
    implicit = ",".join(inputs)
    check(lambda m, *xs: m.einsum(implicit, *xs), *operands_of(implicit, "f8"))


def test_numbers_for_labels() -> None:
    a, b = operands_of("ij,jk", "f8")
    check(lambda m, a, b: m.einsum(a, [0, 1], b, [1, 2]), a, b)
    check(lambda m, a, b: m.einsum(a, [0, 1], b, [1, 2], [2, 0]), a, b)
    check(lambda m, a, b: m.einsum(a, [..., 1], b, [1, 2]), a, b)


def test_an_axis_of_one_is_stretched() -> None:
    check(
        lambda m, a, b: m.einsum("ij,jk->ik", a, b), np.ones((2, 1)), np.arange(6.0).reshape(3, 2)
    )
    check(
        lambda m, a, b: m.einsum("ij,ij->ij", a, b), np.ones((2, 1)), np.arange(6.0).reshape(2, 3)
    )


@pytest.mark.parametrize("wrong", ["ij,jk->ix", "i,jk->ik", "ij->ik", "ij"])
def test_faults(wrong: str) -> None:
    check(lambda m, a, b: m.einsum(wrong, a, b), np.ones((2, 3)), np.ones((3, 2)))
    check(lambda m, a, b: m.einsum("ij,jk", a, b), np.ones((2, 3)), np.ones((2, 2)))


def test_sizes_that_only_the_run_knows() -> None:
    x = np.array([1.0, -2.0, 3.0])
    f = lambda x: wnp.einsum("i,i,j->j", x[x > 0], x[x > 0], x)  # noqa: E731
    np.testing.assert_allclose(wend.function(f)(x), 10 * x)
    np.testing.assert_allclose(wend.grad(lambda x: wnp.sum(f(x)))(x), [14, 10, 22])
