"""Names for one of several containers: a change through one is seen by all, or refused."""

from __future__ import annotations

import linecache
from collections import deque
from typing import Any

import pytest

import wend
from wend.base.refusals import is_refusal

# What is made, and what changes it
CONTAINERS = {
    "an empty list": ("[]", "{}.append(x)"),
    "a list of texts": ("['a']", "{}.append('b')"),
    "a text in a list": ("['a']", "{}[0] = 'b'"),
    "a list of numbers": ("[1.0]", "{}[0] = x"),
    "a list of traced numbers": ("[2.0 * x]", "{}[0] = x"),
    "an empty dict": ("{}", "{}['k'] = x"),
    "a dict of texts": ("{'k': 'a'}", "{}['k'] = 'b'"),
    "a set": ("set()", "{}.add('a')"),
    "a deque": ("deque()", "{}.append(x)"),
    "an object": ("Box()", "{}.value = x"),
    "an object with a text": ("Box('a')", "{}.value = 'b'"),
    "a list in a tuple": ("([], 1)", "{}[0].append(x)"),
    "an empty list in a tuple": ("([],)", "{}[0].append(x)"),
    "a list of numbers in a tuple": ("([1.0], 2.0)", "{}[0][0] = x"),
    "a list in a list": ("[[]]", "{}[0].append(x)"),
    "a list in a dict": ("{'a': []}", "{}['a'].append(x)"),
}
CHOICES = {
    "on both paths": """
if x < t:
    LANE = left
else:
    LANE = right
CHANGE""",
    "on one path": """
LANE = left
if x < t:
    LANE = right
CHANGE""",
    "the same on both": """
if x < t:
    LANE = left
else:
    LANE = left
CHANGE""",
    "by an expression": """
LANE = left if x < t else right
CHANGE""",
    "by `or`": """
LANE = (x < t and left) or right
CHANGE""",
    "two names for a new one": """
if x < t:
    LANE = right = NEW
else:
    LANE = right = NEW
CHANGE""",
    "two names for a new one in each trip": """
LANE = left
for k in range(3):
    x = x + 1
    LANE = right = NEW
CHANGE""",
    "a change of the chosen": """
if x < t:
    LANE = left
else:
    LANE = right
CHANGE_LEFT""",
    "in a loop": """
LANE = left
for k in range(3):
    x = x + 1
    LANE = right
CHANGE""",
    "in a branch in a loop": """
LANE = left
for k in range(3):
    x = x + 1
    if x > t:
        LANE = right
CHANGE""",
    "in each trip": """
for k in range(3):
    x = x + 1
    if x > t:
        LANE = right
    else:
        LANE = left
    CHANGE""",
    "in a loop of unknown length": """
LANE = left
while x < t:
    x = x + 1
    LANE = right
CHANGE""",
    "before the next trip": """
LANE = left
while x < t:
    x = x + 1
    CHANGE
    LANE = right""",
    "exchanged in a loop": """
LANE = left
while x < t:
    x = x + 1
    left, right = right, left
    CHANGE""",
    "exchanged in a branch": """
if x < t:
    left, right = right, left
LANE = left
CHANGE""",
    "by a handler": """
try:
    if x < t:
        raise ValueError
    LANE = left
except ValueError:
    LANE = right
CHANGE""",
}
# The name of the container that is chosen, and what is written before
NAMES = {
    "lane": "pass",
    "held.lane": "held = Box()",
    "held['k']": "held = {}",
    "held[0]": "held = [0]",
}


class Box:
    def __init__(self, *values: Any) -> None:
        if values:
            (self.value,) = values


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_change_is_seen_by_all_who_hold_the_container(
    container: str, choice: str, name: str
) -> None:
    made, change = CONTAINERS[container]
    lines = [NAMES[name], "left = NEW", "right = NEW", *CHOICES[choice].splitlines()]
    body = "\n".join("    " + line for line in [*lines, f"return left, right, {name}"])
    body = body.replace("CHANGE_LEFT", change.replace("{}", "left"))
    body = body.replace("CHANGE", change.replace("{}", "LANE")).replace("LANE", name)
    source = f"def f(x, t):\n{body.replace('NEW', made)}\n"
    filename = f"<{container} {choice} {name}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    namespace: dict[str, Any] = {"Box": Box, "deque": deque}
    exec(compile(source, filename, "exec"), namespace)
    plain = namespace["f"]
    compiled = wend.function(plain, backend="numpy")
    for x in (1.0, 2.5, 5.0):
        try:
            expected = plain(x, 3.0)
        except UnboundLocalError:
            continue
        try:
            found = compiled(x, 3.0)
        except Exception as error:
            assert is_refusal(error), source  # noqa: PT017  # not every one is refused
        else:
            assert described(found) == described(expected), source


def described(value: Any) -> Any:
    if isinstance(value, Box):
        return sorted((name, described(x)) for name, x in vars(value).items())
    if isinstance(value, dict):
        return [(key, described(x)) for key, x in value.items()]
    if isinstance(value, (list, tuple, set, deque)):
        return type(value).__name__, [*map(described, value)]
    return value if isinstance(value, str) else float(value)
