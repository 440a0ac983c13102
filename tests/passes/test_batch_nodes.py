"""Batch rules: every row of the op table for many elements, against one element at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.helpers.cases import Case, Given, assert_same, graph_of, run, type_of, value_of
from tests.ops.cases import CASES, NAMED
from wend.ir import Graph, verify
from wend.ir.builder import new_symbol
from wend.ir.types import TensorType
from wend.ops.build import Build
from wend.ops.parallel_map import STACK, is_stackable
from wend.passes.batch_maps import batch_maps
from wend.passes.lower_parallel_maps import lower_parallel_maps

COUNT = 3
RULED = [case for case in CASES if case.record.batch is not None]


def is_array(x: Any) -> bool:
    return not isinstance(x, Given) and isinstance(type_of(x), TensorType)


def varied(x: Any, k: int) -> np.ndarray:
    """Element k: the elements of an array in another order, so that it stays in its domain."""
    array = np.asarray(x)
    return np.roll(array.ravel(), k).reshape(array.shape) if array.dtype.kind in "fc" else array


def mapped_graph(body: Graph, flags: Sequence[bool], *, symbolic: bool) -> Graph | None:
    """The graph of a node that maps the flagged params of a body; None if results do not stack."""
    b = Build("mapped")
    size: Any = new_symbol() if symbolic else COUNT
    params = [
        b.param(p.tensor.with_shape((size, *p.tensor.dims)) if flag else p.type)
        for p, flag in zip(body.params, flags, strict=True)
    ]
    if not all(is_stackable(x.type, set()) for x in body.results):
        return None
    mapped = [p for p, flag in zip(params, flags, strict=True) if flag]
    shared = [p for p, flag in zip(params, flags, strict=True) if not flag]
    order = [
        p for flag in (True, False) for p, f in zip(body.params, flags, strict=True) if f is flag
    ]
    inner = Graph(body.name, tuple(order), body.nodes, body.results)
    forms = [STACK for _ in body.results]
    return b.finish(b.parallel_map(mapped, [], shared, inner, forms).results)


def flagged(operands: Sequence[Any]) -> Iterator[tuple[bool, ...]]:
    options = [(False, True) if is_array(x) else (False,) for x in operands]
    return (flags for flags in itertools.product(*options) if any(flags))


@pytest.mark.sampled(30)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(argvalues=RULED, **NAMED)
def test_all_elements_at_once(case: Case, symbolic: bool) -> None:
    tried = batched_once = False
    for operands in [*case.samples, *case.smooth][:6]:
        body = graph_of(case, operands)
        for flags in flagged(operands):
            graph = mapped_graph(body, flags, symbolic=symbolic)
            if graph is None:
                continue
            args = [
                np.stack([varied(x, k) for k in range(COUNT)]) if flag else value_of(x)
                for x, flag in zip(operands, flags, strict=True)
            ]
            batched = verify(batch_maps(graph))
            tried, batched_once = not symbolic, batched_once or batched is not graph
            with np.errstate(all="ignore"):
                try:
                    expected = run(lower_parallel_maps(graph), args)
                except (IndexError, ValueError):
                    continue
                found = run(lower_parallel_maps(batched), args)
            for a, b in zip(found, expected, strict=True):
                assert np.asarray(a).dtype == np.asarray(b).dtype
                assert_same(a, b, exact=False)
    # An item at a position of each element's own has no rule
    assert batched_once or not tried or case.op.startswith("list_")
