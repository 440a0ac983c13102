"""arcsinh, arccosh and arctanh as LLVM IR: logarithms of sums of two numbers.

Near 0 arcsinh is a polynomial, as the logarithm would cancel. Coefficients as in `exp.py`.
"""

from __future__ import annotations

from wend.backends.native.math.format import F32, F64
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, polynomial
from wend.backends.native.math.log import log_limits, log_of_sum, one_more

# asinh x = x + x z (c0 + c1 z + ...) with z = x^2, |x| <= NEAR
ASINH = {
    F64: (
        *(-0.16666666666666663, 0.07499999999995723, -0.04464285713557021),
        *(0.03038194395642614, -0.02237214213243762, 0.01735241480273035),
        *(-0.01396023970212291, 0.011511441564599007, -0.009521366602854417),
        *(0.007416059350484122, -0.004650089973518131, 0.0016398428803165203),
    ),
    F32: (
        *(-0.16666662693023682, 0.07499367743730545, -0.044458694756031036),
        *(0.02845063991844654, -0.013576229102909565),
    ),
}
MAX_SERIES_ARGUMENT = 0.53
# From here on x^2 + 1 rounds to x^2; x^2 does not overflow yet
MIN_LARGE_ARGUMENT = {F64: 2.0**28, F32: 2.0**14}


def asinh(b: FunctionBuilder) -> SsaExpr:
    """Return arcsinh for all arguments: log(|x| + sqrt(x^2 + 1)) with the sign of x."""
    size = abs(b.x)
    is_large = size > MIN_LARGE_ARGUMENT[b.format]
    root = b.intrinsic("sqrt", b.fma(size, size, 1.0))
    u = b.select(is_large, size, root + size)
    low = b.select(is_large, 0.0, size - (u - root))
    by_log = log_limits(b, log_of_sum(b, u, low, b.select(is_large, 1.0, 0.0)), u)
    z = size * size
    by_series = b.fma(size * z, polynomial(b, z, z * z, ASINH[b.format]), size)
    return b.copysign(b.select(size < MAX_SERIES_ARGUMENT, by_series, by_log), b.x)


def acosh(b: FunctionBuilder) -> SsaExpr:
    """Return arccosh for all arguments: log(1 + t + sqrt(t (t + 2))) where t = x - 1."""
    is_large = b.x > MIN_LARGE_ARGUMENT[b.format]
    t = b.x - 1.0
    u, low = one_more(b, t + b.intrinsic("sqrt", b.fma(t, t, t * 2.0)))
    u, low = b.select(is_large, b.x, u), b.select(is_large, 0.0, low)
    result = log_limits(b, log_of_sum(b, u, low, b.select(is_large, 1.0, 0.0)), u)
    return b.select(b.x < 1.0, float("nan"), result)


def atanh(b: FunctionBuilder) -> SsaExpr:
    """Return arctanh for all arguments: half of log1p(2 |x| / (1 - |x|)) with the sign of x."""
    size = abs(b.x)
    u, low = one_more(b, (size * 2.0) / (-size + 1.0))
    half_log = log_limits(b, log_of_sum(b, u, low), u) * 0.5
    return b.select(size < b.format.epsilon, b.x, b.copysign(half_log, b.x))
