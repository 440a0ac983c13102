"""Parameters and locals of the user that are called as wend's own."""

from __future__ import annotations

import ast
import keyword
from pathlib import Path

import numpy as np
import pytest

import wend
from tests.fuzz.quick import quickly
from tests.helpers.shares import is_chosen
from tests.semantics.world import Program, compare

SHARE = 150  # of the names, one in so many
# They are called by the programs below
USED = {"range", "total"}


def parameters_of_wend() -> list[str]:
    names = set()
    for file in Path(wend.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.arg) and not keyword.iskeyword(node.arg):
                names.add(node.arg)
    return sorted(names - USED)


PROGRAMS = {
    "parameter": (
        """def f(NAME, other_=2.0, *, NAME_=3.0):
    total = 0.0
    while total < NAME:
        total = total + other_
        if total > 100.0:
            break
    for k_ in range(2):
        total = total * NAME_ + NAME
    h_ = lambda NAME=total: NAME * 2.0
    return h_() + h_(NAME=NAME), [NAME * k_ for k_ in range(2)]
""",
        ["f(7.0)", "f(NAME=5.0, NAME_=2.0)", "f(NAME=np.arange(1.0)[0] + 4.0)"],
    ),
    "local": (
        """def f(other_, NAME):
    NAME = NAME * other_
    for NAME_k in range(3):
        if other_ > NAME_k:
            NAME += NAME_k
    def g_(x_, NAME=other_):
        return x_ + NAME
    return g_(NAME), g_(NAME, NAME=1.0)
""",
        ["f(2.0, NAME=3.0)", "f(3.0, 1.0)"],
    ),
    "keyword": (
        """def f(**keywords_):
    total = keywords_["NAME"]
    while total < 9.0:
        total = total * 2.0
    return total, keywords_
""",
        ["f(NAME=1.5)"],
    ),
}


def check_derivatives(name: str) -> None:
    """Each transform passes a keyword of this name on."""
    namespace: dict = {}
    exec(f"def f(x_, {name}):\n    return x_ * x_ * {name}", namespace)
    f, keywords = namespace["f"], {name: 3.0}
    assert wend.grad(f)(2.0, **keywords) == 12.0
    assert wend.value_and_grad(wend.function(f))(2.0, **keywords) == (12.0, 12.0)
    assert wend.function(f).get_concrete_function(2.0, **keywords)(2.0, **keywords) == 12.0
    assert wend.checkpoint(f)(2.0, **keywords) == 12.0
    assert wend.grad(wend.checkpoint(f))(2.0, **keywords) == 12.0
    assert wend.jacfwd(f)(2.0, **keywords) == wend.jacrev(f)(2.0, **keywords) == 12.0
    assert wend.hessian(f)(2.0, **keywords) == 6.0
    mapped = wend.vmap(f)(np.array([1.0, 2.0]), **{name: np.array([3.0, 4.0])})
    assert mapped.tolist() == [3.0, 16.0]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("initial", "_abcdefghijklmnopqrstuvwxyz")
def test_names_of_wends_own_parameters(initial: str) -> None:
    names = [name for name in parameters_of_wend() if name.lower().startswith(initial)]
    chosen = [name for name in names if name == "self" or is_chosen(name, SHARE)]
    with quickly(), wend.config(verify=False, cache_dir="", backend="numpy"):
        for name in chosen:
            for kind, (source, steps) in PROGRAMS.items():
                texts = [text.replace("NAME", name) for text in (source, *steps)]
                difference = compare(Program(f"{kind} {name}", texts[0], texts[1:]), ["reference"])
                assert difference is None, f"{texts[0]}\n{difference}"
            check_derivatives(name)
