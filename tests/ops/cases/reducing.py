"""Rows of `wend.ops.reducing`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import arrays, between, complexes
from wend.ir.dtypes import ALL, BOOLS, NUMERIC

AXES = (((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 3), ()), ((), ()), ((2, 3, 2), (0, 2)))


def over(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction in the operand's own dtype."""

    def reference(x: Any, axes: Any, keepdims: bool) -> Any:
        return np.asarray(function(x, axis=axes, keepdims=keepdims)).astype(x.dtype)

    return reference


def rows(
    op: str, function: Callable[..., Any], dtypes: Any, *, smooth: bool, **more: Any
) -> list[Case]:
    odd = [
        (array,)
        for dtype in sorted(dtypes, key=str)
        for array in arrays(dtype)
        if array.ndim == 2 and array.shape[1]
    ]
    filled = [(x,) for (x,) in odd if x.size]
    return [
        Case(op, over(function), filled, attrs={"axes": (1,), "keepdims": False}, **more),
        Case(op, over(function), filled, attrs={"axes": (0,), "keepdims": True}, **more),
        Case(op, over(function), odd, attrs={"axes": (1,), "keepdims": True}, **more),
        *(
            Case(
                op,
                over(function),
                [] if smooth else [(between(-1, 1, *shape) > 0,)],
                [(between(0.5, 2, *shape),)] if smooth else [],
                {"axes": axes, "keepdims": keepdims},
                exact=False,
            )
            for shape, axes in AXES
            for keepdims in (False, True)
        ),
    ]


def position(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where the first extreme is, from a loop over the rows."""

    def reference(x: Any, axis: int, keepdims: bool) -> Any:
        rows = np.apply_along_axis(lambda row: function(list(row)), axis, x)
        return np.expand_dims(rows, axis) if keepdims else rows

    return reference


def first_max(row: list[Any]) -> int:
    nans = [k for k, number in enumerate(row) if number != number]
    return nans[0] if nans else row.index(max(row))


def first_min(row: list[Any]) -> int:
    nans = [k for k, number in enumerate(row) if number != number]
    return nans[0] if nans else row.index(min(row))


def positions(op: str, function: Callable[..., Any]) -> list[Case]:
    real = [
        x for d in sorted(ALL, key=str) if d.kind != "c" for x in arrays(d) if x.size and x.ndim
    ]
    return [
        Case(
            op,
            position(function),
            [(x,) for x in real if x.ndim > axis],
            attrs={"axis": axis, "keepdims": keepdims},
        )
        for axis in (0, 1)
        for keepdims in (False, True)
    ]


def running(x: Any, axis: int, reverse: bool) -> Any:
    turned = x[(slice(None),) * axis + (slice(None, None, -1),)] if reverse else x
    out = np.add.accumulate(turned, axis=axis, dtype=x.dtype)
    return out[(slice(None),) * axis + (slice(None, None, -1),)] if reverse else out


CASES = [
    *rows("reduce_sum", np.sum, NUMERIC, smooth=True, exact=False),
    *rows("reduce_prod", np.prod, NUMERIC, smooth=True, exact=False),
    *rows("reduce_max", np.max, ALL, smooth=True),
    *rows("reduce_min", np.min, ALL, smooth=True),
    *rows("reduce_any", np.any, BOOLS, smooth=False),
    *rows("reduce_all", np.all, BOOLS, smooth=False),
    Case(
        "reduce_sum",
        over(np.sum),
        smooth=[(complexes(2, 2),), (np.zeros((0, 2)),)],
        attrs={"axes": (0,), "keepdims": False},
        exact=False,
    ),
    # Zeros among the factors; an empty product; complex factors
    Case(
        "reduce_prod",
        over(np.prod),
        smooth=[
            (np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]),),
            (np.zeros((2, 0)),),
            (complexes(2, 5),),
            (between(-2, 2, 2, 7),),
        ],
        attrs={"axes": (1,), "keepdims": False},
        exact=False,
    ),
    # Two that tie share evenly, which is what central differences see.
    *(
        Case(
            op,
            over(function),
            smooth=[(np.array([1.0, 2.0, 2.0, 1.0]),)],
            attrs={"axes": (0,), "keepdims": False},
            orders=1,
        )
        for op, function in (("reduce_max", np.max), ("reduce_min", np.min))
    ),
    Case(
        "fsum",
        lambda x: np.float64(math.fsum(x)),
        [(np.array([1.5, 1e16, 1.0, -1e16]),), (np.zeros(0),)],
        [(between(-2, 2, 5),)],
    ),
    *positions("argmax", first_max),
    *positions("argmin", first_min),
    *(
        Case(
            "cumsum",
            running,
            [(np.array([[100, 100], [27, 3]], np.int8),), (np.zeros((2, 0), np.float32),)],
            [(between(-1, 1, 2, 3),), (complexes(2, 2),)],
            {"axis": axis, "reverse": reverse},
        )
        for axis in (0, 1)
        for reverse in (False, True)
    ),
]
