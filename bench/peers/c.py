"""Sources in bench/c, built by the system's compiler.

`NAME.c` is what one writes by hand, with libm; `NAME_fast.c` the fastest we can write. Each has

    void value(const double *arguments, double *results)
    void gradient(const double *arguments, double *results)

with all arguments after each other, and the value before the derivatives. Those for arrays of any
length take the number of arguments, too.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.workload import GRADIENT, Program, Workload

SOURCES = Path(__file__).parents[1] / "c"
OPTIONS = ("-O3", "-march=native", "-ffast-math", "-fPIC")


def compiler() -> str | None:
    """Return the system's C compiler, if there is one."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


class C(Peer):
    """What `NAME{suffix}.c` has."""

    def __init__(self, suffix: str = "") -> None:
        self.suffix = suffix

    def load(self) -> str:
        self.compiler = compiler()
        if self.compiler is None:
            raise OSError("there is no C compiler")
        told = subprocess.run(
            [self.compiler, "--version"], capture_output=True, text=True, check=True
        )
        return told.stdout.splitlines()[0]

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        source = SOURCES / f"{workload.name}{self.suffix}.c"
        if not source.exists():
            return None
        function = build(str(self.compiler), source, measure)
        sizes = [workload.size]
        if measure == GRADIENT:
            sizes += [self.sizes[index] for index in workload.differentiable]
        results = np.empty(sum(sizes))
        address, parts = results.ctypes.data, np.split(results, np.cumsum(sizes)[:-1])

        def program(block: Any) -> Any:
            function(block, address, len(block))
            return parts

        return program

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        self.sizes = [np.size(value) for value in values]
        numbers = np.concatenate([np.ravel(value) for value in values])
        return ((ctypes.c_double * len(numbers))(*numbers),)


def build(compiler: str, source: Path, name: str) -> Program:
    """Compile a source, and return one of its functions."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / f"{source.stem}.so"
        compiled = library.with_suffix(".o")
        subprocess.run([compiler, *OPTIONS, "-c", str(source), "-o", str(compiled)], check=True)
        # Linked apart: a link with -ffast-math makes subnormals zero in all of the process.
        link = [compiler, "-shared", str(compiled), "-o", str(library), "-lm"]
        subprocess.run(link, check=True)
        function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
    made: Program = function
    return made
