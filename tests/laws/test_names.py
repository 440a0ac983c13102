"""Names say what a thing is: no vague locals, and one meaning for each class name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import wend

SOURCES = Path(wend.__file__).parent
FILES = sorted(SOURCES.rglob("*.py"))

# They say that something is there, not what: `operands`, `node`, `live_results`, `remaining` do.
BANNED = frozenset({"found", "given", "made", "wanted", "kept", "mine", "theirs", "there", "rest"})


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names and attributes that code binds, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name.lstrip("_"), node.lineno
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name.lstrip("_"), node.lineno
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name.strip("_"), node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield name, node.lineno


@pytest.mark.parametrize("package", sorted({file.relative_to(SOURCES).parts[0] for file in FILES}))
def test_no_name_is_vague(package: str) -> None:
    files = [file for file in FILES if file.relative_to(SOURCES).parts[0] == package]
    vague = [
        f"{file.relative_to(SOURCES)}:{line} {name}"
        for file in files
        for name, line in bound_names(ast.parse(file.read_text(encoding="utf-8")))
        if name in BANNED
    ]
    assert vague == []


def test_the_check_sees_all_that_binds_a_name() -> None:
    text = """
def f(given):
  found: int = 1
  self._kept = 2
  for mine in x: pass
  match x:
    case [wanted, *rest]: pass
def _made(): pass
"""
    names = {name for name, _ in bound_names(ast.parse(text))}
    assert {"given", "found", "kept", "mine", "wanted", "rest", "made"} <= names


def test_docstrings_open_with_a_promise() -> None:
    """Not "What a node gives" or "Let a loop carry": "Return …", "Emit …", or a noun phrase."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    openings = [
        (file.name, (ast.get_docstring(node) or "").partition(" ")[0])
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, documented)
    ]
    assert [opening for opening in openings if opening[1] in ("What", "Let", "Lets")] == []


def test_a_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].append(file.relative_to(SOURCES).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_a_keyword_of_the_user_meets_no_parameter_of_wend() -> None:
    """What passes on `*args, **kwargs` takes nothing else by name, not even `self`."""
    functions = [
        (file.name, [parameter.arg for parameter in node.args.args])
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.Lambda))
        and [x and x.arg for x in (node.args.vararg, node.args.kwarg)] == ["args", "kwargs"]
    ]
    as_in_numpy = {"along_axis.py": ["func1d", "axis", "arr"]}
    assert functions
    assert [x for x in functions if x[1] and x[1] != as_in_numpy.get(x[0])] == []
