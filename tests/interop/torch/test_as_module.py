"""wend functions with variables as modules of PyTorch: gradients, training, state, refusals."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch

import wend
from wend.base.errors import VariableError
from wend.interop.torch import as_module

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # its own


class Equilibrium:
    """z = tanh(W z + b + x), iterated until it no longer changes."""

    def __init__(self) -> None:
        self.weights = wend.Variable(0.1 * np.eye(3))
        self.bias = wend.Variable(np.array([0.1, 0.0, -0.1]))

    def __call__(self, x: Any) -> Any:
        z = np.zeros(3)
        while np.sum((np.tanh(self.weights @ z + self.bias + x) - z) ** 2) > 1e-20:
            z = np.tanh(self.weights @ z + self.bias + x)
        return z


X = np.array([0.5, -0.2, 0.1])


def module_of(layer: Equilibrium) -> torch.nn.Module:
    return as_module(layer, {"weights": layer.weights, "bias": layer.bias})


def test_value_and_gradients_are_those_of_wend() -> None:
    layer = Equilibrium()
    module = module_of(layer)
    with wend.GradientTape() as tape:
        loss = np.sum(wend.function(layer)(X) ** 2)
    expected = tape.gradient(loss, [layer.weights, layer.bias])
    found = (module(torch.from_numpy(X)) ** 2).sum()
    found.backward()
    assert found.item() == pytest.approx(float(loss), rel=1e-14)
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), gradient, rtol=1e-12, atol=1e-14)


def test_gradients_of_gradients() -> None:
    module = module_of(Equilibrium())
    inputs = [p.detach().clone().requires_grad_() for p in module.parameters()]

    def run(weights: Any, bias: Any) -> Any:
        values = {"weights": weights, "bias": bias}
        return torch.func.functional_call(module, values, (torch.from_numpy(X),))

    assert torch.autograd.gradcheck(run, inputs, atol=1e-5)
    assert torch.autograd.gradgradcheck(run, inputs, atol=1e-5)


@pytest.mark.parametrize("compiles", [False, True])
def test_it_is_trained_and_gives_its_values_back(compiles: bool) -> None:
    layer = Equilibrium()
    module = module_of(layer)
    call = torch.compile(module, fullgraph=True, backend="aot_eager") if compiles else module
    target = torch.tensor([0.7, 0.0, 0.2], dtype=torch.float64)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.3)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = ((call(torch.from_numpy(X)) - target) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 50
    before = wend.function(layer)(X)
    module.update_variables()
    trained = module(torch.from_numpy(X)).detach().numpy()
    assert np.max(np.abs(before - trained)) > 0.1
    np.testing.assert_allclose(wend.function(layer)(X), trained, rtol=1e-14)


def test_its_state_is_saved_loaded_and_copied() -> None:
    module, other = module_of(Equilibrium()), module_of(Equilibrium())
    with torch.no_grad():
        module.bias.add_(1.0)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    x = torch.from_numpy(X)
    assert torch.equal(other(x), module(x))
    copied = copy.deepcopy(module)
    with torch.no_grad():
        module.bias.add_(1.0)
    assert torch.equal(copied(x), other(x))
    assert not torch.equal(copied(x), module(x))


def test_what_is_not_trainable_is_a_buffer() -> None:
    scale = wend.Variable(2.0, "scale", trainable=False)
    steps, shift = wend.Variable(np.int64(3)), wend.Variable(1.0, "shift")

    def fun(x: Any) -> Any:
        for _ in range(steps):
            x = x * scale + shift
        return x

    module = as_module(fun, [scale, steps, shift])
    assert [name for name, _ in module.named_parameters()] == ["shift"]
    assert [name for name, _ in module.named_buffers()] == ["scale", "v1"]
    assert module(torch.tensor(1.0, dtype=torch.float64)).item() == fun(1.0)


def test_what_is_refused() -> None:
    layer = Equilibrium()
    x = torch.from_numpy(X)
    with pytest.raises(VariableError, match="uses a Variable"):
        as_module(layer, {"weights": layer.weights})(x)
    count = wend.Variable(0.0, "count")

    def counted(x: Any) -> Any:
        for _ in range(3):
            count.assign_add(1.0)
        return x * count

    with pytest.raises(VariableError, match=r"'count'.* is assigned to"):
        as_module(counted, [count])(x)
    with pytest.raises(TypeError, match="'w' is 'float'"):
        as_module(layer, {"w": 1.0})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="twice"):
        as_module(layer, {"a": layer.bias, "b": layer.bias})
