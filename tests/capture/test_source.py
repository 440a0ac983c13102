"""The syntax tree of a function is found in its file, whatever stands around it."""

from __future__ import annotations

import ast
import traceback
from pathlib import Path

import pytest

import wend
from wend.capture.source import function_node

TEXT = '''
import functools
def mark(*args):
    return lambda f: f
@mark(
    1,
)
@mark()
def decorated(x): return x
class Outer:
    class Inner:
        def method(self, x):
            y = """
at the margin
"""
            # a comment
    # further out
            return x, y
        def one_line(self): return 1
def ends_with_a_bracket(x):
    return [
  x,
]
def ends_with_dead_code(x):
    return x
    x = """
dead
"""
def ends_with_pass(x):
    if x:
        pass
    else:
        pass
if True:
	def tabs(x):
		return x
def after(x): return (lambda y: y + 1)(x)
last = lambda x: x
two = (lambda x: x + 1), (lambda x: x - 1)
'''
NAMES = [
    "decorated",
    "Outer.Inner.method",
    "Outer.Inner.one_line",
    "ends_with_a_bracket",
    "ends_with_dead_code",
    "ends_with_pass",
    "tabs",
    "after",
    "last",
]


def module(file: Path, text: str = TEXT) -> dict:
    file.write_text(text, encoding="utf-8")
    names: dict = {}
    exec(compile(text, str(file), "exec"), names)
    return names


def by_position(file: Path, line: int, name: str) -> ast.AST:
    """The definition that the parser finds in the whole file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        lines = [
            getattr(node, "lineno", -1),
            *(d.lineno for d in getattr(node, "decorator_list", ())),
        ]
        named = getattr(node, "name", "<lambda>")
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and (min(lines), named) == (line, name):
            return node
    raise AssertionError(name)


@pytest.mark.parametrize("path", NAMES)
def test_the_definition_is_the_one_in_the_file(path: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    first, *rest = path.split(".")
    found = module(file)[first]
    for part in rest:
        found = getattr(found, part)
    code = found.__code__
    node = function_node(code)
    assert node is not None
    expected = by_position(file, code.co_firstlineno, code.co_name)
    assert ast.dump(node, include_attributes=True) == ast.dump(expected, include_attributes=True)


def test_two_lambdas_on_a_line(tmp_path: Path) -> None:
    up, down = module(tmp_path / "module.py")["two"]
    assert wend.function(up)(1.0) == 2.0
    assert wend.function(down)(1.0) == 0.0


def test_equal_code_of_two_files(tmp_path: Path) -> None:
    text = "def f(x):\n    while x < 3:\n        x = {}['missing']\n    return x\n"
    for name in ("first.py", "second.py"):
        fun = module(tmp_path / name, text)["f"]
        with pytest.raises(KeyError) as caught:
            wend.function(fun)(1.0)
        assert traceback.extract_tb(caught.value.__traceback__)[-1].filename.endswith(name)
