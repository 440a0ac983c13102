"""How much a process runs until it has started, in calls of Python functions."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = """
import sys
import numpy

calls = 0

def count(frame, event, arg):
    global calls
    calls += event == "call"

def begin():
    sys.setprofile(count)

"""
TAIL = """
sys.setprofile(None)
print(calls)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled files are kept: those of NumPy and SciPy take seconds to make."""
    return tmp_path_factory.mktemp("compiled")


def calls_of(folder: Path, program: str) -> int:
    """How many calls of Python functions a part of a program makes, in a process of its own.

    A first process has filled the folder: compiled files and machine code are kept from run to
    run, as users have them.

    Args:
        folder: where these are kept.
        program: it calls `begin()` where the part begins, which ends with the program.
    """
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder), "WEND_CACHE_DIR": str(folder / "code")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", HEAD + textwrap.dedent(program) + TAIL]
    for _ in range(2):
        run = subprocess.run(command, check=True, env=env, capture_output=True)
    return int(run.stdout)


def test_import_is_quick(folder: Path) -> None:
    assert calls_of(folder, "begin(); import wend") < 115_000


def test_the_first_native_call_is_quick(folder: Path) -> None:
    program = """
    import wend
    fun = wend.function(lambda x, y: x * y + 1, backend="native")
    x = numpy.ones(4)
    begin()
    fun(x, x)
    """
    assert calls_of(folder, program) < 33_000


def test_the_first_gradient_of_a_second_process_is_quick(folder: Path) -> None:
    program = """
    import wend
    from wend.cli.demo import START, Parameters, negative_log_likelihood, read_pelts
    gradient, pelts = wend.value_and_grad(negative_log_likelihood, has_aux=True), read_pelts()
    begin()
    gradient(Parameters(*numpy.log(START)), pelts, 1e-8)
    """
    assert calls_of(folder, program) < 380_000
