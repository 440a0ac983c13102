"""Rows of `wend.ops.fourier`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes


def spectrum(x: Any, axis: int, inverse: bool, norm: str) -> Any:
    return (scipy.fft.ifft if inverse else scipy.fft.fft)(x, axis=axis, norm=norm)


def real_spectrum(x: Any, axis: int, norm: str) -> Any:
    return scipy.fft.rfft(x, axis=axis, norm=norm)


def from_spectrum(x: Any, *run_size: Any, axis: int, norm: str, size: int) -> Any:
    return scipy.fft.irfft(x, size, axis, norm)


CASES = [
    *(
        Case(
            "fft",
            spectrum,
            [(complexes(3, 4).astype(np.complex64),)],
            [(complexes(2, 5, 3),), (complexes(1, 1),), (complexes(0, 2),)],
            {"axis": 1, "inverse": inverse, "norm": norm},
            exact=False,
        )
        for inverse, norm in ((False, "backward"), (True, "backward"), (False, "ortho"))
    ),
    *(
        Case(
            "rfft",
            real_spectrum,
            [(between(-1, 1, 3, 4).astype(np.float32),)],
            [(between(-1, 1, 2, 5, 3),), (between(-1, 1, 3, 4),), (between(-1, 1, 1, 1),)],
            {"axis": 1, "norm": norm},
            exact=False,
        )
        for norm in ("backward", "ortho", "forward")
    ),
    *(
        Case(
            "irfft",
            from_spectrum,
            [(complexes(3, size // 2 + 1).astype(np.complex64),)],
            [(complexes(2, size // 2 + 1, 2),), (complexes(2, size // 2 + 1), np.int64(size))],
            {"axis": 1, "norm": norm, "size": size},
            exact=False,
            symbolic=False,  # a declared size and a symbolic half of it are never in one graph
        )
        for size, norm in ((4, "backward"), (5, "ortho"), (6, "forward"), (1, "backward"))
    ),
]
