"""The cube root as LLVM IR, without a division.

|x| = 2^3q m with m from 1/2 to 4. A polynomial of 1/cbrt(m) and one step of third order give half
of the digits and more, and a Newton step with the exact residual the rest.
"""

from __future__ import annotations

from wend.backends.native.math_body import Body, Term, estrin
from wend.backends.native.math_exp import power_of_two
from wend.backends.native.math_format import F32, F64, Format

# 1 / cbrt(m) from 1 to 2, within 7e-6 and 3e-4
START = {
    F64: (
        1.7776471684890054,
        -1.5540274077106597,
        1.2271496200207155,
        -0.5865141615889806,
        0.15224956438221762,
        -0.016511679091286462,
    ),
    F32: (1.53776026627287, -0.8012745696637373, 0.3118472681731596, -0.04863305334283885),
}
# What subnormals are multiplied by, as a power of 8
SUBNORMAL_BITS = {F64: 54, F32: 24}


def cbrt(format: Format, name: str) -> str:
    """Return the cube root for all arguments."""
    b = Body(1, format)
    size = abs(b.x)
    is_subnormal = size < format.smallest_normal
    up = SUBNORMAL_BITS[format]
    bits = b.select(is_subnormal, size * 2.0**up, size).word()
    exponent = ((bits >> format.digits) + format.magic_bits).real() - (format.magic + format.bias)
    near = b.fma(exponent, 1.0 / 3.0, format.magic)
    rest = b.fma(near - format.magic, -3.0, exponent)  # -1, 0 or 1
    m = ((bits & (2**format.digits - 1)) + (format.bias << format.digits)).real()
    start = estrin(b, m, m * m, START[format])
    m = m * _by_rest(b, rest, 0.5, 2.0)
    y = start * _by_rest(b, rest, 1.2599210498948732, 0.7937005259840998)
    error = b.fma(-(m * y), y * y, 1.0)
    y = b.fma(y * error, b.fma(error, 2.0 / 9.0, 1.0 / 3.0), y)
    root = m * (y * y)
    square = root * root
    lost = b.fma(root, root, -square)
    residual = b.fma(-lost, root, b.fma(-square, root, m))
    root = b.fma(residual, y * y * (1.0 / 3.0), root)
    root = root * power_of_two(b, near.word()) * b.select(is_subnormal, 2.0 ** (-up // 3), 1.0)
    is_ordinary = (size > 0.0) & (size < float("inf"))
    b.ret(b.select(is_ordinary, b.copysign(root, b.x), b.x))
    return b.definition(name)


def _by_rest(b: Body, rest: Term, below: float, above: float) -> Term:
    """Return what goes with a rest of -1, 1 (which is `above`) and, for 0, 1."""
    return b.select(rest < 0.0, below, b.select(rest > 0.0, above, 1.0))
