"""Chunks of maps: what is computed before them, and their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import traced
from wend.ir import Graph, verify
from wend.ir.builder import new_symbol
from wend.ir.dtypes import FLOAT64
from wend.ir.types import tensor
from wend.ops.build import Build
from wend.ops.chunked_map import ChunkedMapParts, chunked_map
from wend.passes import chunk_maps as module
from wend.passes.chunk_maps import chunk_maps
from wend.passes.fuse_maps import fuse_maps
from wend.passes.inline import inline_calls


def halvings(a: Any) -> Any:
    x, n = a, 0
    while x > 1.0:
        x, n = 0.5 * x, n + 1
    return n + x


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def norm(a: Any) -> Any:
    """Keeps a record of an array each trip."""
    x = wnp.stack([a, a])
    while wnp.sum(x) > 1.0:
        x = 0.5 * x * x / (1.0 + x)
    return wnp.sum(x)


def chunks_of(fun: Any, *args: Any) -> list[ChunkedMapParts]:
    graph = verify(chunk_maps(fuse_maps(inline_calls(traced(fun, *args)))))
    return [ChunkedMapParts.of(node) for node in graph.walk() if node.op is chunked_map]


@pytest.mark.parametrize(
    ("count", "size"),
    [
        (31, None),
        (2_047, None),
        (2_048, 1024),
        (10_000, 1250),
        (10_007, 1024),  # a prime number: the last chunk is shorter
        (100_000, 2000),
        (1_000_000, 15_625),
    ],
)
def test_sizes_in_lanes(count: int, size: int | None) -> None:
    found = chunks_of(wend.vmap(halvings), np.ones(count))
    assert [p.chunk for p in found] == ([] if size is None else [size])
    for p in found:
        (own,) = p.body.params[0].tensor.dims
        assert (own == size) == (count % p.chunk == 0)


@pytest.mark.parametrize(("count", "size"), [(31, None), (32, 16), (1000, 20), (2000, 40)])
def test_sizes_of_elements_one_by_one(count: int, size: int | None) -> None:
    found = chunks_of(wend.vmap(wend.grad(norm)), np.ones(count))
    assert [p.chunk for p in found] == ([] if size is None else [size])


@pytest.mark.parametrize(("count", "size"), [(2_047, None), (2_048, 1024), (10_000, 1250)])
def test_sizes_in_lanes_that_keep_records(count: int, size: int | None) -> None:
    found = chunks_of(wend.vmap(wend.grad(root)), np.ones(count))
    assert [p.chunk for p in found] == ([] if size is None else [size])


@pytest.mark.parametrize(("count", "size"), [(127, None), (128, 64), (1000, 100), (10_000, 200)])
def test_sizes_in_groups(count: int, size: int | None) -> None:
    found = chunks_of(wend.vmap(lambda a: root(root(a) + 1.0)), np.ones(count))
    assert [p.chunk for p in found] == ([] if size is None else [size])


def test_what_no_element_enters_is_computed_before() -> None:
    shared = np.ones((4, 4))

    def element(a: Any, shared: Any) -> Any:
        return halvings(a) + wnp.sum(wnp.exp(shared @ shared))

    (p,) = chunks_of(wend.vmap(element, in_axes=(0, None)), np.ones(4096), shared)
    assert {"dot_general", "exp"}.isdisjoint(node.op.name for node in p.body.walk())


@pytest.mark.parametrize("sizes", [(12, 3), (new_symbol(), 4)])
def test_types_of_joined_results(sizes: Any) -> None:
    """Rows are those of the elements, or one for each chunk."""
    size, chunk = sizes
    own = chunk if isinstance(size, int) else new_symbol()
    inner = Build("chunk")
    x = inner.param(tensor(FLOAT64, own, 2))
    total = inner.insert_axes(inner.reduce_sum(x, axes=(0,)), axes=(0,))
    body = inner.finish([inner.neg(x), total])
    b = Build("f")
    node = b.chunked_map([b.param(tensor(FLOAT64, size, 2))], [], body, chunk, [True, False])
    rows, sums = (result.tensor.dims for result in node.results)
    assert rows == (size, 2)
    assert sums[1:] == (2,)
    assert sums[0] == 4 if isinstance(size, int) else sums[0] != size


def test_maps_inside_loops() -> None:
    """A map in the body of a loop gets chunks, too, and an inner one does not get its own."""

    def steps(xs: Any) -> Any:
        for _ in range(np.int64(3)):
            xs = wend.vmap(halvings)(xs)
        return xs

    def both(xs: Any) -> Any:
        return wend.vmap(wend.vmap(halvings))(xs)

    assert len(chunks_of(steps, np.ones(4096))) == 1
    assert len(chunks_of(both, np.ones((4096, 40)))) <= 1
    assert isinstance(verify(traced(both, np.ones((4096, 40)))), Graph)
    assert module._MAX_CHUNKS == 64
