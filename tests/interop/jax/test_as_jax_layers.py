"""Solvers as layers of JAX programs: their derivatives to the third order, and training."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import wend
from tests.interop.layers import INPUTS, LAYERS, TRUE_WEIGHTS, WEIGHTS
from wend.interop.jax import as_jax


@pytest.mark.parametrize("name", LAYERS)
def test_bits_are_those_of_wend(name: str) -> None:
    layer = as_jax(LAYERS[name])
    expected = wend.function(LAYERS[name])(WEIGHTS, INPUTS)
    for call in (layer, jax.jit(layer)):
        assert np.asarray(call(WEIGHTS, INPUTS)).tobytes() == expected.tobytes()


@pytest.mark.sampled
@pytest.mark.parametrize("order", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LAYERS)
def test_derivatives(name: str, order: int) -> None:
    check_grads(as_jax(LAYERS[name]), (WEIGHTS, INPUTS), order=order, atol=1e-4, rtol=1e-4)


@pytest.mark.sampled
@pytest.mark.parametrize("name", LAYERS)
def test_a_batch_is_trained_in_a_scan(name: str) -> None:
    layer = jax.vmap(as_jax(LAYERS[name]), in_axes=(None, 0))
    xs = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
    targets = layer(TRUE_WEIGHTS, xs)

    def loss(w: Any) -> Any:
        return jnp.mean((jax.checkpoint(layer)(w, xs) - targets) ** 2)

    @jax.jit
    def train(w: Any) -> Any:
        def step(w: Any, _: Any) -> Any:
            value, slope = jax.value_and_grad(loss)(w)
            return w - 0.3 * slope, value

        return jax.lax.scan(step, w, None, length=200)

    _, losses = train(jnp.array(WEIGHTS))
    assert losses[-1] < 0.05 * losses[0]
