"""Rows of `wend.ops.special`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import integrate, special

from tests.helpers.cases import Case
from tests.ops.cases.elementwise import binary, unary
from wend.ir.dtypes import FLOATS


def _near(case: Case) -> Case:
    return dataclasses.replace(case, exact=False)


def _low(function: Any) -> Any:
    """The function in double precision, in the dtype of its operand."""

    def reference(*xs: Any, **attrs: Any) -> Any:
        found = function(*(np.asarray(x, np.float64) for x in xs), **attrs)
        return np.asarray(found, np.asarray(xs[0]).dtype)

    return reference


def _by_integral(x: float) -> float:
    return float(integrate.quad(lambda t: 2 / np.sqrt(np.pi) * np.exp(-t * t), 0, x)[0])


def _log_ndtr(x: Any, order: int) -> Any:
    """By the density and its integral, and the quotient rule."""
    ratio = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) / special.ndtr(x)
    return (special.log_ndtr(x), ratio, -ratio * (x + ratio))[order]


ONE = {
    "erf": (special.erf, (-2, 2)),
    "erfc": (special.erfc, (-2, 2)),
    "erfinv": (special.erfinv, (-0.9, 0.9)),
    "erfcinv": (special.erfcinv, (0.1, 1.9)),
    "ndtri": (special.ndtri, (0.05, 0.95)),
    "expit": (special.expit, (-3, 3)),
    "gammaln": (special.gammaln, (0.3, 4)),
    "gamma": (special.gamma, (0.3, 3)),
}
FAMILIES = {
    "polygamma": (lambda x, order: special.polygamma(order, x), (0.5, 3)),
    "bessel_i": (lambda x, order: special.iv(order, x), (-2, 2)),
    "bessel_j": (lambda x, order: special.jv(order, x), (-2, 2)),
    "log_ndtr": (_log_ndtr, (-2, 2)),
}


def _polygamma_difference(x: Any, y: Any, order: int) -> Any:
    return special.polygamma(order, x) - special.polygamma(order, x + y)


def _beta(x: Any, y: Any, first: int, second: int) -> Any:
    """A first derivative of Β, far from its poles."""
    factors = [_polygamma_difference(v, w, 0) for v, w in ((x, y), (y, x))]
    return special.beta(x, y) * (factors[0] if first else factors[1] if second else 1)


# Each with the attributes of its members.
FAMILIES_OF_TWO: dict[str, tuple[Any, list[dict[str, int]]]] = {
    "polygamma_difference": (_polygamma_difference, [{"order": order} for order in (0, 1, 2)]),
    "beta_without_poles": (
        _beta,
        [{"first": first, "second": second} for first, second in ((0, 0), (1, 0), (0, 1))],
    ),
}
DOUBLE = FLOATS - {np.dtype("f2"), np.dtype("f4")}

CASES = [
    Case("erf", np.vectorize(_by_integral), [(np.linspace(-2, 2, 7),)], exact=False),
    *(_near(unary(op, _low(reference), DOUBLE, domain)) for op, (reference, domain) in ONE.items()),
    *(
        Case(op, _low(reference), [(np.linspace(0.1, 0.9, 5, dtype=np.float32),)], exact=False)
        for op, (reference, _) in ONE.items()
    ),
    _near(binary("logaddexp", _low(np.logaddexp), DOUBLE, (-3, 3))),
    _near(binary("xlogy", _low(special.xlogy), DOUBLE, (0.3, 3))),
    _near(binary("xlog1py", _low(special.xlog1py), DOUBLE, (0.3, 3))),
    _near(binary("kl_div", _low(special.kl_div), DOUBLE, (0.3, 3))),
    _near(binary("betaln", _low(special.betaln), DOUBLE, (0.3, 3))),
    *(
        Case(
            op,
            _low(reference),
            [
                (np.linspace(0.5, 3, 5, dtype=dtype), np.linspace(2, 0.3, 5, dtype=dtype))
                for dtype in (np.float64, np.float32)
            ],
            [(np.linspace(0.5, 3, 4), np.linspace(2, 0.3, 4)), (np.float64(1.5), np.float64(0.7))],
            attrs,
            exact=False,
        )
        for op, (reference, members) in FAMILIES_OF_TWO.items()
        for attrs in members
    ),
    *(
        Case(
            op,
            _low(reference),
            [(np.linspace(*domain, 5),), (np.linspace(*domain, 5, dtype=np.float32),)],
            [(np.linspace(*domain, 4),), (np.float64(domain[1] / 2),)],
            {"order": order},
            exact=False,
        )
        for op, (reference, domain) in FAMILIES.items()
        for order in (0, 1, 2)
    ),
]
