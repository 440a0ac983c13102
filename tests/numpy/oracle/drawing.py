"""Random operands: arrays of every dtype and layout, with the numbers at which functions differ."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

DTYPES = "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split()
FLOATS = "f2 f4 f8".split()
SHAPES = ((), (1,), (3,), (4,), (0,), (2, 3), (3, 3), (1, 3), (3, 1), (2, 0), (2, 3, 2), (1, 1))
_INTEGERS = (0, 1, 2, 3, -1, -2, 5, 7, 100)
_NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 2.0, 3.0, -3.5, 1e-3, 10.0, 0.1)
_EXTREMES = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 1e30, 1e-30, 65504.0, 1e-7)


class Draw(random.Random):
    """Random choices that make operands."""

    def dtype(self, kinds: str = "biufc") -> np.dtype:
        return np.dtype(self.choice([t for t in DTYPES if np.dtype(t).kind in kinds]))

    def flip(self, chance: float = 0.5) -> bool:
        return self.random() < chance

    def elements(self, dtype: np.dtype, count: int, extreme: bool) -> np.ndarray:
        """Numbers of a dtype, with repetitions."""
        if dtype.kind == "b":
            return np.array([self.flip() for _ in range(count)], bool)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            pool = [n for n in _INTEGERS if n >= limits.min]
            pool += [limits.min, limits.max] if extreme else []
            return np.array([self.choice(pool) for _ in range(count)], dtype)
        pool_of_floats = (*_NUMBERS, *_EXTREMES) if extreme else _NUMBERS
        parts = [[self.choice(pool_of_floats) for _ in range(count)] for _ in range(2)]
        with np.errstate(all="ignore"):
            if dtype.kind == "f":
                return np.array(parts[0]).astype(dtype)
            result = np.empty(count, dtype)
            result.real, result.imag = parts
            return result

    def array(
        self,
        kinds: str = "biufc",
        shapes: Sequence[tuple[int, ...]] = SHAPES,
        *,
        dtype: Any = None,
        extreme: float = 0.3,
    ) -> np.ndarray:
        """An array in one of the layouts."""
        dtype = self.dtype(kinds) if dtype is None else np.dtype(dtype)
        shape = self.choice(shapes)
        elements = self.elements(dtype, int(np.prod(shape)), self.flip(extreme))
        return self.laid_out(elements.reshape(shape))

    def laid_out(self, x: np.ndarray) -> np.ndarray:
        """The elements, contiguous, in Fortran's order, reversed or with gaps; or the first of a
        row for the whole row, by strides of 0.
        """
        layouts = ("C", "C", "C", "F", "F", "reversed", "reversed", "gaps", "gaps", "repeated")
        layout = self.choice(layouts) if x.ndim else "C"
        if layout == "repeated":
            return np.broadcast_to(x[..., :1], x.shape) if x.size else x
        if layout == "reversed":
            return np.ascontiguousarray(x[::-1])[::-1]
        if layout == "gaps":
            wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2]
        return np.array(x, order=layout)  # type: ignore[call-overload]

    def scalar(self, kinds: str = "biufc") -> Any:
        """A Python number or a NumPy scalar."""
        if self.flip(0.4):
            return self.array(kinds, [()])[()]
        kind = self.choice(kinds)
        if kind == "b":
            return self.flip()
        if kind in "iu":
            return self.choice((0, 1, 2, 3, -1, 7))
        number = self.choice((*_NUMBERS, np.nan, np.inf))
        return number if kind == "f" else complex(number, self.choice(_NUMBERS))

    def axis(self, rank: int, *, none: bool = True, pairs: bool = False) -> Any:
        """An axis, mostly a valid one."""
        options: list[Any] = [None] if none else []
        options += [*range(-rank, rank)] or [0]
        if pairs and rank > 1:
            options += [(0, 1), (-1, 0), (0,)]
        if self.flip(0.05):
            options = [rank, -rank - 1, [0], 1.0, *([True] if rank else [])]
        return self.choice(options)

    def maybe(self, chance: float, **options: Any) -> dict[str, Any]:
        """Each of the options, with a chance."""
        return {name: value for name, value in options.items() if self.flip(chance)}
