"""The exponential, singular values and distances of SciPy, in functions of wend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import joining, linalg, matrices, ranges, reducing, shaping, views
from wend.numpy.operands import operand, promote_dtypes, strong
from wend.trace.control.loops import fori_loop

# Coefficients of the Padé approximant [13/13] of exp, and the largest norm for which it is exact in
# double precision: N. J. Higham, "The scaling and squaring method for the matrix exponential
# revisited", SIAM J. Matrix Anal. Appl. 26 (2005), table 2.3.
_PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_LARGEST_NORM = 5.371920351148152


def expm(a: Any) -> Any:
    """Return the exponential of a matrix: a Padé approximant, scaled and squared."""
    count = _squarings(a)
    a = a / 2.0**count
    one = ranges.eye(shaping.shape(a)[0])
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    b = _PADE
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2
    odd = a @ (odd + b[1] * one)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2
    even = even + b[0] * one
    return fori_loop(0, count, lambda k, x: x @ x, linalg.solve(even - odd, even + odd))


def _squarings(a: Any) -> Any:
    """Return how often the approximant of the scaled matrix is squared."""
    norm = linalg.norm(a, 1)
    count = ew.ceil(ew.log2(ew.maximum(norm, 1e-300) / _LARGEST_NORM))
    return shaping.astype(ew.maximum(count, 0.0), np.int64)


def takes_expm(a: Any) -> bool:
    """Return whether `expm` takes a matrix: one of doubles."""
    type = tensor_type(a)
    return type.rank == 2 and type.dtype == np.float64


def _distances(x: Any, y: Any, squared: bool) -> Any:
    squares = reducing.sum((x - y) ** 2, axis=-1)
    return squares if squared else ew.sqrt(squares)


def pdist(x: Any, metric: str = "euclidean") -> Any:
    """Return the distances of the pairs of rows, in SciPy's order."""
    first, second = np.triu_indices(shaping.shape(x)[0], 1)
    return _distances(x[first], x[second], metric == "sqeuclidean")


def cdist(x: Any, y: Any, metric: str = "euclidean") -> Any:
    """Return the distances of each row of one array from each of another."""
    return _distances(x[:, None], y[None], metric == "sqeuclidean")


def squareform(x: Any) -> Any:
    """Return the symmetric matrix of the distances of pairs, or the distances of a matrix."""
    if shaping.rank_of(x) == 2:
        first, second = np.triu_indices(shaping.shape(x)[0], 1)
        return x[first, second]
    count = shaping.shape(x)[0]
    size = (1 + math.isqrt(1 + 8 * count)) // 2
    first, second = np.triu_indices(size, 1)
    pairs = np.zeros((size, size), np.int64)  # which pair an element is of
    pairs[first, second] = pairs[second, first] = np.arange(count)
    return ew.where(np.eye(size, dtype=bool), 0.0, x[pairs])


def takes_squareform(x: Any) -> bool:
    """Return whether `squareform` takes an array: the distances of all pairs of some points."""
    type = tensor_type(x)
    if not type.is_static or type.rank not in (1, 2):
        return False
    return type.rank == 2 or math.isqrt(1 + 8 * x.size) ** 2 == 1 + 8 * x.size


def solve_discrete_lyapunov(a: Any, q: Any) -> Any:
    """Return the solution of `a x aᴴ - x + q = 0`, of a system of n² equations."""
    size = shaping.shape(a)[0]
    left = np.eye(size * size) - matrices.kron(a, ew.conjugate(a))
    return views.reshape(linalg.solve(left, views.reshape(q, (-1,))), (size, size))


def takes_lyapunov(a: Any, q: Any, method: str | None = None) -> bool:
    """Return whether SciPy solves an equation directly, as wend does."""
    type = tensor_type(a)
    is_small = type.is_static and shaping.shape(a)[0] < 10
    return method == "direct" or (method is None and is_small)


def block_diag(*arrs: Any) -> Any:
    """Return the matrix that has these on its diagonal; a vector is a row."""
    blocks = promote_dtypes(*(joining.atleast_2d(strong(block)) for block in arrs))
    widths = [shaping.shape(block)[1] for block in blocks]
    starts = itertools.accumulate(widths, initial=0)
    rows = [
        shaping.pad(block, ((0, 0), (start, sum(widths) - start - width)))
        for block, start, width in zip(blocks, starts, widths, strict=False)
    ]
    return shaping.concatenate(rows)


def takes_blocks(*arrs: Any) -> bool:
    """Return whether `block_diag` takes these: matrices, vectors or numbers."""
    return all(shaping.rank_of(operand(x)) <= 2 for x in arrs)


def eig(a: Any, b: Any = None, left: bool = False, right: bool = True) -> Any:
    """Return the eigenvalues of a matrix, and perhaps its right eigenvectors."""
    values, vectors = linalg.eig(a)
    return (values, vectors) if right else values


METRICS = ("euclidean", "sqeuclidean")
MATRICES: Mapping[str, Callable[..., Any]] = {
    "svd": lambda a, full_matrices=True, compute_uv=True: linalg.svd(a, full_matrices, compute_uv),
    "svdvals": lambda a: linalg.svd(a, False, False),
}
