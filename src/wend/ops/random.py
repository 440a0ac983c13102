"""Random bits, by counting: the same key and counter give the same bits, on every machine.

The generator is Philox4x64-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(2011): a block cipher that turns the number of a block into four words. NumPy has it too.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError
from wend.ir.dtypes import FLOATS
from wend.ir.op import Op, no_gradient
from wend.ir.types import Shape, TensorType, Type
from wend.ops import elementwise as ew
from wend.ops.elementwise import elementwise
from wend.ops.shapes import tensor_of

UINT64 = np.dtype(np.uint64)
KEY = TensorType(UINT64, (2,))
COUNTER = TensorType(UINT64, (4,))


def _infer_random_bits(key: Type, counter: Type, *given: Type, shape: Shape) -> TensorType:
    if tensor_of(key, "the key") != KEY:
        raise TypeMismatchError(f"the key must be {KEY}, not {key}")
    if tensor_of(counter, "the counter") != COUNTER:
        raise TypeMismatchError(f"the counter must be {COUNTER}, not {counter}")
    return TensorType(UINT64, shape)


class _OfThread(threading.local):
    """NumPy's generator for each thread: setting its state takes a tenth of making it anew."""

    generator: Any = None


_of_thread = _OfThread()
_NOTHING = np.zeros(4, np.uint64)


def _philox(key: Any, counter: Any) -> Any:
    if _of_thread.generator is None:
        from numpy.random import Philox  # as late as SciPy, for `import wend` is to be light

        _of_thread.generator = Philox(key=0)
    _of_thread.generator.state = {
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": key},
        "buffer": _NOTHING,
        "buffer_pos": 4,  # empty: the next number is the first of block counter + 1
        "has_uint32": 0,
        "uinteger": 0,
    }
    return _of_thread.generator


def _kernel_random_bits(key: Any, counter: Any, *given: Any, shape: Shape) -> Any:
    sizes = tuple(int(size) for size in (given[0] if given else shape))  # type: ignore[arg-type]
    if min(sizes, default=0) < 0:
        raise ShapeError(f"a shape has no negative sizes, found {sizes}")
    found = _philox(key, counter).random_raw(math.prod(sizes))
    return found.reshape(sizes)[()]


# The words that NumPy's Philox(key=key, counter=counter) gives, in C order
random_bits = Op("random_bits", _infer_random_bits, _kernel_random_bits, no_gradient())

# Uniform numbers become those of a distribution. No backend has code of its own for these: where
# its logarithm differed in the last bit, a function would not draw what plain Python draws.
exponential_quantile = elementwise(
    "exponential_quantile",
    lambda x: -np.log1p(-x),
    FLOATS,
    [lambda b, x, y: b.emit(ew.exp, y)],
)
gumbel_quantile = elementwise(
    "gumbel_quantile",
    lambda x: -np.log(-np.log(x)),
    FLOATS,
    [lambda b, x, y: b.div(b.emit(ew.exp, y), x)],
)
