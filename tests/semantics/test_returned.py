"""Containers that are returned on some paths and changed on others.

There is a program for each kind of container, each way to change it and each form of control flow.
"""

from __future__ import annotations

import itertools

import pytest

from tests.semantics.world import Program, compare

HEAD = """
from collections import Counter, OrderedDict, defaultdict, deque
class Point:
    def __init__(self, a): self.a = a
class Row:
    def __init__(self, a): self.items = [a, 2.0]
"""

# How one is made, and the statements that change it
KINDS = {
    "[1.0, 2.0]": [
        *("d[0] = x", "d.append(x)", "d += [x]", "d.pop()", "d.insert(0, x)", "del d[0]"),
        *("d.reverse()", "d.clear()", "d[:] = [x, x]"),
    ],
    "{'a': 1.0}": [
        *("d['a'] = x", "d['b'] = x", "d.update(a=x)", "d.pop('a')", "d['a'] += x"),
        "d.setdefault('c', x)",
    ],
    "{1, 2}": ["d.add(3)", "d.discard(1)", "d |= {4}"],
    "deque([1.0, 2.0])": [
        *("d.append(x)", "d.appendleft(x)", "d[0] = x", "d.rotate(1)", "d.popleft()"),
    ],
    "defaultdict(float, a=1.0)": ["d['a'] += x", "d['b'] += x"],
    "Counter(a=1)": ["d['a'] += 1", "d['b'] += 1"],
    "OrderedDict(a=1.0, b=2.0)": ["d['a'] = x"],
    "Point(1.0)": ["d.a = x", "d.b = x", "d.a += x"],
    "Row(1.0)": ["d.items[0] = x", "d.items.append(x)", "d.items = [x]"],
    "np.array([1.0, 2.0])": ["d[0] = x", "d += x", "d[:] = x", "d *= x"],
    "{'l': [1.0]}": ["d['l'].append(x)", "d['l'][0] = x", "d['l'] = [x]"],
    "{'l': np.ones(2)}": ["d['l'][0] = x", "d['l'] += x", "d['l'] = d['l'] * x"],
    "[{'a': 1.0}]": [
        *("d[0]['a'] = x", "d[0]['b'] = x", "d[0] = {'a': x}", "d.append({'a': x})"),
    ],
    "([1.0], {'a': 2.0})": ["d[0].append(x)", "d[1]['a'] = x", "d[0][0] = x"],
    "[Point(1.0)]": ["d[0].a = x", "d[0] = Point(x)"],
    "bytearray(b'ab')": ["d[0] = 99", "d.append(100)"],
}

CHANGED = "def changed(d, x):\n    {change}\n    return d\n"
FLOW = {
    "before": "    if x > 1.5:\n        return {result}\n    {change}\n",
    "after": "    if x > 1.5:\n        {change}\n        return {result}\n",
    "twice": (
        "    if x > 1.5:\n        {change}\n        return {result}\n    {change}\n    {change}\n"
    ),
    "helper": "    if x > 1.5:\n        return {result}\n    d = changed(d, x)\n",
    "ternary": "    d = d if x > 1.5 else changed(d, x)\n",
    "chosen": "    e = d if x > 1.5 else changed(d, x)\n    {change}\n    d = e\n",
    "for": (
        "    for k in range(4):\n        if k > x:\n            return {result}\n        {change}\n"
    ),
    "while": (
        "    k = x * 1\n    while k < 3.5:\n        if k > 2.6:\n            return {result}\n"
        "        {change}\n        k += 1\n"
    ),
    "nested": (
        "    if x > 0.5:\n        if x > 1.5:\n            return {result}\n        {change}\n"
        "    else:\n        {change}\n"
    ),
}


def programs() -> list[object]:
    """Return the programs: the container is made in the function, or an argument."""
    params = []
    for kind, flow, result in itertools.product(KINDS, FLOW, ("d", "(d, x)")):
        for change, is_argument in itertools.product(KINDS[kind], (False, True)):
            head = HEAD + CHANGED.format(change=change)
            body = FLOW[flow].format(change=change, result=result) + f"    return {result}\n"
            if is_argument:
                source = f"{head}def f(d, x):\n{body}"
                steps = [f"v = {kind}", "f(v, 2.0)", "v", f"w = {kind}", "f(w, 1.0)", "w"]
                steps += ["f(v, 0.25)", "v"]
            else:
                source = f"{head}def f(x):\n    d = {kind}\n{body}"
                steps = ["f(2.0)", "f(1.0)", "f(0.25)", "f(2.5)"]
            name = f"{kind} {change} {flow} {result} {'argument' if is_argument else ''}"
            params.append(pytest.param(Program("returned", source, steps), id=name))
    return params


@pytest.mark.sampled(64)
@pytest.mark.parametrize("program", programs())
def test_returned(program: Program) -> None:
    difference = compare(program, ["reference"])
    if difference is not None:
        assert difference.kind == "refused", f"{program}\n\n{difference}"
        assert "To fix it: " in difference.found, f"{program}\n\n{difference}"
