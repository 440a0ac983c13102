"""What is differentiated: objects that are no pytree are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import NotDifferentiableError


class Model:
    def __init__(self, w: Any) -> None:
        self.w = w


def loss(model: Any, x: float = 1.0) -> Any:
    return (model.w * x).sum()


def with_layer(params: Any) -> Any:
    return (params["w"] * params["layer"].w).sum()


MODEL = Model(np.ones(2))
PARAMS = {"w": np.ones(2), "layer": MODEL}
TRANSFORMS = {
    "grad": wend.grad,
    "value_and_grad": wend.value_and_grad,
    "jacfwd": wend.jacfwd,
    "jacrev": wend.jacrev,
    "hessian": wend.hessian,
    "vjp": lambda fun, **_: lambda *args: wend.vjp(fun, *args),
}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_objects_are_refused_by_name(name: str, eager: bool) -> None:
    with wend.config(eager=eager):
        with pytest.raises(NotDifferentiableError, match="argument model is an object of class M"):
            TRANSFORMS[name](loss)(MODEL)
        with pytest.raises(NotDifferentiableError, match=r"(?s)params\['layer'\].*To fix it"):
            TRANSFORMS[name](with_layer)(PARAMS)


def test_what_is_not_differentiated_may_be_an_object() -> None:
    assert wend.grad(loss, argnums=1)(MODEL, 2.0) == 2.0
    assert wend.jvp(loss, (MODEL, 2.0), (None, 1.0))[1] == 2.0


def test_plain_values_beside_arrays_have_none() -> None:
    params = {"w": np.ones(2), "name": "dense", "activation": np.tanh, "n": 3}
    grads = wend.grad(lambda p: (p["activation"](p["w"]) * p["n"]).sum())(params)
    assert grads["name"] is None
    assert grads["activation"] is None
    assert grads["n"] is None
    assert grads["w"].shape == (2,)


def test_the_cure() -> None:
    class Registered(Model):
        pass

    wend.register_pytree_node(Registered, lambda m: ([m.w], None), lambda _, w: Registered(*w))
    np.testing.assert_array_equal(wend.grad(loss)(Registered(np.ones(2)), 3.0).w, [3.0, 3.0])
