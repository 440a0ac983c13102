"""The answer of a workload: its program run by NumPy on dual numbers, before any peer is asked.

A dual number is a value and its derivatives by all inputs at once. It shares nothing with what is
measured: no tape, no compiler, no reverse mode. Of programs over large arrays the derivatives are
central differences, in the directions that `digest.py` has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench import digest
from bench.workload import Program, Workload

Answer = Callable[..., list[float]]


class Dual:
    """A number or an array, and its derivatives: an axis more, the first."""

    def __init__(self, value: Any, slope: Any) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other: Any) -> Dual:
        other = dual(other)
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)

    def __pow__(self, power: float) -> Dual:
        return self.mapped(self.value**power, power * self.value ** (power - 1))

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Dual:
        return self + -dual(other)

    def __rsub__(self, other: Any) -> Dual:
        return dual(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return dual(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self) -> Dual:
        return -self if self.value < 0 else self

    def __lt__(self, other: Any) -> Any:
        return self.value < dual(other).value

    def __gt__(self, other: Any) -> Any:
        return self.value > dual(other).value

    def __le__(self, other: Any) -> Any:
        return self.value <= dual(other).value

    def __getitem__(self, index: Any) -> Dual:
        slope = self.slope if isinstance(self.slope, float) else self.slope[:, index]
        return Dual(self.value[index], slope)

    def mapped(self, value: Any, factor: Any) -> Dual:
        return Dual(value, factor * self.slope)


def dual(value: Any) -> Dual:
    return value if isinstance(value, Dual) else Dual(value, 0.0)


def _tanh(x: Dual) -> Dual:
    y = np.tanh(x.value)
    return x.mapped(y, 1 - y * y)


LIBRARY = SimpleNamespace(
    sin=lambda x: x.mapped(np.sin(x.value), np.cos(x.value)),
    exp=lambda x: x.mapped(np.exp(x.value), np.exp(x.value)),
    sqrt=lambda x: x.mapped(np.sqrt(x.value), 0.5 / np.sqrt(x.value)),
    tanh=_tanh,
    sum=lambda x: Dual(np.sum(x.value), np.sum(x.slope, axis=-1)),
    maximum=lambda x, y: x if x > y else dual(y),
    minimum=lambda x, y: x if x < y else dual(y),
    stop_gradient=lambda x: dual(x.value),
    helper=lambda function: function,
)


def answer(workload: Workload, arguments: Sequence[Any]) -> list[float]:
    """Return the value and then the gradient, flat."""
    if workload.answer is not None:
        return workload.answer(*arguments)
    assert workload.plain is not None
    sizes = [np.size(arguments[index]) for index in workload.differentiable]
    columns = sum(sizes)
    given, column = list(arguments), 0
    for index, size in zip(workload.differentiable, sizes, strict=True):
        slope = np.zeros((columns, size))
        slope[column : column + size] = np.eye(size)
        column += size
        value = arguments[index]
        given[index] = Dual(value, slope if np.ndim(value) else slope[:, 0])
    result = dual(workload.plain(LIBRARY)(*given))
    found = [result.value] if columns == 0 else [result.value, result.slope]
    return [float(number) for part in found for number in np.ravel(part)]


def differences(program: Program, indices: Sequence[int], step: float = 1e-5) -> Answer:
    """Return what finds the value of a program, and its derivatives by some arguments."""

    def value(given: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return program(*given)

    def slope(given: list[Any], index: int, direction: Any) -> float:
        at, ends = given[index], []
        for sign in (1, -1):
            moved = at + sign * step * direction.reshape(np.shape(at))
            ends.append(value([*given[:index], moved, *given[index + 1 :]]))
        return float(ends[0] - ends[1]) / (2 * step)

    def found(*arguments: Any) -> list[float]:
        given = [in_doubles(argument) for argument in arguments]
        answer = digest.numbers(value(given))
        for index in indices:
            size = np.size(given[index])
            directions = [digest.weights(size)] if size > digest.MOST else np.eye(size)
            answer += [slope(given, index, direction) for direction in directions]
        return answer

    return found


def in_doubles(value: Any) -> Any:
    is_single = getattr(value, "dtype", None) == np.float32
    return value.astype(np.float64) if is_single else value


def distance(found: Sequence[float], wanted: Sequence[float]) -> float:
    """Return the largest difference, relative to the largest number wanted."""
    if len(found) > len(wanted) or not found:
        return float("inf")
    here, there = np.array(found), np.array(wanted[: len(found)])
    off = np.max(np.abs(here - there)) / np.max(np.abs(there))
    return float(off) if np.isfinite(off) else float("inf")
