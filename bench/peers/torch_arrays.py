"""PyTorch's functions over arrays, by the names that NumPy has for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bench.peers.arrays import below


def functions(torch: Any) -> dict[str, Any]:
    """Return what programs over arrays are written with."""

    def total(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return torch.sum(x) if axis is None else torch.sum(x, axis, keepdim=keepdims)

    def lower(entries: Any, size: int) -> Any:
        rows, columns = below(size)
        found = torch.zeros((entries.shape[0], size, size), dtype=entries.dtype)
        found[:, rows, columns] = entries
        return found

    arrays = SimpleNamespace(
        **{name: getattr(torch, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tanh")},
        **{name: getattr(torch, name) for name in ("abs", "diag", "einsum", "zeros_like")},
        arange=torch.arange,
        argmin=torch.argmin,
        sum=total,
        mean=lambda x, axis, keepdims=False: torch.mean(x, axis, keepdim=keepdims),
        max=lambda x, axis, keepdims=False: torch.amax(x, axis, keepdim=keepdims),
    )
    return {
        "np": arrays,
        "helper": lambda function: function,
        "sigmoid": torch.sigmoid,
        "rows": len,
        "range": range,
        "take": lambda x, rows: x[rows],
        "solve": torch.linalg.solve,
        "numbers": lambda x: x.to(torch.float64),
        "lower": lower,
    }
