"""Addresses of the BLAS and LAPACK functions that SciPy exports to C.

SciPy exports them as capsules whose names are their C signatures.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

from wend.backends.native.rt.linalg import blas_kernels
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.platform import platform

# Parameter types: c for char *, i for int *, n for a pointer to the dtype
TYPES = {
    "gemm": "cc" + "iii" + "n" + "ni" + "ni" + "n" + "ni",
    "gemv": "c" + "ii" + "n" + "ni" + "ni" + "n" + "ni",
    "gesv": "ii" + "ni" + "i" + "ni" + "i",
    "getrf": "ii" + "ni" + "i" + "i",
    "getrs": "c" + "ii" + "ni" + "i" + "ni" + "i",
    "trtrs": "ccc" + "ii" + "ni" + "ni" + "i",
    "potrf": "ci" + "ni" + "i",
}
BLAS, LAPACK = ("gemm", "gemv"), ("gesv", "getrf", "getrs", "trtrs", "potrf")
_STEMS_BY_MODULE = {"scipy.linalg.cython_blas": BLAS, "scipy.linalg.cython_lapack": LAPACK}
_LETTERS = {"f64": "d", "f32": "s"}

_signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def are_available(kind: Kind, stems: Sequence[str]) -> bool:
    """Return whether SciPy has these functions, with the signatures assumed here."""
    if not platform().is_process:
        return platform().has_blas
    return all(_address(_LETTERS[kind.suffix] + stem) for stem in stems)


def addresses(kind: Kind, stems: Sequence[str]) -> dict[str, int]:
    """Return the addresses of functions by their names in modules."""
    letter = _LETTERS[kind.suffix]
    return {name(kind, stem): _address(letter + stem) for stem in stems}


def declarations(kind: Kind, stems: Sequence[str]) -> list[str]:
    """Return the declarations of functions, whose parameters are all pointers."""
    return [
        f"declare void @{name(kind, stem)}({', '.join(['ptr'] * len(TYPES[stem]))}) nounwind"
        for stem in stems
    ]


def name(kind: Kind, stem: str) -> str:
    """Return the name of a function in modules; in object files, what Fortran calls it."""
    return f"lapack.{stem}" if platform().is_process else f"{_LETTERS[kind.suffix]}{stem}_"


@cache
def _address(name: str) -> int:
    """Return the address of a function with the types above, or 0."""
    letter, stem = name[0], name[1:]
    (module,) = (module for module, stems in _STEMS_BY_MODULE.items() if stem in stems)
    capsule = _load(module).__pyx_capi__[name]
    signature = _signature(capsule)
    if not _takes(signature.decode(), TYPES[stem], letter):
        return 0
    address: int = _pointer(capsule, signature)
    return address


def capsule_address(capsule: Any, type: str) -> int:
    """Return the address of the function in a capsule, or 0 if its type differs."""
    signature = _signature(capsule)
    if signature.decode() != type:
        return 0
    address: int = _pointer(capsule, signature)
    return address


def _takes(signature: str, types: str, letter: str) -> bool:
    """Return whether a signature has these types; builds with 64-bit integers have others."""
    params = signature.removeprefix("void (").removesuffix(")").split(", ")
    kinds = {"char *": "c", "int *": "i"}
    plain = "double *" if letter == "d" else "float *"
    numbers = (plain, f"cython_blas_{letter} *", f"cython_lapack_{letter} *")
    codes = ["n" if p.endswith(numbers) else kinds.get(p, "?") for p in params]
    return "".join(codes) == types


def _load(name: str) -> Any:
    """Import one extension module; all of `scipy.linalg` would take a fifth of a second."""
    if name in sys.modules:
        return sys.modules[name]
    import scipy

    spec = PathFinder.find_spec(name, [f"{folder}/linalg" for folder in scipy.__path__])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    with blas_kernels.choosing():
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    # A later import must load it as part of its package.
    sys.modules.pop(name, None)
    return module
