"""Functions of object files: what they may call, and how to run them."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from wend.build import Built
from wend.build.caller import CLibrary
from wend.build.linking import find_compiler, link_shared

# What object files may call: functions of the C library and of libm
C_LIBRARY = frozenset(
    """aligned_alloc free malloc realloc memchr memcmp memcpy memmove memset snprintf
    acos acosh asin asinh atan atan2 atanh cbrt ceil ceilf copysign cos cosh erf erfc exp exp2 expm1
    fabs floor floorf fma fmaf fmod fmodf hypot lgamma log log10 log1p log2 pow rint rintf round
    sin sinh tan tanh tgamma trunc truncf""".split()
)

_numbers = itertools.count()  # a library that is loaded is not loaded again


def compiler(language: str = "c") -> list[str]:
    """A compiler; the test is skipped, loudly, if there is none."""
    names = {"c++": "g++", "fortran": "gfortran"}
    command = find_compiler()
    if language != "c":
        command = [names[language]] if shutil.which(names[language]) else None
    if command is None:
        pytest.skip(f"NO COMPILER OF {language.upper()}: its programs are not tested here")
    return command


def undefined_symbols(path: Path) -> set[str]:
    """The symbols that an object file leaves undefined."""
    lines = subprocess.run(["nm", "-u", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in lines.splitlines()}


def library_of(
    built: Built, printed: list[str] | None = None, libraries: Sequence[str] = ()
) -> CLibrary:
    """The functions of an object file, linked to a shared library of its own."""
    compiler()
    path = built.object.with_name(f"{built.name}{next(_numbers)}.so")
    link_shared([built.object], path, libraries=" ".join(libraries))
    return CLibrary(str(path), built.layout, (printed if printed is not None else []).append)
