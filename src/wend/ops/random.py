"""Counter-based random bits: the same key and counter give the same bits on every machine.

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
from wend.ir.op import Op, Rounding, no_gradient
from wend.ir.types import Shape, TensorType, Type
from wend.ops import elementwise as ew
from wend.ops.elementwise import elementwise
from wend.ops.shapes import tensor_of

UINT64 = np.dtype(np.uint64)
KEY = TensorType(UINT64, (2,))
COUNTER = TensorType(UINT64, (4,))


def _infer_random_bits(key: Type, counter: Type, *sizes: Type, shape: Shape) -> TensorType:
    if tensor_of(key, "the key") != KEY:
        raise TypeMismatchError(f"the key must be {KEY}, not {key}")
    if tensor_of(counter, "the counter") != COUNTER:
        raise TypeMismatchError(f"the counter must be {COUNTER}, not {counter}")
    return TensorType(UINT64, shape)


class _ThreadState(threading.local):
    """A NumPy generator per thread: setting its state takes a tenth of the time to create one."""

    generator: Any = None


_thread_state = _ThreadState()
_EMPTY_BUFFER = np.zeros(4, np.uint64)


def _philox(key: Any, counter: Any) -> Any:
    if _thread_state.generator is None:
        from numpy.random import Philox  # imported late to keep `import wend` light

        _thread_state.generator = Philox(key=0)
    _thread_state.generator.state = {
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": key},
        "buffer": _EMPTY_BUFFER,
        "buffer_pos": 4,  # empty: the next number is the first of block counter + 1
        "has_uint32": 0,
        "uinteger": 0,
    }
    return _thread_state.generator


def _kernel_random_bits(key: Any, counter: Any, *run_sizes: Any, shape: Shape) -> Any:
    sizes = tuple(int(size) for size in (run_sizes[0] if run_sizes else shape))  # type: ignore[arg-type]
    if min(sizes, default=0) < 0:
        raise ShapeError(f"a shape has no negative sizes, found {sizes}")
    return _philox(key, counter).random_raw(math.prod(sizes)).reshape(sizes)[()]


# The words of NumPy's Philox(key=key, counter=counter), in C order
random_bits = Op("random_bits", _infer_random_bits, _kernel_random_bits, no_gradient())

# Quantile functions turn uniform numbers into those of a distribution. No backend implements them
# natively: a logarithm that differs in the last bit would give other draws than plain Python.
exponential_quantile = elementwise(
    "exponential_quantile",
    lambda x: -np.log1p(-x),
    FLOATS,
    [lambda b, x, y: b.emit(ew.exp, y)],
    rounding=Rounding.OF_FLOATS,
)
gumbel_quantile = elementwise(
    "gumbel_quantile",
    lambda x: -np.log(-np.log(x)),
    FLOATS,
    [lambda b, x, y: b.div(b.emit(ew.exp, y), x)],
    rounding=Rounding.OF_FLOATS,
)
