"""What native code is compiled by, and for."""

from __future__ import annotations

import llvmlite
import llvmlite.binding as binding
import numpy as np

from wend.backends.native.rt import blas_functions
from wend.backends.native.target.host_cpu import features, name
from wend.backends.native.target.kinds import Kind

# Those that code for loops over arrays gains by
_VECTORS = ("avx", "avx2", "fma", "avx512f", "avx512dq", "neon", "sve")


def compiler() -> str:
    """Llvmlite and LLVM, with their versions."""
    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, binding.llvm_version_info))}"


def processor() -> tuple[str, list[str]]:
    """The processor as LLVM calls it, and which vectors it has."""
    return name(), [vector for vector in _VECTORS if features().get(vector)]


def calls_blas() -> bool:
    """Whether large products are computed without the interpreter."""
    return blas_functions.are_there(Kind(np.dtype(np.float64)), blas_functions.BLAS)
