"""Attributes in captured code."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.compiled import compiled
from wend.trace.state.text_choice import TextChoice

XS = np.where(np.arange(80) % 3 == 0, -1.0, 1.0)
_ARGUMENTS = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), (5,)),
    **dict.fromkeys(("count", "find", "rfind", "index", "rindex"), ("a",)),
    **dict.fromkeys(("endswith", "startswith", "partition", "rpartition"), ("a",)),
    **dict.fromkeys(("removeprefix", "removesuffix"), ("a",)),
    "join": (["p", "q"],),
    "replace": ("a", "b"),
    "format_map": ({},),
    "translate": ({97: "q"},),
}


_METHODS = [name for name in dir(str) if not name.startswith("_") and name != "maketrans"]


def _shown(x: object) -> str:
    return repr(np.asarray(x).item() if hasattr(x, "__array__") else x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", _METHODS)
@pytest.mark.parametrize("xs", [XS, -XS], ids=["last", "first"])
def test_methods_of_a_text_that_the_run_knows(name: str, xs: np.ndarray) -> None:
    arguments = _ARGUMENTS.get(name, ())

    def f(xs):
        text = "a b"
        for x in xs:
            text = "a b" if x < 0 else "cba"
        return getattr(text, name)(*arguments)

    assert _shown(wend.function(f)(xs)) == _shown(f(xs))


_NAMES = [name for name in vars(TextChoice) if name.isidentifier() and name[:2] != "__"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*_NAMES, "upper", "shape", "dtype", "value", "recording"])
def test_attributes_of_members_hide_those_of_the_choice(name: str) -> None:
    class Plain(Enum):
        A = 1
        B = 2

        def __init__(self, number: int) -> None:
            if name != "value":
                setattr(self, name, 10 * number)

    def f(xs):
        member = Plain.A
        for x in xs:
            member = Plain.A if x < 0 else Plain.B
        return getattr(member, name), hasattr(member, name), hasattr(member, "other")

    assert _shown(wend.function(f)(XS)[0]) == _shown(f(XS)[0])
    assert wend.function(f)(XS)[1:] == f(XS)[1:]


class Box:
    pass


@pytest.mark.parametrize(
    "change",
    [
        *("(x < n).value = 1", "x.value = 'q'", "n.real = 1", "v.foo = x", "v.T = v", "v.size = 3"),
        *("v.sum().weak = True", "grown(x).tag = x", "setattr(x, 'recording', 1)", "v.type = 2"),
    ],
)
def test_numbers_arrays_and_lists_take_no_attributes(change: str) -> None:
    """Also not under the names that wend has for its own use."""
    grown = "while x < 9:\n        xs.append(x)\n        x = x + 3\n    return xs"
    source = (
        f"def grown(x):\n    xs = []\n    {grown}\n"
        f"def fun(x, n, v):\n    try:\n        {change}\n"
        "    except AttributeError as error:\n        return str(error)\n    return x\n"
    )
    fun = compiled(source, "fun")
    args = 2.0, 3, np.arange(3.0)
    assert isinstance(fun(*args), str)
    assert wend.function(fun)(*args) == fun(*args)


def test_what_is_not_chosen_by_or_takes_no_part() -> None:
    def fun(x: float) -> Any:
        left: Any = Box()
        lane = (x < 2.0 and left) or left
        lane.value = "b"
        return left.value, lane is left

    run = wend.function(fun, backend="numpy")
    assert [run(x) for x in (1.0, 3.0)] == [("b", True)] * 2
