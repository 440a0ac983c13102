"""The modules of the run-time library, each compiled when a function of it is first called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from wend.backends.native.math import library as math
from wend.backends.native.rt import (
    blocks,
    checksum,
    growth,
    legacy_draws,
    parallel,
    philox,
    pool,
    python_callbacks,
    redzones,
    sums,
    twister,
)
from wend.backends.native.rt.linalg import blas, blas_functions, elimination, lapack, small_gemm
from wend.backends.native.rt.ordering import isin, numpy_sorts, row_argminmax, sorts
from wend.backends.native.target.platform import Platform, platform
from wend.base.lazy.dataclass import dataclass

# The level of modules that are compiled as quickly as possible, also by the code generator
QUICK = -1


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class SharedModule:
    """A module of functions that are compiled together.

    Attributes:
        text: returns the LLVM IR of the module.
        exports: the functions that other modules may call.
        addresses: returns the addresses of imported functions, other than those of the C library
            and of Python.
        level: the optimization level, where a lower one than usual gives code as fast; `QUICK`
            for what seldom runs.
        forget: the function that resets the state in a fork, where other threads do not exist.
    """

    text: Callable[[], str]
    exports: Sequence[str]
    addresses: Callable[[], dict[str, int]] = dict
    level: int | None = None
    forget: str = ""


def shared_modules() -> Sequence[SharedModule]:
    """Return the modules of the platform that code is generated for."""
    return _shared_modules(platform())


@cache
def _shared_modules(target: Platform) -> Sequence[SharedModule]:
    # Each is as small as possible, so that a process compiles only what its modules call.
    return (
        SharedModule(lambda: blocks.LIBRARY, blocks.NAMES, level=0, forget="wend.block.forget"),
        SharedModule(lambda: pool.LIBRARY, pool.NAMES, level=0),
        SharedModule(lambda: growth.LIBRARY, growth.NAMES, level=QUICK),
        SharedModule(lambda: redzones.LIBRARY, redzones.NAMES),
        SharedModule(lambda: sums.LIBRARY, sums.NAMES),
        SharedModule(philox.library, [philox.NAME]),
        SharedModule(lambda: legacy_draws.LIBRARY, [legacy_draws.NAME]),
        SharedModule(lambda: twister.LIBRARY, twister.NAMES),
        SharedModule(lambda: checksum.LIBRARY, checksum.NAMES),
        *(
            SharedModule(
                partial(row_argminmax.library, how, dtype),
                [row_argminmax.value_name(how, dtype), row_argminmax.position_name(how, dtype)],
            )
            for how in row_argminmax.REDUCTIONS
            for dtype in row_argminmax.DTYPES
        ),
        SharedModule(lambda: python_callbacks.LIBRARY, python_callbacks.NAMES, level=QUICK),
        SharedModule(lambda: parallel.LIBRARY, parallel.NAMES, level=0, forget="wend.forget"),
        *(
            SharedModule(
                partial(small_gemm.library, kind),
                [small_gemm.small_product(kind, adds) for adds in (False, True)],
                level=QUICK,
            )
            for kind in small_gemm.KINDS
        ),
        *(
            SharedModule(partial(library, kind), [name(kind)], level=level)
            for kind in small_gemm.KINDS
            for library, name, level in (
                (small_gemm.rows_library, small_gemm.rows, 0),
                (small_gemm.dots_library, small_gemm.dots, 1),
                (small_gemm.dot_library, small_gemm.dot, 1),
            )
        ),
        *(
            SharedModule(
                partial(blas.library, kind, adds),
                [blas.product(kind, adds)],
                partial(blas_functions.addresses, kind, blas_functions.BLAS),
                level=0,
            )
            for kind, adds in small_gemm.VARIANTS
        ),
        *(
            SharedModule(
                partial(elimination.library, kind),
                [function(kind) for function in elimination.FUNCTIONS],
            )
            for kind in small_gemm.KINDS
        ),
        *(
            SharedModule(
                partial(elimination.factors_library, kind),
                [function(kind) for function in elimination.FACTOR_FUNCTIONS],
            )
            for kind in small_gemm.KINDS
        ),
        *(
            SharedModule(
                partial(library, kind), [name(kind)], partial(blas_functions.addresses, kind, stems)
            )
            for kind in small_gemm.KINDS
            for library, name, stems in (
                (lapack.lu_factor_library, lapack.lu_factor, ["getrf"]),
                (lapack.lu_solve_library, lapack.lu_solve, ["getrs", "trtrs"]),
            )
        ),
        *(
            SharedModule(
                partial(lapack.solve_library, kind),
                [lapack.solve(kind)],
                partial(blas_functions.addresses, kind, ["gesv", "trtrs"]),
            )
            for kind in small_gemm.KINDS
        ),
        *(
            SharedModule(
                partial(lapack.cholesky_library, kind),
                [lapack.cholesky(kind)],
                partial(blas_functions.addresses, kind, ["potrf"]),
            )
            for kind in small_gemm.KINDS
        ),
        *(
            SharedModule(
                partial(sorts.sort_library, dtype),
                [sorts.sort(dtype)],
                partial(numpy_sorts.addresses, dtype),
            )
            for dtype in sorts.DTYPES
        ),
        *(
            SharedModule(partial(sorts.argsort_library, dtype), [sorts.argsort(dtype)])
            for dtype in sorts.DTYPES
        ),
        *(
            SharedModule(partial(isin.library, dtype), [isin.function(dtype)])
            for dtype in isin.DTYPES
        ),
        *(
            SharedModule(partial(math.cold_definitions, [name]), [f"wend.{name}"])
            for name in math.cold_names()
        ),
    )


def shared_module_of(name: str) -> SharedModule:
    """Return the module that exports a function.

    Raises:
        KeyError: no module does.
    """
    for module in shared_modules():
        if name in module.exports:
            return module
    raise KeyError(f"no shared function is called {name}")
