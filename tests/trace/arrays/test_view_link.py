"""Writes through views: NumPy's elements, dtypes and errors, or a refusal."""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest

import wend
from wend.base.errors import WendError

LAYOUTS = {
    "C": lambda dtype: np.arange(6).reshape(2, 3).astype(dtype),
    "F": lambda dtype: np.arange(6).reshape(3, 2).astype(dtype).T,
    "reversed": lambda dtype: np.arange(6).reshape(2, 3).astype(dtype)[:, ::-1],
    "strided": lambda dtype: np.arange(12).reshape(2, 6).astype(dtype)[:, ::2],
    "vector": lambda dtype: np.arange(6).astype(dtype),
    "every other": lambda dtype: np.arange(12).astype(dtype)[::2],
    "backwards": lambda dtype: np.arange(6).astype(dtype)[::-1],
}
VIEWS = [
    "v[0]",
    "v[1:]",
    "v[::-1]",
    "v[::2]",
    "v[...]",
    "v[None]",
    "v[..., 0]",
    "v[0, ...]",
    "v[:1]",
    "v.T",
    "v.ravel()",
    "np.ravel(v)",
    "v.reshape(-1)",
    "np.squeeze(v)",
    "v.squeeze()",
    "v.reshape(())",
    "np.reshape(v, ())",
    "v.real",
    "v.imag",
    "v.copy()",
    "v.flatten()",
]
WRITES = [
    "v += 2",
    "v -= k",
    "v *= 3",
    "v /= 2",
    "v //= 2",
    "v %= 3",
    "v **= 2",
    "v <<= 1",
    "v >>= k",
    "v &= 3",
    "v |= 4",
    "v ^= k",
    "v @= m",
    "v[...] = 7",
    "v[()] = 7",
    "v[0] = 7",
    "v[0] = [7]",
    "v[-1] += 5",
    "v[:1] = [[7]]",
    "v[v > 2] = 9",
    "np.add(v, 1, out=v)",
    "v.fill(4)",
    "np.copyto(v, 5)",
    "a[0] = 8",
    "a += 1",
    "a <<= 1",
]
DTYPES = ["i1", "u1", "i8", "f4", "f8", "?"]


def program(rng):
    """Return the text of a function that writes to views, and makes of its array what it reads."""
    lines = ["v = a"]
    for _ in range(rng.randint(1, 3)):
        lines += [f"v = {rng.choice(VIEWS)}" for _ in range(rng.randint(0, 2))]
        lines.append(rng.choice(WRITES))
    body = "".join(f"    {line}\n" for line in [*lines, "return v, a.sum(), a"])
    return f"def f(a, k, m):\n{body}"


def compiled(text):
    """Return the function of a text, whose source can be read."""
    name = f"<in place {abs(hash(text))}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    namespace = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


def outcome(function, array, dtype):
    """Return what a call gives, or the class of its error, and what the array then has."""
    try:
        with np.errstate(all="ignore"):
            results = function(array, np.asarray(1, dtype)[()], np.eye(3, dtype=dtype))
    except (WendError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        return error, None
    return None, [np.array(x) for x in results]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(120))
def test_random_writes_through_views(seed):
    """Each is what NumPy computes; where NumPy raises, so does wend; a refusal changes nothing."""
    rng = random.Random(seed)
    text, layout, dtype = program(rng), rng.choice(sorted(LAYOUTS)), rng.choice(DTYPES)
    function = compiled(text)
    expected_array = LAYOUTS[layout](dtype)
    error, expected = outcome(function, expected_array, dtype)
    for backend in ("numpy", "native"):
        array = LAYOUTS[layout](dtype)
        before = array.copy()
        with wend.config(backend=backend):
            refused, results = outcome(wend.function(function), array, dtype)
        where = f"{text}{layout} {dtype} {backend}"
        if error is not None:
            assert refused is not None, f"{where}\nNumPy raises {error!r}, wend gives {results}"
            continue
        if refused is not None:
            assert isinstance(refused, (WendError, NotImplementedError)), f"{where}\n{refused!r}"
            np.testing.assert_array_equal(array, before, err_msg=where)
            continue
        np.testing.assert_array_equal(array, expected_array, err_msg=where)
        for result, array_of_numpy in zip(results, expected, strict=True):
            assert (result.dtype, result.shape) == (array_of_numpy.dtype, array_of_numpy.shape), (
                where
            )
            np.testing.assert_array_equal(result, array_of_numpy, err_msg=where)
