"""Which functions of loops have forms of whole vectors, written by us and not by LLVM.

LLVM makes vectors of a loop's arithmetic, and of a call the call of such a form if told of one.
"""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.math import avx512
from wend.backends.native.math.format import F32, F64, Format
from wend.backends.native.math.ir_dsl import INLINE, PURE
from wend.backends.native.target import host_cpu

SUFFIXES: Mapping[str, Format] = {".loop": F64, ".loop.f32": F32}
SINCOS = ("sin", "cos", "tan")
# A rare argument wants a branch, which LLVM makes no vectors of
WITH_BRANCHES = (*SINCOS, "pow")
# The others, which have forms where the instructions of `avx512.py` are
_OTHERS = (
    *("exp", "exp2", "expm1", "tanh", "expit", "log", "log2", "log10", "log1p", "sinh", "cosh"),
    *("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "cbrt", "erf", "erfc"),
)
TWO = ("atan2", "pow")  # of two arguments


def _widths(name: str, format: Format) -> tuple[int, ...]:
    """How many numbers loops on this machine take at once.

    Half as many as else are of f32 beside f64, and of what is left over in the end.
    """
    features = host_cpu.features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    most = bits // format.width
    return (most, most // 2) if format == F32 or _is_inlined(name) else (most,)


def _is_inlined(name: str) -> bool:
    """Whether forms become a part of loops once LLVM has made vectors of these (`optimizing.py`).

    Waves are called: of a huge argument each number is computed alone, which would be a large part.
    """
    return avx512.is_there() and name not in SINCOS


_WITH_FORMS = (*WITH_BRANCHES, *(_OTHERS if avx512.is_there() else ()))
VECTOR_FORMS: Mapping[str, tuple[str, ...]] = {
    f"{name}{suffix}": tuple(f"{name}{suffix}.v{n}" for n in _widths(name, format))
    for name in _WITH_FORMS
    for suffix, format in SUFFIXES.items()
}
INLINED_FORMS = frozenset(
    form
    for symbol, forms in VECTOR_FORMS.items()
    for form in forms
    if _is_inlined(symbol.partition(".")[0])
)
# Parts of those may be wider than their arguments
OF_INLINED = f'{INLINE} "min-legal-vector-width"="512" {avx512.ATTRIBUTE}'


def lanes_of(symbol: str) -> int:
    """How many numbers a function takes at once."""
    return int(symbol.rpartition(".v")[2]) if ".v" in symbol else 1


def of_one(name: str, symbol: str) -> str:
    """The attributes of a function of one number, which say what computes several."""
    kinds = "v" * (1 + (name in TWO))
    variants = ",".join(
        f"_ZGV_LLVM_N{lanes_of(form)}{kinds}_wend.{symbol}(wend.{form})"
        for form in VECTOR_FORMS[symbol]
    )
    return f'noinline {PURE} "vector-function-abi-variant"="{variants}"'


def of_many(format: Format, lanes: int) -> str:
    """The attributes of a form that is called."""
    bits = lanes * format.width
    return f'{PURE} "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
