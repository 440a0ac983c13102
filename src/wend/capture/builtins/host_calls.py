"""Clocks, warnings, logs and `np.testing` in captured code: the run calls them, in order."""

from __future__ import annotations

import functools
import time
import types
import warnings
from types import FrameType
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.source import line_of, user_frame, user_source
from wend.capture.builtins import strings
from wend.capture.builtins.refused_calls import CLOCK, Call, refusal, refusing
from wend.capture.builtins.streams import check_managers
from wend.capture.guards.outside import note_answer
from wend.capture.uncaptured import is_outlined
from wend.eager.dispatch import any_staged
from wend.ir.types import TensorType
from wend.trace.arrays.shown_text import ShownText
from wend.trace.state import effects
from wend.trace.state.templates import Template, Text

_CLOCKS = {
    time.time: "f8",
    time.perf_counter: "f8",
    time.monotonic: "f8",
    time.process_time: "f8",
    time.thread_time: "f8",
    time.time_ns: "i8",
    time.perf_counter_ns: "i8",
    time.monotonic_ns: "i8",
    time.process_time_ns: "i8",
    time.thread_time_ns: "i8",
}


def _clock(fun: Call) -> Call:
    result = TensorType(np.dtype(_CLOCKS[fun]), ())
    name = f"time.{fun.__name__}"
    return lambda: effects.call_in_run(name, fun, result=result, only_reads=True).as_weak()


def _sleep(seconds: Any) -> None:
    effects.call_in_run("time.sleep", time.sleep, seconds)


def _warn(
    message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **options: Any
) -> None:
    """Warn in the run, at the line that warns."""
    check_managers("warnings.warn")
    frame = _frame_above(stacklevel)
    names = {} if frame is None else frame.f_globals
    file = "sys" if frame is None else frame.f_code.co_filename
    line = 1 if frame is None else line_of(frame)
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__") or "<unknown>"
    text: Any = message
    if isinstance(message, Warning):
        category = type(message)
        text = Text.adopted(str(message))
        text = text if isinstance(text, ShownText) else message

    def warn(text: Any) -> None:
        kind = UserWarning if category is None else category
        warnings.warn_explicit(text, kind, file, line, module, registry, None, source)

    effects.call_in_run("warnings.warn", warn, text)


# How many arguments these take where they read the clock
_WITHOUT_TIME = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
_LEVELS = {
    "debug": 10,
    "info": 20,
    "warning": 30,
    "warn": 30,
    "error": 40,
    "critical": 50,
    "fatal": 50,
}


def _frame_above(level: int) -> FrameType | None:
    """Return the user's frame that a warning of this `stacklevel` is about."""
    frame = user_frame()
    while level > 1 and frame is not None and frame.f_back is not None:
        level -= not is_outlined(frame.f_code)
        frame = user_frame(frame.f_back)
    return frame


def _log_method(logger: Any, name: str) -> Call | None:
    """Return the version of a logger's method that writes in the run; None for other methods."""
    if name == "exception":
        return refusing("Logger.exception", _TRACEBACK)
    if name == "isEnabledFor":
        return functools.partial(_is_enabled, logger)
    if name == "log":
        return lambda level, message, *args, **options: _log(
            logger, level, message, args, **options
        )
    level = _LEVELS.get(name)
    if level is None:
        return None
    return lambda message, *args, **options: _log(logger, level, message, args, **options)


def _is_enabled(logger: Any, level: int) -> bool:
    """Return `logger.isEnabledFor(level)`, which a guard asks at each call.

    The logger keeps its answers; the trace leaves it as it is.
    """
    is_enabled = level >= logger.getEffectiveLevel() and level > logger.manager.disable
    answer = is_enabled and not logger.disabled
    note_answer(logger, "isEnabledFor", (level,), answer, f"the logger {logger.name!r}")
    return answer


_TRACEBACK = (
    "writes the traceback of an exception",
    "log the message alone, or log in wend.py_function(…).",
)


def _log(
    logger: Any, level: int, message: Any, args: tuple[Any, ...], extra: Any = None, **options: Any
) -> None:
    """Log in the run, as from the line that logs."""
    if options.get("exc_info") or options.get("stack_info"):
        raise refusal("exc_info=True" if options.get("exc_info") else "stack_info=True", _TRACEBACK)
    if len(args) == 1 and isinstance(args[0], dict) and args[0]:
        args = args[0]  # type: ignore[assignment]  # as `logging` does
    template = Template()
    template.value(message, "s")
    text = template.text()
    if args:
        text = strings.remainder(text, args)
    source = user_source()
    place = ("(unknown file)", 0, None) if source is None else (source.file, source.line, None)
    function = None if source is None else source.function
    is_root = logger is None

    def log(text: str) -> None:
        import logging

        target = logging.getLogger() if is_root else logger
        if is_root and not target.handlers:
            logging.basicConfig()
        if target.isEnabledFor(level):
            record = target.makeRecord(
                target.name, level, place[0], place[1], text, (), None, function, extra
            )
            target.handle(record)

    effects.call_in_run(f"Logger.{_level_name(level)}", log, text)


def _level_name(level: int) -> str:
    return next((name for name, number in _LEVELS.items() if number == level), "log")


def logging_method(owner: Any, name: str) -> Call | None:
    """Return the version of a method of `logging`, or None."""
    import logging

    if isinstance(owner, logging.LoggerAdapter):
        if name == "isEnabledFor":
            return logging_method(owner.logger, name)
        if name not in (*_LEVELS, "log", "exception"):
            return None

        def run(*args: Any, **options: Any) -> None:
            level, args = (args[:1], args[1:]) if name == "log" else ((), args)
            message, options = owner.process(args[0], options)  # type: ignore[assignment]
            method = logging_method(owner.logger, name)
            assert method is not None
            method(*level, message, *args[1:], **options)

        return run
    return _log_method(owner, name) if isinstance(owner, logging.Logger) else None


def of_time(fun: Any, module: str, name: str) -> Call | None:
    """Return the version of a function of `time`, or None."""
    if fun in _CLOCKS:
        return _clock(fun)
    if fun is time.sleep:
        return _sleep
    if name in _WITHOUT_TIME:

        def run(*args: Any) -> Any:
            if len(args) <= _WITHOUT_TIME[name]:
                raise refusal(f"time.{name}()", CLOCK)
            return fun(*args)

        return run
    return None


def of_logging(fun: Any, module: str, name: str) -> Call | None:
    """Return the version of a function of `logging`, or None."""
    is_function = isinstance(fun, types.FunctionType) and module == "logging"
    return _log_method(None, name) if is_function else None


def of_warnings(fun: Any, module: str, name: str) -> Call | None:
    """Return the version of a function of `warnings`, or None."""
    return _warn if name == "warn" else None


_ASSERTIONS = frozenset(
    {
        *("assert_allclose", "assert_almost_equal", "assert_approx_equal", "assert_equal"),
        *("assert_array_equal", "assert_array_almost_equal", "assert_array_less"),
        *("assert_array_almost_equal_nulp", "assert_array_max_ulp"),
    }
)


def of_testing(fun: Any, name: str) -> Call | None:
    """Return the version of an assertion of `numpy.testing`, which the run checks, or None."""
    assertion: Call | None = getattr(np.testing, name, None) if name in _ASSERTIONS else None
    if assertion is None or assertion is not fun:
        return None

    def run(*args: Any, **kwargs: Any) -> None:
        leaves, treedef = trees.flatten((args, kwargs))
        if not any_staged(leaves):
            assertion(*args, **kwargs)
            return

        def check(*leaves: Any) -> None:
            args, kwargs = trees.unflatten(treedef, leaves)
            assertion(*args, **kwargs)

        errors = (AssertionError,)
        effects.call_in_run(f"np.testing.{name}", check, *leaves, errors=errors, only_reads=True)

    return run
