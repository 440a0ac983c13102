"""Description of the compiler and of the target processor, for `wend doctor`."""

from __future__ import annotations

import llvmlite
import llvmlite.binding as binding
import numpy as np

from wend.backends.native.rt.linalg import blas_functions
from wend.backends.native.rt.linalg.blas_kernels import described
from wend.backends.native.target.host_cpu import features, name
from wend.backends.native.target.kinds import Kind

# The features that matter to loops over arrays
_VECTOR_FEATURES = ("avx", "avx2", "fma", "avx512f", "avx512dq", "neon", "sve")


def compiler() -> str:
    """Return the versions of llvmlite and LLVM."""
    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, binding.llvm_version_info))}"


def processor() -> tuple[str, list[str]]:
    """Return LLVM's name of the processor, and its vector extensions."""
    return name(), [vector for vector in _VECTOR_FEATURES if features().get(vector)]


def calls_blas() -> bool:
    """Return whether native code calls BLAS for large products."""
    return blas_functions.are_available(Kind(np.dtype(np.float64)), blas_functions.BLAS)


def blas_kernels() -> str:
    """Return which kernels of OpenBLAS run; empty if that is unknown."""
    return described()
