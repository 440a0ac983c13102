"""The functions of BLAS and LAPACK that SciPy brings along, called without the interpreter.

SciPy hands them to other modules as capsules that say their types.
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

from wend.backends.native.target.kinds import Kind

# What they take: letters, 32-bit integers, and numbers of the dtype
TYPES = {
    "gemm": "cc" + "iii" + "n" + "ni" + "ni" + "n" + "ni",
    "gemv": "c" + "ii" + "n" + "ni" + "ni" + "n" + "ni",
    "gesv": "ii" + "ni" + "i" + "ni" + "i",
    "potrf": "ci" + "ni" + "i",
}
BLAS, LAPACK = ("gemm", "gemv"), ("gesv", "potrf")
_MODULES = {"scipy.linalg.cython_blas": BLAS, "scipy.linalg.cython_lapack": LAPACK}
_LETTERS = {"f64": "d", "f32": "s"}

_signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def are_there(kind: Kind, stems: Sequence[str]) -> bool:
    """Whether SciPy has functions that take what is given here."""
    return all(_address(_LETTERS[kind.suffix] + stem) for stem in stems)


def addresses(kind: Kind, stems: Sequence[str]) -> dict[str, int]:
    """Those of functions, by the names that modules call them by."""
    letter = _LETTERS[kind.suffix]
    return {name(stem): _address(letter + stem) for stem in stems}


def declarations(stems: Sequence[str]) -> list[str]:
    """What a module says of them: they take places of everything."""
    return [
        f"declare void @{name(stem)}({', '.join(['ptr'] * len(TYPES[stem]))}) nounwind"
        for stem in stems
    ]


def name(stem: str) -> str:
    """What modules call a function by."""
    return f"lapack.{stem}"


@cache
def _address(name: str) -> int:
    """Where a function is that has the types above; 0 if there is none."""
    letter, stem = name[0], name[1:]
    (module,) = (module for module, stems in _MODULES.items() if stem in stems)
    capsule = _load(module).__pyx_capi__[name]
    signature = _signature(capsule)
    if not _takes(signature.decode(), TYPES[stem], letter):
        return 0
    address: int = _pointer(capsule, signature)
    return address


def capsule_address(capsule: Any, type: str) -> int:
    """Where a function is that a capsule holds; 0 if it is not of the type."""
    signature = _signature(capsule)
    if signature.decode() != type:
        return 0
    address: int = _pointer(capsule, signature)
    return address


def _takes(signature: str, types: str, letter: str) -> bool:
    """Whether it is that of a function of these types; integers may have 64 bits elsewhere."""
    params = signature.removeprefix("void (").removesuffix(")").split(", ")
    kinds = {"char *": "c", "int *": "i"}
    plain = "double *" if letter == "d" else "float *"
    numbers = (plain, f"cython_blas_{letter} *", f"cython_lapack_{letter} *")
    read = ["n" if p.endswith(numbers) else kinds.get(p, "?") for p in params]
    return "".join(read) == types


def _load(name: str) -> Any:
    """The module alone: all of `scipy.linalg` would take a fifth of a second."""
    if name in sys.modules:
        return sys.modules[name]
    import scipy

    spec = PathFinder.find_spec(name, [f"{place}/linalg" for place in scipy.__path__])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Whoever imports it is to have it as part of its package.
    sys.modules.pop(name, None)
    return module
