"""A program and its world, run several times: as Python, and with its function compiled.

A program is the text of a module that defines `f`, and steps: statements and expressions, run one
after another in the module, that call `f` and change the world in between. Everything that a
user could see of a step is compared: its value, what it prints, its warnings and its error, and
after it all that the module holds.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import linecache
import logging
import re
import sys
import traceback
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import wend
from wend.base.refusals import is_refusal
from wend.function.function import Function

PLAIN = "plain"
WAYS: dict[str, dict[str, Any]] = {
    "native": {"backend": "native"},
    "reference": {"backend": "numpy"},
}
HEADER = """\
import math
import numpy as np
"""
_NUMBERS = count()
_FILE = r"<(?:program_\d+|string)>"  # of the program, or of what it gives to `exec` without a name
_PROGRAM = re.compile(_FILE)
_PLACE = re.compile(rf" at {_FILE}:(\d+)")
_ADDED_PLACE = re.compile(r" ?(at <program_\d+>:\d+)?\.?$")
Decorator = Callable[[Any], Any]
_SIGNIFICANT = 11  # digits that are compared: sums may be taken in another order


@dataclass(frozen=True)
class Program:
    """The text of a module that defines `f`, and the steps that are run in it."""

    name: str
    source: str
    steps: Sequence[str]

    def __str__(self) -> str:
        return "\n".join([self.source, "---", *self.steps])


@dataclass(frozen=True)
class Difference:
    """Where a program differs from Python.

    Attributes:
        kind: "different"; "refused" where wend raised an error of its own; "raw" where it raised
            another error than Python's.
        way: the way it was run.
        step: the text of the step.
        expected: what Python gives, as a text.
        found: what wend gives, as a text.
    """

    kind: str
    way: str
    step: str
    expected: str
    found: str

    def __str__(self) -> str:
        return (
            f"{self.kind} ({self.way}) at `{self.step}`\n"
            f"    Python: {self.expected}\n    wend:   {self.found}"
        )


def compare(
    program: Program, ways: Iterable[str] = WAYS, compiled: Decorator | None = None
) -> Difference | None:
    """Return the first difference between Python and wend in each way, the worst one.

    `compiled` makes of `f` what is compared with it; without it, `wend.function` does.
    """
    expected = list(run(program, PLAIN))
    differences = [d for way in ways if (d := _difference(program, way, expected, compiled))]
    order = "different", "raw", "refused"
    return min(differences, key=lambda d: order.index(d.kind), default=None)


def run(program: Program, way: str, decorator: Decorator | None = None) -> Iterator[Any]:
    """Yield the outcome of each step, with `f` made anew by the decorator."""
    if decorator is None:
        decorator = _unchanged if way == PLAIN else wend.function
    name = f"program_{next(_NUMBERS)}"
    filename = f"<{name}>"
    source = _with_header(program.source.strip()) + "\n"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module = sys.modules[name] = types.ModuleType(name)  # dataclasses look it up
    vars(module)["__builtins__"] = builtins  # as in a program, not the dict that exec puts there
    try:
        exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)
        module.f = decorator(module.f)  # type: ignore[attr-defined]
        with wend.config(**WAYS.get(way, {})):
            for step in program.steps:
                yield _run_step(step, module)
    finally:
        del linecache.cache[filename], sys.modules[name]


def _with_header(source: str) -> str:
    future = re.match(r"(from __future__ .*\n)?", source)
    assert future is not None
    return future[0] + HEADER + source[future.end() :]


def _unchanged(fun: Any) -> Any:
    return fun


def _difference(
    program: Program, way: str, expected: Sequence[Any], compiled: Decorator | None
) -> Difference | None:
    # All steps are run, also after a difference: the last ones may put back what others changed
    found = list(run(program, way, compiled))
    for step, outcome, wanted in zip(program.steps, found, expected, strict=True):
        kind, value = outcome[0]
        if kind == "refused":
            return Difference("refused", way, step, str(wanted[0]), value)
        raw = kind == "raised" and wanted[0][0] != "raised"
        for part, other in zip(outcome, wanted, strict=True):
            if not _agrees(part, other):
                return Difference("raw" if raw else "different", way, step, str(other), str(part))
    return None


def _run_step(step: str, module: types.ModuleType) -> Any:
    out, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    result: tuple[str, Any]
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = "value", describe(_value(step, module.__dict__))
        except (Exception, SystemExit) as error:
            if is_refusal(error):
                result = "refused", f"{type(error).__name__}: {error}"
            else:
                result = "raised", _described_error(error)
        finally:
            logging.getLogger().removeHandler(handler)
    # A ResourceWarning comes from whatever the collector frees during the step
    others = [
        w for w in caught if not issubclass(w.category, (wend.RetraceWarning, ResourceWarning))
    ]
    seen = [f"{w.category.__name__}: {w.message}" for w in others]
    return result, out.getvalue(), log.getvalue(), seen, _holds(module)


def _described_error(error: BaseException) -> str:
    """Return the error's class, its line and its first line of text, and those of its cause."""
    classes = (c for c in type(error).__mro__ if not c.__module__.startswith("wend."))
    first = _ADDED_PLACE.sub("", str(error).partition("\n")[0])  # which wend adds
    first = re.sub(r"program_\d+\.", "", first)  # Python 3.13 names the module of a class
    text = f"{next(classes).__name__}: {first} at {_line_of(error)}"
    cause = error.__cause__
    return f"{text}, from {type(cause).__name__}: {cause}" if cause is not None else text


def _line_of(error: BaseException) -> str:
    """Return the line of the program that raised an error: in its traceback, or in its notes."""
    noted = _PLACE.findall("\n".join([str(error), *getattr(error, "__notes__", ())]))
    frames = traceback.extract_tb(error.__traceback__)
    found = [str(f.lineno) for f in frames if _PROGRAM.fullmatch(f.filename)]
    return [*noted[-1:], *found[::-1], "?"][0]


def _value(step: str, namespace: dict[str, Any]) -> Any:
    try:
        code = compile(step, "<step>", "eval", dont_inherit=True)
    except SyntaxError:
        exec(compile(step, "<step>", "exec", dont_inherit=True), namespace)
        return None
    return eval(code, namespace)


def _holds(module: types.ModuleType) -> Any:
    """Return a description of all that the module's names hold, but its functions."""
    left_out = (types.ModuleType, types.FunctionType, wend.Function)
    return [
        (name, _attributes_of(value, {}) if isinstance(value, type) else describe(value))
        for name, value in vars(module).items()
        if name != "f" and not name.startswith("__") and not isinstance(value, left_out)
    ]


@dataclass(frozen=True)
class Number:
    """A number as it is described: its class, and its value."""

    kind: str
    value: Any


# NumPy's scalars are results where Python returns numbers (docs/python.md lists it)
RESULTS = {"int": "int64", "float": "float64", "complex": "complex128", "bool": "bool_"}


def _agrees(found: Any, wanted: Any) -> bool:
    """Return whether the descriptions are equal, or numbers differ as those of results do."""
    if isinstance(wanted, Number):
        if not isinstance(found, Number):
            return False
        kinds = wanted.kind, RESULTS.get(wanted.kind)
        return found.kind in kinds and found.value == wanted.value
    if isinstance(wanted, (list, tuple)):
        return type(found) is type(wanted) and _all_agree(found, wanted)
    return bool(found == wanted)


def _all_agree(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return len(found) == len(wanted) and all(map(_agrees, found, wanted))


def describe(value: Any, seen: dict[int, int] | None = None) -> Any:
    """Return nested tuples that are equal for values that a user cannot tell apart.

    Numbers are told by class and value, objects by class and attributes.
    """
    seen = {} if seen is None else seen
    if type(value) in (bool, int, float, complex) or isinstance(value, np.number | np.bool_):
        kind = "bool_" if isinstance(value, np.bool_) else type(value).__name__
        return Number(kind, _described_number(value))
    if value is None or isinstance(value, (str, bytes)):
        is_name = isinstance(value, str) and re.fullmatch(r"program_\d+", value)
        return type(value).__name__, "program" if is_name else value
    if isinstance(value, (type, types.FunctionType, types.ModuleType, np.dtype, Function)):
        return "named", getattr(value, "__name__", str(value))
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    return _described_object(value, seen)


def _described_number(value: Any) -> Any:
    if isinstance(value, (complex, np.complexfloating)):
        return _rounded(value.real), _rounded(value.imag)
    if isinstance(value, (float, np.floating)):
        return _rounded(float(value))
    return value.item() if isinstance(value, np.generic) else value


def _described_object(value: Any, seen: dict[int, int]) -> Any:
    name = type(value).__name__
    if isinstance(value, np.ndarray):
        items = [describe(x, seen) for x in value.ravel().tolist()]
        return "array", name, str(value.dtype), value.shape, items
    if issubclass(type(value), Mapping):
        items = [(describe(k, seen), describe(v, seen)) for k, v in value.items()]
        return name, items, _attributes_of(value, seen)
    if isinstance(value, (set, frozenset)):
        items = [describe(x, seen) for x in value]
        return name, sorted(items, key=lambda x: str(getattr(x, "value", x)))
    if isinstance(value, (list, tuple, deque)):
        return name, [describe(x, seen) for x in value], _attributes_of(value, seen)
    return name, _attributes_of(value, seen)


def _attributes_of(value: Any, seen: dict[int, int]) -> Any:
    named: dict[str, Any] = {}
    with contextlib.suppress(AttributeError):
        named |= object.__getattribute__(value, "__dict__")  # past hooks of the class
    for owner in type(value).__mro__:
        for name in getattr(owner, "__slots__", ()):
            with contextlib.suppress(AttributeError):
                named[name] = object.__getattribute__(value, name)
    return [
        (name, describe(x, seen))
        for name, x in named.items()
        if not name.startswith("__") and not callable(x) and not hasattr(x, "__get__")
    ]


def _rounded(x: float) -> str:
    return f"{x:.{_SIGNIFICANT}g}"
