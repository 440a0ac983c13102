"""The special functions of SciPy, called without the interpreter: to the last bit what SciPy gives.

SciPy hands them to other modules as capsules that say their types.
"""

from __future__ import annotations

import importlib
from functools import cache

from wend.backends.native.rt.blas_functions import capsule_address

_MODULE = "scipy.special.cython_special"
_TYPE = "double (double, int __pyx_skip_dispatch)"
_PREFIX = "scipy."


def name(stem: str) -> str:
    """What modules call a function by."""
    return f"{_PREFIX}{stem}"


def declaration(stem: str) -> str:
    """What modules say of it; the second argument is for Cython, and is 0."""
    return f"double @{name(stem)}(double, i32)"


def is_one(name: str) -> bool:
    """Whether a name is one of these."""
    return name.startswith(_PREFIX)


def address(name: str) -> int:
    """Where a function is, by the name that modules call it by."""
    return _address(name.removeprefix(_PREFIX))


def is_there(stem: str) -> bool:
    """Whether SciPy has a function of one double."""
    return _address(stem) != 0


@cache
def _address(stem: str) -> int:
    """The variant for doubles, where there are others too; 0 if there is none."""
    capsules = importlib.import_module(_MODULE).__pyx_capi__
    for name in (stem, *(f"__pyx_fuse_{k}{stem}" for k in range(4))):
        if name in capsules:
            found = capsule_address(capsules[name], _TYPE)
            if found:
                return found
    return 0
