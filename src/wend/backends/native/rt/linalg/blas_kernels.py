"""The kernels of OpenBLAS that native code's products run on.

OpenBLAS chooses its kernels by the processor when it is loaded. On some processors with AVX-512
it chooses those for AVX2, which multiply at half the rate. `OPENBLAS_CORETYPE` overrides the
choice. NumPy and SciPy have a copy of OpenBLAS each: NumPy's is loaded first and tells what is
chosen here, and SciPy's, which native code calls, can still be told otherwise.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from wend.backends.native.target import host_cpu
from wend.base.config import settings

VARIABLE = "OPENBLAS_CORETYPE"
KERNELS = "SkylakeX"
# OpenBLAS's names of its kernels for AVX-512, and what `KERNELS` needs
_FOR_AVX512 = frozenset(["SkylakeX", "Cooperlake", "SapphireRapids"])
_FEATURES = ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
_MAPS = Path("/proc/self/maps")
_LIBRARY = re.compile(r"(/\S*/(\w+)\.libs/\S*openblas\S*)$", re.M)
_SYMBOLS = [
    f"{prefix}openblas_get_corename{suffix}" for prefix in ("scipy_", "") for suffix in ("", "64_")
]


def loaded_kernels() -> dict[str, str]:
    """Return the kernels of each loaded copy of OpenBLAS, by the package that has it."""
    try:
        text = _MAPS.read_text(encoding="utf-8")
    except OSError:  # not Linux
        return {}
    paths = {package: path for path, package in _LIBRARY.findall(text)}
    names = {package: _name_in(path) for package, path in paths.items()}
    return {package: name for package, name in names.items() if name}


def _name_in(path: str) -> str:
    """Return the name of the kernels of a library; empty if it does not tell."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return ""
    for symbol in _SYMBOLS:
        function = getattr(library, symbol, None)
        if function is not None:
            function.restype = ctypes.c_char_p
            name: bytes = function()
            return name.decode()
    return ""


def choice(loaded: Mapping[str, str], features: Mapping[str, bool]) -> str:
    """Return the kernels to ask SciPy's copy for; empty: those that it chooses itself.

    Args:
        loaded: the kernels of the copies that are loaded.
        features: the features of the processor.
    """
    if settings().blas_kernels == "own" or VARIABLE in os.environ or "scipy" in loaded:
        return ""
    if loaded.get("numpy", KERNELS) in _FOR_AVX512:
        return ""
    return KERNELS if all(features.get(feature) for feature in _FEATURES) else ""


@contextmanager
def choosing() -> Iterator[None]:
    """Have SciPy's copy choose the better kernels if it is loaded in the body."""
    name = choice(loaded_kernels(), host_cpu.features())
    if name:
        os.environ[VARIABLE] = name
    try:
        yield
    finally:
        if name:
            del os.environ[VARIABLE]


def described() -> str:
    """Return a description of the kernels that run, for `wend doctor`; empty if it is unknown."""
    name = loaded_kernels().get("scipy", "")
    is_slow = name and name not in _FOR_AVX512
    if is_slow and all(host_cpu.features().get(feature) for feature in _FEATURES):
        return f"kernels {name}, though the processor has AVX-512 (set {VARIABLE}={KERNELS})"
    return name and f"kernels {name}"
