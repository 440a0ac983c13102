"""`einsum` as a sequence of matrix products, two operands at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import ShapeError
from wend.base.lazy.dataclass import dataclass
from wend.eager.dispatch import apply
from wend.eager.promotion import tensor_type
from wend.numpy import matrices, reducing, shaping
from wend.numpy.operands import promote_dtypes
from wend.numpy.public import implements
from wend.numpy.shaping import cast_as
from wend.ops.contracting import dot_general
from wend.ops.shapes import same_dim

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Term:
    """An operand with one label for each axis."""

    array: Any
    labels: str


@implements(np.einsum)
def einsum(*operands: Any, dtype: Any = None, casting: Any = "safe", optimize: Any = False) -> Any:
    """Evaluate the Einstein summation convention on the operands; see `numpy.einsum`.

    Args:
        *operands: subscripts (`"ij,jk->ik"`, with ellipses) and arrays; or arrays, each followed by
            a list of axis numbers, optionally ending with a list for the result.
        dtype: the dtype to compute in.
        casting: how the operands may be cast to it.
        optimize: as in NumPy. For traced arrays of static sizes, the cheapest contraction order is
            always searched for.

    Example:
        >>> import numpy as np, wend
        >>> product = wend.function(lambda a, b: wend.numpy.einsum("ij,j->i", a, b))
        >>> product(np.eye(2), np.arange(2.0))
        array([0., 1.])
    """
    subscripts, arguments = _parse(operands)
    arrays = promote_dtypes(*arguments)
    if dtype is not None:
        arrays = [cast_as(x, np.dtype(dtype), casting) for x in arrays]
    inputs, result = _expand_ellipsis(subscripts, [shaping.rank_of(x) for x in arrays])
    terms = [_take_diagonals(Term(x, labels)) for x, labels in zip(arrays, inputs, strict=True)]
    terms = _drop_unit_axes(terms)
    return _contract_all(terms, result)


# Subscripts
def _parse(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    lists, arrays = list(operands[1::2]), list(operands[0::2])
    if len(lists) < len(arrays):
        result = "->" + _labels(arrays.pop())
    else:
        result = ""
    return ",".join(map(_labels, lists)) + result, arrays


def _labels(numbers: Sequence[Any]) -> str:
    return "".join("..." if number is Ellipsis else _LETTERS[number] for number in numbers)


def _expand_ellipsis(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of each operand and of the result, with ellipses as labels."""
    left, arrow, right = subscripts.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ValueError(f"einstein sum has {len(inputs)} subscripts for {len(ranks)} operands")
    unused_labels = [letter for letter in _LETTERS[::-1] if letter not in subscripts]
    ellipsis_ranks = [
        rank - len(labels.replace("...", "")) if "..." in labels else 0
        for labels, rank in zip(inputs, ranks, strict=True)
    ]
    ellipsis_labels = "".join(unused_labels[: max(ellipsis_ranks, default=0)])
    expanded = [
        labels.replace("...", ellipsis_labels[len(ellipsis_labels) - count :])
        for labels, count in zip(inputs, ellipsis_ranks, strict=True)
    ]
    for labels, rank in zip(expanded, ranks, strict=True):
        if len(labels) != rank:
            raise ValueError(f"einstein sum subscripts {labels!r} do not fit {rank} dimensions")
    if arrow:
        return expanded, right.replace("...", ellipsis_labels)
    once = sorted(c for c in set(left) - set(".,") if left.count(c) == 1)
    return expanded, ellipsis_labels + "".join(once)


# One operand
def _take_diagonals(term: Term) -> Term:
    """Take the diagonal of axes that share a label."""
    array, labels = term.array, term.labels
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first, second = labels.index(label), labels.rindex(label)
            dims = tensor_type(array).dims
            same_dim(dims[first], dims[second], f"the sizes of label {label!r} of einsum")
            array = matrices.diagonal(array, 0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return Term(array, labels)


def _drop_unit_axes(terms: list[Term]) -> list[Term]:
    """Drop axes of size 1 whose label has a larger size in another operand."""
    sizes: dict[str, set[Any]] = {}
    for term in terms:
        for label, dim in zip(term.labels, tensor_type(term.array).dims, strict=True):
            sizes.setdefault(label, set()).add(dim)
    for label, label_sizes in sizes.items():
        known = {dim for dim in label_sizes if isinstance(dim, int)} - {1}
        if len(known) > 1:
            raise ShapeError(f"einsum: sizes {sorted(known)} of label {label!r} differ")
    broadcast_labels = {label for label, ns in sizes.items() if len(ns) > 1 and 1 in ns}
    out = []
    for term in terms:
        dims = tensor_type(term.array).dims
        ones = [k for k, c in enumerate(term.labels) if c in broadcast_labels and dims[k] == 1]
        array = shaping.squeeze(term.array, tuple(ones)) if ones else term.array
        out.append(Term(array, "".join(c for k, c in enumerate(term.labels) if k not in ones)))
    return out


def _sum_unused(term: Term, keep: str) -> Term:
    """Sum over the labels that are not in `keep`."""
    axes = tuple(k for k, label in enumerate(term.labels) if label not in keep)
    if not axes:
        return term
    dtype = tensor_type(term.array).dtype
    if dtype.kind == "b":
        array = reducing.any(term.array, axis=axes)
    else:
        array = reducing.sum(term.array, axis=axes, dtype=dtype)
    return Term(array, "".join(label for label in term.labels if label in keep))


# All operands
def _contract_all(terms: list[Term], result: str) -> Any:
    for group in _contraction_order(terms, result):
        selected = [terms[k] for k in sorted(group)]
        terms = [term for k, term in enumerate(terms) if k not in group]
        product = selected[0]
        for position, other in enumerate(selected[1:], 2):
            remaining = [*terms, *selected[position:]]
            keep = result + "".join(term.labels for term in remaining)
            product = _contract_pair(product, other, keep)
        terms.append(product)
    total = _sum_unused(terms[0], result)
    if set(result) - set(total.labels) or len(set(result)) != len(result):
        raise ValueError(f"einstein sum output {result!r} has labels that are not in the input")
    return shaping.transpose(total.array, tuple(total.labels.index(label) for label in result))


def _contraction_order(terms: list[Term], result: str) -> list[tuple[int, ...]]:
    """Return the operands to contract in each step; the product is appended to the operands."""
    count = len(terms)
    if count > 2 and all(tensor_type(term.array).is_static for term in terms):
        subscripts = ",".join(term.labels for term in terms) + "->" + result
        shapes: Any = [tensor_type(term.array).dims for term in terms]
        like = [np.broadcast_to(np.float64(0), shape) for shape in shapes]
        path, _ = np.einsum_path(subscripts, *like, optimize="optimal" if count < 6 else "greedy")
        return [tuple(group) for group in path[1:]]
    return [(0, 1)] * (count - 1)


def _contract_pair(x: Term, y: Term, keep: str) -> Term:
    """Return the product of two operands, summed over the labels that are not in `keep`."""
    x, y = _sum_unused(x, keep + y.labels), _sum_unused(y, keep + x.labels)
    shared = [label for label in x.labels if label in y.labels]
    batch = [label for label in shared if label in keep]
    contract = [label for label in shared if label not in keep]
    axes = [
        (tuple(map(x.labels.index, labels)), tuple(map(y.labels.index, labels)))
        for labels in (contract, batch)
    ]
    array = apply(dot_general, x.array, y.array, contract=axes[0], batch=axes[1])
    free = [label for term in (x, y) for label in term.labels if label not in shared]
    return Term(array, "".join(batch + free))
