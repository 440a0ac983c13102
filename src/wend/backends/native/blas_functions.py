"""The functions of BLAS that SciPy brings along, called without the interpreter.

SciPy hands them to other modules as capsules that say their types.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

from wend.backends.native.kinds import Kind

_MODULE = "scipy.linalg.cython_blas"
# What they take: letters, 32-bit integers, and numbers of the dtype
TYPES = {
    "gemm": "cc" + "iii" + "n" + "ni" + "ni" + "n" + "ni",
    "gemv": "c" + "ii" + "n" + "ni" + "ni" + "n" + "ni",
}
_LETTERS = {"f64": "d", "f32": "s"}

_signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def is_there(kind: Kind) -> bool:
    """Whether SciPy has functions that take what is given here."""
    functions = _functions()
    return all(f"{_LETTERS[kind.suffix]}{stem}" in functions for stem in TYPES)


def addresses(kind: Kind) -> dict[str, int]:
    """Those of the functions that the module refers to."""
    letter = _LETTERS[kind.suffix]
    return {f"blas.{stem}": _functions()[letter + stem] for stem in TYPES}


@cache
def _functions() -> dict[str, int]:
    """Addresses of those that have the types above, by name."""
    found = {}
    capsules = _load().__pyx_capi__
    for letter in _LETTERS.values():
        for stem, types in TYPES.items():
            capsule = capsules[letter + stem]
            signature = _signature(capsule)
            if _takes(signature.decode(), types, letter):
                found[letter + stem] = _pointer(capsule, signature)
    return found


def _takes(signature: str, types: str, letter: str) -> bool:
    """Whether it is that of a function of these types; integers may have 64 bits elsewhere."""
    params = signature.removeprefix("void (").removesuffix(")").split(", ")
    kinds = {"char *": "c", "int *": "i"}
    numbers = ("double *" if letter == "d" else "float *", f"cython_blas_{letter} *")
    read = ["n" if p.endswith(numbers) else kinds.get(p, "?") for p in params]
    return "".join(read) == types


def _load() -> Any:
    """The module alone: all of `scipy.linalg` would take a fifth of a second."""
    if _MODULE in sys.modules:
        return sys.modules[_MODULE]
    import scipy

    spec = PathFinder.find_spec(_MODULE, [f"{place}/linalg" for place in scipy.__path__])
    if spec is None or spec.loader is None:
        return importlib.import_module(_MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Whoever imports it is to have it as part of its package.
    sys.modules.pop(_MODULE, None)
    return module
