"""The op table is complete: what is missing is listed by name."""

from __future__ import annotations

from tests.helpers.cases import type_of
from tests.ops.cases import CASES, FAMILIES
from wend.ir import TABLE, Op
from wend.ir.op import ByRegions, Explicit, Linear, NoGradient, Partials
from wend.ir.types import is_differentiable
from wend.ops import build

# Their derivatives are checked on symmetric matrices, in tests/ops/test_linalg.py
# and tests/numpy/test_decompositions.py.
CHECKED_ELSEWHERE = {"cholesky", "eigh", "graft", "lu_factor"}


def listed_ops() -> list[Op]:
    return [op for family in build.FAMILIES for op in vars(family).values() if isinstance(op, Op)]


def test_every_op_that_runs_has_a_row_of_cases() -> None:
    tested = {case.op for case in CASES if case.samples or case.smooth}
    assert sorted({name for name, op in TABLE.items() if op.kernel} - tested) == []


def test_rows_are_in_the_file_of_their_family() -> None:
    homes = {
        op.name: family.__name__
        for family in build.FAMILIES
        for op in vars(family).values()
        if isinstance(op, Op)
    }
    misplaced = [
        f"{case.op} in {family.__name__}"
        for family in FAMILIES
        for case in family.CASES
        if homes[case.op].rpartition(".")[2] != family.__name__.rpartition(".")[2]
    ]
    assert misplaced == []


def test_every_derivative_is_checked_somewhere() -> None:
    checked = {
        case.op
        for case in CASES
        for operands in case.smooth
        if any(is_differentiable(type_of(x)) for x in operands)
    } | CHECKED_ELSEWHERE
    derived = {
        name for name, op in TABLE.items() if not isinstance(op.derivative, (NoGradient, ByRegions))
    }
    assert sorted(derived - checked) == []


def test_every_op_has_a_derivative_or_says_it_has_none() -> None:
    kinds = (Partials, Linear, Explicit, ByRegions, NoGradient)
    assert sorted(name for name, op in TABLE.items() if not isinstance(op.derivative, kinds)) == []


def test_every_name_is_unique_and_in_the_table() -> None:
    names = [op.name for op in listed_ops()]
    assert sorted(names) == sorted(TABLE)
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_ops_without_a_kernel_hold_regions() -> None:
    assert sorted(n for n, op in TABLE.items() if (op.kernel is None) != bool(op.regions)) == []


def test_linear_operands_and_partials_are_as_many_as_operands() -> None:
    """Rules for operands that there are not would never run."""
    wrong = []
    for case in CASES:
        derivative, samples = case.record.derivative, [*case.samples, *case.smooth]
        most = max(len(operands) for operands in samples)
        if isinstance(derivative, Partials) and len(derivative.rules) != most:
            wrong.append(f"{case.op}: {len(derivative.rules)} partials of {most} operands")
        if isinstance(derivative, Linear) and any(i >= most for i in derivative.operands or ()):
            wrong.append(f"{case.op}: linear in {derivative.operands} of {most} operands")
    assert wrong == []
