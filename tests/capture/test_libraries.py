"""Which functions are captured when captured code calls them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import wend
from wend.capture.libraries import is_library

SOLVER = """
import wend
from installed_package.steps import halve

@wend.function
def settle(x):
    while x > 1.0:
        x = halve(x)
    return x
"""
STEPS = """
def halve(x):
    if x > 8.0:
        x = x / 2.0
    return x / 2.0
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two files, installed as pip does it."""
    folder = tmp_path / "lib" / "site-packages"
    package = folder / "installed_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "solver.py").write_text(SOLVER, encoding="utf-8")
    (package / "steps.py").write_text(STEPS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    yield package
    for name in [name for name in sys.modules if name.startswith("installed_package")]:
        del sys.modules[name]


def test_a_function_given_to_wend_is_captured_where_it_is_installed(installed: Path) -> None:
    assert is_library(str(installed / "steps.py"))
    settle = importlib.import_module("installed_package.solver").settle
    assert settle(20.0) == 0.625
    assert wend.grad(settle)(20.0) == 0.03125
    assert not is_library(str(installed / "steps.py"))
    assert is_library(str(installed.parent / "another_package" / "steps.py"))


def test_numpy_wend_and_the_standard_library_are_left_alone() -> None:
    import statistics

    import numpy.lib

    for module in (statistics, numpy.lib, wend):
        assert is_library(module.__file__)
