"""Pytrees of one structure, taken apart and put together by code made for it.

Ten times as fast as comparing structures, for calls. Of tuples, lists, dicts and None only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Build = Callable[[Any], Any]
Take = Callable[[Any], "tuple[Any, ...] | None"]


def taker(numbered: Any) -> Take | None:
    """What gives the leaves of a pytree, by their numbers; None where its structure differs.

    What stands in the place of a leaf is not looked at. None where there can be no such function.

    Args:
        numbered: a pytree of the structure, with numbers from 0 for leaves.

    Example:
        >>> from wend.base.pytree_codegen import taker
        >>> take = taker({"w": 1, "b": (0, None)})
        >>> take({"w": 0.5, "b": (2.0, None)}), take({"w": 0.5, "b": [2.0, None]})
        ((2.0, 0.5), None)
    """
    plan = _Plan()
    if not plan.can_take("x", numbered):
        return None
    leaves = "".join(f"{plan.leaves[k]}, " for k in range(len(plan.leaves)))
    made: Take = plan.function([*plan.lines, f"return ({leaves})"])
    return made


def builder(numbered: Any) -> Build | None:
    """What makes a pytree of its leaves; None where there can be no such function.

    Example:
        >>> from wend.base.pytree_codegen import builder
        >>> builder({"w": 1, "b": (0, None)})([2.0, 0.5])
        {'w': 0.5, 'b': (2.0, None)}
    """
    plan = _Plan()
    text = plan.text(numbered)
    return None if text is None else plan.function([f"return {text}"])


class _Plan:
    """Code about one structure, and the keys of dicts that it names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: dict[int, str] = {}
        self._keys: dict[str, Any] = {}
        self._count = 0

    def function(self, lines: list[str]) -> Callable[[Any], Any]:
        scope = self._keys
        text = "\n ".join(["def run(x):", *lines])
        exec(compile(text, "<wend tree>", "exec"), scope)
        found: Callable[[Any], Any] = scope["run"]
        return found

    def can_take(self, name: str, tree: Any) -> bool:
        """Write what takes apart the tree that a variable holds."""
        if type(tree) is int:
            self.leaves[tree] = name
            return True
        if tree is None:
            self.lines.append(f"if {name} is not None: return None")
            return True
        kind = type(tree)
        if kind not in (tuple, list, dict):
            return False
        wrong = f"type({name}) is not {kind.__name__} or len({name}) != {len(tree)}"
        self.lines.append(f"if {wrong}: return None")
        parts = [*self._parts(tree)]
        names = [self._name("x") for _ in parts]
        for part, (key, _) in zip(names, parts, strict=True):
            if kind is dict:
                self.lines.append(f"if {key} not in {name}: return None")
            self.lines.append(f"{part} = {name}[{key}]")
        return all(self.can_take(x, part) for x, (_, part) in zip(names, parts, strict=True))

    def text(self, tree: Any) -> str | None:
        """An expression for the tree, of leaves in `x`."""
        if type(tree) is int:
            return f"x[{tree}]"
        if tree is None:
            return "None"
        parts = [(key, self.text(part)) for key, part in self._parts(tree)]
        if type(tree) not in (tuple, list, dict) or any(part is None for _, part in parts):
            return None
        if type(tree) is dict:
            return f"{{{', '.join(f'{key}: {part}' for key, part in parts)}}}"
        inside = "".join(f"{part}, " for _, part in parts)
        return f"({inside})" if type(tree) is tuple else f"[{inside}]"

    def _parts(self, tree: Any) -> Iterator[tuple[str, Any]]:
        """The parts of a container, with what stands between the brackets to reach them."""
        if type(tree) in (tuple, list):
            yield from ((str(k), part) for k, part in enumerate(tree))
        elif type(tree) is dict:
            for key, part in tree.items():
                name = self._name("key")
                self._keys[name] = key
                yield name, part

    def _name(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"
