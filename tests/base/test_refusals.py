"""A refusal that a handler catches is raised again where the trace ends."""

from __future__ import annotations

import contextlib

import pytest

from wend.base.errors import ConcreteValueError, ShapeError, TypeMismatchError
from wend.base.refusals import final, is_refusal, noted_again, refusal, tentative


def test_nothing_is_noted_outside_of_a_trace() -> None:
    with contextlib.suppress(ConcreteValueError):
        raise ConcreteValueError("no trace")
    with final():
        pass


def test_a_caught_refusal_is_raised_at_the_end() -> None:
    error = None
    with pytest.raises(TypeMismatchError, match="first"), final():
        try:
            raise TypeMismatchError("first")
        except TypeError as caught:
            error = caught
        with contextlib.suppress(TypeMismatchError):
            raise TypeMismatchError("second")
    assert error is not None


def test_it_replaces_the_error_of_the_path_that_python_would_not_take() -> None:
    with pytest.raises(TypeMismatchError, match="first"), final():
        try:
            raise TypeMismatchError("first")
        except TypeError:
            {}["no such key"]


def test_interrupts_pass() -> None:
    with pytest.raises(KeyboardInterrupt), final():
        with contextlib.suppress(TypeError):
            raise TypeMismatchError("first")
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [ShapeError("sizes"), AssertionError("false"), KeyError("k")])
def test_errors_that_python_raises_as_well_are_caught(error: Exception) -> None:
    assert not is_refusal(error)
    with final(), contextlib.suppress(type(error)):
        raise error


def test_a_built_in_error_may_be_a_refusal() -> None:
    with pytest.raises(NotImplementedError, match="no order"), final():
        with contextlib.suppress(NotImplementedError):
            raise refusal(NotImplementedError("no order"))


def test_what_is_tried_first_is_forgotten() -> None:
    with final():
        try:
            with tentative():
                raise TypeMismatchError("tried")
        except TypeMismatchError as error:
            failure = error
    with pytest.raises(TypeMismatchError, match="tried"), final():
        with contextlib.suppress(TypeError):
            raise noted_again(failure)


def test_the_inner_end_raises_it_and_the_outer_one_again() -> None:
    ends = []
    with pytest.raises(TypeMismatchError), final():
        with contextlib.suppress(TypeError):
            try:
                with final(), contextlib.suppress(TypeError):
                    raise TypeMismatchError("inner")
            finally:
                ends.append("inner")
        ends.append("outer")
    assert ends == ["inner", "outer"]


def test_a_group_holds_one() -> None:
    group = ExceptionGroup("both", [KeyError("k"), ExceptionGroup("in", [TypeMismatchError("x")])])
    assert is_refusal(group)
    assert not is_refusal(ExceptionGroup("both", [KeyError("k")]))
