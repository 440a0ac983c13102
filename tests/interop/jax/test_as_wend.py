"""Functions of JAX inside wend: values and derivatives of any order, in recorded loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wend
from tests.interop.sine_in_wend import SCALAR, check_in_a_loop, check_tapes
from wend.interop.jax import as_wend


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_in_a_loop(backend: str) -> None:
    check_in_a_loop(as_wend(jnp.sin, SCALAR), backend, order=2)


def test_several_arguments_and_results() -> None:
    def fun(params: Any, x: Any, n: Any) -> Any:
        y = params["w"] @ x + params["b"]
        return {"y": jnp.tanh(y) * n, "count": jnp.int64(n)}

    specs = {"y": wend.TensorSpec((2,), np.float64), "count": wend.TensorSpec((), np.int64)}
    inside = as_wend(fun, specs)
    params = {"w": np.array([[1.0, 0.5], [0.2, -1.0]]), "b": np.array([0.1, 0.2])}
    x = np.array([0.3, -0.4])

    def loss(params: Any, x: Any) -> Any:
        result = inside(params, x, 3)
        return (result["y"] ** 2).sum() * result["count"]

    expected = jax.grad(lambda p, x: (fun(p, x, 3)["y"] ** 2).sum() * 3, argnums=(0, 1))
    slopes, slope = wend.grad(loss, argnums=(0, 1))(params, x)
    jax_slopes, jax_slope = expected(params, x)
    np.testing.assert_allclose(slope, jax_slope, rtol=1e-12)
    for key in params:
        np.testing.assert_allclose(slopes[key], jax_slopes[key], rtol=1e-12)


def test_a_result_of_another_type_is_refused() -> None:
    wrong = as_wend(jnp.sin, wend.TensorSpec((2,), np.float64))
    with pytest.raises(wend.WendError):
        wend.function(wrong)(1.0)


def test_a_result_of_another_structure_is_refused() -> None:
    wrong = as_wend(lambda x: {"a": x}, {"b": SCALAR})
    with pytest.raises(wend.WendError, match="it returned PyTreeDef"):
        wend.function(wrong)(1.0)


def test_tapes() -> None:
    check_tapes(as_wend(jnp.sin, SCALAR))


def test_inside_of_jax_it_is_refused() -> None:
    from wend.interop.jax import as_jax

    inner = as_wend(lambda x: jnp.exp(-x), SCALAR)
    with pytest.raises(wend.WendError, match="it prints, or calls Python"):
        as_jax(lambda x: inner(x) * x)(0.5)
