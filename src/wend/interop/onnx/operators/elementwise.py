"""Elementwise operators: arithmetic, comparisons, bits, activations, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

import wend.numpy as wnp
from wend.base.errors import UnsupportedError
from wend.interop.onnx.operators.operands import dtype_of, known


def divide(x: Any, y: Any) -> Any:
    """Return a quotient, which C's rule rounds toward zero for integers."""
    if x.dtype.kind not in "iu":
        return x / y
    if x.dtype.kind == "u":
        return x // y
    quotient = x // y
    is_short = (quotient < 0) & (quotient * y != x)
    return wnp.where(is_short, quotient + 1, quotient).astype(x.dtype)


def mod(x: Any, y: Any, fmod: int = 0) -> Any:
    """Return the remainder: of the divisor's sign, or by `fmod` of the dividend's."""
    return wnp.fmod(x, y) if fmod else wnp.mod(x, y)


def power(x: Any, y: Any) -> Any:
    """Return a power of the dtype of the base."""
    if x.dtype.kind == "f" or x.dtype == y.dtype:
        return wnp.power(x, y.astype(x.dtype))
    return wnp.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


def bit_shift(x: Any, y: Any, direction: str) -> Any:
    """Return bits that are shifted to the left or to the right."""
    return wnp.left_shift(x, y) if direction == "LEFT" else wnp.right_shift(x, y)


def clip(x: Any, lower: Any = None, upper: Any = None, min: Any = None, max: Any = None) -> Any:
    """Return a clipped array; the bounds are attributes before version 11."""
    lower, upper = (lower if min is None else min), (upper if max is None else max)
    x = x if lower is None else wnp.maximum(x, wnp.asarray(lower, x.dtype))
    return x if upper is None else wnp.minimum(x, wnp.asarray(upper, x.dtype))


def is_infinite(x: Any, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """Return whether elements are infinite, of the signs that are asked for."""
    is_wanted = (x < 0) if not detect_positive else (x > 0)
    if detect_negative and detect_positive:
        return wnp.isinf(x)
    return wnp.isinf(x) & is_wanted & bool(detect_negative or detect_positive)


def cast(x: Any, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return an array in another dtype."""
    return wnp.astype(x, dtype_of(to))


def rounded(x: Any) -> Any:
    """Return the nearest integers; of two, the even one."""
    return wnp.rint(x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """Return x, and alpha (exp x − 1) where it is negative."""
    return wnp.where(x < 0, alpha * wnp.expm1(wnp.minimum(x, 0)), x)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """Return max(x, 0) + min(alpha (exp(x / alpha) − 1), 0)."""
    return wnp.maximum(x, 0) + wnp.minimum(alpha * wnp.expm1(wnp.minimum(x, 0) / alpha), 0)


def selu(
    x: Any, alpha: float = 1.67326319217681884765625, gamma: float = 1.0507009873554805
) -> Any:
    """Return `elu` times gamma."""
    return gamma * wnp.where(x > 0, x, alpha * wnp.expm1(wnp.minimum(x, 0)))


def leaky_relu(x: Any, alpha: float = 0.01) -> Any:
    """Return x, and alpha x where it is negative."""
    return wnp.where(x < 0, alpha * x, x)


def thresholded_relu(x: Any, alpha: float = 1.0) -> Any:
    """Return x where it is above alpha, else 0."""
    return wnp.where(x > alpha, x, wnp.zeros_like(x))


def parametric_relu(x: Any, slope: Any) -> Any:
    """Return x, and a slope times x where it is negative."""
    return wnp.where(x < 0, slope * x, x)


def hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """Return alpha x + beta between 0 and 1."""
    return wnp.clip(alpha * x + beta, 0, 1).astype(x.dtype)


def hard_swish(x: Any) -> Any:
    """Return x times its hard sigmoid."""
    return x * hard_sigmoid(x, 1 / 6, 0.5)


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp −x)."""
    return wnp.special.expit(x)


def softplus(x: Any) -> Any:
    """Return log(1 + exp x)."""
    return wnp.logaddexp(x, wnp.zeros_like(x))


def mish(x: Any) -> Any:
    """Return x tanh(softplus x)."""
    return x * wnp.tanh(softplus(x))


def swish(x: Any, alpha: float = 1.0) -> Any:
    """Return x sigmoid(alpha x)."""
    return x * sigmoid(alpha * x)


def gelu(x: Any, approximate: str = "none") -> Any:
    """Return x times the normal distribution function, or an approximation of it."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + wnp.tanh(inner))
    return 0.5 * x * (1 + wnp.special.erf(x * math.sqrt(0.5)))


def shrink(x: Any, bias: float = 0.0, lambd: float = 0.5) -> Any:
    """Return x moved toward 0 by a bias, and 0 near it."""
    zero = wnp.zeros_like(x)
    shrunk = wnp.where(x < -lambd, x + bias, wnp.where(x > lambd, x - bias, zero))
    return shrunk.astype(x.dtype)


def softsign(x: Any) -> Any:
    """Return x / (1 + |x|)."""
    return x / (1 + wnp.abs(x))


def dropout(
    x: Any, ratio: Any = None, training_mode: Any = None, seed: int = 0, outputs: int = 1
) -> Any:
    """Return the input, and a mask that keeps all: nothing is dropped outside of training."""
    trains = training_mode is not None and bool(known(training_mode, "the mode of Dropout"))
    if trains and (ratio is None or float(known(ratio, "the ratio of Dropout")) != 0.0):
        raise UnsupportedError("Dropout in training draws random numbers, which is not supported")
    return (x, wnp.ones(x.shape, bool)) if outputs > 1 else x


def of_many(fun: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the operator that combines any number of arrays by a function of two."""
    return lambda *arrays: reduce(fun, arrays)


def mean(*arrays: Any) -> Any:
    """Return the mean of arrays."""
    return reduce(wnp.add, arrays) / len(arrays)


def _same(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays without the attributes that changed nothing."""
    return lambda *operands: fun(*operands)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: _same(fun)
        for name, fun in {
            "Abs": wnp.abs, "Acos": wnp.arccos, "Acosh": wnp.arccosh, "Add": wnp.add,
            "And": wnp.logical_and, "Asin": wnp.arcsin, "Asinh": wnp.arcsinh, "Atan": wnp.arctan,
            "Atanh": wnp.arctanh, "BitwiseAnd": wnp.bitwise_and, "BitwiseNot": wnp.invert,
            "BitwiseOr": wnp.bitwise_or, "BitwiseXor": wnp.bitwise_xor, "Ceil": wnp.ceil,
            "Cos": wnp.cos, "Cosh": wnp.cosh, "Equal": wnp.equal, "Erf": wnp.special.erf,
            "Exp": wnp.exp, "Floor": wnp.floor, "Greater": wnp.greater,
            "GreaterOrEqual": wnp.greater_equal, "IsNaN": wnp.isnan, "Less": wnp.less,
            "LessOrEqual": wnp.less_equal, "Log": wnp.log, "Mul": wnp.multiply,
            "Neg": wnp.negative, "Not": wnp.logical_not, "Or": wnp.logical_or,
            "Sign": wnp.sign, "Sin": wnp.sin, "Sinh": wnp.sinh, "Sqrt": wnp.sqrt,
            "Sub": wnp.subtract, "Tan": wnp.tan, "Tanh": wnp.tanh, "Where": wnp.where,
            "Xor": wnp.logical_xor,
        }.items()
    },
    "BitShift": bit_shift,
    "Cast": cast,
    "CastLike": lambda x, like, saturate=1, round_mode="up": wnp.astype(x, like.dtype),
    "Celu": celu,
    "Clip": clip,
    "Div": divide,
    "Dropout": dropout,
    "Elu": elu,
    "Gelu": gelu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish,
    "Identity": lambda x: x,
    "IsInf": is_infinite,
    "LeakyRelu": leaky_relu,
    "Max": of_many(wnp.maximum),
    "Mean": mean,
    "Min": of_many(wnp.minimum),
    "Mish": mish,
    "Mod": mod,
    "PRelu": parametric_relu,
    "Pow": power,
    "Reciprocal": lambda x: 1 / x,
    "Relu": lambda x: wnp.maximum(x, wnp.zeros_like(x)),
    "Round": rounded,
    "Selu": selu,
    "Shrink": shrink,
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Softsign": softsign,
    "Sum": of_many(wnp.add),
    "Swish": swish,
    "ThresholdedRelu": thresholded_relu,
}  # fmt: skip
