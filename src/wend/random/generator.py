"""`Generator`: a stateful generator of random numbers, in the style of NumPy's."""

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


class _KeyVariable(Variable):
    __slots__ = ()
    is_stream = True


class Generator:
    """A stateful generator of random numbers: each call draws new ones.

    It has methods of `numpy.random.Generator`, with their names and defaults, but draws different
    numbers. Its state is a `Variable`. A `wend.function` that draws advances the state in program
    order, also in branches and loops, so functions draw the same numbers as plain Python.

    Args:
        seed: an integer, or a key.

    Attributes:
        state: the `Variable` that holds a key. Assign an earlier key to it to repeat a sequence.

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
        self.state = _KeyVariable(seed if is_key else key(seed), "random_state", trainable=False)
        if is_key and self.state.type != KEY:
            raise TypeMismatchError(f"a seed is an integer or a key, not {self.state.type}")

    def __repr__(self) -> str:
        return f"<Generator, state {np.asarray(self.state.concrete).tolist()}>"

    def _next(self) -> Any:
        """Advance the state and return a key for one draw."""
        keys = split(self.state)
        self.state.assign(keys[0])
        return keys[1]

    # Floats
    def random(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Draw floats in [0, 1); see `numpy.random.Generator.random`."""
        return floats.uniform(self._next(), _result_shape(size), dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Draw floats uniformly from [low, high); see `numpy.random.Generator.uniform`.

        The result has derivatives in `low` and `high`.
        """
        low, high = staged(low), staged(high)
        return floats.uniform(self._next(), _result_shape(size, low, high), minval=low, maxval=high)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Draw from the standard normal distribution.

        See `numpy.random.Generator.standard_normal`.
        """
        return floats.normal(self._next(), _result_shape(size), dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from a normal distribution; see `numpy.random.Generator.normal`.

        The result has derivatives in `loc` and `scale`.
        """
        loc, scale = staged(loc), staged(scale)
        sizes = _result_shape(size, loc, scale)
        noise = floats.normal(self._next(), sizes)
        return (
            floats.broadcast_parameter(loc, sizes)
            + floats.broadcast_parameter(scale, sizes) * noise
        )

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from an exponential distribution; see `numpy.random.Generator.exponential`.

        The result has derivatives in `scale`.
        """
        scale = staged(scale)
        sizes = _result_shape(size, scale)
        return floats.broadcast_parameter(scale, sizes) * floats.exponential(self._next(), sizes)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from a Gumbel distribution; see `numpy.random.Generator.gumbel`.

        The result has derivatives in `loc` and `scale`.
        """
        loc, scale = staged(loc), staged(scale)
        sizes = _result_shape(size, loc, scale)
        noise = floats.gumbel(self._next(), sizes)
        return (
            floats.broadcast_parameter(loc, sizes)
            + floats.broadcast_parameter(scale, sizes) * noise
        )

    # Integers and choices
    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Draw integers from [low, high), or from [0, low) if `high` is None.

        See `numpy.random.Generator.integers`.
        """
        if high is None:
            low, high = 0, low
        low, high = (staged(bound) for bound in (low, high))
        if endpoint:
            high = high + 1
        return integers.randint(self._next(), _result_shape(size, low, high), low, high, dtype)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Permute an array, or 0, 1, … x − 1, at random.

        See `numpy.random.Generator.permutation`.
        """
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
        """Draw a random sample from an array; see `numpy.random.Generator.choice`.

        The sample is always in random order.
        """
        del shuffle  # without the shuffle a sample would cost more here
        return choices.choice(self._next(), a, _result_shape(size), replace, p, axis)


def _result_shape(size: Any, *parameters: Any) -> Any:
    """Return the requested shape, or else the broadcast shape of the parameters."""
    if size is not None:
        return size
    if not parameters:
        return ()
    shapes = [tensor_type(x).shape for x in parameters]
    shape = common_shape(shapes)
    if shape is not None and all(isinstance(dim, int) for dim in shape):
        return shape
    return shaping.shape(broadcast(*parameters)[0])
