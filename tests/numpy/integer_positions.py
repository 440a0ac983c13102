"""Calls with a whole number of a narrow dtype in each place that takes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[Any, Any, Any], Any]


def up_to(x: Any, m: Any, k: Any) -> Any:
    total, count = 0.0 * x[0], 0
    for i in range(k):
        total = total + i
        count += 1
        if count > 40:
            break
    return total, count


def in_steps(x: Any, m: Any, k: Any) -> Any:
    total, count = 0.0 * x[0], 0
    for i in range(0, 300, k):
        total = total + i
        count += 1
        if count > 40:
            break
    return total, count


def from_there(x: Any, m: Any, k: Any) -> Any:
    total = 0.0 * x[0]
    for i in range(k, k + 3):
        total = total + i
    return total


def numbered(x: Any, m: Any, k: Any) -> Any:
    total = 0.0 * x[0]
    for i, item in enumerate(x, k):
        total = total + i * item
    return total


def of_a_grown_list(x: Any, m: Any, k: Any) -> Any:
    out = []
    for i in range(4):
        out.append(x[i])
    return out[k]


def put(x: Any, m: Any, k: Any) -> Any:
    np.put(x, k, 9.0)
    return x


def set_item(x: Any, m: Any, k: Any) -> Any:
    x[k] = 9.0
    return x


def add_to_item(x: Any, m: Any, k: Any) -> Any:
    x[k] += 9.0
    return x


def set_column(x: Any, m: Any, k: Any) -> Any:
    m[:, k] = 9.0
    return m


def set_slice(x: Any, m: Any, k: Any) -> Any:
    x[k:] = 9.0
    return x


def add_at(x: Any, m: Any, k: Any) -> Any:
    np.add.at(x, k, 2.0)
    return x


# Whatever the number is
ANY: dict[str, Call] = {
    "x[k]": lambda x, m, k: x[k],
    "m[k]": lambda x, m, k: m[k],
    "m[:, k]": lambda x, m, k: m[:, k],
    "m[1, k]": lambda x, m, k: m[1, k],
    "m[k, k]": lambda x, m, k: m[k, k],
    "x[k:]": lambda x, m, k: x[k:],
    "x[:k]": lambda x, m, k: x[:k],
    "m[:, k:]": lambda x, m, k: m[:, k:],
    "x[::-1][k]": lambda x, m, k: x[::-1][k],
    "x[k::-1]": lambda x, m, k: x[k::-1],
    "x[[k, 0]]": lambda x, m, k: x[[k, 0]],
    "(…)[k]": lambda x, m, k: (x[0], x[1], x[2])[k],
    "range[k]": lambda x, m, k: range(6)[k] + x[0],
    "list[k]": of_a_grown_list,
    "range(k)": up_to,
    "range(0, 300, k)": in_steps,
    "range(k, k + 3)": from_there,
    "x[k] = …": set_item,
    "x[k] += …": add_to_item,
    "m[:, k] = …": set_column,
    "x[k:] = …": set_slice,
    "np.add.at": add_at,
    "put": put,
    "take": lambda x, m, k: np.take(x, k),
    "take(axis=1)": lambda x, m, k: np.take(m, k, axis=1),
    "take(wrap)": lambda x, m, k: np.take(x, k, mode="wrap"),
    "take(clip)": lambda x, m, k: np.take(x, k, mode="clip"),
    "choose": lambda x, m, k: np.choose(k, [x, x + 1, x + 2]),
    "choose(wrap)": lambda x, m, k: np.choose(k, [x, x + 1, x + 2], mode="wrap"),
    "choose(clip)": lambda x, m, k: np.choose(k, [x, x + 1, x + 2], mode="clip"),
    "take_along_axis": lambda x, m, k: np.take_along_axis(x, np.array([k]), 0),
    "searchsorted": lambda x, m, k: np.searchsorted(x, k),
    "digitize": lambda x, m, k: np.digitize(k, x),
    "roll": lambda x, m, k: np.roll(x, k),
    "roll(axis=1)": lambda x, m, k: np.roll(m, k, axis=1),
    "reshape": lambda x, m, k: np.reshape(x[:4], (k, -1)),
    "tril": lambda x, m, k: np.tril(m, k),
    "triu": lambda x, m, k: np.triu(m, k),
    "diagonal": lambda x, m, k: np.diagonal(m, k),
    "diag of a matrix": lambda x, m, k: np.diag(m, k),
    "trace": lambda x, m, k: np.trace(m, k),
    "rot90": lambda x, m, k: np.rot90(m, k),
    "eye(k=k)": lambda x, m, k: np.eye(3, 4, k),
    "roll by an array": lambda x, m, k: np.roll(m, np.array([k, k]), axis=(0, 1)),
    "split": lambda x, m, k: np.split(x, [k])[0],
    "insert": lambda x, m, k: np.insert(x, k, 9.0),
    "delete": lambda x, m, k: np.delete(x, k),
    "unravel_index": lambda x, m, k: np.unravel_index(k, (2, 3)),
    "ravel_multi_index(wrap)": lambda x, m, k: np.ravel_multi_index((k, 1), (3, 4), mode="wrap"),
    "moveaxis": lambda x, m, k: np.moveaxis(m, k, 0),
    "expand_dims": lambda x, m, k: np.expand_dims(m, k),
    "stack(axis=k)": lambda x, m, k: np.stack([x, x], axis=k),
    "fft(axis=k)": lambda x, m, k: np.fft.fft(m, axis=k),
    "fftshift(axes=k)": lambda x, m, k: np.fft.fftshift(m, axes=k),
    "var(ddof=k)": lambda x, m, k: np.var(x, ddof=k),
    "std(ddof=k)": lambda x, m, k: np.std(m, axis=0, ddof=k),
    "cov(ddof=k)": lambda x, m, k: np.cov(m, ddof=k),
    "nanvar(ddof=k)": lambda x, m, k: np.nanvar(x, ddof=k),
    "percentile": lambda x, m, k: np.percentile(x, k),
    "matrix_power": lambda x, m, k: np.linalg.matrix_power(np.eye(2), k),
    "x[k:k + 2]": lambda x, m, k: x[k : k + 2],
    "x[-k]": lambda x, m, k: x[-k],
    "x[..., k]": lambda x, m, k: m[..., k],
    "x[k, None]": lambda x, m, k: m[k, None],
    "m[k, [0, 1]]": lambda x, m, k: m[k, [0, 1]],
    "x[np.array([k])]": lambda x, m, k: x[np.array([k])],
    "flat[k]": lambda x, m, k: m.flat[k],
    "gcd": lambda x, m, k: np.gcd(k, 12),
    "bitwise_count": lambda x, m, k: np.bitwise_count(k),
    "isin": lambda x, m, k: np.isin(k, [1, 2, 300]),
    "k == 300": lambda x, m, k: (k == 300, k < 300, k > -1),
    "k // -1": lambda x, m, k: (k // -1, k % 3),
    "2 ** k": lambda x, m, k: 2**k,
    "diff": lambda x, m, k: np.diff(np.array([k, 0], k.dtype)),
    "dot": lambda x, m, k: np.array([k, k]) @ np.array([k, k]),
    "prod": lambda x, m, k: np.prod(np.array([k, k])),
    "ldexp": lambda x, m, k: np.ldexp(x, k),
    "x ** k": lambda x, m, k: x**k,
    "[1, 2] ** k": lambda x, m, k: np.array([1, 2]) ** k,
    "<<": lambda x, m, k: np.array([1, 2, 3]) << k,
    ">>": lambda x, m, k: np.array([1, -2, 3]) >> k,
    "k * k": lambda x, m, k: k * k,
    "-k": lambda x, m, k: -k,
    "abs(k)": lambda x, m, k: abs(k),
    "~k": lambda x, m, k: ~k,
    "k // 3": lambda x, m, k: k // np.int64(3),
    "divmod(k, k)": lambda x, m, k: divmod(k, k),
    "int(k) * 2": lambda x, m, k: int(k) * 2,
    "float(k)": lambda x, m, k: float(k) + x[0],
    "where": lambda x, m, k: np.where(x > 1, k, x),
    "clip": lambda x, m, k: np.clip(k, 0, 3),
    "sum": lambda x, m, k: np.sum(np.array([k, k])),
    "mean": lambda x, m, k: np.mean(np.array([k, k])),
    "cumsum": lambda x, m, k: np.cumsum(np.array([k, k])),
}
# What a number is taken modulo; NumPy subtracts that as often as it takes, 2**61 times
PERIODS = {"take(wrap)": 6, "choose(wrap)": 3}
# Where NumPy's own arithmetic of a narrow dtype overflows, and wend counts in 64 bits
EXACT = {"tril", "triu", "diagonal", "diag of a matrix", "trace", "diag of a vector"}
EXACT |= {"arange(k, 130)", "resize"}
# Where a large number asks for a large array
SIZES: dict[str, Call] = {
    "enumerate(x, k)": numbered,  # counts in 64 bits, which wrap
    "repeat": lambda x, m, k: np.repeat(x[:2], k),
    "repeat of each": lambda x, m, k: np.repeat(x[:2], np.array([k, k])),
    "diag of a vector": lambda x, m, k: np.diag(x[:3], k),
    "resize": lambda x, m, k: np.resize(x, k),
    "vander": lambda x, m, k: np.vander(x[:3], k),
    "histogram": lambda x, m, k: np.histogram(x, bins=k)[0],
    "geomspace": lambda x, m, k: np.geomspace(1.0, 2.0, k),
    "fft(n=k)": lambda x, m, k: np.fft.fft(x, n=k),
    "pad": lambda x, m, k: np.pad(x, k),
    "diff(n=k)": lambda x, m, k: np.diff(x, n=k),
    "indices": lambda x, m, k: np.indices((k, 2)),
    "tile": lambda x, m, k: np.tile(x[:2], k),
    "zeros": lambda x, m, k: np.zeros(k),
    "ones": lambda x, m, k: np.ones((k, 2)),
    "full": lambda x, m, k: np.full(k, 3.0),
    "eye": lambda x, m, k: np.eye(k, 2),
    "arange": lambda x, m, k: np.arange(k),
    "arange(k, 130)": lambda x, m, k: np.arange(k, 130),
    "arange(0, 100, k)": lambda x, m, k: np.arange(0, 100, k),
    "linspace": lambda x, m, k: np.linspace(0.0, 1.0, k),
    "broadcast_to": lambda x, m, k: np.broadcast_to(x[:1], (k,)),
    "bincount": lambda x, m, k: np.bincount(np.array([k, 1])),
    "bincount(minlength=k)": lambda x, m, k: np.bincount(np.array([1, 2]), minlength=k),
}
LARGEST = 2000
