"""One thread for everyone: what has to be set before libraries are imported."""

from __future__ import annotations

import os
from collections.abc import Mapping

ONE = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)
SETTINGS = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",  # a first call is one that has to compile
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a process that is to run on one thread."""
    return {**given, **dict.fromkeys(ONE, "1"), **SETTINGS}


def pin(core: int | None) -> None:
    """Keep this process on one core, where the system has a way to."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def last_core() -> int | None:
    """Return the last core this process may use: the first has most of the interrupts."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
