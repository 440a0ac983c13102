"""Draws of Python's `random` that native code makes from the state of the generator."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from wend.capture.builtins.draws.parameters import as_double, as_int64, is_integer, is_real
from wend.eager.dispatch import any_staged
from wend.numpy import elementwise as ew
from wend.numpy.operands import staged
from wend.ops.effects import TWISTER, TWISTER_BELOW, NumberDraw
from wend.trace.state import effects


def direct_draw(
    generator: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> NumberDraw | None:
    """Return how native code draws what a method gives, or None if Python has to draw it.

    Raises:
        ValueError: as the method does, in the run.
    """
    if kwargs or not is_known(generator):
        return None
    if name == "random":
        return None if args else NumberDraw(TWISTER, [])
    if name == "uniform":
        if len(args) != 2 or not all(map(is_real, args)):
            return None
        low, high = map(staged, args)
        return NumberDraw(TWISTER, [as_double(low), as_double(high - low)])
    is_of_integers = name in ("randint", "randrange") and all(map(is_integer, args))
    if not is_of_integers or len(args) not in ((2,) if name == "randint" else (1, 2)):
        return None
    low, high = args if len(args) == 2 else (0, args[0])
    width = high - low + (name == "randint")
    if any_staged(args):
        text = _text_of_empty_range(name, len(args))
        low, high, width = map(as_int64, (low, high, width))
        stop = high + (name == "randint")
        effects.raise_if(ew.less_equal(width, 0), ValueError, text, low, stop, high, width)
    elif width <= 0:
        return None  # Python's error
    return below(width, low)


def below(count: Any, start: Any = 0) -> NumberDraw:
    """Return the draw of an integer among so many, from a start on."""
    return NumberDraw(TWISTER_BELOW, [as_int64(start), as_int64(count)])


def is_known(generator: Any) -> bool:
    """Return whether a generator is one of which the state is found."""
    random = sys.modules.get("random")  # which is not imported for those who do not use it
    return random is not None and type(generator) is random.Random and offset() is not None


@cache
def offset() -> int | None:
    """Return where a `Random` has its state, the position and the words; None if it is not found.

    That is behind the head of the object in all versions of CPython so far.
    """
    sample = sys.modules["random"].Random(5)
    sample.random()
    _, state, _ = sample.getstate()
    start = object.__basicsize__
    if type(sample).__basicsize__ < start + 4 * len(state):
        return None
    words = (ctypes.c_uint32 * len(state)).from_address(id(sample) + start)
    return start if (*words[1:], words[0]) == state else None


@cache
def _text_of_empty_range(name: str, count: int) -> str:
    """Return the text of Python's error: a format of the start, the stop, the end and the width."""
    low, high = 100_003, 71
    stop = high + (name == "randint")
    try:
        getattr(sys.modules["random"].Random(0), name)(*((low, high) if count == 2 else (-high,)))
    except ValueError as error:
        text = str(error)
    for number, field in ((stop - low, 3), (low, 0), (stop, 1), (high, 2)):
        text = text.replace(str(number), f"{{{field}}}")
    return text
