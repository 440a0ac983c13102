"""How long a process takes to start: of the processor, and beside the import of NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MAX_RUNS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled files are kept: those of NumPy and SciPy take seconds to make."""
    return tmp_path_factory.mktemp("compiled")


def least_ratio(folder: Path, program: str, bound: float) -> float:
    """How long a part of a program takes, as a multiple of NumPy's import.

    It is the least of some runs, which end when one is below the bound: beside other work the ratio
    grows by half. Compiled files and machine code are kept from run to run, as users have them.

    Args:
        folder: where these are kept.
        program: it calls `now()` when the part begins, which ends with the program.
        bound: what the ratio should be below.
    """
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder), "WEND_CACHE_DIR": str(folder / "code")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    head = "import time; now = time.process_time; a = now(); import numpy; b = now()\n"
    text = f"{head}{textwrap.dedent(program)}\nprint(now() - began, b - a)\n"
    command = [sys.executable, "-c", text]
    least = float("inf")
    for _ in range(MAX_RUNS):
        run = subprocess.run(command, check=True, env=env, capture_output=True)
        part, imported = map(float, run.stdout.split())
        least = min(least, part / imported)
        if least < bound:
            break
    return least


def test_import_is_quick(folder: Path) -> None:
    assert least_ratio(folder, "began = now(); import wend", 2.5) < 2.5  # beside NumPy's own


def test_the_first_native_call_is_quick(folder: Path) -> None:
    program = """
    import wend
    fun = wend.function(lambda x, y: x * y + 1, backend="native")
    x = numpy.ones(4)
    began = now()
    fun(x, x)
    """
    assert least_ratio(folder, program, 0.5) < 0.5


def test_the_first_gradient_of_a_second_process_is_quick(folder: Path) -> None:
    program = """
    import wend
    from wend.cli.demo import START, Parameters, negative_log_likelihood, read_pelts
    gradient, pelts = wend.value_and_grad(negative_log_likelihood, has_aux=True), read_pelts()
    began = now()
    gradient(Parameters(*numpy.log(START)), pelts, 1e-8)
    """
    assert least_ratio(folder, program, 1.7) < 1.7
