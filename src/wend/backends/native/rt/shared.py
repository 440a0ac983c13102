"""Functions that compiled modules share: their text, until a module first calls one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from wend.backends.native.math import library as math
from wend.backends.native.rt import (
    blas,
    blas_functions,
    blocks,
    isin,
    lapack,
    numpy_sorts,
    parallel,
    pool,
    python_callbacks,
    row_argminmax,
    small_gemm,
    sorts,
    sums,
)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Shared:
    """Functions that are compiled together.

    Attributes:
        text: writes the module.
        exports: the functions that others may call.
        addresses: gives those of what it refers to, but for functions of the C library and Python.
        level: how much LLVM is to do, where less than usual gives code as fast.
    """

    text: Callable[[], str]
    exports: Sequence[str]
    addresses: Callable[[], dict[str, int]] = dict
    level: int | None = None


# Each as small as it can be, so that a process compiles only what its modules call.
SHARED: Sequence[Shared] = (
    Shared(lambda: blocks.LIBRARY, blocks.NAMES),
    Shared(lambda: pool.LIBRARY, pool.NAMES),
    Shared(lambda: sums.LIBRARY, sums.NAMES),
    *(
        Shared(
            partial(row_argminmax.library, how, dtype),
            [row_argminmax.value_name(how, dtype), row_argminmax.position_name(how, dtype)],
        )
        for how in row_argminmax.WAYS
        for dtype in row_argminmax.DTYPES
    ),
    Shared(lambda: python_callbacks.LIBRARY, python_callbacks.NAMES),
    Shared(lambda: parallel.LIBRARY, parallel.NAMES, level=0),
    *(
        Shared(
            partial(small_gemm.library, kind),
            [small_gemm.small_product(kind, adds) for adds in (False, True)],
            level=1,
        )
        for kind in small_gemm.KINDS
    ),
    *(
        Shared(
            partial(blas.library, kind, adds),
            [blas.product(kind, adds)],
            partial(blas_functions.addresses, kind, blas_functions.BLAS),
            level=0,
        )
        for kind, adds in small_gemm.VARIANTS
    ),
    *(
        Shared(
            partial(lapack.solve_library, kind),
            [lapack.solve(kind)],
            partial(blas_functions.addresses, kind, ["gesv"]),
        )
        for kind in small_gemm.KINDS
    ),
    *(
        Shared(
            partial(lapack.cholesky_library, kind),
            [lapack.cholesky(kind)],
            partial(blas_functions.addresses, kind, ["potrf"]),
        )
        for kind in small_gemm.KINDS
    ),
    *(
        Shared(
            partial(sorts.sort_library, dtype),
            [sorts.sort(dtype)],
            partial(numpy_sorts.addresses, dtype),
        )
        for dtype in sorts.DTYPES
    ),
    *(
        Shared(partial(sorts.argsort_library, dtype), [sorts.argsort(dtype)])
        for dtype in sorts.DTYPES
    ),
    *(Shared(partial(isin.library, dtype), [isin.function(dtype)]) for dtype in isin.DTYPES),
    *(Shared(partial(math.cold_definitions, [name]), [f"wend.{name}"]) for name in math.COLD_NAMES),
)


def shared_with(name: str) -> Shared:
    """Those that a function is among.

    Raises:
        KeyError: there is none of this name.
    """
    for shared in SHARED:
        if name in shared.exports:
            return shared
    raise KeyError(f"no shared function is called {name}")
