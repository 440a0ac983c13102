"""Matrix products, Einstein sums, and windows of cosines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import wend.numpy as wnp
from wend.interop.onnx.operators.operands import dtype_of, known_ints


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's names
    transB: int = 0,  # noqa: N803
) -> Any:
    """Return alpha A B + beta C."""
    y = wnp.matmul(a.T if transA else a, b.T if transB else b)
    y = y if alpha == 1.0 else (alpha * y).astype(a.dtype)
    if c is None:
        return y
    return y + (c if beta == 1.0 else (beta * c).astype(a.dtype))


def einsum(*arrays: Any, equation: str) -> Any:
    """Return the Einstein sum of an equation."""
    return wnp.einsum(equation.replace(" ", ""), *arrays)


def cosine_window(a: float, b: float, c: float) -> Callable[..., Any]:
    """Return the operator of a window a − b cos φ + c cos 2φ."""

    def window(size: Any, output_datatype: int = 1, periodic: int = 1) -> Any:
        (count,) = known_ints(size, "the size of a window")
        angle = 2 * np.pi * np.arange(count) / (count if periodic else max(count - 1, 1))
        return (a - b * np.cos(angle) + c * np.cos(2 * angle)).astype(dtype_of(output_datatype))

    return window


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "BlackmanWindow": cosine_window(0.42, 0.5, 0.08),
    "Einsum": einsum,
    "Gemm": gemm,
    "HammingWindow": cosine_window(25 / 46, 21 / 46, 0.0),
    "HannWindow": cosine_window(0.5, 0.5, 0.0),
    "MatMul": lambda a, b: wnp.matmul(a, b),
}
