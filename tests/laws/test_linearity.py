"""Operations that claim to be linear in operands are (D28): additive, homogeneous, zero at zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.helpers.cases import Case, assert_same, like, moved, random_like, type_of, value_of
from tests.ops.cases import CASES
from wend.ir import TABLE
from wend.ir.builder import as_tuple
from wend.ir.op import Effect, Linear
from wend.ir.types import is_differentiable

CLAIMED = [case for case in CASES if case.smooth and case.record.linear_operands != ()]

SINGLY = {"mul": (0, 1), "div": (0,), "xlogy": (0,), "xlog1py": (0,)}


def groups(case: Case, operands: Sequence[Any]) -> list[list[int]]:
    """Sets of operands in each of which the operation claims to be linear."""
    linear = case.record.linear_operands
    places = range(len(operands)) if linear is None else linear
    floats = [i for i in places if is_differentiable(type_of(operands[i]))]
    return [floats] if case.record.is_jointly_linear else [[i] for i in floats]


def run(case: Case, values: Sequence[Any], changed: Mapping[int, Any]) -> list[Any]:
    kernel = case.record.kernel
    assert kernel is not None
    given = [changed.get(i, value) for i, value in enumerate(values)]
    return [x for x in as_tuple(kernel(*given, **case.attrs)) if like(x, np.zeros_like) is not None]


def zeros(x: Any) -> Any:
    return like(x, np.zeros_like)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CLAIMED, ids=str)
def test_claims_hold(case: Case) -> None:
    rng = np.random.default_rng(0)
    for operands in case.smooth:
        values = [value_of(x) for x in operands]
        for group in groups(case, operands):
            if not group:
                continue
            u, v = ({i: like(values[i], random_like(rng)) for i in group} for _ in range(2))
            both = {i: moved(u[i], v[i], -1.5) for i in group}
            of_u, of_v, of_both = (run(case, values, changed) for changed in (u, v, both))
            expected = [moved(a, b, -1.5) for a, b in zip(of_u, of_v, strict=True)]
            assert_same(of_both, expected, tol=1e-10, role=f"{case} in {group}")
            of_zero = run(case, values, {i: zeros(values[i]) for i in group})
            assert_same(of_zero, [zeros(x) for x in of_zero], tol=0.0, role=f"{case} in {group}")


# Linear only in pieces: by where an element is, which is the largest, what is padded with.
IN_PIECES = {"abs", "complex_abs", "maximum", "minimum", "sort", "reduce_max", "reduce_min", "pad"}


def test_what_is_linear_says_so() -> None:
    """What is linear in an operand on all its cases claims it."""
    silent = []
    for name, op in TABLE.items():
        cases = [case for case in CASES if case.op == name and case.smooth]
        linear = op.linear_operands
        if not cases or linear is None or name in IN_PIECES:
            continue
        if op.effect is not Effect.NONE:  # it is not to be applied to tangents
            continue
        for i in range(min(len(operands) for case in cases for operands in case.smooth)):
            found = [looks_linear(case, operands, i) for case in cases for operands in case.smooth]
            if i not in linear and all(found):
                silent.append(f"{name} in operand {i}")
    assert silent == []


def looks_linear(case: Case, operands: Sequence[Any], i: int) -> bool:
    if not is_differentiable(type_of(operands[i])):
        return False
    rng, values = np.random.default_rng(1), [value_of(x) for x in operands]
    u, v = (moved(values[i], like(values[i], random_like(rng)), 1e-3) for _ in range(2))
    with np.errstate(all="ignore"):
        of_u, of_v, of_both = (run(case, values, {i: x}) for x in (u, v, moved(u, v, -0.25)))
    if not of_u:
        return False
    try:
        assert_same(
            of_both, [moved(a, b, -0.25) for a, b in zip(of_u, of_v, strict=True)], tol=1e-9
        )
    except (AssertionError, np.linalg.LinAlgError):
        return False
    return True


def test_those_linear_in_one_operand_at_a_time() -> None:
    one_by_one = {
        name: op.linear_operands
        for name, op in TABLE.items()
        if op.linear_operands != () and not isinstance(op.derivative, Linear)
    }
    for name, operands in SINGLY.items():
        assert one_by_one[name] == operands
    assert not TABLE["mul"].is_jointly_linear
    assert TABLE["select"].is_jointly_linear
    assert TABLE["select"].linear_operands == (1, 2)
    assert TABLE["add"].linear_operands is None
    assert TABLE["sin"].linear_operands == ()
    assert not TABLE["sin"].is_jointly_linear
