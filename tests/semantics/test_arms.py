"""What is done to short lists on paths that a run does not take, or takes in vain."""

from __future__ import annotations

import textwrap

import pytest

import wend
from tests.fuzz.quick import quickly
from tests.semantics.world import WAYS, Program, compare

# A list `st` that is too short for what is done to it in some calls
LISTS = {
    "empty": "st = []",
    "one": "st = [x]",
    "two": "st = [x, 2.0 * x]",
    "grown": "st = []\nfor i in range(n):\n    st.append(x * i)",
}
ACTS = {
    "pop_then_set": "st.pop()\nst[-1] = 9.0 * x",
    "pop_then_add": "st.pop()\nst[-1] += x",
    "pop_then_read": "r = st.pop() + st[-1]",
    "two_pops": "r = st.pop() * st.pop()",
    "pop_front_then_set": "st.pop(0)\nst[0] = x",
    "del_then_set": "del st[-1]\nst[-1] = x",
    "del_front": "del st[0]\nr = st[0]",
    "set_first": "st[0] = 7.0 * x",
    "set_second": "st[1] = 7.0 * x",
    "read_second": "r = st[1] * x",
    "swap": "st[0], st[1] = st[1], st[0]",
    "unpack": "a, b = st\nr = a * b",
    "unpack_star": "a, *b = st\nr = a",
    "push_pop": "st.append(x)\nst.pop()\nst.pop()\nst[-1] = x",
    "max": "r = max(st)",
    "min_of_rest": "r = min(st[1:])",
    "array": "r = np.max(np.array(st))",
    "position": "r = st[np.argmin(np.array(st))]",
    "at_k": "r = st[k - 3]",
    "set_at_minus_k": "st[3 - k] = x",
    "set_slice": "st[1:] = [x]\nst[1] = x",
    "insert_del": "st.insert(0, x)\ndel st[2]",
    "reverse": "st.reverse()\nst[0] = x",
    "pop_at": "r = st.pop(1)",
}
ARMS = {
    "if": "if k > 2:\n    ACT",
    "else": "if k <= 2:\n    r = 1.0 * x\nelse:\n    ACT",
    "elif": "if k < 1:\n    r = 1.0 * x\nelif k > 2:\n    ACT\nelse:\n    r = 2.0 * x",
    "while": "while k > 2:\n    ACT\n    k = k - 3",
    "for": "for j in range(k - 2):\n    ACT",
    "if_in_for": "for j in range(k):\n    if j == 2:\n        ACT",
    "nested_ifs": "if x > 0.0:\n    if k > 2:\n        ACT",
    "and": "if k > 2 and len(st) > 1:\n    ACT",
    "match": "match k:\n    case 3:\n        ACT\n    case _:\n        r = 2.0 * x",
    "try": "try:\n    ACT\nexcept (IndexError, ValueError):\n    r = -x",
    "after_return": "if k <= 2:\n    return len(st), x\nACT",
    "after_return_of_len": "if len(st) < 2:\n    return len(st), x\nACT",
    "after_break": "for j in range(5):\n    if j >= k - 2:\n        break\n    ACT",
    "after_continue": "for j in range(3):\n    if j != k:\n        continue\n    ACT",
    "after_raise": "if k <= 2:\n    raise KeyError('no')\nACT",
    "loop_else": (
        "for j in range(2):\n    if j >= k:\n        break\nelse:\n    if k == 3:\n        ACT"
    ),
}
STEPS = ["f(1.5, 2, 0)", "f(1.5, 3, 3)", "f(1.5, 3, 0)", "f(1.5, 1, 2)", "f(0.5, 3, 2)"]


def program(kind: str, arm: str, act: str) -> Program:
    lines: list[str] = []
    for line in ARMS[arm].splitlines():
        code = line.lstrip()
        indent = line[: len(line) - len(code)]
        lines += [indent + part for part in (ACTS[act] if code == "ACT" else code).splitlines()]
    body = "\n".join([LISTS[kind], "r = 0.0", *lines, "return st, r"])
    return Program(
        f"{kind} {arm} {act}", "def f(x, k, n):\n" + textwrap.indent(body, "    "), STEPS
    )


def is_refused(kind: str, arm: str, act: str) -> bool:
    """Return whether a list of unknown length takes no slice, or its check has no handler."""
    return kind == "grown" and (act == "set_slice" or (arm, act) == ("try", "min_of_rest"))


@pytest.mark.sampled(72)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("arm", ARMS)
def test_paths_that_are_not_taken(arm: str, act: str) -> None:
    with quickly(), wend.config(verify=False, cache_dir=""):
        for kind in LISTS:
            ways = WAYS if kind == "grown" else ["reference"]
            difference = compare(program(kind, arm, act), ways)
            if is_refused(kind, arm, act):
                assert difference is not None
                assert difference.kind == "refused", f"{difference}"
            else:
                assert difference is None, f"{program(kind, arm, act)}\n{difference}"
