"""What random programs compute with: dtypes, shapes, and arguments of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SHAPES: tuple[tuple[int | str, ...], ...] = (
    *((), (), (3,), (3,), (3,), (5,), (2, 3), (2, 3), (3, 3), (0,), (17,), (2, 3, 2)),
    *(("n",), ("n",), ("n",), ("n", 3), ("n", 3), (3, "n")),
)
SIZES = (0, 1, 2, 3, 5, 7, 19, 33)


@dataclass(frozen=True)
class Kind:
    """What is known of a value: its dtype, its shape, and whether it is a rounded float."""

    dtype: str
    shape: tuple[int | str, ...]
    rounded: bool = False

    @property
    def is_float(self) -> bool:
        return self.dtype in ("f8", "f4")

    @property
    def is_whole(self) -> bool:
        return self.dtype in ("i8", "i4")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def of_shape(self) -> str:
        """The shape as programs write it."""
        return f"({''.join(f'{d}, ' for d in self.shape)})"


INT, FLAG = Kind("i8", ()), Kind("?", ())


def numbers(rng: np.random.Generator, kind: Kind, size: int) -> Any:
    """An argument of a kind, where n is `size`."""
    shape = tuple(size if d == "n" else int(d) for d in kind.shape)
    if kind.rounded:
        return rng.normal(size=shape).round(3).astype(kind.dtype)
    low, high = (0, 2) if kind.dtype == "?" else (-4, 5)
    return np.asarray(rng.integers(low, high, shape)).astype(kind.dtype)
