"""Makers of random calls: of one array, along an axis, of two arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numpy.oracle.comparing import Call
from tests.numpy.oracle.drawing import SHAPES, Draw

Maker = Callable[[Draw], Call]

VECTORS = ((3,), (4,), (1,), (0,), (5,))
MATRICES = ((2, 3), (3, 3), (1, 3), (3, 1), (2, 2), (1, 1), (0, 3), (2, 0))
SQUARES = ((3, 3), (2, 2), (1, 1), (2, 2, 2), (0, 0), (2, 3))
FILLED = ((), (1,), (3,), (4,), (2, 3), (3, 3), (1, 3), (3, 1), (2, 3, 2), (1, 1))


def _reach(name: str) -> Callable[..., Any]:
    module: Any = np
    for part in name.split("."):
        module = getattr(module, part)
    return module  # type: ignore[no-any-return]


def call(name: str, *operands: Any, exact: bool = False, **keywords: Any) -> Call:
    """A call of a function of NumPy by its name."""
    run = functools.partial(_reach(name), **keywords)
    return Call(name, run, operands, keywords, exact)


def on(name: str, kinds: str = "biufc", shapes: Any = SHAPES, **options: Any) -> Maker:
    """A function of one array; options are lists of values for keywords."""

    def make(draw: Draw) -> Call:
        x = draw.array(kinds, shapes, extreme=0 if name.startswith("linalg") else 0.3)
        keywords = {key: draw.choice(values) for key, values in options.items() if draw.flip()}
        return call(name, x, **keywords)

    return make


def on_axis(
    name: str,
    kinds: str = "biufc",
    *,
    none: bool = True,
    pairs: bool = False,
    masked: bool = False,
    **options: Any,
) -> Maker:
    """A function along an axis.

    Args:
        name: of the function.
        kinds: of its dtypes.
        none: whether the axis may be None.
        pairs: whether it takes a tuple of axes.
        masked: whether it takes `where=`.
        options: lists of values for keywords.
    """

    def make(draw: Draw) -> Call:
        x = draw.array(kinds)
        keywords = {key: draw.choice(values) for key, values in options.items() if draw.flip(0.4)}
        if draw.flip(0.8):
            keywords["axis"] = draw.axis(x.ndim, none=none, pairs=pairs)
        if masked and draw.flip(0.15):
            mask = draw.array("b", [x.shape, x.shape[-1:], ()])
            return Call(
                name,
                lambda x, mask: _reach(name)(x, where=mask, **keywords),
                (x, mask),
                keywords | {"where": "the last"},
            )
        return call(name, x, **keywords)

    return make


def on_two(name: str, kinds: str = "biufc", shapes: Any = FILLED, **options: Any) -> Maker:
    def make(draw: Draw) -> Call:
        extreme = 0 if name.startswith("linalg") else 0.3  # LAPACK has its own NaN
        first = draw.array(kinds, shapes, extreme=extreme)
        second = draw.array(kinds, [first.shape] if draw.flip() else shapes, extreme=extreme)
        keywords = {key: draw.choice(values) for key, values in options.items() if draw.flip(0.4)}
        return call(name, first, second, **keywords)

    return make


def elementwise(ufunc: np.ufunc, kinds: str = "biufc") -> Maker:
    def make(draw: Draw) -> Call:
        shape = draw.choice(FILLED)
        operands: list[Any] = [
            draw.array(kinds, [shape, shape, ()], extreme=0.6) for _ in range(ufunc.nin)
        ]
        if ufunc.nin == 2:
            k = draw.choice((0, 1))
            pick = draw.choice(("array", "array", "scalar", "same"))
            if pick == "scalar":
                operands[k] = draw.scalar(kinds)
            elif pick == "same":
                operands[k] = draw.array(dtype=operands[1 - k].dtype, shapes=[shape], extreme=0.6)
        if ufunc.nout == 1 and draw.flip(0.3):
            return _with_keywords(draw, ufunc, operands)
        return Call(ufunc.__name__, ufunc, tuple(operands), {}, True)

    return make


def _with_keywords(draw: Draw, ufunc: np.ufunc, operands: list[Any]) -> Call:
    """A call that says what it computes in, where it writes, and where not."""
    shape = np.broadcast_shapes(*map(np.shape, operands))
    options = draw.maybe(0.4, dtype=draw.dtype())
    rules = ["no", "safe", "same_kind"]
    if draw.flip(0.3):
        options |= draw.maybe(0.4, casting=draw.choice([*rules, "unsafe"]))
        run = functools.partial(ufunc, **options)
        return Call(ufunc.__name__, run, tuple(operands), options, True)
    options |= draw.maybe(0.4, casting=draw.choice(rules))
    mask = draw.array("b", [shape, shape, ()]) if draw.flip(0.4) else True

    def into(out: Any, *xs: Any) -> Any:
        out = out.copy()
        where = {} if mask is True else {"where": mask}
        return [ufunc(*xs, out=out, **where, **options), out]

    out = draw.array(shapes=[shape, shape, shape, ()])
    return Call(ufunc.__name__, into, (out, *operands), options | {"where": mask}, True)
