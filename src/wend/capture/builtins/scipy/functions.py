"""SciPy's functions under their own names in captured code, as far as wend has them.

Their universal functions dispatch by themselves; these are the others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

from wend.base import trees
from wend.base.errors import UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.capture.builtins.scipy import draws
from wend.capture.builtins.scipy.filters import convolve, correlate, takes_filter
from wend.capture.builtins.scipy.matrices import (
    MATRICES,
    METRICS,
    block_diag,
    cdist,
    eig,
    expm,
    pdist,
    solve_discrete_lyapunov,
    squareform,
    takes_blocks,
    takes_expm,
    takes_lyapunov,
    takes_squareform,
)
from wend.capture.builtins.scipy.rotations import maker_of_rotations
from wend.capture.builtins.scipy.statistics import (
    CHI2,
    MULTIVARIATE_NORMAL,
    entropy,
    kurtosis,
    skew,
    takes_degrees,
    takes_point,
)
from wend.eager.dispatch import any_staged
from wend.numpy import creating, linalg, matrices, ranges, shaping, special
from wend.numpy import elementwise as ew

Call = Callable[..., Any]
_IGNORED = frozenset({"overwrite_a", "overwrite_b", "check_finite", "lapack_driver", "driver"})


def of_scipy(fun: Any, module: str, name: str) -> Call | None:
    """Return wend's version of a function of SciPy, for calls with traced values, or None."""
    if module.startswith("scipy.spatial.transform"):
        return maker_of_rotations(fun, name)
    package = ".".join(module.split(".")[:2])
    public = _PUBLIC.get(package, package)
    if draws.draws(package, name):
        return draws.unless_seeded(fun, f"{package}.{name}")
    functions = _FUNCTIONS.get(package)
    if functions is None or name not in functions:
        return None
    is_public = getattr(sys.modules.get(public), name, None) is fun
    return _of_traced(fun, functions[name]) if is_public else None


def of_distribution(distribution: Any, name: str) -> Call | None:
    """Return wend's version of a method of a distribution of `scipy.stats`, or None."""
    stats = sys.modules.get("scipy.stats")
    for public, methods in _DISTRIBUTIONS.items():
        if name in methods and distribution is getattr(stats, public, None):
            return _of_traced(getattr(distribution, name), methods[name])
    return draws.of_method(distribution, name)


def _of_traced(fun: Call, ours: Call) -> Call:
    def run(*args: Any, **kwargs: Any) -> Any:
        if not any_staged(trees.flatten((args, kwargs))[0]):
            return fun(*args, **kwargs)
        taken = {key: value for key, value in kwargs.items() if key not in _IGNORED}
        try:
            return ours(*args, **taken)
        except _NotTakenError as error:
            raise _refusal(fun, str(error)) from None

    return run


class _NotTakenError(Exception):
    """An option that wend's version does not take."""


def _refusal(fun: Call, option: str) -> Exception:
    return refusal(
        UnsupportedError(
            explain(
                f"{fun.__name__}(…, {option}){at(user_source())} is not recorded with this option.",
                cure="leave it out, or write it with functions of NumPy.",
            )
        )
    )


def _check_default(**options: Any) -> None:
    for name, (value, default) in options.items():
        if value is not default and value != default:
            raise _NotTakenError(f"{name}={value!r}")


# scipy.linalg
def _solve(
    a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False
) -> Any:
    _check_default(lower=(lower, False))
    if assume_a not in (None, "gen", "general"):
        raise _NotTakenError(f"assume_a={assume_a!r}")
    return linalg.solve(shaping.matrix_transpose(a) if transposed else a, b)


def _cholesky(a: Any, lower: bool = False) -> Any:
    if lower:
        return linalg.cholesky(a)
    return _adjoint(linalg.cholesky(_adjoint(a)))  # which reads the upper triangle


def _cho_factor(a: Any, lower: bool = False) -> tuple[Any, bool]:
    # SciPy leaves the other triangle as it was.
    other_triangle = matrices.triu(a, 1) if lower else matrices.tril(a, -1)
    return _cholesky(a, lower) + other_triangle, lower


def _cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
    factor, is_lower = c_and_lower
    lower = _triangle(factor, is_lower)
    lower = lower if is_lower else _adjoint(lower)
    return linalg.solve(_adjoint(lower), linalg.solve(lower, b))


def _solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Any:
    a = _triangle(a, lower)
    if unit_diagonal:
        size = shaping.shape(a)[-1]
        a = ew.where(ranges.eye(size, dtype=bool), 1.0, a)
    if trans in (1, "T"):
        a = shaping.matrix_transpose(a)
    elif trans in (2, "C"):
        a = _adjoint(a)
    return linalg.solve(a, b)


def _triangle(a: Any, lower: bool) -> Any:
    return matrices.tril(a) if lower else matrices.triu(a)


def _adjoint(a: Any) -> Any:
    return ew.conjugate(shaping.matrix_transpose(a))


def _eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    _check_default(b=(b, None))
    uplo = "L" if lower else "U"
    return (linalg.eigvalsh if eigvals_only else linalg.eigh)(a, uplo)


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return linalg.norm(a, ord, axis, keepdims)


# scipy.stats.norm
def _standard(x: Any, loc: Any, scale: Any) -> Any:
    return (x - loc) / scale


def _logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    z = _standard(x, loc, scale)
    return -0.5 * z * z - 0.5 * math.log(2 * math.pi) - ew.log(scale)


def _of_standard(function: Call, sign: float = 1.0) -> Call:
    def method(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return function(sign * _standard(x, loc, scale))

    return method


def _ppf(q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    return special.ndtri(q) * scale + loc


_NORMAL: Mapping[str, Call] = {
    "logpdf": _logpdf,
    "pdf": lambda x, loc=0.0, scale=1.0: ew.exp(_logpdf(x, loc, scale)),
    "cdf": _of_standard(special.ndtr),
    "logcdf": _of_standard(special.log_ndtr),
    "sf": _of_standard(special.ndtr, -1.0),
    "logsf": _of_standard(special.log_ndtr, -1.0),
    "ppf": _ppf,
}


def _only_if(takes: Call, ours: Call, what: str) -> Call:
    """Return a function that refuses arguments which wend's version does not take."""

    def run(*args: Any, **options: Any) -> Any:
        if not takes(*args, **options):
            raise _NotTakenError(what)
        return ours(*args, **options)

    return run


def _with_metric(distances: Call) -> Call:
    def run(*args: Any, metric: str = "euclidean", **options: Any) -> Any:
        *arrays, metric = [*args, metric] if not isinstance(args[-1], str) else args
        if metric not in METRICS or options:
            raise _NotTakenError(f"metric={metric!r}")
        return distances(*arrays, metric)

    return run


def _moment(moment: Call) -> Call:
    def run(a: Any, axis: int | None = 0, **options: Any) -> Any:
        defaults = {"bias": True, "nan_policy": "propagate", "keepdims": False, "fisher": True}
        for name, value in options.items():
            _check_default(**{name: (value, defaults.get(name))})
        return moment(a, axis)

    return run


def _filter(filter: Call) -> Call:
    def run(
        input: Any,
        weights: Any,
        output: Any = None,
        mode: str = "reflect",
        cval: Any = 0.0,
        origin: int = 0,
    ) -> Any:
        input, weights = creating.asarray(input), creating.asarray(weights)
        if output is not None or not takes_filter(input, weights, mode, cval, origin):
            raise _NotTakenError("these arguments")
        return filter(input, weights, mode, cval)

    return run


_DISTRIBUTIONS: Mapping[str, Mapping[str, Call]] = {
    "norm": _NORMAL,
    "chi2": {
        name: _only_if(lambda x, df: takes_degrees(df), method, "df")
        for name, method in CHI2.items()
    },
    "multivariate_normal": {
        name: _only_if(
            lambda x, mean=0.0, cov=1.0, allow_singular=False: takes_point(x, mean, cov),
            method,
            "points",
        )
        for name, method in MULTIVARIATE_NORMAL.items()
    },
}
# Where functions are public, if not in their package
_PUBLIC = {"scipy.spatial": "scipy.spatial.distance"}
_FUNCTIONS: Mapping[str, Mapping[str, Call]] = {
    "scipy.special": {
        "logsumexp": special.logsumexp,
        "softmax": special.softmax,
        "log_softmax": special.log_softmax,
        "polygamma": special.polygamma,
    },
    "scipy.linalg": {
        "solve": _solve,
        "inv": linalg.inv,
        "det": linalg.det,
        "norm": _norm,
        "cholesky": _cholesky,
        "cho_factor": _cho_factor,
        "cho_solve": _cho_solve,
        "solve_triangular": _solve_triangular,
        "expm": _only_if(takes_expm, expm, "a matrix of doubles"),
        "block_diag": _only_if(takes_blocks, block_diag, "stacks"),
        **MATRICES,
        "solve_discrete_lyapunov": _only_if(
            takes_lyapunov, lambda a, q, method=None: solve_discrete_lyapunov(a, q), "a method"
        ),
        "eig": _only_if(
            lambda a, b=None, left=False, right=True: b is None and not left, eig, "b or left"
        ),
        "eigvals": _only_if(lambda a, b=None: b is None, lambda a, b=None: linalg.eigvals(a), "b"),
        "eigh": _eigh,
        "eigvalsh": lambda a, b=None, *, lower=True: _eigh(a, b, lower=lower, eigvals_only=True),
    },
    "scipy.spatial": {
        "pdist": _with_metric(pdist),
        "cdist": _with_metric(cdist),
        "squareform": _only_if(
            lambda X, force="no", checks=True: force == "no" and takes_squareform(X),  # noqa: N803
            lambda X, force="no", checks=True: squareform(X),  # noqa: N803
            "an array",
        ),
    },
    "scipy.ndimage": {
        "correlate": _filter(correlate),
        "convolve": _filter(convolve),
    },
    "scipy.stats": {
        "skew": _moment(skew),
        "kurtosis": _moment(kurtosis),
        "entropy": entropy,
    },
}
