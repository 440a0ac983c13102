"""Generated code that flattens and unflattens pytrees of one structure.

Ten times as fast per call as comparing structures. Supports tuples, named ones too, lists, dicts,
None, and instances of dataclasses and attrs classes that are not registered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wend.base.instances import is_ordinary_object, is_unregistered, slots_for
from wend.base.keys import attributes_of, is_equal
from wend.base.trees import is_namedtuple

Unflatten = Callable[[Any], Any]
Flatten = Callable[[Any], "tuple[Any, ...] | None"]
Check = Callable[[Any], bool]


def compile_flatten(
    numbered: Any, checks: Mapping[int, Check] | None = None, *, with_containers: bool = False
) -> Flatten | None:
    """Return a function from a pytree to its leaves, in the order of their numbers.

    The function returns None for a pytree of another structure, which includes the order and the
    classes of dict keys. None is returned in its place if the structure is not supported.

    Args:
        numbered: a pytree of the structure, with numbers from 0 for leaves.
        checks: tell for some leaves whether they are as expected; others are not checked.
        with_containers: whether the function returns the lists, dicts and instances of the pytree,
            too: `(leaves, containers)`, each from outside and the left.

    Example:
        >>> from wend.base.pytree_codegen import compile_flatten
        >>> take = compile_flatten({"w": 1, "b": (0, None)})
        >>> take({"w": 0.5, "b": (2.0, None)}), take({"w": 0.5, "b": [2.0, None]})
        ((2.0, 0.5), None)
        >>> take({"b": (2.0, None), "w": 0.5}) is None  # in another order
        True
    """
    plan = _CodeBuilder()
    if not plan.emit_flatten("x", numbered):
        return None
    for k, check in (checks or {}).items():
        plan.lines.append(f"if not {plan.name_of(check)}({plan.leaves[k]}): return None")
    leaves = "".join(f"{plan.leaves[k]}, " for k in range(len(plan.leaves)))
    result = f"({leaves})"
    if with_containers:
        result = f"{result}, [{', '.join(plan.containers)}]"
    # Unpacking raises where there are more, or fewer; a slot, where it is empty.
    lines = ["try:", *[f" {line}" for line in plan.lines], f" return {result}"]
    flatten: Flatten = plan.function(
        [*lines, "except (ValueError, AttributeError):", " return None"]
    )
    return flatten


class ReferencedPart:
    """A part of a pytree, not a leaf, that a callable supplies."""

    def __init__(self, get: Callable[[], Any]) -> None:
        self.get = get


def compile_unflatten(
    numbered: Any, converted: Mapping[int, Callable[[Any], Any]] | None = None
) -> Unflatten | None:
    """Return a function from leaves to a pytree; None if the structure is not supported.

    An object that the structure holds several times is one in each pytree.

    Args:
        numbered: a pytree of the structure, with numbers from 0 for leaves.
        converted: functions of some leaves that stand in their places.

    Example:
        >>> from wend.base.pytree_codegen import compile_unflatten
        >>> compile_unflatten({"w": 1, "b": (0, None)})([2.0, 0.5])
        {'w': 0.5, 'b': (2.0, None)}
    """
    plan = _CodeBuilder(converted)
    try:
        text = plan.text(numbered)
    except RecursionError:  # an object that holds itself
        return None
    return None if text is None else plan.function([*plan.lines, f"return {text}"])


class _CodeBuilder:
    """Generated code for one structure, and the objects that it refers to, such as dict keys."""

    def __init__(self, converted: Mapping[int, Callable[[Any], Any]] | None = None) -> None:
        self._converted = converted or {}
        self.lines: list[str] = []
        self.leaves: dict[int, str] = {}
        self.containers: list[str] = []  # the names of lists, dicts and instances
        self._scope: dict[str, Any] = {
            "have_keys": _have_keys,
            "attribute": object.__getattribute__,
            "new": object.__new__,
            "new_tuple": tuple.__new__,
        }
        self._names: dict[int, str] = {}  # of the nodes that there are variables for, by id
        self._count = 0

    def function(self, lines: list[str]) -> Callable[[Any], Any]:
        scope = self._scope
        exec(compile("\n ".join(["def run(x):", *lines]), "<wend tree>", "exec"), scope)
        run: Callable[[Any], Any] = scope["run"]
        return run

    def emit_flatten(self, name: str, tree: Any) -> bool:
        """Generate code that flattens the tree in a variable; return whether it is supported."""
        if _is_leaf(tree):
            self.leaves[tree] = name
            return True
        if tree is None:
            self.lines.append(f"if {name} is not None: return None")
            return True
        kind = type(tree)
        if not isinstance(tree, tuple):
            self.containers.append(name)
        if is_unregistered(tree):
            return self._emit_flatten_instance(name, tree)
        is_named = _is_plain_namedtuple(kind)
        if kind not in (tuple, list, dict) and not is_named:
            return False
        kind_name = self.name_of(kind) if is_named else kind.__name__
        is_other = f"type({name}) is not {kind_name}{'' if tree else f' or {name}'}"
        self.lines.append(f"if {is_other}: return None")
        if not tree:
            return True
        parts = [*self._parts(tree)]
        names = [self._name("x") for _ in parts]
        self.lines.append(f"{', '.join(names)}, = {name}")
        if kind is dict:
            keys = [key for key, _ in parts]
            different = " or ".join(f"{x} is not {key}" for x, key in zip(names, keys, strict=True))
            same = f"have_keys({name}, ({', '.join(keys)},))"
            self.lines.append(f"if ({different}) and not {same}: return None")
            self.lines += [f"{x} = {name}[{key}]" for x, key in zip(names, keys, strict=True)]
        return all(self.emit_flatten(x, part) for x, (_, part) in zip(names, parts, strict=True))

    def _emit_flatten_instance(self, name: str, tree: Any) -> bool:
        attributes, slots = attributes_of(tree), slots_for(type(tree))
        names = [self._name("x") for _ in attributes]
        in_dict = [x for x, (key, _) in zip(names, attributes, strict=True) if key not in slots]
        if len(attributes) - len(in_dict) < len(slots):
            return False  # one of them is empty
        self.lines.append(f"if type({name}) is not {self.name_of(type(tree))}: return None")
        if type(tree).__dictoffset__:
            keys = [key for key, _ in attributes if key not in slots]
            values = self._name("x")
            self.lines.append(f"{values} = attribute({name}, '__dict__')")
            self.lines.append(f"if [*{values}] != {keys!r}: return None")
            if in_dict:
                self.lines.append(f"{', '.join(in_dict)}, = {values}.values()")
        for x, (key, _) in zip(names, attributes, strict=True):
            if key in slots:
                self.lines.append(f"{x} = {self.name_of(slots[key].__get__)}({name})")
        parts = [part for _, part in attributes]
        return all(self.emit_flatten(x, part) for x, part in zip(names, parts, strict=True))

    def text(self, tree: Any) -> str | None:
        """Return an expression for the tree, with leaves from `x`; lines may precede it."""
        if _is_leaf(tree):
            convert = self._converted.get(tree)
            return f"x[{tree}]" if convert is None else f"{self.name_of(convert)}(x[{tree}])"
        if isinstance(tree, ReferencedPart):
            return f"{self.name_of(tree.get)}()"
        if tree is None:
            return "None"
        if type(tree) in (str, bytes):
            return self.name_of(tree)
        if id(tree) in self._names:
            return self._names[id(tree)]
        text = self._text_of_node(tree)
        if text is None or isinstance(tree, tuple):
            return text
        name = self._names[id(tree)] = self._name("y")  # one object, where it stands again
        self.lines.append(f"{name} = {text}")
        return name

    def _text_of_node(self, tree: Any) -> str | None:
        if is_unregistered(tree) or is_ordinary_object(tree):
            return self._instance_text(tree)
        parts = [(key, self.text(part)) for key, part in self._parts(tree)]
        is_named = _is_plain_namedtuple(type(tree))
        is_known = is_named or type(tree) in (tuple, list, dict)
        if not is_known or any(part is None for _, part in parts):
            return None
        if type(tree) is dict:
            return f"{{{', '.join(f'{key}: {part}' for key, part in parts)}}}"
        inside = "".join(f"{part}, " for _, part in parts)
        if is_named:
            return f"new_tuple({self.name_of(type(tree))}, ({inside}))"
        return f"({inside})" if type(tree) is tuple else f"[{inside}]"

    def _instance_text(self, tree: Any) -> str | None:
        slots = slots_for(type(tree))
        parts = [(key, self.text(part)) for key, part in attributes_of(tree)]
        if any(part is None for _, part in parts):
            return None
        name, values = self._name("y"), self._name("y")
        self.lines.append(f"{name} = new({self.name_of(type(tree))})")
        if any(key not in slots for key, _ in parts):
            self.lines.append(f"{values} = attribute({name}, '__dict__')")
        for key, part in parts:
            if key in slots:
                self.lines.append(f"{self.name_of(slots[key].__set__)}({name}, {part})")
            else:
                self.lines.append(f"{values}[{key!r}] = {part}")
        return name

    def _parts(self, tree: Any) -> Iterator[tuple[str, Any]]:
        """Yield the children of a container, each with the subscript that reaches it."""
        if type(tree) in (tuple, list) or _is_plain_namedtuple(type(tree)):
            yield from ((str(k), part) for k, part in enumerate(tree))
        elif type(tree) is dict:
            for key, part in tree.items():
                yield self.name_of(key), part

    def name_of(self, x: Any) -> str:
        """Return a name that the code has for an object."""
        name = self._name("ref")
        self._scope[name] = x
        return name

    def _name(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"


def _is_leaf(tree: Any) -> bool:
    """Return whether it is the number of a leaf; larger integers are constants."""
    return type(tree) is int and 0 <= tree < sys.maxsize


def _is_plain_namedtuple(cls: Any) -> bool:
    """Return whether a class is a namedtuple without attributes and iteration of its own."""
    return is_namedtuple(cls) and not cls.__dictoffset__ and cls.__iter__ is tuple.__iter__


def _have_keys(container: dict[Any, Any], expected: Sequence[Any]) -> bool:
    """Return whether a dict has just these keys in this order; 1 is not 1.0."""
    return all(map(is_equal, container, expected))
