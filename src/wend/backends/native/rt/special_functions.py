"""Addresses of SciPy's special functions, so that native results are bit-identical to SciPy's.

SciPy exports them as capsules whose names are their C signatures.
"""

from __future__ import annotations

import importlib
from functools import cache

from wend.backends.native.rt.linalg.blas_functions import capsule_address
from wend.backends.native.target.platform import platform

_MODULE = "scipy.special.cython_special"
_TYPES = (
    "double (double, int __pyx_skip_dispatch)",
    "double (double, double, int __pyx_skip_dispatch)",
)
_PREFIX = "scipy."


def name(stem: str) -> str:
    """Return the name of a function in modules."""
    return f"{_PREFIX}{stem}"


def declaration(stem: str, count: int) -> str:
    """Return the declaration of a function of `count` doubles; the last argument is Cython's 0."""
    return f"double @{name(stem)}({'double, ' * count}i32)"


def is_special_function(name: str) -> bool:
    """Return whether a name in a module is that of a special function."""
    return name.startswith(_PREFIX)


def address(name: str) -> int:
    """Return the address of a function by its name in modules."""
    return _address(name.removeprefix(_PREFIX))


def is_available(stem: str) -> bool:
    """Return whether SciPy has this function of one or two doubles."""
    return platform().is_process and _address(stem) != 0


@cache
def _address(stem: str) -> int:
    """Return the address of the variant for doubles, or 0 if there is none."""
    capsules = importlib.import_module(_MODULE).__pyx_capi__
    for name in (stem, *(f"__pyx_fuse_{k}{stem}" for k in range(4))):
        if name in capsules:
            addresses = (capsule_address(capsules[name], type) for type in _TYPES)
            if address := next(filter(None, addresses), 0):
                return address
    return 0
