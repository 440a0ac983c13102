"""Every row of the op table's tests, five checks each; see `tests.helpers.cases`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.cases import (
    Case,
    assert_round_trip,
    assert_same,
    check_derivative,
    check_forward,
    graph_of,
    has_type,
    like,
    lowered,
    lowered_type,
    pull_back_graph,
    random_like,
    run,
    type_of,
    value_of,
    with_symbols,
)
from tests.ops.cases import CASES, DERIVED, NAMED
from wend.ir.builder import as_tuple
from wend.ir.types import without_maybe


@pytest.mark.sampled(3)
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_kernel_is_the_plain_expression(case: Case) -> None:
    assert case.record.kernel is not None
    for operands in (*case.samples, *case.smooth):
        values = [value_of(x) for x in operands]
        with np.errstate(all="ignore"):
            found = as_tuple(case.record.kernel(*values, **case.attrs))
            expected = as_tuple(case.reference(*values, **case.attrs))
        assert_same(found, expected, exact=case.exact, role=str(case))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_shape_rule_says_what_the_kernel_gives(case: Case) -> None:
    assert case.record.kernel is not None
    for operands in (*case.samples, *case.smooth):
        types = as_tuple(case.record.infer(*map(type_of, operands), **case.attrs))
        with np.errstate(all="ignore"):
            results = case.record.kernel(*map(value_of, operands), **case.attrs)
        assert isinstance(results, tuple) == (len(types) != 1), "a tuple only of several results"
        results = as_tuple(results)
        assert len(types) == len(results)
        for type, result in zip(types, results, strict=True):
            assert has_type(result, type), f"{result!r} is no {type}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_text_is_read_back(case: Case) -> None:
    for operands in (*case.samples[:2], *case.smooth[:1]):
        assert_round_trip(graph_of(case, operands))


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_derivatives_are_finite_differences(case: Case) -> None:
    for operands in case.smooth:
        args = [value_of(x) for x in operands]
        check_derivative(graph_of(case, operands), args, case.tol, case.orders, case.wrt)


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_forward_mode_is_the_transpose_of_reverse_mode(case: Case) -> None:
    for operands in case.smooth:
        args = [value_of(x) for x in operands]
        check_forward(graph_of(case, operands), args, case.tol, case.orders, case.wrt)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(argvalues=[case for case in DERIVED if case.symbolic], **NAMED)
def test_forward_mode_does_not_need_sizes(case: Case) -> None:
    for operands in case.smooth:
        args = [value_of(x) for x in operands]
        unknown = graph_of(case, operands, [with_symbols(type_of(x)) for x in operands])
        check_forward(unknown, args, case.tol, 1, case.wrt)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    argvalues=[case for case in DERIVED if not {"dtype", "type", "results"} & set(case.attrs)],
    **NAMED,
)
def test_derivatives_keep_the_dtype(case: Case) -> None:
    rng = np.random.default_rng(0)
    for operands in case.smooth:
        args = [value_of(x) for x in operands]
        low_args, low_types = lowered(args), [lowered_type(type_of(x)) for x in operands]
        (high, wrt), (low, _) = (
            pull_back_graph(graph_of(case, operands, types), case.wrt)
            for types in (None, low_types)
        )
        cts = [like(result, random_like(rng)) for result in run(graph_of(case, operands), args)]
        cts = [ct for ct in cts if ct is not None]
        expected, found = run(high, [*args, *cts]), run(low, [*low_args, *lowered(cts)])
        for place, a, b in zip(wrt, expected, found, strict=True):
            assert has_type(b, without_maybe(low_types[place]))
            assert_same(b, lowered([a])[0], tol=1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(argvalues=[case for case in DERIVED if case.symbolic], **NAMED)
def test_derivatives_do_not_need_sizes(case: Case) -> None:
    for operands in case.smooth:
        args = [value_of(x) for x in operands]
        known = graph_of(case, operands)
        unknown = graph_of(case, operands, [with_symbols(type_of(x)) for x in operands])
        rng = np.random.default_rng(0)
        results = run(known, args)
        assert_same(run(unknown, args), results)
        cts = [like(result, random_like(rng)) for result in results]
        seeded = [*args, *(ct for ct in cts if ct is not None)]
        (one, wrt), (other, others) = pull_back_graph(known), pull_back_graph(unknown)
        assert wrt == others
        assert_same(run(other, seeded), run(one, seeded), exact=False)
        if case.orders > 1:
            pull_back_graph(other)
