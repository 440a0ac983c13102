"""The handlers around a line: `except` clauses and managers that swallow exceptions."""

from __future__ import annotations

import contextlib
import sys
import threading
import unittest
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from wend.base.handling.handlers import (
    Handler,
    active_handlers,
    first_catching,
    note_entered,
    note_left,
)

FILE = __file__


def handlers(depth: int = 1) -> list[Handler]:
    """The handlers of this file that are active where this is called."""
    frame: FrameType | None = sys._getframe(depth)
    frames = []
    while frame is not None and frame.f_code.co_filename == FILE:
        frames.append(frame)
        frame = frame.f_back
    return list(active_handlers(frames))


def classes() -> list[Any]:
    return [handler.classes for handler in handlers(2)]


def test_clauses_from_the_innermost_on() -> None:
    try:
        try:
            active = classes()
        except (KeyError, IndexError):
            active = []
        except ValueError:
            active = []
    except:  # noqa: E722
        active = []
    assert active == [(KeyError, IndexError), (ValueError,), (BaseException,)]


def test_handlers_and_else_and_finally_are_outside() -> None:
    try:
        {}["no such key"]
    except KeyError:
        assert classes() == []
    else:
        raise AssertionError
    try:
        pass
    except KeyError:
        raise AssertionError from None
    else:
        assert classes() == []
    finally:
        assert classes() == []


def test_names_are_looked_up_where_the_frame_is() -> None:
    local = (OSError, (KeyError, ValueError))
    try:
        active = classes()
    except local:
        active = []
    assert active == [(OSError, KeyError, ValueError)]
    with contextlib.suppress(threading.BrokenBarrierError):
        assert classes() == [(threading.BrokenBarrierError,)]


def test_a_class_that_only_running_gives_may_be_any() -> None:
    def chosen() -> type[Exception]:
        return KeyError

    try:
        active = classes()
    except chosen():
        active = []
    assert active == [(BaseException,)]


def test_a_function_defined_under_a_handler_is_not_under_it() -> None:
    try:

        def inner() -> list[Any]:
            return classes()

        outer = lambda: classes()  # noqa: E731
    except ValueError:
        raise
    except KeyError:
        pass
    assert inner() == []
    assert outer() == []
    try:
        active = [inner(), outer()]
    except KeyError:
        active = []
    assert active == [[(KeyError,)], [(KeyError,)]]


def generator() -> Iterator[Any]:
    try:
        yield classes()
    except LookupError:
        yield None


def test_a_generator_has_its_own() -> None:
    assert list(generator()) == [[(LookupError,)]]


def test_a_handler_that_only_reraises_is_none() -> None:
    try:
        active = classes()
    except KeyError:
        raise
    assert active == []


class Swallows:
    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, *raised: Any) -> bool:
        return kind is KeyError


class Passes:
    def __enter__(self) -> None: ...

    def __exit__(self, *raised: Any) -> Any:
        return False


@contextlib.contextmanager
def swallowing() -> Iterator[None]:
    try:
        yield
    except ArithmeticError:
        pass


@contextlib.contextmanager
def passing() -> Iterator[None]:
    try:
        yield
    finally:
        pass


@contextlib.contextmanager
def swallowing_some(*kinds: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kinds:
        pass


MANAGERS: list[tuple[Callable[[], list[Any]], list[Any]]] = []


def manager(expected: list[Any]) -> Callable[[Any], Any]:
    def add(function: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
        MANAGERS.append((function, expected))
        return function

    return add


@manager([(KeyError, OSError)])
def suppress() -> list[Any]:
    with contextlib.suppress(KeyError, OSError):
        return classes()
    return []


@manager([(KeyError,)])
def suppress_in_a_variable() -> list[Any]:
    quiet = contextlib.suppress(KeyError)
    with quiet:
        return classes()
    return []


@manager([(KeyError,)])
def raises() -> list[Any]:
    active = []
    with pytest.raises(KeyError):
        active = classes()
        {}["no such key"]
    return active


@manager([(KeyError,)])
def assert_raises() -> list[Any]:
    active, case = [], unittest.TestCase()
    with case.assertRaises(KeyError):  # noqa: PT027
        active = classes()
        {}["no such key"]
    return active


@manager([(BaseException,)])
def exit_that_may_return_true() -> list[Any]:
    with Swallows():
        return classes()
    return []


@manager([])
def exit_that_returns_false() -> list[Any]:
    with Passes(), threading.Lock(), contextlib.nullcontext(), open(FILE):
        return classes()


@manager([(ArithmeticError,)])
def generator_that_swallows() -> list[Any]:
    with swallowing():
        return classes()
    return []


@manager([(BaseException,)])
def generator_that_swallows_its_arguments() -> list[Any]:
    with swallowing_some(KeyError):
        return classes()
    return []


@manager([(ArithmeticError,)])
def generator_in_a_variable() -> list[Any]:
    quiet, loud = swallowing(), passing()
    with quiet, loud:
        return classes()
    return []


@manager([])
def generator_that_passes() -> list[Any]:
    with passing():
        return classes()


def made(kind: Callable[[], Any]) -> Any:
    return kind()


@manager([(BaseException,)])
def what_a_call_makes() -> list[Any]:
    with made(Swallows):
        return classes()
    return []


@manager([(BaseException,)])
def one_of_two() -> list[Any]:
    with Swallows() if MANAGERS else Passes():
        return classes()
    return []


@manager([(KeyError,)])
def exit_stack_of_some() -> list[Any]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyError))
        stack.enter_context(passing())
        stack.callback(print)
        note_entered(stack, sys._getframe())
        try:
            return classes()
        finally:
            note_left()
    return []


@pytest.mark.parametrize(("function", "expected"), MANAGERS)
def test_managers(function: Callable[[], list[Any]], expected: list[Any]) -> None:
    assert function() == expected


WITHOUT_SOURCE = """
def within_except(probe):
    with threading.Lock():
        try:
            try:
                return probe()
            finally:
                pass
        except KeyError:
            pass

def within_a_bare_one(probe):
    try:
        return probe()
    except:
        pass

def within_finally(probe):
    with threading.Lock():
        try:
            return probe()
        finally:
            pass

def after_it(probe):
    try:
        pass
    except KeyError:
        return None
    return probe()
"""


def test_code_without_source() -> None:
    def active() -> list[Any]:
        return [handler.classes for handler in active_handlers([sys._getframe(1)])]

    scope: dict[str, Any] = {"threading": threading}
    exec(WITHOUT_SOURCE, scope)
    assert scope["within_except"](active) == [(BaseException,)]
    assert scope["within_a_bare_one"](active) == [(BaseException,)]
    assert scope["within_finally"](active) == []
    assert scope["after_it"](active) == []


def test_a_class_above_matches() -> None:
    try:
        (handler,) = handlers()
    except LookupError:
        raise AssertionError from None
    assert handler.source.short.startswith("test_handlers.py:")
    assert handler.catches(KeyError)
    assert handler.catches(Exception)  # any, also a KeyError
    assert not handler.catches(ArithmeticError)
    assert not handler.catches(ValueError)


def test_the_first_that_catches_one_of_several() -> None:
    try:
        match = first_catching([ZeroDivisionError, KeyError], [sys._getframe()])
    except LookupError:
        match = None
    assert match is not None
    assert match[1] is KeyError
