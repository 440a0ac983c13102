"""Operations that only permute or copy elements: scalarized, they leave no code.

The index map is found by running the operation's own kernel on the numbers of the elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.scalarize.rule import ExpansionRule
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.target.small_arrays import constant_of, is_small, size
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import creating, indexing, shaping, updating

# How many leading operands hold elements; the others are indices and sizes, which must be constant.
_NUM_DATA_OPERANDS: Mapping[Op, int | None] = {
    shaping.broadcast_to: 1,
    shaping.reshape: 1,
    shaping.refine: 1,
    shaping.transpose: 1,
    shaping.concat: None,
    shaping.split: 1,
    shaping.slice_: 1,
    shaping.narrow: 1,
    shaping.pad: 1,
    updating.set_slice: 2,
    updating.scatter_set: 2,
    indexing.gather: 1,
    indexing.take_along: 1,
    creating.from_elements: None,
}
_PADDING_NUMBER = -1  # the number of the padding value


def index_maps(node: Node) -> list[list[int]] | None:
    """Return, for each result, the source number of each of its elements; None if not static."""
    count = _NUM_DATA_OPERANDS[node.op]
    data_operands = node.operands[:count]
    constants = [constant_of(value) for value in node.operands[len(data_operands) :]]
    if any(x is None for x in constants):
        return None
    numbers: list[Any] = []
    total = 0
    for value in data_operands:
        num_elements = size(value.type)
        numbers.append(np.arange(total, total + num_elements).reshape(value.tensor.dims))
        total += num_elements
    attrs = dict(node.attrs)
    if node.op is shaping.pad:
        attrs["value"] = _PADDING_NUMBER
    assert node.op.kernel is not None
    try:
        outputs = node.op.kernel(*numbers, *(x[()] for x in constants), **attrs)
    except (IndexError, ValueError):
        return None  # raised at run time
    results = outputs if isinstance(outputs, tuple) else (outputs,)
    return [np.ravel(x).tolist() for x in results]


def _fits(node: Node) -> bool:
    if node.op is shaping.slice_ and not is_small(node.operands[0].type):
        return node.operands[0].tensor.is_static
    maps = index_maps(node)
    sizes = [size(result.type) for result in node.results]
    return maps is not None and [len(x) for x in maps] == sizes


def _expand(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    if node.op is shaping.slice_ and not is_small(node.operands[0].type):
        return [_read_slice(scope, node)]
    elements = [x for v in node.operands[: _NUM_DATA_OPERANDS[node.op]] for x in scope.elements(v)]
    if node.op is shaping.pad:
        dtype = node.results[0].tensor.dtype
        elements.append(scope.b.constant(np.asarray(node.attrs["value"]).astype(dtype)))
    maps = index_maps(node)
    assert maps is not None
    return [tuple(elements[number] for number in numbers) for numbers in maps]


def _read_slice(scope: ScalarScope, node: Node) -> ScalarElements:
    """Return the elements of a slice of a large array, read one by one."""
    (x,) = node.operands
    pairs = zip(x.tensor.dims, node.attrs["slices"], strict=True)
    ranges = [range(*slice(*bounds).indices(dim)) for dim, bounds in pairs]  # type: ignore[arg-type]
    whole, b = scope.whole(x), scope.b
    return tuple(
        b.gather(whole, *map(b.integer, position)) for position in itertools.product(*ranges)
    )


RULES: Mapping[Op, ExpansionRule] = {
    op: ExpansionRule(_expand, _fits, reads=1 if op is shaping.slice_ else 0)
    for op in _NUM_DATA_OPERANDS
    if op not in (indexing.gather, updating.scatter_set)
}
