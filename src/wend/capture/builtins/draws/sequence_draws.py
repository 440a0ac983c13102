"""Draws of the items of sequences by `random`, and shuffled lists: the run draws positions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.capture.builtins.library.heaps import MIN_LISTED, are_alike
from wend.capture.builtins.refused_calls import Call
from wend.capture.state import operands
from wend.capture.state.assignments import get_item
from wend.eager.dispatch import Staged, any_staged
from wend.trace.control.tensor_list import TensorList

Draw = Callable[..., Any]  # makes the run call a function: (call, operands, shape, errors, bound)


def takes(name: str, args: Sequence[Any]) -> bool:
    """Return whether a call draws from a sequence that captured code can read by position."""
    if not args or (any_staged(args[1:2]) and name == "sample"):
        return False
    xs = args[0]
    if name == "shuffle":
        return isinstance(xs, (list, TensorList))
    is_array = isinstance(xs, Staged) or type(xs) is np.ndarray
    return isinstance(xs, (list, tuple, str, range, TensorList)) or (is_array and name == "choice")


def choice(method: Call, draw: Draw, seq: Any) -> Any:
    """Draw an item."""
    count = _length(seq)
    if not isinstance(count, Staged) and not count:
        sys.modules["random"].Random(0).choice(seq)  # Python's error
    position = draw(lambda n: method(range(n)), (count,), (), (IndexError,), count)
    return _item(seq, position)


def choices(
    method: Call,
    draw: Draw,
    population: Any,
    weights: Any = None,
    *,
    cum_weights: Any = None,
    k: int = 1,
) -> list[Any]:
    """Draw items, each perhaps several times."""

    def run(n: int, weights: Any, cum_weights: Any) -> Any:
        return method(range(n), weights, cum_weights=cum_weights, k=k)

    inputs = _length(population), weights, cum_weights
    return _items(population, draw(run, inputs, (k,), (IndexError, ValueError, TypeError)), k)


def sample(method: Call, draw: Draw, population: Any, k: int) -> list[Any]:
    """Draw different items."""
    inputs = (_length(population),)
    positions = draw(lambda n: method(range(n), k), inputs, (k,), (ValueError,))
    return _items(population, positions, k)


def shuffle(method: Call, draw: Draw, x: Any) -> None:
    """Put the items of a list in the order that NumPy or `random` would put them in."""

    def run(n: int) -> Any:
        positions = [*range(n)]
        method(positions)
        return positions

    count = _length(x)
    positions = draw(run, (count,), (count,), ())
    if isinstance(x, TensorList):
        x.become(x.part(positions))
    elif x:
        operands.call(_put)(x, _items(x, positions, count))


def _length(xs: Any) -> Any:
    return operands.call(len)(xs)


def _items(xs: Any, positions: Any, count: int) -> list[Any]:
    """Return the items at positions."""
    if type(xs) in (list, tuple) and len(xs) >= MIN_LISTED and are_alike(xs):
        xs = TensorList.of([*xs], xs[-1:])
    if isinstance(xs, TensorList):
        drawn = xs.part(positions)
        return [drawn[k] for k in range(count)]
    return [_item(xs, positions[k]) for k in range(count)]


def _item(xs: Any, position: Any) -> Any:
    if isinstance(xs, range):
        return xs.start + xs.step * position.as_weak()
    return get_item([*xs] if isinstance(xs, str) else xs, position.as_weak(), True)


def _put(xs: Any, items: Sequence[Any]) -> None:
    xs[:] = items


OF_SEQUENCES: dict[str, Call] = {
    "choice": choice,
    "choices": choices,
    "sample": sample,
    "shuffle": shuffle,
}
CODES = frozenset({_put.__code__})
