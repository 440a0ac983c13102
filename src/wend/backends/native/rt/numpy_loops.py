"""Addresses of the inner loops of NumPy's ufuncs, so that native results are NumPy's to the bit.

A loop is `void loop(char **args, npy_intp *sizes, npy_intp *steps, void *data)`, where

    args     the inputs, then the outputs
    sizes    the number of runs, and the core dimensions in the order of the signature
    steps    in bytes: between runs, for each of `args`; then along each core axis of each of them
    data     belongs to the loop: null, or an address that the ufunc has beside the loop

The loops of `numpy.linalg` call LAPACK; where it finds no result, they fill theirs with NaN.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
from functools import cache
from typing import Any

import numpy as np

from wend.backends.native.target.platform import platform
from wend.base.lazy.dataclass import dataclass

_PREFIX = "numpy.loop."
_HOMES = {"": "numpy", "linalg": "numpy.linalg._umath_linalg"}
# In a `PyUFuncObject`: after four ints
_FUNCTIONS_OFFSET = object.__basicsize__ + 4 * 4
_DATA_OFFSET = _FUNCTIONS_OFFSET + ctypes.sizeof(ctypes.c_void_p)
_LOOP = ctypes.PYFUNCTYPE(None, *(ctypes.c_void_p,) * 4)
TYPES = "ptr, ptr, ptr, ptr"


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop of a ufunc for some types.

    Attributes:
        home: the module of the ufunc, a key of `_HOMES`.
        ufunc: its name there.
        types: NumPy's letters of the types, such as `dd->d`.
    """

    home: str
    ufunc: str
    types: str

    @property
    def function(self) -> str:
        """The name of the loop in modules."""
        return self._name("call")

    @property
    def data(self) -> str:
        """The name of the data of the loop in modules; `null` if there is none."""
        return f"@{self._name('data')}" if _pointers(self)[1] else "null"

    def _name(self, role: str) -> str:
        types = self.types.replace("->", ".").replace("?", "bool")
        return f"{_PREFIX}{role}.{self.home}.{self.ufunc}.{types}"


def is_loop(name: str) -> bool:
    """Return whether a name in a module is that of a loop or of its data."""
    return name.startswith(_PREFIX)


def address(name: str) -> int:
    """Return the address of a loop or its data by its name in modules."""
    role, home, ufunc, ins, outs = name.removeprefix(_PREFIX).split(".")
    pointers = _pointers(
        Loop(home, ufunc, f"{ins.replace('bool', '?')}->{outs.replace('bool', '?')}")
    )
    return pointers[0 if role == "call" else 1]


def is_available(loop: Loop) -> bool:
    """Return whether the loop is where this module looks for it, and works."""
    return platform().is_process and _pointers(loop)[0] != 0


@cache
def _pointers(loop: Loop) -> tuple[int, int]:
    """Return the addresses of a loop and its data; 0 where there is none."""
    try:
        ufunc = getattr(importlib.import_module(_HOMES[loop.home]), loop.ufunc, None)
    except ImportError:  # the module is not public
        return 0, 0
    function, data = pointers_of(ufunc, loop.types)
    return (function, data) if function and _works(function, data, ufunc, loop.types) else (0, 0)


def pointers_of(ufunc: Any, types: str) -> tuple[int, int]:
    """Return the addresses of the loop of a ufunc and its data; 0 where there is none."""
    if not isinstance(ufunc, np.ufunc) or types not in ufunc.types:
        return 0, 0

    def entry(offset: int) -> int:
        table = ctypes.c_void_p.from_address(id(ufunc) + offset).value
        place = ctypes.sizeof(ctypes.c_void_p) * ufunc.types.index(types)
        return (ctypes.c_void_p.from_address(table + place).value or 0) if table else 0

    return entry(_FUNCTIONS_OFFSET), entry(_DATA_OFFSET)


_SIZE = 2  # of each core dimension of the sample


def _works(function: int, data: int, ufunc: Any, types: str) -> bool:
    """Return whether a loop gives what its ufunc gives."""
    ranks = [text.count(",") + 1 if text.strip("()") else 0 for text in _cores(ufunc)]
    inputs, outputs = types.split("->")
    samples = [
        np.array([2.0, 1.0, 1.0, 3.0][: _SIZE**rank]).astype(letter).reshape((_SIZE,) * rank)
        for letter, rank in zip(inputs, ranks, strict=False)
    ]
    signature = "".join(inputs) + "->" + outputs
    with np.errstate(all="ignore"):
        expected = ufunc(*(x.copy() for x in samples), signature=signature)
    expected = expected if isinstance(expected, tuple) else (expected,)
    results = [np.zeros_like(x) for x in expected]
    arrays = [*samples, *results]
    args = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    count = len({name for text in _cores(ufunc) for name in text.strip("()").split(",") if name})
    sizes = (ctypes.c_ssize_t * (count + 1))(1, *(_SIZE,) * count)
    strides = list(itertools.chain.from_iterable(array.strides for array in arrays))
    steps = (ctypes.c_ssize_t * (len(arrays) + len(strides)))(*(0,) * len(arrays), *strides)
    addresses = [ctypes.addressof(array) for array in (args, sizes, steps)]
    _LOOP(function)(*addresses, data or None)
    pairs = zip(results, expected, strict=True)
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc") for x, y in pairs)


def _cores(ufunc: Any) -> list[str]:
    """Return the core dimensions of each argument, such as `(m,n)`."""
    if ufunc.signature is None:
        return ["()"] * ufunc.nargs
    text = ufunc.signature.replace(" ", "").replace("->", ",")
    return [f"({part.rstrip(',)')})" for part in text.split("(")[1:]]
