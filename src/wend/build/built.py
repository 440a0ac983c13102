"""The record of the files of `build`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wend.backends.native.objects.interface import Interface
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Built:
    """The files that `build` has written.

    Attributes:
        name: the name of the library.
        object: the object file.
        header: the C header.
        functions: the functions that both have.
        blas: the functions of BLAS and LAPACK that the object file calls.
        layout: the sizes and types of its functions, as JSON.
        wheel: the wheel, if one was asked for.
    """

    name: str
    object: Path
    header: Path
    functions: tuple[Interface, ...]
    blas: tuple[str, ...]
    layout: Mapping[str, Any]
    wheel: Path | None = None
