"""Calls on tensors: on the memory of any view, in threads, and by compiled graphs."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from bench.bridges import torch_calls
from torch.autograd import forward_ad

import wend
from wend.interop.torch import as_torch, operations

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # its own


def test_views_are_read_as_they_are() -> None:
    f = as_torch(lambda x: x * 2 + 1)
    matrix = torch.arange(6.0).reshape(2, 3)
    z = torch.tensor([1.0 + 2.0j, 3.0 - 1.0j])
    for view in (matrix.T, matrix[:, 1], matrix[1:], z.conj(), z.conj().imag, z.real, matrix[:0]):
        torch.testing.assert_close(f(view), view * 2 + 1)
        assert f(view).is_contiguous()


def test_zeros_without_memory_are_read() -> None:
    """Tangents may be such tensors."""
    f = as_torch(lambda x: x * 2 + 1)
    for zeros in 2 * [torch._efficientzerotensor((5,)), torch.zeros(5)]:
        assert f(zeros).tolist() == 5 * [1.0]
        with wend.config(backend="numpy"):
            assert as_torch(lambda x: x * 2 + 1)(zeros).tolist() == 5 * [1.0]


def test_results_are_on_the_cpu_whatever_the_default_device() -> None:
    f = as_torch(lambda x: (x * 2 + 1, x.sum(), x[:0]))
    x = torch.arange(3.0)
    for _ in range(2):
        with torch.device("meta"):
            results = f(x)
        assert [y.tolist() for y in results] == [[1.0, 3.0, 5.0], 3.0, []]


def test_results_have_memory_of_their_own() -> None:
    x = torch.tensor([1.0, 2.0])
    same, again = as_torch(lambda x: (x, x))(x)
    same += 1.0
    assert (x.tolist(), again.tolist()) == ([1.0, 2.0], [1.0, 2.0])


def test_forward_mode() -> None:
    f = as_torch(lambda x: x * x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        assert forward_ad.unpack_dual(f(dual)).tangent.item() == 6.0


def test_a_failed_call_leaves_the_next_ones_alone() -> None:
    def checked(x: Any) -> Any:
        if x[0] < 0.0:
            raise ValueError(f"{x[0]} is negative")
        return np.cumsum(x)

    f = as_torch(checked)
    for k in range(20):
        assert f(torch.full((50,), float(k)))[-1].item() == 50.0 * k
        with pytest.raises(ValueError, match=r"-1\.0 is negative"):
            f(-torch.ones(50))


def test_the_reference_backend_runs_too() -> None:
    with wend.config(backend="numpy"):
        assert as_torch(lambda x: x * 2)(torch.tensor([1.0])).tolist() == [2.0]


def test_calls_in_threads() -> None:
    f = as_torch(lambda x: np.cumsum(x) * 0.5)
    xs = [torch.full((40,), float(k)) for k in range(4)]
    failures: list[Any] = []

    def work(x: Any) -> None:
        expected = torch.cumsum(x, 0) * 0.5
        failures.extend(k for k in range(2000) if not torch.equal(f(x), expected))

    threads = [threading.Thread(target=work, args=(x,)) for x in xs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_compiled_programs_tell_functions_apart() -> None:
    def run(factor: float) -> Any:
        layer = as_torch(lambda x: x * factor)
        return torch.compile(lambda x: layer(x), fullgraph=True, backend="aot_eager")

    one = torch.ones(2)
    assert run(2.0)(one).tolist() == [2.0, 2.0]
    assert run(5.0)(one).tolist() == [5.0, 5.0]  # the same code, another function


def test_the_first_call_may_be_a_compiled_one() -> None:
    f = as_torch(lambda x: x + 1)
    x = torch.ones(3, dtype=torch.int16)
    compiled = torch.compile(lambda x: f(x), fullgraph=True, backend="aot_eager")
    assert compiled(x).dtype == torch.int16


def test_a_call_without_a_gradient_is_short() -> None:
    f, x = as_torch(lambda x, y: x * y), torch.ones(3)
    f(x, x)
    calls: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, arg: calls.update([event]))
    try:
        f(x, x)
    finally:
        sys.setprofile(None)
    assert calls["call"] <= 16  # of Python
    assert calls["c_call"] <= 40


def test_the_bench_compares_what_is_equal() -> None:
    results = {name: call() for name, call in torch_calls().items()}
    for name in ("wend", "as_torch", "as_torch, grad needed"):
        assert results[name].item() == pytest.approx(2.0)
    for gradient in (*results["as_torch, backward"], results["as_torch, torch.func.grad"]):
        assert gradient.item() == pytest.approx(0.25)
    expected = results["wend, 1,000 elements"]
    np.testing.assert_array_equal(results["as_torch, 1,000 elements"], expected)


def test_fast_paths_give_what_other_calls_give() -> None:
    """After the first call: views, tensors that need a gradient, and transforms are told apart."""

    def fun(x, y):
        return x * y + np.sin(x)

    call = as_torch(fun)
    x, y = (
        torch.linspace(0.5, 2.0, 6, dtype=torch.float64).reshape(2, 3),
        torch.tensor(3.0).double(),
    )
    for _ in range(3):
        torch.testing.assert_close(call(x, y), x * y + torch.sin(x))
    negated = torch.view_as_complex(torch.stack([x, x], -1)).conj().imag
    assert negated.is_neg()
    for operand in (x.T.contiguous().T, x.flip(0), negated, x[:, :1].expand(2, 3)):
        torch.testing.assert_close(call(operand, y), operand * y + torch.sin(operand))
    needing = x.clone().requires_grad_()
    call(needing, y).sum().backward()
    torch.testing.assert_close(needing.grad, y + torch.cos(x))
    with torch.no_grad():
        assert not call(needing, y).requires_grad
    gradient = torch.func.grad(lambda x: call(x, y).sum())(x)
    torch.testing.assert_close(gradient, y + torch.cos(x))
    rows = torch.func.vmap(call, (0, None))(torch.stack([x, x + 1.0]), y)
    torch.testing.assert_close(rows[1], (x + 1.0) * y + torch.sin(x + 1.0))
    _, slope = torch.func.jvp(lambda x: call(x, y), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(slope, y + torch.cos(x))
    torch.testing.assert_close(call(x, y), x * y + torch.sin(x))
    first = call(x, y)
    call(x + 1.0, y)
    torch.testing.assert_close(first, x * y + torch.sin(x))  # its memory is its own


def test_fast_paths_raise_errors() -> None:
    @as_torch
    def root(x):
        if x < 0.0:
            raise ValueError(f"no root of {x}")
        return np.sqrt(x)

    for _ in range(3):
        assert root(torch.tensor(4.0)).item() == 2.0
    with pytest.raises(ValueError, match=r"no root of -1\.0"):
        root(torch.tensor(-1.0))
    assert root(torch.tensor(9.0)).item() == 3.0


NESTINGS: dict[str, Any] = {
    "grad": lambda f: torch.func.grad(f),
    "second": lambda f: torch.func.grad(torch.func.grad(f)),
    "forward": lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
    "hessian": lambda f: torch.func.jacfwd(torch.func.hessian(f)),
    "pushed": lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1],
    "pulled": lambda f: torch.func.grad(lambda x: torch.func.jvp(f, (x,), (x,))[1]),
    "batch": lambda f: lambda x: torch.func.vmap(torch.func.grad(f))(torch.stack([x, x + 1.0])),
}


def power(x: Any) -> Any:
    return x * x * x * x * x


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("name", NESTINGS)
def test_functions_of_torch_func_nest(name: str, compiles: bool) -> None:
    call, x = as_torch(power), torch.tensor(1.5, dtype=torch.float64)
    expected = NESTINGS[name](power)(x)
    run = NESTINGS[name](lambda x: call(x))
    if compiles:
        run = torch.compile(run, fullgraph=True, backend="aot_eager")
    for _ in range(2):  # the second of an eager call takes a fast path
        torch.testing.assert_close(run(x), expected)


def test_a_mode_sees_calls() -> None:
    """What a mode of PyTorch records calls the function, and does not hold its results."""
    from torch.fx.experimental.proxy_tensor import make_fx

    call, x = as_torch(lambda x: x * 2.0), torch.ones(3)
    call(x)
    graph = make_fx(call)(x)
    assert graph(x + 1.0).tolist() == [4.0, 4.0, 4.0]


def test_fast_paths_of_several_results() -> None:
    call = as_torch(lambda x, y: {"product": x * y, "larger": x > y})
    x, y = torch.tensor([1.0, 3.0]), torch.tensor(2.0, requires_grad=True)
    for _ in range(3):
        results = call(x, y)
        assert results["product"].tolist() == [2.0, 6.0]
        assert results["larger"].tolist() == [False, True]
        assert not results["larger"].requires_grad
        (slope,) = torch.autograd.grad(results["product"].sum(), y)
        assert slope.item() == 4.0


def test_results_are_in_c_order() -> None:
    for shape in ((), (0,), (1, 1), (3, 0, 2), (2, 1, 3)):
        call, x = as_torch(lambda x: x + 1.0), torch.ones(shape)
        for _ in range(2):
            assert call(x).stride() == torch.ones(shape).stride()


def test_functions_that_nobody_holds_are_dropped() -> None:
    def run(factor: float) -> Any:
        call = as_torch(lambda x: x * factor)
        return torch.func.grad(call)(torch.tensor(1.0)).item()

    run(1.0)
    gc.collect()
    before = len([*operations._functions])
    assert [run(float(k)) for k in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
    gc.collect()
    assert len([*operations._functions]) <= before
