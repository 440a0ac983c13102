"""Where functions come from: files, cells, prompts, doctests; lambdas anywhere in a line."""

from __future__ import annotations

import ast
import code
import doctest
import functools
import linecache
import subprocess
import sys
import textwrap
import types

import pytest
from IPython.core.interactiveshell import InteractiveShell

import wend

ROOT = """
import numpy as np
import wend

def root(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x

"""
# Before 3.13 Python forgets what is typed at its prompt.
FORGETS = sys.version_info < (3, 13)
REFUSAL = "it has no source text: it comes from <"
CURE = "put the function in a file"


# Lambdas. Each `if` is recorded only if the right one's text was found.
def kinked(fun: object, *at: float) -> list[float]:
    return [float(wend.function(fun)(x)) for x in at]


def test_two_lambdas_in_a_line():
    up, down = lambda x: x if x > 1 else 2 * x, lambda x: -x if x > 1 else -3 * x
    assert kinked(up, 0.5, 2.0) == [1.0, 2.0]
    assert kinked(down, 0.5, 2.0) == [-1.5, -2.0]


def test_equal_lambdas_in_a_line():
    pair = (lambda x: x if x > 1 else 0 * x, lambda x: x if x > 1 else 0 * x)
    assert [kinked(fun, 0.5, 2.0) for fun in pair] == [[0.0, 2.0]] * 2


def test_lambda_in_a_lambda():
    scaled = lambda k: lambda x: k * x if x > 1 else x / k  # noqa: E731
    assert kinked(scaled(4.0), 0.5, 2.0) == [0.125, 8.0]
    assert kinked(scaled(2.0), 0.5, 2.0) == [0.25, 4.0]


def test_lambdas_in_a_call_over_lines():
    found = [
        *map(
            wend.function,
            [
                lambda x: (
                    x
                    if x > 1
                    else 2 * x
                ),
                lambda x: 3 * x if x > 1 else 4 * x, lambda x: 5 * x if x > 1 else 6 * x,
            ],
        )
    ]  # fmt: skip
    assert [[float(fun(x)) for x in (0.5, 2.0)] for fun in found] == [[1, 2], [2, 6], [3, 10]]


def test_lambda_as_an_argument_of_grad():
    assert wend.grad(lambda x: x**2 if x > 1 else -x)(3.0) == 6.0
    assert wend.grad(
        lambda x, y: x * y if x > y else x + y,
        argnums=(0, 1),
    )(3.0, 2.0) == (2.0, 3.0)


def test_lambda_as_a_default():
    def through(x, kink=lambda v: v if v > 1 else 2 * v, *, other=lambda v: -v if v > 1 else v):
        return kink(x) + other(x)

    assert kinked(through, 0.5, 2.0) == [1.5, 0.0]


def test_lambdas_in_containers_comprehensions_and_conditions():
    table = {"up": lambda x: x if x > 1 else 2 * x, "down": lambda x: -x if x > 1 else -2 * x}
    assert kinked(table["down"], 0.5, 2.0) == [-1.0, -2.0]
    made = [lambda x, k=k: k * x if x > 1 else x for k in (3, 5)]
    assert [kinked(fun, 0.5, 2.0) for fun in made] == [[0.5, 6.0], [0.5, 10.0]]
    chosen = (lambda x: x if x > 1 else 0 * x) if table else (lambda x: 7 * x if x > 1 else x)
    assert kinked(chosen, 0.5, 2.0) == [0.0, 2.0]


def test_lambda_that_loops():
    def loop(x):
        while x < 8.0:
            x = x * x
        return x

    assert wend.grad(lambda x: loop(x) + loop(x + 1) if x > 0 else x)(2.0) == 32.0 + 6.0


def test_decorated_over_lines():
    @wend.function
    @wend.do_not_capture
    def left_alone(x):
        return x + 1

    @wend.function(
        name="other",
        backend="numpy",
    )
    def captured(x):
        return x if x > 1 else 2 * x

    assert (left_alone(1.0), captured(0.5), captured(2.0)) == (2.0, 1.0, 2.0)


# Cells
@pytest.fixture
def shell():
    InteractiveShell.clear_instance()
    found = InteractiveShell.instance()
    yield found
    InteractiveShell.clear_instance()


def run_cell(shell: InteractiveShell, text: str) -> object:
    found = shell.run_cell(textwrap.dedent(text))
    found.raise_error()
    return found.result


def test_cells_of_a_notebook(shell):
    run_cell(shell, ROOT)
    assert run_cell(shell, "wend.function(root)(2.0)") == pytest.approx(2**0.5)
    assert run_cell(shell, "wend.grad(root)(2.0)") == pytest.approx(8**-0.5)
    slope = run_cell(shell, "wend.grad(lambda x: root(x) if x > 1 else x)(4.0)")
    assert slope == pytest.approx(0.25)


def test_a_cell_that_is_run_again_with_another_text(shell):
    run_cell(shell, "import wend")
    for factor in (2, 3):
        run_cell(
            shell,
            f"""
            @wend.function
            def f(x):
                while x < 10:
                    x = {factor} * x
                return x
            """,
        )
        assert run_cell(shell, "f(1.0)") == {2: 16, 3: 27}[factor]


def test_a_cell_with_magics_around_the_function(shell):
    run_cell(
        shell,
        """
        import wend
        %timeit -n1 -r1 -q 1 + 1
        def f(x):
            while x < 10: x = 2 * x
            return x
        y = wend.grad(f)(1.0)
        """,
    )
    assert run_cell(shell, "y") == 16.0


def test_cells_after_an_error(shell):
    # To show it, IPython hangs parents on nodes of syntax trees that all trees share.
    shell.run_cell("1 < unknown")
    assert hasattr(ast.parse("x < 1").body[0].value.ops[0], "parent")
    run_cell(shell, ROOT)
    assert run_cell(shell, "wend.grad(root)(2.0)") == pytest.approx(8**-0.5)


def test_errors_in_a_cell_name_its_line(shell):
    run_cell(shell, "import wend, numpy as np")
    found = shell.run_cell("@wend.function\ndef f(x):\n    return x + np.ones(2)\nf(np.ones(3))")
    assert "broadcast together with shapes (3,) (2,) at " in str(found.error_in_exec)
    assert str(found.error_in_exec).endswith(":3")


# Prompts
def at_a_prompt(*lines: str) -> subprocess.CompletedProcess[str]:
    """What Python prints when these lines are typed at it."""
    text = "\n".join([ROOT, *lines, ""])
    command = [sys.executable, "-i", "-q"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)


def test_python_s_prompt():
    run = at_a_prompt("wend.function(lambda x: x * x)(3.0)", "wend.grad(np.sin)(0.0)")
    assert run.stdout.split("\n")[:2] == ["np.float64(9.0)", "np.float64(1.0)"]
    assert "Error" not in run.stderr


@pytest.mark.skipif(not FORGETS, reason="the prompt of this Python keeps what is typed")
def test_python_s_prompt_forgets_and_wend_says_so():
    run = at_a_prompt("wend.function(root)(2.0)", "wend.grad(root)(2.0)", "root(2.0)")
    assert run.stderr.count(REFUSAL) == 2
    assert CURE in run.stderr
    assert run.stdout.startswith("1.414213562")  # Python itself runs it


class Console(code.InteractiveConsole):
    """Keeps what it would show."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = ""

    def write(self, data: str) -> None:
        self.shown += data


def test_interactive_console():
    console = Console()
    for line in ROOT.splitlines():
        console.push(line)
    console.push("y = wend.function(lambda x: x * x)(3.0)")
    assert (console.locals["y"], console.shown) == (9.0, "")
    console.push("y = wend.grad(root)(2.0)")
    # Whether it keeps the text of what is typed differs between the releases of 3.13, too.
    if not linecache.getlines(console.locals["root"].__code__.co_filename):
        assert REFUSAL in console.shown
        assert CURE in console.shown
    else:
        assert console.locals["y"] == pytest.approx(8**-0.5)


def test_text_that_was_executed():
    scope: dict[str, object] = {}
    exec(ROOT, scope)
    with pytest.raises(TypeError, match="comes from <string>, not from a file"):
        wend.function(scope["root"])(2.0)
    assert wend.function(scope["root"], capture=False).python_function(2.0) == pytest.approx(2**0.5)


def test_functional_forms_need_no_text():
    scope: dict[str, object] = {"wend": wend}
    exec("def f(x): return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)", scope)
    assert wend.grad(scope["f"])(2.0) == 32.0


# Keywords that wrappers of captured calls have as names of their own
def named(x, *, fun=1.0, callee=1.0, method=1.0, xs=1.0, owner=1.0):
    return x * fun + callee - method / xs + owner


class Scaled:
    def __call__(self, x, fun=1.0, owners=1.0):
        return x * fun + owners


def with_keywords(x):
    y = x
    while y < 9.0:
        y = y + named(y, fun=2.0, callee=y, method=1.0, xs=2.0, owner=3.0)
        y = y + functools.partial(named, fun=0.5)(y, callee=1.0)
        y = y + Scaled()(y, fun=1.0, owners=2.0)
        y = y + dict(fun=y, callee=2.0, self=3.0)["callee"]  # noqa: C408
    return y


def test_keywords_of_a_call_may_have_any_name():
    for x in (0.5, 2.0, 20.0):
        assert wend.function(with_keywords)(x) == with_keywords(x)


# Doctests
MODULE = '''
"""A module with a doctest.

>>> import wend
>>> @wend.function
... def settle(x):
...     while x > 1.0:
...         x = x / 2.0
...     return x
>>> float(settle(20.0)), float(wend.grad(settle)(20.0))
(0.625, 0.03125)
>>> def by_hand(x):
...     return x if x > 1 else 2 * x
>>> float(wend.grad(by_hand)(0.5))
2.0
>>> float(wend.grad(lambda x: by_hand(x) if x < 3 else 7 * x)(5.0))
7.0
"""
'''


def test_doctests_may_define_captured_functions():
    module = types.ModuleType("documented")
    exec(MODULE, vars(module))
    module.__doc__ = vars(module)["__doc__"]
    found = doctest.testmod(module, verbose=False)
    assert (found.attempted, found.failed) == (6, 0)


# Text that programs write: expressions and chains of hundreds of parts.
def of_text(text: str, file: str) -> types.FunctionType:
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    scope: dict[str, types.FunctionType] = {}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def test_an_expression_of_a_thousand_terms() -> None:
    limit = sys.getrecursionlimit()
    f = of_text("def f(x):\n    return " + " + ".join(f"x * {k}" for k in range(1000)), "<terms>")
    assert wend.function(f)(2.0) == f(2.0)
    assert wend.grad(f)(2.0) == 499500.0
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "chain", [" or ".join(["x < 0"] * 500), " < ".join(["x", *map(str, range(4, 1000))])]
)
def test_long_chains_of_tests_are_refused_in_words(chain: str) -> None:
    f = of_text(f"def f(x):\n    if {chain}:\n        return x\n    return -x", f"<{chain[:6]}>")
    with pytest.raises(wend.WendError, match=r"`f` at <.*>:1 has .* nested hundreds deep"):
        wend.function(f)(1.0)


def test_what_is_nested_too_deeply_is_refused_in_words() -> None:
    chain = " if x > 3 else ".join(f"x * {k}" for k in range(110))
    f = of_text(f"def f(x):\n    return {chain} if x < 2 else 0.0", "<chain>")
    for _ in range(2):
        with pytest.raises(RecursionError, match=r"`f` at <chain>:1 has .* nested hundreds deep"):
            wend.function(f)(1.0)
    tree: list[object] = [1.0]
    tree.append(tree)
    for argument in (tree, functools.reduce(lambda x, _: [x], range(2000), 1.0)):
        with pytest.raises(RecursionError, match="or contain themselves"):
            wend.function(lambda x: x)(argument)
