"""Tensors that are not on the CPU: JAX computes on their memory.

There is no GPU here: the CPU stands for one, whose memory JAX takes from PyTorch in the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
pytest.importorskip("jax", reason="NOT RUN: jax is not installed")

import wend  # noqa: E402
from wend.interop.torch import as_torch, devices, running  # noqa: E402


@pytest.fixture
def on_a_device(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the CPU be a device like others; the names of functions that have run there."""
    ran: list[str] = []
    run = devices.run_on_device

    def counted(function: Any, operands: Any) -> Any:
        ran.append(function.name)
        return run(function, operands)

    def elsewhere(function: Any, operands: Any) -> Any:
        raise running._ElsewhereError

    monkeypatch.setattr(running, "_run_on_cpu", elsewhere)
    monkeypatch.setattr(running, "run_on_device", counted)
    monkeypatch.setattr(devices, "SHARED", frozenset({"cpu"}))
    return ran


def settled(x: Any, a: Any) -> Any:
    while np.max(np.abs(x)) > 0.5:
        x = a * np.sin(x)
    return x * x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_derivatives(on_a_device: list[str], dtype: Any) -> None:
    x = torch.linspace(0.1, 2.0, 6, dtype=dtype, requires_grad=True)
    a = torch.tensor(0.9, dtype=dtype, requires_grad=True)
    value = as_torch(settled)(x, a)
    expected = wend.function(settled)(x.detach().numpy(), a.detach().numpy())
    np.testing.assert_allclose(value.detach(), expected, rtol=1e-6)
    assert value.dtype == dtype
    slopes = torch.autograd.grad(value.sum(), (x, a), create_graph=True)
    assert torch.autograd.grad(slopes[1], x)[0].shape == x.shape
    assert len(on_a_device) >= 3
    if dtype == torch.float64:
        assert torch.autograd.gradcheck(as_torch(settled), (x, a))
        assert torch.autograd.gradgradcheck(as_torch(settled), (x, a))


def test_layouts_and_numbers(on_a_device: list[str]) -> None:
    x = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    flags = torch.tensor([True, False, True])

    def fun(x: Any, flags: Any, n: Any) -> Any:
        return np.where(flags[:, None], x, -x) * n, np.argmax(x, axis=1)

    for a in x, x.T.contiguous().T, x[:, ::2], torch.complex(x, x).conj():
        found = as_torch(fun)(a, flags, 3)
        expected = wend.function(fun)(a.resolve_conj().numpy(), flags.numpy(), 3)
        for b, c in zip(found, expected, strict=True):
            np.testing.assert_array_equal(b, c)


def test_memory_is_shared(on_a_device: list[str]) -> None:
    result = as_torch(lambda x: x + 1.0)(torch.zeros(1000))
    assert result.shape == (1000,)
    assert float(result.sum()) == 1000.0


def test_what_jax_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(wend.WendError, match=r"a tensor is on meta\.\n  To fix it: move it"):
        as_torch(np.sin)(torch.ones(2, device="meta"))
    with pytest.raises(wend.WendError, match="tensors are on cpu and meta"):
        as_torch(np.add)(torch.ones(2, device="meta"), torch.ones(2))
    monkeypatch.setattr(devices, "SHARED", frozenset({"meta"}))
    with pytest.raises(wend.WendError, match="or install JAX for this device"):
        as_torch(np.sin)(torch.ones(2, device="meta"))
