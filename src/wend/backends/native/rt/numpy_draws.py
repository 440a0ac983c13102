"""Addresses of the functions by which NumPy's generators draw numbers of distributions.

NumPy documents that the library behind `numpy.random.Generator` exports them, for others to call
(https://numpy.org/doc/stable/reference/random/extending.html). The first argument is the address of
a bit generator.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache

from wend.backends.native.target.platform import platform

_MODULE = "numpy.random._generator"
_PREFIX = "numpy.random."


def name(stem: str) -> str:
    """Return the name of a function in modules."""
    return f"{_PREFIX}{stem}"


def is_draw(name: str) -> bool:
    """Return whether a name in a module is that of such a function."""
    return name.startswith(_PREFIX)


def address(name: str) -> int:
    """Return the address of a function by its name in modules."""
    return _address(name.removeprefix(_PREFIX))


def is_available(stem: str) -> bool:
    """Return whether NumPy's library exports a function."""
    return platform().is_process and _address(stem) != 0


@cache
def _address(stem: str) -> int:
    """Return the address of a function, or 0 if it is not exported."""
    library = ctypes.CDLL(importlib.import_module(_MODULE).__file__)
    function = getattr(library, stem, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0
