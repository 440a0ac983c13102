"""Printing and writing in captured code: the run does it, in program order."""

from __future__ import annotations

import builtins
import contextlib
import sys
import types
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.refused_calls import FILE, Call, refusing
from wend.capture.state import operands
from wend.capture.state.made_objects import is_made_here
from wend.trace.arrays.shown_text import ShownText
from wend.trace.recording.recording import is_traced_now
from wend.trace.state import effects
from wend.trace.state.templates import Text
from wend.trace.state.text_choice import TextChoice


class _WrittenCount:
    """The number of characters that a run will write, which only the run knows."""

    def _refused(self, *args: Any) -> Any:
        raise UnsupportedError(
            explain(
                f"what write() returned is used{at(user_source())}: how long a text is, is only "
                "known when the function runs.",
                cure="leave it out.",
            )
        )

    __bool__ = __int__ = __index__ = __float__ = __add__ = __radd__ = __sub__ = _refused
    __rsub__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = _refused
    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = _refused


def stream_method(stream: Any, name: str) -> Call | None:
    """Return the version of a stream's method that works in the run; None to call the method."""
    if is_made_here(stream):
        return _checked_local_method(getattr(stream, name)) if name.startswith("write") else None
    match name:
        case "write":
            return lambda text: _write(stream, text)
        case "writelines":
            return lambda lines: _write_lines(stream, lines)
        case "flush":
            return lambda: _flush(stream)
        case "fileno" | "isatty" | "readable" | "writable" | "seekable" | "__enter__" | "__exit__":
            return None
    return refusing(f"{type(stream).__name__}.{name}", FILE)


def _standard_name(stream: Any) -> str | None:
    """Return `stdout` or `stderr` for the streams of these names, which tests replace."""
    return "stdout" if stream is sys.stdout else "stderr" if stream is sys.stderr else None


def _write(stream: Any, text: Any) -> Any:
    check_managers("write")
    name = _standard_name(stream)

    def write(text: Any) -> None:
        (stream if name is None else getattr(sys, name)).write(text)

    effects.call_in_run("write", write, text)
    return _WrittenCount() if isinstance(text, ShownText) else len(text)


def _write_lines(stream: Any, lines: Iterable[Any]) -> None:
    for line in lines:
        _write(stream, line)


def _flush(stream: Any) -> None:
    name = _standard_name(stream)
    effects.call_in_run("flush", lambda: (stream if name is None else getattr(sys, name)).flush())


def _checked_local_method(method: Call) -> Call:
    """Wrap a method that writes to a buffer of the function's own, while the function is traced."""

    def run(text: Any) -> Any:
        for part in [text] if isinstance(text, str) else text:
            if isinstance(part, ShownText):
                raise part.looked_at()
        return method(text)

    return run


# What `with` changes while it lasts, for the managers whose change the run would not see
_CHANGED_BY: dict[str, tuple[str, ...]] = {
    "redirect_stdout": ("print", "write"),
    "redirect_stderr": ("print", "write", "warnings.warn"),
    "catch_warnings": ("warnings.warn",),
    "printoptions": ("print", "write"),
}
_entered: ContextVar[tuple[str, ...]] = ContextVar("wend_entered", default=())


def _manager_name(manager: Any) -> str:
    code = getattr(getattr(manager, "gen", None), "gi_code", None)
    return type(manager).__name__ if code is None else str(code.co_name)


def is_left_before_run(manager: Any) -> bool:
    """Return whether a context manager changes how texts are shown, and is left before the run."""
    return _manager_name(manager) in _CHANGED_BY and is_traced_now()


@contextlib.contextmanager
def entered(manager: Any) -> Iterator[Any]:
    """Enter such a manager: what it would change is refused inside."""
    with manager as value, scoped(_entered, (*_entered.get(), _manager_name(manager))):
        yield value


def check_managers(name: str) -> None:
    """Check that no manager around a call changes what it shows.

    Raises:
        UnsupportedError: one does.
    """
    for manager in _entered.get():
        if name in _CHANGED_BY[manager]:
            raise UnsupportedError(
                explain(
                    f"{name}{at(user_source())} stands in `with {manager}(…)`, which is left "
                    "before the function runs.",
                    cure="enter it around the call of the function.",
                )
            )


def print_in_run(
    *values: Any, sep: Any = None, end: Any = None, file: Any = None, flush: bool = False
) -> None:
    """Run `print` of captured code: it prints at each call, in order."""
    if not is_traced_now():
        builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
        return
    check_managers("print")
    sep, end = _text_between("sep", sep, " "), _text_between("end", end, "\n")
    if isinstance(getattr(type(file), "write", None), types.FunctionType):
        _print_to_object(file, values, sep, end, flush)
        return
    template = effects.text_of_print(values, sep)
    if not isinstance(end, str):
        template.value(end)
        end = ""
    if file is not None and is_made_here(file):
        text = template.text()
        if isinstance(text, ShownText):
            raise text.looked_at()
        builtins.print(text, end=end, file=file, flush=flush)
        return
    effects.write(template, end, file, bool(flush))


def _text_between(name: str, text: Any, default: str) -> Any:
    """Return the `sep` or `end` of a call of `print`."""
    if isinstance(text, TextChoice):
        return text.mapped(lambda option: _text_between(name, option, default))
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{name} must be None or a string, not {type(text).__name__}")
    return default if text is None else text


def _print_to_object(file: Any, values: Any, sep: str, end: str, flush: bool) -> None:
    """Print to an object of a user's class, whose methods are captured."""
    write = operands.call(file.write)
    for k, value in enumerate(values):
        if k:
            write(sep)
        write(operands.call(str)(value))
    write(end)
    if flush:
        operands.call(file.flush)()


def pprint_in_run(value: Any, stream: Any = None, *args: Any, **options: Any) -> None:
    """Run `pprint.pprint` of captured code, whose layout depends on the texts."""
    import pprint

    text = Text.of([(value, "r", "")])
    if isinstance(text, ShownText):
        raise text.looked_at()
    text = pprint.pformat(value, *args, **options)
    print_in_run(text, file=stream)
