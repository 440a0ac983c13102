"""Functions that compiled modules share: their text, until a module first calls one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from wend.backends.native import blocks, interpreter, parallel, pool
from wend.backends.native.library import (
    blas,
    blas_functions,
    extreme_rows,
    members,
    numpy_sorts,
    products,
    solvers,
    sorts,
    sums,
)
from wend.backends.native.math import library as math


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
            partial(extreme_rows.library, how, dtype),
            [extreme_rows.value_name(how, dtype), extreme_rows.position_name(how, dtype)],
        )
        for how in extreme_rows.WAYS
        for dtype in extreme_rows.DTYPES
    ),
    Shared(lambda: interpreter.LIBRARY, interpreter.NAMES),
    Shared(lambda: parallel.LIBRARY, parallel.NAMES, level=0),
    *(
        Shared(
            partial(products.library, kind),
            [products.small_product(kind, adds) for adds in (False, True)],
            level=1,
        )
        for kind in products.KINDS
    ),
    *(
        Shared(
            partial(blas.library, kind, adds),
            [blas.product(kind, adds)],
            partial(blas_functions.addresses, kind, blas_functions.BLAS),
            level=0,
        )
        for kind, adds in products.VARIANTS
    ),
    *(
        Shared(
            partial(solvers.solve_library, kind),
            [solvers.solve(kind)],
            partial(blas_functions.addresses, kind, ["gesv"]),
        )
        for kind in products.KINDS
    ),
    *(
        Shared(
            partial(solvers.cholesky_library, kind),
            [solvers.cholesky(kind)],
            partial(blas_functions.addresses, kind, ["potrf"]),
        )
        for kind in products.KINDS
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
    *(
        Shared(partial(members.library, dtype), [members.function(dtype)])
        for dtype in members.DTYPES
    ),
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
