"""Rows of `wend.ops.shaping`."""

from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import arrays, between, complexes
from wend.ir.dtypes import ALL
from wend.ir.types import Symbol, tensor

EVERY = [(array,) for dtype in sorted(ALL, key=str) for array in arrays(dtype)]
N = Symbol("n")
WHOLE = (None, None, None)


def i64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def sum_to(x: Any, *seeded: Any, shape: Any) -> Any:
    """By the definition: the gradient of broadcasting ones, as an einsum over equal places."""
    target = tuple(seeded[0]) if seeded else shape
    spread = np.broadcast_to(np.arange(int(np.prod(target))).reshape(target), x.shape)
    out = np.zeros(int(np.prod(target)), x.dtype)
    np.add.at(out, spread.ravel(), x.ravel())
    return out.reshape(target)


def added(into: Any, x: Any, key: Any) -> Any:
    out = np.array(into)
    out[key] += x
    return out


def key_of(slices: Any) -> Any:
    return tuple(slice(*bounds) for bounds in slices)


def by_slices(*slices: Any, shape: tuple[int, ...]) -> list[Case]:
    """`slice` and its transpose with the same bounds."""
    x = between(-1, 1, *shape)
    part = x[key_of(slices)]
    attrs = {"slices": slices}
    return [
        Case("slice", lambda x, slices: x[key_of(slices)], [(x > 0,)], [(x,)], attrs),
        Case(
            "add_slice",
            lambda into, x, slices: added(into, x, key_of(slices)),
            [(np.ones(shape, np.int8), np.ones(part.shape, np.int8))],
            [(x, between(2, 3, *part.shape))],
            attrs,
        ),
    ]


def broadcasting(shape: tuple[int, ...], *target: int) -> list[Case]:
    """`broadcast_to` and its transpose, the shape as an attr and as an operand."""
    small, big = between(-1, 1, *shape), between(-1, 1, *target)
    named = tuple(Symbol(f"m{k}") for k in range(len(target)))
    lower = tuple(Symbol(f"l{k}") if dim != 1 else 1 for k, dim in enumerate(shape))
    return [
        Case(
            "broadcast_to",
            lambda x, *seeded, shape: np.broadcast_to(x, target),
            smooth=[operands],
            attrs={"shape": wanted},
            symbolic=False,
        )
        for operands, wanted in (((small,), target), ((small, i64(*target)), named))
    ] + [
        Case(
            "sum_to",
            lambda x, *seeded, shape: sum_to(x, *seeded, shape=shape),
            smooth=[operands],
            attrs={"shape": wanted},
            symbolic=False,
            exact=False,
        )
        for operands, wanted in (((big,), shape), ((big, i64(*shape)), lower))
    ]


def reshaped(shape: tuple[int, ...], *target: int) -> list[Case]:
    x = between(-1, 1, *shape)
    known = tuple(np.reshape(x, target).shape)
    named = tuple(Symbol(f"m{k}") for k in range(len(target)))
    return [
        Case(
            "reshape",
            lambda x, *seeded, shape: x.flatten().reshape(target),
            smooth=[operands],
            attrs={"shape": wanted},
            symbolic=False,
        )
        for operands, wanted in (((x,), target), ((x,), known), ((x, i64(*target)), named))
    ]


def narrowed(x: Any, start: Any, stop: Any, axis: int) -> Any:
    return np.take(x, range(start, stop), axis)


def narrowing(shape: tuple[int, ...], start: int, stop: int, axis: int) -> list[Case]:
    x = between(-1, 1, *shape)
    part = narrowed(x, start, stop, axis)
    key = (slice(None),) * axis + (slice(start, stop),)
    bounds = np.int64(start), np.int64(stop)
    return [
        *(
            Case(
                "narrow",
                lambda x, a, b, axis, size: narrowed(x, a, b, axis),
                smooth=[(x, *bounds)],
                attrs={"axis": axis, "size": size},
            )
            for size in (stop - start, None)
        ),
        Case(
            "add_narrow",
            lambda into, x, a, b, axis: added(into, x, key),
            smooth=[(x, between(2, 3, *part.shape), *bounds)],
            attrs={"axis": axis},
        ),
    ]


def padded(x: Any, widths: Any, value: Any) -> Any:
    sizes = [low + size + high for size, (low, high) in zip(np.shape(x), widths, strict=True)]
    out = np.full(sizes, value, x.dtype)
    out[tuple(slice(low, low + n) for n, (low, _) in zip(np.shape(x), widths, strict=True))] = x
    return out


CASES = [
    Case("shape_of", lambda x: i64(*np.shape(x)), EVERY),
    *(
        Case(
            "dim_of",
            lambda x, axis: np.int64(len(x) if axis == 0 else len(x[0])),
            [(x,)],
            attrs={"axis": axis},
        )
        for x in (np.ones((2, 3)),)
        for axis in (0, 1)
    ),
    Case(
        "broadcast_shapes",
        lambda a, b: i64(*np.broadcast_shapes(tuple(a), tuple(b))),
        [(i64(), i64(2)), (i64(2, 1), i64(4)), (i64(0, 1), i64(1, 5)), (i64(), i64())],
    ),
    *broadcasting((), 2, 3),
    *broadcasting((3,), 2, 3),
    *broadcasting((2, 1), 2, 3),
    *broadcasting((1, 3, 1), 2, 4, 3, 5),
    *broadcasting((1,), 0),
    *broadcasting((1, 2), 1, 2),
    *broadcasting((), 1),
    Case(
        "refine",
        lambda x, type: x,
        smooth=[(between(-1, 1, 3),)],
        attrs={"type": tensor("f8", 3)},
        symbolic=False,
    ),
    Case(
        "keep_shape",
        lambda x, seeded, shape, message, error: x,
        [(np.ones((2, 3), "f4"), np.array([2, -1])), (np.ones((2, 3), "?"), np.array([-1, 3]))],
        [(between(-1, 1, 2, 3), np.array([2, 3]))],
        attrs={"shape": (2, 3), "message": "{shape} is {its}", "error": "carry"},
        symbolic=False,
    ),
    *reshaped((2, 3), 6),
    *reshaped((2, 3), 3, 2),
    *reshaped((), 1, 1),
    *reshaped((1,)),
    *reshaped((2, 3, 4), 2, -1),
    *reshaped((0, 3), 3, 0),
    Case(
        "reshape",
        lambda x, shape: np.ravel(x),
        EVERY,
        [(complexes(2, 2).T,)],
        {"shape": (-1,)},
        symbolic=False,
    ),
    Case(
        "transpose",
        lambda x, perm: np.einsum("abc->cab", x),
        [(np.zeros((2, 0, 1), np.uint8),)],
        [(between(-1, 1, 2, 3, 4),)],
        {"perm": (2, 0, 1)},
    ),
    Case("transpose", lambda x, perm: x, [(np.int8(1),)], [(np.float64(1),)], {"perm": ()}),
    Case(
        "concat",
        lambda *xs, axis: np.hstack(xs),
        [(np.ones((2, 1), bool), np.zeros((2, 0), bool))],
        [
            (between(-1, 1, 2, 1), between(-1, 1, 2, 3), between(1, 2, 2, 2)),
            (between(-1, 1, 2, 0), between(-1, 1, 2, 3)),
            (between(-1, 1, 2, 2),) * 2,
        ],
        {"axis": 1},
    ),
    Case(
        "concat",
        lambda *xs, axis: np.vstack(xs),
        smooth=[(complexes(1, 2), complexes(3, 2))],
        attrs={"axis": 0},
    ),
    *(
        Case(
            "split",
            lambda x, sizes, axis: tuple(np.array_split(x, np.cumsum(sizes)[:-1].tolist(), axis)),
            [(np.ones(shape, np.int32),)],
            [(between(-1, 1, *shape),)],
            {"sizes": sizes, "axis": axis},
        )
        for shape, sizes, axis in (((6,), (1, 3, 2), 0), ((2, 4), (0, 4), 1), ((2, 3), (3,), 1))
    ),
    *by_slices((1, None, None), shape=(4,)),
    *by_slices((None, None, -1), (None, None, 2), shape=(3, 5)),
    *by_slices((-3, -1, None), WHOLE, (4, 0, -2), shape=(4, 2, 5)),
    *by_slices((5, None, None), (2, 1, None), shape=(4, 3)),
    *by_slices(shape=()),
    *narrowing((5,), 1, 4, 0),
    *narrowing((2, 4), 0, 4, 1),
    *narrowing((3, 2), 2, 2, 0),
    *(
        Case(
            "pad",
            padded,
            [(np.ones(shape, np.float32),)],
            [(between(-1, 1, *shape),)],
            {"widths": widths, "value": value},
        )
        for shape, widths, value in (
            ((3,), ((1, 2),), 0.0),
            ((2, 2), ((0, 0), (2, 0)), 1.5),
            ((0, 2), ((1, 1), (0, 1)), -1.0),
            ((), (), 0.0),
        )
    ),
    Case(
        "pad",
        lambda x, widths, value: np.array([7, *x, 7], x.dtype),
        [(np.array([1, 2], np.uint8),)],
        [(complexes(2),)],
        {"widths": ((1, 1),), "value": 7},
    ),
]
