"""`Generator`: random numbers one after the other, in the style of NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.eager.promotion import broadcast, common_shape, tensor_type
from wend.numpy import shaping
from wend.numpy.operands import staged
from wend.ops.random import KEY
from wend.random import choices, floats, integers
from wend.random.keys import key, split
from wend.trace.state.variable import Variable


class _State(Variable):
    __slots__ = ()
    is_stream = True


class Generator:
    """Random numbers one after the other: each call draws others.

    It has methods of `numpy.random.Generator`, with their names and defaults; the numbers are
    not the same. Its state is a `Variable`: a `wend.function` that draws advances it in the order
    of the program, in branches and loops too, so functions draw what plain Python would.

    Args:
        seed: an integer, or a key.

    Attributes:
        state: the `Variable` that holds a key. Assign to it to go back.

    Example:
        >>> import wend
        >>> rng = wend.random.Generator(0)
        >>> first = rng.normal(size=3)
        >>> rng.state.assign(wend.random.key(0))
        <Variable 'random_state': u64[2], [0 0]>
        >>> again = wend.function(lambda: rng.normal(size=3))()
        >>> bool((first == again).all())
        True
    """

    __slots__ = ("__weakref__", "state")

    def __init__(self, seed: Any = 0) -> None:
        is_key = np.ndim(seed) == 1
        self.state = _State(seed if is_key else key(seed), "random_state", trainable=False)
        if is_key and self.state.type != KEY:
            raise TypeMismatchError(f"a seed is an integer or a key, not {self.state.type}")

    def __repr__(self) -> str:
        return f"<Generator, state {np.asarray(self.state.concrete).tolist()}>"

    def _next(self) -> Any:
        """A key of its own for each call."""
        keys = split(self.state)
        self.state.assign(keys[0])
        return keys[1]

    # Floats
    def random(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """`numpy.random.Generator.random`: floats in [0, 1)."""
        return floats.uniform(self._next(), _sizes(size), dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """`numpy.random.Generator.uniform`, with derivatives in `low` and `high`."""
        low, high = staged(low), staged(high)
        return floats.uniform(self._next(), _sizes(size, low, high), minval=low, maxval=high)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """`numpy.random.Generator.standard_normal`."""
        return floats.normal(self._next(), _sizes(size), dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """`numpy.random.Generator.normal`, with derivatives in `loc` and `scale`."""
        loc, scale = staged(loc), staged(scale)
        sizes = _sizes(size, loc, scale)
        noise = floats.normal(self._next(), sizes)
        return floats.spread(loc, sizes) + floats.spread(scale, sizes) * noise

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """`numpy.random.Generator.exponential`, with derivatives in `scale`."""
        scale = staged(scale)
        sizes = _sizes(size, scale)
        return floats.spread(scale, sizes) * floats.exponential(self._next(), sizes)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """`numpy.random.Generator.gumbel`, with derivatives in `loc` and `scale`."""
        loc, scale = staged(loc), staged(scale)
        sizes = _sizes(size, loc, scale)
        noise = floats.gumbel(self._next(), sizes)
        return floats.spread(loc, sizes) + floats.spread(scale, sizes) * noise

    # Integers and choices
    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """`numpy.random.Generator.integers`: from `low`, or 0, up to `high`."""
        if high is None:
            low, high = 0, low
        low, high = (staged(bound) for bound in (low, high))
        if endpoint:
            high = high + 1
        return integers.randint(self._next(), _sizes(size, low, high), low, high, dtype)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """`numpy.random.Generator.permutation`: an array in random order, or 0, 1, … x − 1."""
        return choices.permutation(self._next(), x, axis)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """`numpy.random.Generator.choice`; always in random order."""
        del shuffle  # what it leaves out would cost more here
        return choices.choice(self._next(), a, _sizes(size), replace, p, axis)


def _sizes(size: Any, *parameters: Any) -> Any:
    """The shape that is asked for, or that of the parameters."""
    if size is not None:
        return size
    if not parameters:
        return ()
    shapes = [tensor_type(x).shape for x in parameters]
    found = common_shape(shapes)
    if found is not None and all(isinstance(dim, int) for dim in found):
        return found
    return shaping.shape(broadcast(*parameters)[0])
