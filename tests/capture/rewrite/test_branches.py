"""Long chains of `elif` mean what Python says, and grow linearly."""

from __future__ import annotations

import ast
import linecache
import types

import numpy as np
import pytest

import wend
from wend.capture.rewrite import branches
from wend.capture.rewrite.branches import balance_elif_chains
from wend.capture.syntax.nodes import walk

COUNT = 18


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains that are quickly compiled are long ones."""
    monkeypatch.setattr(branches, "_LONG", 10)
    monkeypatch.setattr(branches, "_GROUP", 4)


def chain(tests: str, arm: str, otherwise: str = "", count: int = COUNT) -> str:
    """A chain; `#` stands for the number of the arm."""
    lines = []
    for k in range(count):
        lines += [f"{'elif' if k else 'if'} {tests.replace('#', str(k))}:"]
        lines += ["    " + line for line in arm.replace("#", str(k)).splitlines()]
    return "\n".join([*lines, *(["else:", f"    {otherwise}"] if otherwise else [])])


def function(body: str, params: str = "x, k") -> types.FunctionType:
    text = f"def f({params}):\n" + "\n".join("    " + line for line in body.splitlines())
    file = f"<chain {hash(text)}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    scope: dict[str, types.FunctionType] = {}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


SIMPLE = chain("k == #", "y = x * #", "y = -x")
BODIES = {
    "else": f"{SIMPLE}\nreturn y",
    "no else": f"y = x + 1.0\n{chain('k == #', 'y = x * #')}\nreturn y",
    "returns": f"{chain('k == #', 'return x * #', 'return -x')}",
    "some return": f"y = x\n{chain('k == #', 'y *= #')}\nif k > 3:\n    return y\nreturn y + 1.0",
    "order of tests": f"{chain('k < # * 2', 'y = x * #', 'y = -x')}\nreturn y",
    "walrus": f"{chain('(m := k - #) == 0', 'y = x * # + m', 'y = x * m')}\nreturn y, m",
    "and, or": f"{chain('k == # or (k > # and k < 3)', 'y = x * #', 'y = -x')}\nreturn y",
    "in a loop": f"y = x\nfor i in range(k):\n{indented(chain('i == #', 'y += x * #'))}\nreturn y",
    "leaves a loop": "y = x\nfor i in range(60):\n"
    + indented(chain("k == i - #", "y = y + #\nbreak", "y = y + 1.0"))
    + "\nreturn y",
    "nested": chain(
        "k == #", "if x > 1.0:\n    y = x * #\nelif x > 0.5:\n    y = x\nelse:\n    y = -x", "y = x"
    )
    + "\nreturn y",
    "in arms of one": chain("k < # * 3", chain("k == #", "y = x * #", "y = -x", 11), "y = x", 11)
    + "\nreturn y",
    "in an arm": f"if x > 0.5:\n{indented(SIMPLE)}\nelse:\n    y = x\nreturn y",
    "in a try": f"try:\n{indented(SIMPLE)}\nfinally:\n    x = x + 1.0\nreturn y + x",
    "two": f"{SIMPLE}\n{chain('k == # + 1', 'y = y + #')}\nreturn y",
    "nested function": f"def g(k):\n{indented(SIMPLE)}\n    return y\nreturn g(k) + g(k + 1)",
    "match": "match k:\n"
    + "\n".join(f"    case {k}:\n        y = x * {k}" for k in range(COUNT))
    + "\n    case _:\n        y = -x\nreturn y",
    "list": f"out = [x]\n{chain('k == #', 'out.append(x * #)', 'out.append(-x)')}\nreturn out[-1]",
}


@pytest.mark.sampled
@pytest.mark.parametrize(("is_traced", "backend"), [(False, "numpy"), (True, "native")])
@pytest.mark.parametrize("name", BODIES)
def test_long_chains_are_pythons(name: str, is_traced: bool, backend: str) -> None:
    f = function(BODIES[name])
    traced = wend.function(f, backend=backend)
    for k in (0, 17, COUNT - 1, COUNT + 5, -1):
        number = np.int64(k) if is_traced else k
        for x in (0.75, 2.0):
            np.testing.assert_array_equal(traced(x, number), f(x, k))
    if name not in ("walrus",):
        slope = wend.grad(traced)(2.0, np.int64(17) if is_traced else 17)
        np.testing.assert_allclose(slope, (f(2.0 + 1e-6, 17) - f(2.0 - 1e-6, 17)) / 2e-6, rtol=1e-6)


def test_the_tests_before_the_chosen_arm_run_and_no_others() -> None:
    body = f"log = []\n{chain('log.append(#) or k == #', 'y = #', 'y = -1')}\nreturn y, len(log)"
    for k in (0, 20, COUNT):
        assert wend.function(function(body))(1.0, k) == function(body)(1.0, k)


@pytest.mark.parametrize("is_traced", [False, True])
def test_what_no_arm_binds_is_unbound(is_traced: bool) -> None:
    f = wend.function(function(f"{chain('k == #', 'y = x * #')}\nreturn y"))
    number = np.int64 if is_traced else int
    assert f(2.0, number(5)) == 10.0
    with pytest.raises((UnboundLocalError, wend.WendError), match="y"):
        f(2.0, number(-1))


def test_errors_name_the_line_of_the_arm() -> None:
    f = function(chain("k == #", "y = x @ x @ x", "y = x") + "\nreturn y")
    with pytest.raises(Exception) as raised:
        wend.function(f)(np.ones(3), 7)
    lines = [frame.lineno for frame in raised.traceback if str(frame.path).startswith("<chain")]
    assert lines[-1] + 1 == 2 * 7 + 3


def depth(node: ast.AST) -> int:
    blocks = [getattr(node, field, []) for field in ("body", "orelse")]
    return 1 + max((depth(inner) for block in blocks for inner in block), default=0)


def test_a_chain_in_an_arm_of_a_chain_is_replaced() -> None:
    (node,) = ast.parse("def f(k):\n" + indented(chain("k < #", SIMPLE))).body
    assert isinstance(node, ast.FunctionDef)
    assert depth(balance_elif_chains(node)) < 25


def test_chains_of_a_thousand_are_neither_deep_nor_large() -> None:
    sizes = {}
    for count in (500, 1000):
        text = "def f(k):\n" + indented(chain("k == #", "y = #", "y = 0", count))
        (node,) = ast.parse(text).body
        assert isinstance(node, ast.FunctionDef)
        before = len(walk(node))
        node = balance_elif_chains(node)
        sizes[count] = len(walk(node))
        assert depth(node) < 30
        assert sizes[count] < 3 * before
    assert sizes[1000] < 2.1 * sizes[500]


@pytest.mark.slow
@pytest.mark.parametrize("number", [999, np.int64(999)])
def test_a_thousand_arms(number: int) -> None:
    f = function(chain("k == #", "y = x * #", "y = -x", 1000) + "\nreturn y")
    traced = wend.function(f)
    assert traced(2.0, number) == f(2.0, 999)
    assert wend.grad(traced)(2.0, number) == 999.0
