"""Functions of wend inside PyTorch: values, derivatives of any order, batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import wend
from wend.interop.torch import as_torch, operations

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # its own


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def relax(weights: Any, x: Any) -> Any:
    z, trips = np.zeros_like(x), 0
    while np.sum((np.tanh(weights @ z + x) - z) ** 2) > 1e-6:
        z, trips = np.tanh(weights @ z + x), trips + 1
    return {"z": z, "trips": trips}


def tensor(*numbers: float) -> Any:
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=True)


def test_values_and_dtypes() -> None:
    f = as_torch(lambda x, n: (x * n, x > n))
    product, flags = f(torch.tensor([1.0, 2.0]), 1.5)
    assert (product.dtype, flags.dtype) == (torch.float32, torch.bool)
    assert (product.tolist(), flags.tolist()) == ([1.5, 3.0], [False, True])
    four = torch.tensor(4.0, dtype=torch.float64)
    assert as_torch(wend.function(root))(four).item() == wend.function(root)(4.0)
    result = as_torch(relax)(0.1 * torch.eye(2), torch.tensor([0.5, 0.1]))
    assert result["trips"].dtype == torch.int64


def test_gradcheck() -> None:
    scalar = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    weights = (0.3 * torch.eye(3, dtype=torch.float64)).requires_grad_()
    for fun, args in (
        (as_torch(root), (scalar,)),
        (lambda w, x: as_torch(relax)(w, x)["z"], (weights, tensor(0.5, -0.2, 0.1))),
    ):
        assert torch.autograd.gradcheck(fun, args, atol=1e-5, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(fun, args, atol=1e-5)


def test_functions_of_torch_func() -> None:
    f = as_torch(root)
    points = torch.tensor([2.0, 4.0, 9.0], dtype=torch.float64)
    slopes = 0.5 / points.sqrt()
    torch.testing.assert_close(torch.func.vmap(f)(points), points.sqrt())
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(f))(points), slopes)
    second = torch.func.grad(torch.func.grad(f))
    torch.testing.assert_close(torch.func.vmap(second)(points), -0.25 * points**-1.5)
    one = torch.ones((), dtype=torch.float64)
    value, slope = torch.func.jvp(f, (points[1],), (one,))
    torch.testing.assert_close((value, slope), (2 * one, 0.25 * one))
    value, pull_back = torch.func.vjp(f, points[1])
    torch.testing.assert_close(pull_back(one)[0], 0.25 * one)
    torch.testing.assert_close(torch.func.hessian(f)(points[1]), -0.03125 * one)
    total = torch.func.grad(lambda a: torch.func.vmap(f)(a).sum())
    torch.testing.assert_close(total(points), slopes)


def test_a_layer_is_trained() -> None:
    layer = as_torch(lambda w, x: relax(w, x)["z"])
    weights = torch.nn.Parameter(0.1 * torch.eye(3))
    optimizer = torch.optim.SGD([weights], lr=0.5)
    x, target = torch.tensor([0.5, -0.2, 0.1]), torch.tensor([0.7, 0.0, 0.2])
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = ((layer(weights, x) - target) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_complex_gradients_are_those_of_torch() -> None:
    z = torch.tensor([1.0 + 2.0j, -0.5 + 0.3j], requires_grad=True)
    for fun in (lambda z: z * z * (1 + 2j), lambda z: z.real * 2 + z.imag**2):
        ours, theirs = as_torch(fun)(z), fun(z)
        seed = torch.ones_like(theirs) * (0.5 + 0.1j if theirs.is_complex() else 0.5)
        (gradient,) = torch.autograd.grad(ours, z, seed)
        (expected,) = torch.autograd.grad(theirs, z, seed)
        torch.testing.assert_close(gradient, expected)


def test_operands_without_gradients() -> None:
    x, n = tensor(1.0, 2.0), torch.tensor([1, 2])
    y, total = as_torch(lambda x, n: (x * n, n.sum()))(x, n)
    assert not total.requires_grad
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [1.0, 2.0]
    assert not as_torch(root)(torch.tensor(4.0)).requires_grad


total = wend.Variable(0.0, name="total")


def assigns(x: Any) -> Any:
    total.assign_add(x[0])
    return x


def writes(x: Any) -> Any:
    x[0] = 1.0
    return x


def prints(x: Any) -> Any:
    print(x)
    return x


@pytest.mark.parametrize(
    ("fun", "text"),
    [
        (assigns, "it uses Variable 'total'"),
        (writes, "an argument is changed in place"),
        (prints, "it prints, or calls Python"),
        (lambda x: x[x > 0.0], "the size of result 0 is known to a run only"),
    ],
)
def test_what_is_refused(fun: Any, text: str) -> None:
    with pytest.raises(wend.WendError, match=text):
        as_torch(fun)(torch.ones(2))


def test_tensors_that_are_refused() -> None:
    f = as_torch(lambda x: x)
    with pytest.raises(wend.WendError, match=r"NumPy has no torch\.bfloat16"):
        f(torch.ones(2, dtype=torch.bfloat16))
    with pytest.raises(wend.WendError, match="a tensor is on meta"):
        f(torch.ones(2, device="meta"))


def test_errors_keep_their_class() -> None:
    def checked(x: Any) -> Any:
        if x < 0.0:
            raise ValueError(f"{x} is negative")
        return x

    with pytest.raises(ValueError, match=r"-1\.0 is negative"):
        as_torch(checked)(torch.tensor(-1.0, dtype=torch.float64))


def test_graphs_of_torch_compile_are_whole() -> None:
    f = as_torch(root)
    compiled = torch.compile(lambda a: f(2.0 * a) + 1.0, fullgraph=True, backend="aot_eager")
    a = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    value = compiled(a)
    value.backward()
    torch.testing.assert_close(value.item(), 3.0)
    torch.testing.assert_close(a.grad.item(), 0.5)


def test_the_operation_is_well_formed() -> None:
    f = as_torch(root)
    compiled = torch.compile(lambda a: f(a), fullgraph=True, backend="aot_eager")
    a = torch.tensor(3.0, dtype=torch.float64)
    compiled(a)
    number = max(operations._functions)
    torch.library.opcheck(torch.ops.wend.call.default, ([a.requires_grad_()], number))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # its own
def test_trees_are_arguments_of_compiled_programs() -> None:
    @as_torch
    def fun(weights: Any, pair: Any) -> Any:
        assert type(weights) is dict
        assert type(pair) is list
        return weights["w"] * pair[0] - weights["a"] * pair[1]

    def run(w: Any, a: Any, x: Any) -> Any:
        return fun({"w": w, "a": a}, [x, 2.0 * x])

    operands = [torch.tensor(x, dtype=torch.float64) for x in (2.0, 3.0, 5.0)]
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert compiled(*operands).item() == run(*operands).item() == -20.0


@pytest.mark.parametrize(
    "form",
    [
        lambda fun: as_torch(wend.vmap(fun)),
        lambda fun: torch.vmap(as_torch(fun)),
        lambda fun: lambda a: as_torch(wend.vmap(fun))(a.requires_grad_()).sum().backward(),
    ],
)
def test_errors_in_maps_tell_the_first_element(form: Any) -> None:
    call = form(lambda a: np.linalg.inv(a).sum())
    for _ in range(2):
        a = torch.eye(2, dtype=torch.float64).repeat(6, 1, 1)
        call(a)
        a = a.detach()
        a[4] = a[2] = 1.0
        with pytest.raises(np.linalg.LinAlgError) as caught:
            call(a)
        assert caught.value.__notes__[-1] == "in element 2 of vmap"
