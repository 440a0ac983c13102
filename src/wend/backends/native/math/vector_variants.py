"""The vector variants of loop functions that are emitted here and not by LLVM's vectorizer.

The vectorizer widens the arithmetic of a loop; it replaces a call by a call of a vector variant if
an attribute names one (the vector function ABI).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from wend.backends.native.math import avx512
from wend.backends.native.math.format import F32, F64, Format
from wend.backends.native.math.ir_dsl import INLINE, PURE
from wend.backends.native.target.platform import Platform, platform

SUFFIXES: Mapping[str, Format] = {".loop": F64, ".loop.f32": F32}
SINCOS = ("sin", "cos", "tan")
# Functions with a branch for rare arguments, which LLVM cannot vectorize
BRANCHING = (*SINCOS, "pow")
# The others have variants only where the instructions of `avx512.py` are available
_BRANCH_FREE = (
    *("exp", "exp2", "expm1", "tanh", "expit", "log", "log2", "log10", "log1p", "sinh", "cosh"),
    *("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "cbrt", "erf", "erfc"),
)
CALLED_SUFFIX = ".called"  # and the lanes: of a function that a module calls in many places
BINARY = ("atan2", "pow")  # functions of two arguments


def _widths(name: str, format: Format) -> tuple[int, ...]:
    """Return the vector widths of a function in loops.

    The half width serves f32 in loops that also have f64, and the remainders of loops.
    """
    lanes = vector_lanes(format)
    return (lanes, lanes // 2) if format == F32 or _is_inlined(name) else (lanes,)


def vector_lanes(format: Format) -> int:
    """Return how many numbers a vector register holds."""
    has = platform().has
    return (512 if has("avx512f") else 256 if has("avx") else 128) // format.width


def _is_inlined(name: str) -> bool:
    """Return whether variants are inlined into vectorized loops (`jit/optimize.py`).

    Sin, cos and tan are called instead: their code for huge arguments, lane by lane, is large.
    """
    return avx512.is_available() and name not in SINCOS


def vector_variants() -> Mapping[str, tuple[str, ...]]:
    """Return the symbols of the vector variants of each function for loops."""
    return _vector_variants(platform())


@cache
def _vector_variants(target: Platform) -> Mapping[str, tuple[str, ...]]:
    names = (*BRANCHING, *(_BRANCH_FREE if avx512.is_available() else ()))
    return {
        f"{name}{suffix}": tuple(f"{name}{suffix}.v{n}" for n in _widths(name, format))
        for name in names
        for suffix, format in SUFFIXES.items()
    }


def inlined_variants() -> frozenset[str]:
    """Return the vector variants that are inlined into loops."""
    return _inlined_variants(platform())


@cache
def _inlined_variants(target: Platform) -> frozenset[str]:
    return frozenset(
        variant
        for symbol, variants in vector_variants().items()
        for variant in variants
        if _is_inlined(symbol.partition(".")[0])
    )


# Intermediate vectors may be wider than the arguments.
INLINED_ATTRIBUTES = f'{INLINE} "min-legal-vector-width"="512" {avx512.ATTRIBUTE}'


def lanes_of(symbol: str) -> int:
    """Return the number of lanes of a function."""
    return int(symbol.rpartition(".v")[2]) if ".v" in symbol else 1


def scalar_attributes(name: str, symbol: str) -> str:
    """Return the attributes of a scalar function, which name its vector variants."""
    variants = {variant: lanes_of(variant) for variant in vector_variants()[symbol]}
    return called_attributes(name, symbol, variants)


def called_attributes(name: str, symbol: str, variants: Mapping[str, int]) -> str:
    """Return the attributes of a scalar function that is called, with its variants' lanes."""
    kinds = "v" * (1 + (name in BINARY))
    mangled = ",".join(
        f"_ZGV_LLVM_N{lanes}{kinds}_wend.{symbol}(wend.{variant})"
        for variant, lanes in variants.items()
    )
    return f'noinline {PURE} "vector-function-abi-variant"="{mangled}"'


def vector_attributes(format: Format, lanes: int) -> str:
    """Return the attributes of a variant that is called, not inlined."""
    bits = lanes * format.width
    return f'{PURE} "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
