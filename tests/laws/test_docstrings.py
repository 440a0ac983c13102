"""What the docstrings of public names show is what happens."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wend
import wend.numpy as wnp
from tests.helpers.own_process import is_alone, run_alone

SOURCES = Path(wend.__file__).parent


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The names of a module that are for users, with what they are."""
    for name, thing in vars(module).items():
        if not name.startswith("_") and not isinstance(thing, ModuleType):
            yield f"{module.__name__}.{name}", thing


NAMES = dict(public(wend))
ARRAY_NAMES = {
    name: thing
    for module in (wnp, wnp.linalg, wnp.special)
    for name, thing in public(module)
    if callable(thing) and str(getattr(thing, "__module__", "")).startswith("wend.")
}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_wend_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(NAMES[name]) or "")


def test_every_array_function_has_a_docstring() -> None:
    assert [name for name, thing in ARRAY_NAMES.items() if not inspect.getdoc(thing)] == []


def holds_examples(file: Path) -> bool:
    return ">>> " in file.read_text(encoding="utf-8")


FILES = [file for file in sorted(SOURCES.rglob("*.py")) if holds_examples(file)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCES)))
def test_the_examples_of_a_file_run(file: Path, request: pytest.FixtureRequest) -> None:
    """Each docstring by itself, with what it imports and no more."""
    if "interop/jax" in file.as_posix() and not is_alone():
        if importlib.util.find_spec("jax") is None:
            pytest.skip("NOT RUN: jax is not installed")
        run_alone(f"tests/laws/test_docstrings.py::{request.node.name}")
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    failures = []
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, documented) else None
        if text is None or ">>> " not in text:
            continue
        name = getattr(node, "name", file.stem)
        test = doctest.DocTestParser().get_doctest(text, {}, name, str(file), 0)
        told: list[str] = []
        if doctest.DocTestRunner(verbose=False).run(test, out=told.append).failed:
            failures.append("".join(told))
        vars(builtins).pop("_", None)  # the last result, which is of no program
    assert not failures, "\n".join(failures)
