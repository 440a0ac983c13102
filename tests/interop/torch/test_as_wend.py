"""Functions and modules of PyTorch inside wend: values and derivatives of any order, in loops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import wend
from tests.interop.sine_in_wend import SCALAR, check_in_a_loop, check_tapes
from wend.base.errors import TypeMismatchError
from wend.interop.torch import as_torch, as_wend
from wend.testing import check_grads


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_in_a_loop(backend: str) -> None:
    check_in_a_loop(as_wend(torch.sin, SCALAR), backend, order=3)


def test_several_arguments_and_results() -> None:
    def fun(params: Any, x: Any, n: Any) -> Any:
        y = params["w"] @ x + params["b"]
        return {"y": torch.tanh(y) * n, "count": n.clone()}

    specs = {"y": wend.TensorSpec((2,), np.float64), "count": wend.TensorSpec((), np.int64)}
    inside = as_wend(fun, specs)
    params = {"w": np.array([[1.0, 0.5], [0.2, -1.0]]), "b": np.array([0.1, 0.2])}
    x = np.array([0.3, -0.4])

    def loss(params: Any, x: Any) -> Any:
        result = inside(params, x, 3)
        return (result["y"] ** 2).sum() * result["count"]

    slopes, slope = wend.grad(loss, argnums=(0, 1))(params, x)
    tensors = {key: torch.tensor(p, requires_grad=True) for key, p in params.items()}
    point = torch.tensor(x, requires_grad=True)
    ((fun(tensors, point, torch.tensor(3))["y"] ** 2).sum() * 3).backward()
    np.testing.assert_allclose(slope, point.grad, rtol=1e-12)
    for key, tensor in tensors.items():
        np.testing.assert_allclose(slopes[key], tensor.grad, rtol=1e-12)
    check_grads(loss, (params, x), order=2)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_complex_numbers(backend: str) -> None:
    def plain(z: Any) -> Any:
        return np.real(np.exp(z) * np.conj(z))

    inside = as_wend(lambda z: (torch.exp(z) * z.conj()).real, SCALAR)
    with wend.config(backend=backend):
        slope = wend.grad(lambda z: inside(z) * 2.0)(0.3 + 0.8j)
        np.testing.assert_allclose(slope, wend.grad(lambda z: plain(z) * 2.0)(0.3 + 0.8j))


def test_a_module_is_called_until_it_has_converged() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    module.double()
    layer = as_wend(module, wend.TensorSpec((3,), np.float64))

    def settle(x: Any) -> Any:
        z = np.zeros(3)
        while np.sum((0.5 * layer(z) + x - z) ** 2) > 1e-24:
            z = 0.5 * layer(z) + x
        return z

    check_grads(settle, (np.array([0.1, -0.3, 0.7]),), order=2)
    before = wend.function(settle)(np.ones(3))
    with torch.no_grad():
        module[2].bias += 1.0
    assert np.all(wend.function(settle)(np.ones(3)) > before)  # the parameters of this call


def test_derivatives_in_the_parameters_of_a_module() -> None:
    module = torch.nn.Linear(2, 2).double()
    params = {name: p.detach().numpy() for name, p in module.named_parameters()}
    layer = as_wend(
        lambda params, x: torch.func.functional_call(module, params, (x,)),
        wend.TensorSpec((2,), np.float64),
    )

    def loss(params: Any, x: Any) -> Any:
        for _ in range(3):
            x = np.tanh(layer(params, x))
        return np.sum(x)

    slopes = wend.grad(loss)(params, np.array([0.5, -1.0]))
    x = torch.tensor([0.5, -1.0], dtype=torch.float64)
    for _ in range(3):
        x = torch.tanh(module(x))
    x.sum().backward()
    for name, p in module.named_parameters():
        np.testing.assert_allclose(slopes[name], p.grad, rtol=1e-12)


def test_what_a_function_does_to_its_tensors_stays_with_it() -> None:
    x = np.ones(3)
    doubled = as_wend(lambda x: x.mul_(2.0), wend.TensorSpec((3,), np.float64))
    np.testing.assert_array_equal(wend.function(doubled)(x), 2.0)
    np.testing.assert_array_equal(x, 1.0)


def test_a_result_of_another_type_is_refused() -> None:
    wrong = as_wend(torch.sin, wend.TensorSpec((2,), np.float64))
    with pytest.raises(wend.WendError):
        wend.function(wrong)(1.0)


@pytest.mark.parametrize("result", [3.0, np.float64(3.0), "three"])
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_result_that_is_no_tensor_is_refused(result: Any, backend: str) -> None:
    wrong = as_wend(lambda x: result, SCALAR)
    for run in (wrong, wend.function(wrong, backend=backend)):
        with pytest.raises(TypeMismatchError, match=f"found {type(result).__name__}"):
            run(1.0)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_no_trips(backend: str) -> None:
    sine = as_wend(torch.sin, SCALAR)

    def repeated(x: float, n: int) -> Any:
        for _ in range(n):
            x = sine(x)
        return x

    fun = wend.function(repeated, backend=backend)
    assert (fun(2.0, 0), wend.grad(fun)(2.0, 0)) == (2.0, 1.0)


def test_threads_run_and_differentiate_one_function() -> None:
    sine = as_wend(torch.sin, SCALAR)
    slope = wend.grad(wend.function(lambda x: sine(x) * sine(2.0 * x)))
    points = [0.01 * k for k in range(200)]
    expected = [slope(x) for x in points]
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(slope, points)] == expected


def test_a_result_of_another_structure_is_refused() -> None:
    wrong = as_wend(lambda x: {"a": x}, {"b": SCALAR})
    with pytest.raises(wend.WendError, match="result_specs is"):
        wend.function(wrong)(1.0)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="as_wend takes a function"):
        as_wend(3.0, SCALAR)  # type: ignore[arg-type]


def test_tapes() -> None:
    check_tapes(as_wend(torch.sin, SCALAR))


def test_inside_of_torch_it_is_refused() -> None:
    inner = as_wend(lambda x: torch.exp(-x), SCALAR)
    with pytest.raises(wend.WendError, match="it prints, or calls Python"):
        as_torch(lambda x: inner(x) * x)(torch.tensor(0.5, dtype=torch.float64))
