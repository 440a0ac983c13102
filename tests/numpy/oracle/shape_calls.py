"""Random calls of functions that make, cut, join, select and change arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wend.numpy as wnp
from tests.numpy.oracle.comparing import Call
from tests.numpy.oracle.drawing import DTYPES, Draw
from tests.numpy.oracle.makers import FILLED, MATRICES, VECTORS, Maker, call, on, on_axis, on_two

DEEP = ((2, 3, 2), (1, 2, 3), (2, 2, 2), (3, 4), (4,), (0, 2, 2))


def _run(name: str, run: Callable[..., Any], *operands: Any, **keywords: Any) -> Call:
    return Call(name, run, operands, keywords)


def _made(name: str, run: Callable[..., Any], *operands: Any, **keywords: Any) -> Call:
    """A call of a function that makes arrays: NumPy's own takes no traced sizes."""
    ours, original = getattr(wnp, name), getattr(np, name)
    return Call(
        name,
        lambda *xs: run(ours, *xs),
        operands,
        keywords,
        like=lambda *xs: run(original, *xs),
    )


def _sized(name: str, *, fills: bool = False) -> Maker:
    """A function of a shape, which may be of traced sizes."""

    def make(draw: Draw) -> Call:
        sizes = tuple(draw.choice([0, 1, 2, 3, -1 if draw.flip(0.1) else 2]) for _ in range(2))
        options = draw.maybe(0.5, dtype=draw.choice(DTYPES))
        number = [draw.scalar()] if fills else []
        if draw.flip():
            run = lambda f, n, *x: f((n, 2), *x, **options)  # noqa: E731
            return _made(name, run, sizes[0], *number, **options)
        run = lambda f, *x: f(sizes, *x, **options)  # noqa: E731
        return _made(name, run, *number, **options, shape=sizes)

    return make


def _full_like(draw: Draw) -> Call:
    options = draw.maybe(0.4, dtype=draw.choice(DTYPES))
    return call("full_like", draw.array(), draw.scalar(), **options)


def _arange(draw: Draw) -> Call:
    kinds = draw.choice(["iu", "iuf"])
    bounds = [draw.scalar(kinds) for _ in range(draw.choice([1, 2, 3]))]
    sizes = [abs(np.float64(x)) for x in bounds]
    has_unsigned = any(isinstance(x, np.uint64) for x in bounds)  # and then all are floats
    if not np.isfinite(sizes).all() or max(sizes) > 100 or has_unsigned:
        bounds = [3]
    options = draw.maybe(0.2, dtype=draw.choice(["i4", "f4", "f8"]))
    return _made("arange", lambda f, *xs: f(*xs, **options), *bounds, **options)


def _eye(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        sizes = [draw.choice([0, 1, 2, 3])]
        options: dict[str, Any] = draw.maybe(0.4, dtype=draw.choice(DTYPES))
        if name != "identity":
            sizes += [draw.choice([1, 2, 4])] if draw.flip() else []
            options |= draw.maybe(0.5, k=draw.choice([-1, 0, 1, 5]))
        if draw.flip():
            return _made(name, lambda f, *xs: f(*xs, **options), *sizes, **options)
        run = lambda f, x: f(*sizes, **options) + x  # noqa: E731
        return _made(name, run, draw.array("iuf", [()]), **options, sizes=sizes)

    return make


def _meshgrid(draw: Draw) -> Call:
    xs = [draw.array("biufc", VECTORS) for _ in range(draw.choice([1, 2, 3]))]
    options = draw.maybe(0.4, indexing="ij", sparse=True)
    return call("meshgrid", *xs, **options)


def _reshape(draw: Draw) -> Call:
    x = draw.array("biufc", [(2, 3), (6,), (3, 2), (1, 6), (0, 3), (4,)])
    shape = draw.choice([(6,), (-1,), (2, -1), (3, 2), (1, 2, 3), (0, -1), (4,), (2, 2), ()])
    return call("reshape", x, shape=shape, **draw.maybe(0.2, order=draw.choice(["C", "F"])))


def _resize(draw: Draw) -> Call:
    return call("resize", draw.array("biufc", FILLED), new_shape=draw.choice([3, (2, 4), (0,), 7]))


def _broadcast_to(draw: Draw) -> Call:
    x = draw.array("biufc", [(), (3,), (1, 3), (2, 1), (0,)])
    return call("broadcast_to", x, shape=draw.choice([(3,), (2, 3), (2, 2, 3), (2,), (0, 3)]))


def _broadcast_arrays(draw: Draw) -> Call:
    xs = [draw.array("biufc", [(), (3,), (1, 3), (2, 1), (2, 3)]) for _ in range(3)]
    return call("broadcast_arrays", *xs)


def _moved(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        x = draw.array("biufc", DEEP)
        axes = [draw.axis(x.ndim, none=False) for _ in range(2)]
        if name == "rollaxis":
            axes[1] = draw.choice([0, 1, -1, x.ndim, 9])
        elif name == "moveaxis" and draw.flip(0.3):
            axes = [(0, 1), (-1, 0)]
        return _run(name, lambda x: getattr(np, name)(x, *axes), x, axes=axes)

    return make


def _split(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        x = draw.array("biufc", DEEP)
        sections = draw.choice([1, 2, 3, 0, [1], [1, 2], [2, 1], [0, 5], -1])
        options = {}
        if name[0] not in "hvd":
            options = draw.maybe(0.5, axis=draw.axis(x.ndim, none=False))
        function = getattr(np, name)
        return _run(name, lambda x: function(x, sections, **options), x, s=sections, **options)

    return make


def _pad(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (2, 3), (1, 3), (4,), (0,), ()])
    width = draw.choice([0, 1, 2, (1, 2), ((0, 1),), -1])
    mode = draw.choice(["constant", "edge", "reflect", "symmetric", "wrap"])
    options = {} if mode != "constant" else draw.maybe(0.5, constant_values=draw.choice([0, 1, 2]))
    return call("pad", x, pad_width=width, mode=mode, **options)


def _block(draw: Draw) -> Call:
    a, b = (draw.array("biufc", [(2, 2), (2,), (1, 2)]) for _ in "ab")
    nested = draw.choice(
        [lambda a, b: [a, b], lambda a, b: [[a], [b]], lambda a, b: [[a, b], [b, a]]]
    )
    return _run("block", lambda a, b: np.block(nested(a, b)), a, b)


def _insert(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (2, 3), (1, 3), (0,)])
    where = draw.choice([0, 1, -1, 3, 9, [0, 1], [1, 1], slice(0, 2)])
    options = draw.maybe(0.6, axis=draw.axis(x.ndim))
    return _run(
        "insert", lambda x, v: np.insert(x, where, v, **options), x, draw.scalar("iuf"), **options
    )


def _delete(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (2, 3), (1, 3), (0,)])
    where = draw.choice([0, 1, -1, 3, 9, [0, 1], [1, 1], slice(0, 2), [True, False, False]])
    options = draw.maybe(0.6, axis=draw.axis(x.ndim))
    return _run("delete", lambda x: np.delete(x, where, **options), x, obj=where, **options)


def _choose(draw: Draw) -> Call:
    k = draw.array("biu", FILLED, extreme=0.2)
    choices = [draw.array("biufc", [k.shape, ()]) for _ in range(3)]
    options = draw.maybe(0.6, mode=draw.choice(["clip", "wrap", "raise"]))
    if options.get("mode") == "wrap" and k.dtype.kind in "iu":
        k = k % 7 - 3 * (k.dtype.kind == "i")  # NumPy adds the count until the index is in range
    return _run("choose", lambda k, *xs: np.choose(k, xs, **options), k, *choices, **options)


def _compress(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (2, 3), (3, 3)])
    mask = draw.array("biuf", [(3,), (2,), (1,)])
    return call("compress", mask, x, **draw.maybe(0.6, axis=draw.axis(x.ndim)))


def _select(draw: Draw) -> Call:
    shape = draw.choice(FILLED)
    masks = [draw.array("b" if draw.flip(0.95) else "i", [shape, ()]) for _ in range(2)]
    xs = [draw.array("biufc", [shape, ()]) for _ in range(2)]
    options = draw.maybe(0.5, default=draw.choice([0, 2.5, 1j]))
    run = lambda a, b, x, y: np.select([a, b], [x, y], **options)  # noqa: E731
    return _run("select", run, *masks, *xs, **options)


def _piecewise(draw: Draw) -> Call:
    x = draw.array("iuf", FILLED)
    functions = draw.choice([[1, 2], [lambda v: v * 2, 3], [lambda v: v, lambda v: -v, 7]])
    return _run("piecewise", lambda x: np.piecewise(x, [x < 1, x > 2], functions), x)


def _along(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (2, 3), (3, 3)])
    k = draw.array("iu", [x.shape, (1,) * x.ndim], extreme=0.1) % draw.choice([2, 4])
    return call("take_along_axis", x, k, axis=draw.axis(x.ndim, none=False))


def _partition(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        x = draw.array("biuf", [(3,), (5,), (2, 3), (3, 3)])
        kth = draw.choice([0, 1, 2, -1, 5, (0, 2), -9])
        options = draw.maybe(0.6, axis=draw.axis(x.ndim))
        function = getattr(np, name)

        def run(x: Any) -> Any:
            # What is left and right of the k-th element is in any order.
            parts = function(x, kth, **options)
            if name == "argpartition":
                along = options.get("axis", -1)
                parts = np.take_along_axis(np.ravel(x) if along is None else x, parts, along or 0)
            places = kth if isinstance(kth, tuple) else (kth,)
            axis = options.get("axis", -1)
            return [np.take(parts, k, axis=0 if axis is None else axis) for k in places]

        return _run(name, run, x, kth=kth, **options)

    return make


def _changed(name: str, change: Callable[[Draw, np.ndarray], tuple[Any, ...]]) -> Maker:
    """A function that changes an array in place; the result is the array."""

    def make(draw: Draw) -> Call:
        x = draw.array("biufc", FILLED)
        operands = change(draw, x)

        def run(x: Any, *others: Any) -> Any:
            x = x.copy()
            getattr(np, name)(x, *others)
            return x

        return _run(name, run, x, *operands)

    return make


def _mask_and(kinds: str, shapes: Any) -> Callable[[Draw, np.ndarray], tuple[Any, ...]]:
    return lambda draw, x: (draw.array("b", [x.shape]), draw.array(kinds, shapes)[()])


def _put(draw: Draw, x: np.ndarray) -> tuple[Any, ...]:
    k = draw.array("iu", [(2,), (), (3,)], extreme=0.1) % draw.choice([2, 4])
    return k, draw.array("biufc", [(), (2,), (1,), (5,)])


def _put_along(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (2, 3), (3, 3)])
    axis = draw.axis(x.ndim, none=False)
    k = draw.array("iu", [x.shape, (1,) * x.ndim], extreme=0.0) % 2

    def run(x: Any, k: Any, v: Any) -> Any:
        x = x.copy()
        np.put_along_axis(x, k, v, axis)
        return x

    return _run("put_along_axis", run, x, k, draw.array("biuf", [()]), axis=axis)


def _histogram(draw: Draw) -> Call:
    x = draw.array("biuf", FILLED, extreme=0.1)
    options: dict[str, Any] = {"bins": draw.choice([1, 3, 10, [0, 1, 2], [0.5, 0.25], 0])}
    options |= draw.maybe(0.3, range=draw.choice([(0, 3), (-1.5, 2), (2, 1)]))
    options |= draw.maybe(0.2, density=True)
    return call("histogram", x, **options)


def _histogram2d(draw: Draw) -> Call:
    x = draw.array("iuf", [(5,), (8,)], extreme=0.0)
    y = draw.array("iuf", [x.shape], extreme=0.0)
    options: dict[str, Any] = {"bins": draw.choice([1, 3, (2, 4)])}
    options |= draw.maybe(0.3, range=draw.choice([((0, 3), (-1.5, 2)), ((-5, 5), (-5, 5))]))
    options |= draw.maybe(0.2, density=True)
    return call("histogram2d", x, y, **options)


def _bincount(draw: Draw) -> Call:
    x = draw.array("biuf" if draw.flip(0.1) else "iu", VECTORS, extreme=0.0)
    return call("bincount", x, **draw.maybe(0.4, minlength=draw.choice([0, 3, 9, -1])))


def _digitize(draw: Draw) -> Call:
    x, bins = draw.array("biuf", FILLED), draw.array("iuf", VECTORS, extreme=0.1)
    bins = np.sort(bins)[:: draw.choice([1, 1, -1])] if draw.flip(0.9) else bins
    return call("digitize", x, bins, **draw.maybe(0.4, right=True))


def _lexsort(draw: Draw) -> Call:
    keys = [draw.array("biuf", [(4,)]) for _ in range(2)]
    return _run("lexsort", lambda a, b: np.lexsort((a, b)), *keys)


def _unstack(draw: Draw) -> Call:
    x = draw.array("biufc", DEEP)
    return call("unstack", x, **draw.maybe(0.6, axis=draw.axis(x.ndim, none=False)))


def _astype(draw: Draw) -> Call:
    # Floats out of an integer dtype's range give what the processor gives.
    dtype = draw.choice(DTYPES)
    is_narrowing = np.dtype(dtype).kind in "iu"
    x = draw.array("biu" if is_narrowing else "biufc")
    return call("astype", x, dtype=dtype)


def _sets(name: str) -> Maker:
    def run(x: Any) -> Any:
        result = getattr(np, name)(x)
        return np.sum(result) if name == "unique_values" else tuple(result)

    return lambda draw: _run(name, run, draw.array("biufc", FILLED, extreme=0.1))


def _array(name: str) -> Maker:
    return lambda draw: _made(name, lambda f, x: f(x), draw.array())


def _of_rank_two(name: str) -> Maker:
    """Indices of a triangle: of a number, or of an array."""

    def make(draw: Draw) -> Call:
        k = draw.choice([-1, 0, 1, 4])
        if name.endswith("from"):
            return _run(name, lambda x: getattr(np, name)(x, k), draw.array("iuf", MATRICES), k=k)
        x = draw.array("iuf", [(3, 3)])
        return _run(name, lambda x: x[getattr(np, name)(3, k)], x, k=k)

    return make


_INDICES: dict[str, Callable[..., Any]] = {
    "diag_indices": lambda x: x[np.diag_indices(3)],
    "ix_": lambda x: x[np.ix_(np.argsort(x[:, 0].real), [2, 0])],
    "indices": lambda x: np.indices((2, 3)) + x[0, 0],
    "ravel_multi_index": lambda x: x.ravel()[np.ravel_multi_index((1, 2), (3, 3))],
    "unravel_index": lambda x: x[np.unravel_index(4, (3, 3))],
}


def _indices(name: str) -> Maker:
    return lambda draw: _run(name, _INDICES[name], draw.array("iufc", [(3, 3)]))


MAKERS: dict[str, Maker] = {
    **{name: _sized(name) for name in ("zeros", "ones")},
    "full": _sized("full", fills=True),
    "full_like": _full_like,
    "arange": _arange,
    **{name: _eye(name) for name in ("eye", "tri", "identity")},
    "meshgrid": _meshgrid,
    "reshape": _reshape,
    "resize": _resize,
    "broadcast_to": _broadcast_to,
    "broadcast_arrays": _broadcast_arrays,
    **{name: _moved(name) for name in ("moveaxis", "rollaxis", "swapaxes")},
    **{name: _split(name) for name in ("split", "array_split", "hsplit", "vsplit", "dsplit")},
    "pad": _pad,
    "block": _block,
    "insert": _insert,
    "delete": _delete,
    "choose": _choose,
    "compress": _compress,
    "extract": on_two("extract"),
    "select": _select,
    "piecewise": _piecewise,
    "take_along_axis": _along,
    **{name: _partition(name) for name in ("partition", "argpartition")},
    "copyto": _changed("copyto", lambda draw, x: (draw.array("biufc", [x.shape, ()]),)),
    "place": _changed("place", _mask_and("biufc", VECTORS)),
    "putmask": _changed("putmask", _mask_and("biufc", [(), *VECTORS])),
    "put": _changed("put", _put),
    "fill_diagonal": _changed("fill_diagonal", lambda draw, x: (draw.array("biuf", [(), (2,)]),)),
    "put_along_axis": _put_along,
    "histogram": _histogram,
    "histogram2d": _histogram2d,
    "bincount": _bincount,
    "digitize": _digitize,
    "lexsort": _lexsort,
    "unstack": _unstack,
    "astype": _astype,
    **{f"unique_{n}": _sets(f"unique_{n}") for n in "all counts inverse values".split()},
    **{
        f"{n}_indices{end}": _of_rank_two(f"{n}_indices{end}")
        for n in ("tril", "triu")
        for end in ("", "_from")
    },
    **{name: _indices(name) for name in _INDICES},
    **{n: _array(n) for n in "array asarray asanyarray ascontiguousarray".split()},
    **{n: on_axis(n, keepdims=[True, False]) for n in ("amax", "amin")},
    "around": on("around", decimals=[0, 1, 3]),
    "concat": lambda draw: _run(
        "concat", lambda x, y: np.concat([x, y]), draw.array("biufc"), draw.array("biufc")
    ),
}
# Functions of dtypes, and what has no elements to compare
UNCOMPARED = {
    *("broadcast_shapes", "can_cast", "common_type", "finfo", "iinfo", "isdtype", "isscalar"),
    *("promote_types", "result_type", "empty", "empty_like"),
}
