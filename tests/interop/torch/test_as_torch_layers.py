"""Solvers as layers of PyTorch programs: derivatives, as PyTorch checks them, and training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import wend
from tests.interop.layers import INPUTS, LAYERS, TRUE_WEIGHTS, WEIGHTS
from wend.interop.torch import as_torch, operations

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # its own


def operands() -> tuple[Any, Any]:
    return tuple(torch.from_numpy(x.copy()).requires_grad_() for x in (WEIGHTS, INPUTS))  # type: ignore[return-value]


@pytest.mark.parametrize("name", LAYERS)
def test_bits_are_those_of_wend(name: str) -> None:
    expected = wend.function(LAYERS[name])(WEIGHTS, INPUTS)
    for x in (as_torch(LAYERS[name])(*operands()).detach(), *_without_grad(name)):
        assert x.numpy().tobytes() == expected.tobytes()


def _without_grad(name: str) -> list[Any]:
    with torch.no_grad():
        return [as_torch(LAYERS[name])(*operands())]


@pytest.mark.parametrize("name", LAYERS)
def test_derivatives(name: str) -> None:
    layer = as_torch(LAYERS[name])
    assert torch.autograd.gradcheck(layer, operands(), atol=1e-5, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(layer, operands(), atol=1e-5)
    w, x = (operand.detach() for operand in operands())
    second = torch.func.hessian(lambda w: layer(w, x).sum())
    torch.testing.assert_close(torch.func.jacrev(second)(w), torch.func.jacfwd(second)(w))


@pytest.mark.parametrize("name", LAYERS)
def test_the_operation_is_well_formed(name: str) -> None:
    layer = as_torch(LAYERS[name])
    torch.compile(lambda *args: layer(*args), fullgraph=True, backend="aot_eager")(*operands())
    numbered = operations._functions
    (number, *_) = [k for k in numbered if numbered[k].name == name]
    torch.library.opcheck(torch.ops.wend.call.default, (list(operands()), number))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("compiles", [False, True])
def test_a_batch_is_trained(name: str, compiles: bool) -> None:
    layer = as_torch(LAYERS[name])
    xs = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64).reshape(4, 3)
    with torch.no_grad():
        targets = torch.stack([layer(torch.from_numpy(TRUE_WEIGHTS), x) for x in xs])

    def loss(w: Any) -> Any:
        return torch.mean((torch.stack([layer(w, x) for x in xs]) - targets) ** 2)

    run = torch.compile(loss, fullgraph=True, backend="aot_eager") if compiles else loss
    w = torch.nn.Parameter(torch.from_numpy(WEIGHTS.copy()))
    optimizer = torch.optim.SGD([w], lr=0.3)
    losses = []
    for _ in range(200):
        optimizer.zero_grad()
        value = run(w)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert losses[-1] < 0.05 * losses[0]
    assert np.isfinite(losses).all()
