"""Functions of `statistics` for traced numbers. Python adds exactly; these round as NumPy does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.builtins import stack_if_list
from wend.capture.builtins.conversions import as_weak
from wend.eager import raising
from wend.eager.dispatch import Staged, any_staged
from wend.eager.promotion import cast, is_weak
from wend.ir.dtypes import FLOAT64, INT64
from wend.numpy import creating, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy import statistics as ordered
from wend.numpy.operands import dtype_of, require
from wend.trace.arrays.attributes import class_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList

Call = Callable[..., Any]


class _Data:
    """The numbers of one call.

    Attributes:
        numbers: a vector of floats.
        is_weak: whether they are Python's numbers.
        is_whole: whether they were whole numbers.
        is_narrow: whether these were bools or integers of NumPy whose sum may not fit them.
    """

    def __init__(self, name: str, items: Any, least: str, fewest: int = 1) -> None:
        vector = creating.asarray(stack_if_list(items))
        self.is_weak = _are_weak(items)
        self.is_whole = dtype_of(vector).kind in "biu"
        self.is_narrow = self.is_whole and not self.is_weak and dtype_of(vector) != INT64
        self.count = shaping.shape(vector)[0]
        error = sys.modules["statistics"].StatisticsError
        text, is_short = _EMPTY.get(name, f"{name} requires at least {least}"), self.count < fewest
        is_handled = isinstance(is_short, Staged) and raising.divert(
            lambda: is_short, error, lambda: text
        )
        vector = vector if is_handled else require(vector, is_short, error, text)
        self.dtype = FLOAT64 if self.is_whole else dtype_of(vector)
        self.numbers = cast(vector, FLOAT64)

    def result(self, value: Any) -> Any:
        """Return a number of the kind of the data."""
        return as_weak(value) if self.is_weak else cast(value, self.dtype)

    def variance(self, fewest: int) -> Any:
        """Return the variance of a population of at least 1, or of a sample of at least 2."""
        offsets = self.numbers - reducing.mean(self.numbers)
        return reducing.sum(offsets * offsets) / (self.count - (fewest - 1))


# Functions that ask for the ratio of integers that a number is
_EXACT = frozenset({"mean", "variance", "pvariance", "stdev", "pstdev"})


def _check_numbers(items: Any) -> None:
    """Check that no item of a list is an array, which may have no axes."""
    for item in items if isinstance(items, (list, tuple)) else ():
        if isinstance(item, np.ndarray) or (
            isinstance(item, Tracer) and class_of(item) is np.ndarray
        ):
            raise TypeError("can't convert type 'ndarray' to numerator/denominator")


_EMPTY = {"median": "no median for empty data"}


def _are_weak(items: Any) -> bool:
    """Return whether all items are Python's numbers."""
    if isinstance(items, TensorList):
        return all(type.weak for type in items.types)
    return not isinstance(items, Staged) and all(map(is_weak, items))


def _taking_numbers(original: Call, staged: Call) -> Call:
    """Return a function of `statistics` that takes traced numbers as well, in `staged`."""

    def run(data: Any, *others: Any, **options: Any) -> Any:
        if not isinstance(data, (Staged, TensorList, list, tuple)):
            data = [*data]
        if original.__name__ in _EXACT:
            _check_numbers(data)
        is_known = not isinstance(data, TensorList) and not any_staged((data,))
        if is_known or others or options:
            return original(data, *others, **options)
        return staged(original.__name__, data)

    return run


def _of_floats(name: str, data: _Data) -> None:
    """Refuse whole numbers, of which the result is an int, a float or an error.

    Raises:
        UnsupportedError: they are whole numbers.
    """
    if data.is_whole:
        what = f"statistics.{name}{at(user_source())} of whole numbers depends in its type on them."
        cure = "make them floats: [float(x) for x in data], or use statistics.fmean."
        raise UnsupportedError(explain(what, cure=cure))


def _mean(name: str, items: Any) -> Any:
    data = _Data(name, items, "one data point")
    _of_floats(name, data)
    return data.result(reducing.mean(data.numbers))


def _fmean(name: str, items: Any) -> Any:
    return as_weak(reducing.mean(_Data(name, items, "one data point").numbers))


def _median(name: str, items: Any) -> Any:
    data = _Data(name, items, "one data point")
    are_halved = isinstance(data.count, int) and data.count % 2 == 0
    if data.is_whole and (data.is_narrow or not are_halved):
        _of_floats(name, data)
    return data.result(ordered.median(data.numbers))


def _variance(name: str, items: Any) -> Any:
    fewest = 1 if name == "pvariance" else 2
    data = _Data(name, items, ("one data point", "two data points")[fewest - 1], fewest)
    _of_floats(name, data)
    return data.result(data.variance(fewest))


def _deviation(name: str, items: Any) -> Any:
    fewest = 1 if name == "pstdev" else 2
    data = _Data(name, items, ("one data point", "two data points")[fewest - 1], fewest)
    if not data.is_weak:
        _of_floats(name, data)
    return as_weak(ew.sqrt(data.variance(fewest)))


_STAGED: dict[str, Call] = {
    "mean": _mean,
    "fmean": _fmean,
    "median": _median,
    "variance": _variance,
    "pvariance": _variance,
    "stdev": _deviation,
    "pstdev": _deviation,
}


def statistics_function(fun: Any) -> Call | None:
    """Return the replacement of a function of `statistics`, which is not imported here, or None."""
    if getattr(fun, "__module__", None) != "statistics":
        return None
    staged = _STAGED.get(getattr(fun, "__name__", ""))
    return None if staged is None else _taking_numbers(fun, staged)
