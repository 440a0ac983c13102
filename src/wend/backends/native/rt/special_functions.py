"""Addresses of SciPy's special functions, so that native results are bit-identical to SciPy's.

SciPy exports them as capsules whose names are their C signatures.
"""

from __future__ import annotations

import importlib
from functools import cache

from wend.backends.native.rt.blas_functions import capsule_address

_MODULE = "scipy.special.cython_special"
_TYPE = "double (double, int __pyx_skip_dispatch)"
_PREFIX = "scipy."


def name(stem: str) -> str:
    """Return the name of a function in modules."""
    return f"{_PREFIX}{stem}"


def declaration(stem: str) -> str:
    """Return the declaration of a function; the second argument is for Cython, and is 0."""
    return f"double @{name(stem)}(double, i32)"


def is_special_function(name: str) -> bool:
    """Return whether a name in a module is that of a special function."""
    return name.startswith(_PREFIX)


def address(name: str) -> int:
    """Return the address of a function by its name in modules."""
    return _address(name.removeprefix(_PREFIX))


def is_available(stem: str) -> bool:
    """Return whether SciPy has this function of one double."""
    return _address(stem) != 0


@cache
def _address(stem: str) -> int:
    """Return the address of the variant for doubles, or 0 if there is none."""
    capsules = importlib.import_module(_MODULE).__pyx_capi__
    for name in (stem, *(f"__pyx_fuse_{k}{stem}" for k in range(4))):
        if name in capsules:
            address = capsule_address(capsules[name], _TYPE)
            if address:
                return address
    return 0
