"""erf and erfc as LLVM IR, without branches.

erfc x = exp(-x^2) / (1 + 2x) P(t) for all x >= 0, t = (x - 4) / (x + 4) (Shepherd & Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981); for x <= 1 erf is a polynomial.
Coefficients as in `exp.py`.
"""

from __future__ import annotations

from wend.backends.native.math.exp import full_range_exp
from wend.backends.native.math.format import F32, F64
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, polynomial

# erf x = x + x (c0 + c1 z + ...) with z = x^2, |x| <= 1
ERF = {
    F64: (
        *(0.1283791670955126, -0.3761263890318411, 0.11283791670972161, -0.02686617064830657),
        *(0.005223977655994121, -0.0008548328755987657, 0.00012055395174887548),
        *(-1.4927116943720052e-05, 1.648510861140691e-06, -1.660256388646828e-07),
        *(1.6333437739365496e-08, -1.775160622733666e-09, 1.6592845667224196e-10),
    ),
    F32: (
        *(0.12837916612625122, -0.37612631916999817, 0.11283672600984573, -0.026858225464820862),
        *(0.005197879392653704, -0.0008102435385808349, 8.181251178029925e-05),
    ),
}
# (1 + 2x) exp(x^2) erfc x = c0 + c1 t + ...
ERFC = {
    F64: (
        *(1.2329951186255526, -0.13962111684056297, 0.015379652102619957),
        *(0.06809705425474379, -0.10103906603630544, 0.09373283499660764),
        *(-0.06633036581261621, 0.03716751556478551, -0.016197734046222295),
        *(0.005031969742475732, -0.0007577734290918752, -0.00019925547625368394),
        *(0.00015062260395566957, -2.4403126396024696e-05, -1.1225687327701487e-05),
        *(5.717454177646323e-06, 3.0264975325506897e-07, -8.341113439095622e-07),
        *(6.17872573161624e-08, 1.1419479690113647e-07, -7.617021349101117e-09),
        *(-1.3176711200332887e-08, -1.6642343729235416e-09),
    ),
    F32: (
        *(1.2329951524734497, -0.13962113857269287, 0.015379632823169231),
        *(0.06809800863265991, -0.1010376587510109, 0.09371955692768097),
        *(-0.06635784357786179, 0.03722529485821724, -0.016011739149689674),
        *(0.005053406115621328, -0.0011351167922839522, -0.000642741855699569),
    ),
}
ERFC_UNDERFLOW_BOUND = {F64: 28.0, F32: 11.0}  # erfc is 0 above


def erf(b: FunctionBuilder) -> SsaExpr:
    """Return erf for all arguments."""
    size = abs(b.x)
    tail = -_erfc_tail(b, size) + 1.0
    return b.copysign(b.select(size < 1.0, _erf_series(b, size), tail), b.x)


def erfc(b: FunctionBuilder) -> SsaExpr:
    """Return erfc for all arguments."""
    size = abs(b.x)
    tail = _erfc_tail(b, size)
    tail = b.select(b.x < 0.0, -tail + 2.0, tail)
    return b.select(size < 0.5, -_erf_series(b, b.x) + 1.0, tail)


def _erf_series(b: FunctionBuilder, x: SsaExpr) -> SsaExpr:
    """Return erf for |x| <= 1."""
    z = x * x
    return b.fma(x, polynomial(b, z, z * z, ERF[b.format]), x)


def _erfc_tail(b: FunctionBuilder, x: SsaExpr) -> SsaExpr:
    """Return erfc x for x >= 0."""
    x = b.at_most(x, ERFC_UNDERFLOW_BOUND[b.format])
    t = (x - 4.0) / (x + 4.0)
    first, *others = ERFC[b.format]
    tail = t * polynomial(b, t, t * t, others)
    numerator = tail + first
    denominator = b.fma(x, 2.0, 1.0)
    inverse = b.one / denominator
    quotient = numerator * inverse
    # Corrections for the rounding of these three; errors of exp and of the last product remain.
    numerator_low = tail - (numerator - first)
    denominator_low = b.fma(x, 2.0, -(denominator - 1.0))
    remainder = b.fma(-quotient, denominator, numerator) + (
        numerator_low - quotient * denominator_low
    )
    square = x * x
    square_low = b.fma(x, x, -square)  # exp(-square - low) = exp(-square) (1 - low)
    low = b.fma(-square_low, quotient, remainder * inverse)
    e = full_range_exp(b, -square)
    return b.fma(e, low, e * quotient)
