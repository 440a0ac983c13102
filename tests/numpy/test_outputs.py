"""`out=` of NumPy's functions: the result is in the array, and the array is the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend

X = np.arange(6.0).reshape(2, 3) - 2
INTS = np.arange(3)
MASK = np.array([True, False, True])

# Calls with an array of zeros for the result, of the shape and dtype before them
CALLS: list[tuple[Any, Any, Callable[..., Any]]] = [
    ((2,), float, lambda x, i, w, out: np.sum(x, 1, None, out)),
    ((2,), float, lambda x, i, w, out: x.sum(1, out=out)),
    ((3,), int, lambda x, i, w, out: np.sum(x, 0, out=out)),
    ((3,), float, lambda x, i, w, out: np.mean(x, 0, out=out)),
    ((3,), float, lambda x, i, w, out: np.var(x, 0, out=out, ddof=1)),
    ((3,), float, lambda x, i, w, out: np.max(x, 0, out)),
    ((3,), float, lambda x, i, w, out: np.ptp(x, 0, out)),
    ((3,), float, lambda x, i, w, out: np.median(x, 0, out)),
    ((3,), float, lambda x, i, w, out: np.nanmedian(x, 0, out)),
    ((3,), float, lambda x, i, w, out: np.percentile(x, 20, 0, out)),
    ((3,), int, lambda x, i, w, out: np.argmax(x, 0, out)),
    ((3,), float, lambda x, i, w, out: np.cumsum(i, out=out)),
    ((2, 3), float, lambda x, i, w, out: np.cumsum(x, 1, None, out)),
    ((2, 3), float, lambda x, i, w, out: np.cumprod(x, 1, out=out)),
    ((2, 3), float, lambda x, i, w, out: np.clip(x, 1, 2, out)),
    ((2, 3), float, lambda x, i, w, out: x.clip(1, 2, out=out)),
    ((2, 3), float, lambda x, i, w, out: np.round(x, 1, out=out)),
    ((2, 3), float, lambda x, i, w, out: np.fix(x, out)),
    ((2, 3), "i4", lambda x, i, w, out: np.add(x, 0.5, out=out, casting="unsafe")),
    ((2, 3), "f4", lambda x, i, w, out: np.add(x, 1, out=out, casting="safe")),
    ((2, 3), "f4", lambda x, i, w, out: np.add(x, 1, out, casting="same_kind")),
    ((2, 3), "f4", lambda x, i, w, out: np.multiply(x, x, out=out, casting="no")),
    ((3,), float, lambda x, i, w, out: np.negative(i, out=out, casting="safe")),
    ((3,), "u1", lambda x, i, w, out: np.negative(i, out=out, where=w, casting="unsafe")),
    ((2,), float, lambda x, i, w, out: np.dot(x, x[0], out=out)),
    ((2,), float, lambda x, i, w, out: x.dot(x[0], out)),
    ((3, 3), int, lambda x, i, w, out: np.outer(i, i, out=out)),
    ((2,), float, lambda x, i, w, out: np.einsum("ij->i", x, out=out)),
    ((2,), float, lambda x, i, w, out: np.matmul(x, x[0], out=out)),
    ((2, 3), float, lambda x, i, w, out: np.stack([i, i], out=out)),
    ((4, 3), float, lambda x, i, w, out: np.concatenate([x, x], 0, out)),
    ((2, 2), float, lambda x, i, w, out: np.take(x, [0, 1], 1, out)),
    ((3,), float, lambda x, i, w, out: np.choose(i, [x[0], x[0], x[1]], out)),
    ((2, 2), float, lambda x, i, w, out: np.compress(w, x, 1, out)),
    ((2, 3), float, lambda x, i, w, out: np.add(x, 1, out=out)),
    ((2, 3), float, lambda x, i, w, out: np.add(x, 1, out)),
    ((2, 3), float, lambda x, i, w, out: np.add(i, 1, out=(out,))),
    ((2, 3), "f4", lambda x, i, w, out: np.add(x, 1, out=out)),
    ((2, 3), float, lambda x, i, w, out: np.add(x, 1, out=out, where=w)),
    ((2, 3), float, lambda x, i, w, out: np.power(x, 2, out=out)),
    ((2, 3), bool, lambda x, i, w, out: np.less(x, 1, out=out)),
    ((2, 3), bool, lambda x, i, w, out: np.isposinf(x, out=out)),
    ((3,), float, lambda x, i, w, out: np.add.reduce(x, 0, None, out)),
    ((2, 3), float, lambda x, i, w, out: np.add.accumulate(x, out=out)),
    # Errors of NumPy
    ((2,), float, lambda x, i, w, out: np.sum(x, 0, out=out)),
    ((3,), float, lambda x, i, w, out: np.sum(x, out=out)),
    ((3,), float, lambda x, i, w, out: np.add(x, 1, out=out)),
    ((2, 3), int, lambda x, i, w, out: np.add(x, 1, out=out)),
    ((2, 3), int, lambda x, i, w, out: np.round(x, out=out)),
    # Results of sizes that only the run knows are not broadcast either
    *(
        (shape, float, lambda x, i, w, out: np.compress(w, x[:1], 1, out))
        for shape in [(1, 3), (2, 2), (3, 2), (1, 1), (2,), ()]
    ),
    *(
        (shape, float, lambda x, i, w, out: np.compress(i == 1, x[0], out=out))
        for shape in [(1,), (2,), (3,), (1, 1), (2, 1), ()]
    ),
    *(
        (shape, float, lambda x, i, w, out: np.cumsum(x[x > 2], out=out))
        for shape in [(1,), (2,), (3,), (1, 1), (2, 1)]
    ),
    ((3,), float, lambda x, i, w, out: np.take(x[x > 2], [0], out=out)),
    ((4,), float, lambda x, i, w, out: np.concatenate([x[x > 2], x[x > 2]], out=out)),
    ((4,), float, lambda x, i, w, out: np.multiply(x[x > 2], 2.0, out=out)),  # a ufunc's is
]


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # by NumPy 2.5
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize(("shape", "dtype", "call"), CALLS, ids=range(len(CALLS)))
def test_the_result_is_in_the_array(
    shape: Any, dtype: Any, call: Any, made_inside: bool, backend: str
) -> None:
    def program(x: Any, i: Any, w: Any, out: Any) -> Any:
        out = np.zeros(shape, dtype) if made_inside else out
        result = call(x, i, w, out)
        result += 1
        return out

    expected = np.zeros(shape, dtype)
    out = expected.copy()
    kind: Any = None
    try:
        program(X, INTS, MASK, expected)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
    with wend.config(backend=backend):
        if kind is not None:
            with pytest.raises(kind):
                wend.function(program)(X, INTS, MASK, out)
            return
        expected = program(X, INTS, MASK, np.zeros(shape, dtype))
        np.testing.assert_allclose(wend.function(program)(X, INTS, MASK, out), expected)
    if not made_inside:
        np.testing.assert_allclose(out, expected)


def test_an_array_of_outside() -> None:
    out = np.zeros(3)
    run = wend.function(lambda x: np.cumsum(x, out=out))
    for x in np.ones(3), np.arange(3.0):
        assert run(x).tolist() == out.tolist() == np.cumsum(x).tolist()
    with pytest.raises(
        TypeError, match=r"not traced is changed in place at .*test_outputs|made outside"
    ):
        wend.grad(lambda x: np.cumsum(x, out=out).sum())(np.ones(3))
