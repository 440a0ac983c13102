"""Results of Python that a second run gets in place of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wend.runtime import host_results
from wend.runtime.host_results import UnknownResultError, noted_results, noting, replayed


def result_of(call: Any, arrays: Any) -> Any:
    noted = noted_results.get()
    return call(arrays) if noted is None else noted.of(call, arrays)


class Callee:
    """Something that graphs call; it counts its calls."""

    def __init__(self) -> None:
        self.count = 0
        self.kept = np.zeros(4)

    def call(self, arrays: Any) -> list[Any]:
        self.count += 1
        self.kept += 1.0
        return [self.kept, self.count]


def failing(callees: list[Callee]) -> BaseException:
    """The error of a run that calls each of them three times."""

    def run() -> None:
        for _ in range(3):
            for callee in callees:
                result_of(callee.call, [])
        raise IndexError("of the run")

    with pytest.raises(IndexError) as caught:
        noting(run, (IndexError,))()
    return caught.value


def test_results_are_given_in_the_order_of_the_calls_of_each() -> None:
    callees = [Callee(), Callee()]
    with replayed(failing(callees)):
        for callee in callees:
            for k in range(3):
                array, count = result_of(callee.call, [])
                np.testing.assert_array_equal(array, np.full(4, k + 1.0))
                assert count == k + 1
            with pytest.raises(UnknownResultError):
                result_of(callee.call, [])
            assert callee.count == 3
    assert result_of(callees[0].call, [])[1] == 4


def test_results_are_given_once_and_to_nobody_else() -> None:
    callee = Callee()
    error = failing([callee])
    with replayed(error):
        pass
    with replayed(error), pytest.raises(UnknownResultError):
        result_of(callee.call, [])
    with replayed(IndexError()), pytest.raises(UnknownResultError):
        result_of(callee.call, [])


def test_much_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_results, "_MAX_BYTES", 400)
    callee = Callee()
    with replayed(failing([callee])), pytest.raises(UnknownResultError):
        result_of(callee.call, [])


def test_what_python_runs_has_notes_of_its_own() -> None:
    inner = Callee()

    class Outer(Callee):
        def call(self, arrays: Any) -> list[Any]:
            result: list[Any] = result_of(inner.call, arrays)
            return result

    outer = Outer()
    with replayed(failing([outer])):
        assert result_of(outer.call, [])[1] == 1
        with pytest.raises(UnknownResultError):
            result_of(inner.call, [])


def test_other_errors_carry_nothing() -> None:
    def run() -> None:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$") as caught:
        noting(run, (IndexError,))()
    assert not vars(caught.value)
