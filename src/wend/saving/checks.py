"""Checks of loaded graphs beyond the shape rules, which trust that wend has made the attrs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import Formatter
from typing import Any

import numpy as np

from wend.base.errors import LoadError
from wend.base.memory import memory_text, without_segments
from wend.ir.dtypes import is_supported
from wend.ir.graph import Graph, Node
from wend.ir.op import Op
from wend.ir.types import HostType, ListType, MaybeType, ResourceType, Type
from wend.ops import effects
from wend.ops.control import AGAIN, call
from wend.ops.custom import RULED, CustomJvpParts, CustomVjpParts, RecursiveRule, custom_jvp
from wend.runtime.storage import Storage

# The types of attrs, as shape rules annotate them; tuples and others are left to the rules.
_KINDS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "int | None": (int, type(None)),
    "bool": (bool,),
    "str": (str,),
    "str | None": (str, type(None)),
    "float | None": (float, type(None)),
    "np.dtype": (np.dtype,),
    "np.ndarray": (np.ndarray,),
    "Storage": (Storage,),
}
_MAX_WIDTH = 1000  # of a field in a format string
_FORMATTER = Formatter()


def check_graph(graph: Graph) -> None:
    """Check the attrs of every node.

    Raises:
        LoadError: one is not of the kind that its operation takes.
    """
    _check_types([param.type for param in graph.params])
    for node in graph.nodes:
        if not node.op.is_portable:
            raise LoadError(f"{node.op.name} calls Python, which no file may")
        _check_attrs(node)
        _check_types([result.type for result in node.results])
        for region in node.regions:
            if not _is_callee(node):  # which is a member of its own
                check_graph(region)


def _is_callee(node: Node) -> bool:
    return node.op is call or node.op in RULED


def _check_types(types: Sequence[Type]) -> None:
    for kind in types:
        while isinstance(kind, (ListType, MaybeType, ResourceType)):
            kind = kind.element if isinstance(kind, ListType) else kind.of
        if isinstance(kind, HostType):
            raise LoadError("a value is an object of Python, which no file may hold")


def _check_attrs(node: Node) -> None:
    kinds = _attr_kinds(node.op)
    for name, value in node.attrs.items():
        where = f"{node.op.name}: {name}"
        expected = kinds.get(name)
        if expected is not None:
            is_expected = isinstance(value, expected) and (
                type(value) is not bool or bool in expected
            )
            if not is_expected:
                raise LoadError(f"{where} is {value!r:.40}")
        elif isinstance(value, (np.ndarray, Storage)):
            raise LoadError(f"{where} is {type(value).__name__}")
        elif isinstance(value, RecursiveRule) and not (node.op in RULED and name == "rule"):
            raise LoadError(f"{where} is a rule")
    _check_effects(node)
    if node.op in RULED:
        _check_rule(node)
    for name in ("carry", "mapped", "cotangents"):
        count = node.attrs.get(name, 0)
        if not 0 <= count <= len(node.operands):
            raise LoadError(f"{node.op.name}: {name} is {count}")
    applied = node.attrs.get("applied") or AGAIN
    for policy in (node.attrs.get("memory"), None if applied == AGAIN else applied):
        if policy is not None:
            _check_policy(policy)
    array = node.attrs.get("value")
    if isinstance(array, np.ndarray) and not is_supported(array.dtype):
        raise LoadError(f"{node.op.name}: an array of {array.dtype}")


def _check_policy(policy: Any) -> None:
    """Check the text of a tape policy."""
    try:
        memory_text(without_segments(policy)[0])
    except (ValueError, TypeError, NotImplementedError):
        raise LoadError(f"there is no tape policy {policy!r:.40}") from None


def _check_effects(node: Node) -> None:
    """Check texts with fields, and the names of exceptions."""
    attrs = node.attrs
    if node.op is effects.print_:
        check_format(attrs.get("format"), len(node.operands) - 1)
        kinds = {"format": str, "end": str, "file": str, "flush": bool, "sep": str}
        for name, value in attrs.items():
            if value is not None and type(value) is not kinds.get(name):
                raise LoadError(f"print: {name} is {value!r:.40}")
    elif node.op is effects.raise_if:
        check_error(attrs.get("error"))
        if attrs.get("text") is not None:
            check_format(attrs["text"], len(node.operands) - 2)
    elif node.op is effects.checked:
        errors, texts = attrs.get("errors"), attrs.get("texts")
        counts = {len(x) if type(x) is tuple else -1 for x in (errors, texts)}
        if counts != {len(node.operands) - 1}:
            raise LoadError(f"check_number: {errors!r:.40} with {texts!r:.40}")
        for error, text in zip(errors or (), texts or (), strict=True):
            check_error(error)
            check_format(text, 1)


def check_error(name: Any) -> None:
    """Check the name of an exception that a run may raise: a subclass of `Exception`."""
    try:
        error = effects.error_class(name) if type(name) is str else None
    except KeyError:
        error = None
    if error is None or not issubclass(error, Exception):
        raise LoadError(f"there is no exception called {name!r:.40}")


def check_format(format: Any, count: int) -> None:
    """Check a format string: its fields are values, without attributes, and not wide."""
    if type(format) is not str:
        raise LoadError(f"{format!r:.40} is no format string")
    try:
        fields = [part for part in _FORMATTER.parse(format) if part[1] is not None]
    except ValueError as error:
        raise LoadError(f"{format!r:.40} is no format string: {error}") from None
    numbered = 0
    for _, name, spec, conversion in fields:
        index = name or str(numbered)
        numbered += not name
        digits = "".join(c if c.isdecimal() else " " for c in spec or "").split()
        is_wide = any(len(number) > 4 or int(number) > _MAX_WIDTH for number in digits)
        is_value = index.isdecimal() and len(index) < 6 and int(index) < count
        if not is_value or is_wide or "{" in (spec or "") or conversion not in (None, *"rsa"):
            raise LoadError(f"{format!r:.40}: a field is not a plain value")


def _check_rule(node: Node) -> None:
    """Check the attrs of a call with a derivative rule, which its shape rule reads in part."""
    attrs = node.attrs
    if type(attrs.get("name")) is not str:
        raise LoadError(f"{node.op.name}: it has no name")
    captured = attrs.get("captured", 0)
    if type(captured) is not int or not 0 <= captured <= len(node.operands):
        raise LoadError(f"{node.op.name}: captured is {captured!r:.40}")
    if isinstance(attrs.get("rule"), RecursiveRule):
        return
    if node.op is custom_jvp:
        jvp = CustomJvpParts.of(node)
        _check_positions(jvp.wrt, len(node.operands))
        _check_positions(jvp.tangent_outs, jvp.outs)
        return
    vjp = CustomVjpParts.of(node)
    for backward in vjp.backwards:
        _check_positions(backward.wrt, len(node.operands))
        _check_positions(backward.seeded, vjp.outs)
    if not 0 <= vjp.outs + vjp.residuals <= len(vjp.forward.results) or vjp.outs < 0:
        raise LoadError(f"{node.op.name}: {vjp.residuals} residuals")


def _check_positions(positions: Any, count: int) -> None:
    are_positions = type(positions) is tuple and all(
        type(k) is int and 0 <= k < count for k in positions
    )
    if not are_positions:
        raise LoadError(f"{positions!r:.40} are no positions below {count}")


@lru_cache(256)
def _attr_kinds(op: Op) -> Mapping[str, tuple[type, ...]]:
    """Return the types of an operation's attrs, by the annotations of its shape rule."""
    parameters = inspect.signature(op.infer).parameters.values()
    kinds = {p.name: _KINDS.get(str(p.annotation)) for p in parameters}
    known = {name: types for name, types in kinds.items() if types is not None}
    # Shape rules of one line are not annotated.
    return {"axis": (int,), "reverse": (bool,), **known} if op.is_portable else known
