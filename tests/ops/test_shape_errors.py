"""Shapes that the run finds not to fit: NumPy's class and text, for all ways to write them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend

SHAPES = {
    1: [(0,), (1,), (2,), (3,)],
    2: [(0, 3), (1, 0), (1, 1), (1, 3), (2, 2), (2, 3), (3, 1)],
}
# Writes of `y` to parts of `x`
KEYS = {
    "all": lambda x, y: slice(None),
    "dots": lambda x, y: ...,
    "reverse": lambda x, y: slice(None, None, -1),
    "tail": lambda x, y: slice(1, None),
    "every_other": lambda x, y: slice(None, None, 2),
    "until": lambda x, y: slice(y.shape[0]),
    "first_of_last": lambda x, y: (..., slice(1)),
    "new_axis": lambda x, y: (..., None),
    "new_axis_in_front": lambda x, y: None,
}
FORMS: dict[str, Callable] = {
    "add": lambda x, y: x + y,
    "less": lambda x, y: x < y,
    "maximum": lambda x, y: np.maximum(x, y),
    "where": lambda x, y: np.where(x > 0, x, y),
    "where_of_condition": lambda x, y: np.where(y > 0, x, 1.0),
    "known_and_unknown": lambda x, y: np.ones(2) * x,
    "concatenate": lambda x, y: np.concatenate([x, y]) if x.ndim == y.ndim else x,
    "average": lambda x, y: np.average(x, weights=y + 1.0),
    "indexed_by_two": lambda x, y: (
        x[(x * 0).astype(int), (y * 0).astype(int)] if x.ndim == 2 else x
    ),
}


def form(fun):
    FORMS[fun.__name__] = fun
    return fun


@form
def add_in_place(x, y):
    x = x * 1.0
    if y.ndim <= x.ndim:
        x += y
    return x


@form
def multiply_part_in_place(x, y):
    x = x * 1.0
    if y.ndim <= x.ndim:
        x[:] *= y
    return x


@form
def transpose(x, y):
    x = x * 1.0
    x.T[:] = y
    return x


@form
def copyto(x, y):
    x = x * 1.0
    np.copyto(x, y)
    return x


def _writing(key):
    def fun(x, y):
        x = x * 1.0
        x[key(x, y)] = y
        return x

    return fun


FORMS.update({f"write_{name}": _writing(key) for name, key in KEYS.items()})


def outcome(fun: Callable, x: np.ndarray, y: np.ndarray) -> tuple[Any, ...]:
    """Return the class and text of the error, or the value."""
    try:
        return "value", np.asarray(fun(x, y)).tolist()
    except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
        classes = [ValueError, IndexError, TypeError, ZeroDivisionError]
        (kind,) = (c for c in classes if isinstance(error, c))
        return kind, str(error).splitlines()[0].split(" at test_")[0].strip()


@pytest.mark.sampled(30)
@pytest.mark.parametrize("ranks", [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", FORMS)
def test_what_does_not_fit_is_told_as_numpy_does(name, backend, ranks):
    fun = FORMS[name]
    signature = [wend.TensorSpec((None,) * rank) for rank in ranks]
    function = wend.function(fun, backend=backend, input_signature=signature)
    for shapes in itertools.product(*(SHAPES[rank] for rank in ranks)):
        x, y = (np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) for shape in shapes)
        assert outcome(function, x, y) == outcome(fun, x, y), shapes
