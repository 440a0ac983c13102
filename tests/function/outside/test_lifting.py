"""State of outside that a function changes: its traces, its objects, what fails."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import SideEffectError


class Counter:
    def __init__(self) -> None:
        self.count, self.total, self.seen = 0, 0.0, [0.0]

    def add(self, x: Any) -> Any:
        self.count += 1
        self.total += x
        return self.total / self.count


class Compiled(Counter):
    @wend.function
    def mean(self, x: Any) -> Any:
        return self.add(x)


def test_one_trace_serves_all_calls() -> None:
    counter = Counter()
    mean = wend.function(counter.add)
    assert [mean(float(k)) for k in range(10)] == [k / 2 for k in range(10)]
    assert (counter.count, counter.total, type(counter.count)) == (10, 45.0, int)
    assert mean.trace_count == 1
    assert "with `self.total` and `self.count` as arguments, add: 1 trace" in str(mean.explain())


def test_what_others_have_changed_is_read() -> None:
    counter = Counter()
    mean = wend.function(counter.add)
    mean(1.0)
    counter.count, counter.total = 9, 0.0
    assert mean(5.0) == 0.5
    counter.total = np.float32(1.0)
    assert (round(float(mean(1.0)), 6), type(counter.total)) == (0.181818, np.float32)


def test_each_object_has_its_own_state() -> None:
    add = wend.function(Counter.add)
    first, second = Counter(), Counter()
    assert [add(first, 1.0), add(second, 5.0), add(first, 3.0), add(second, 6.0)] == [1, 5, 2, 5.5]
    assert add.trace_count == 2


@pytest.mark.parametrize("kind", [Compiled, Counter])
def test_objects_are_not_kept_alive(kind: Any) -> None:
    counter = kind()
    run = counter.mean if kind is Compiled else wend.function(counter.add)
    assert (run(1.0), counter.count) == (1.0, 1)
    alive = weakref.ref(counter)
    del counter, run
    gc.collect()
    assert alive() is None


def test_a_list_grows_without_new_traces() -> None:
    log: list[Any] = []

    @wend.function
    def note(x: Any) -> Any:
        log.append((x, 2 * x))
        return x

    for k in range(30):
        note(float(k))
    assert log == [(float(k), 2.0 * k) for k in range(30)]
    assert note.trace_count == 1


def test_a_list_that_is_read_by_a_function_that_is_called_may_not_grow() -> None:
    log = [1.0]
    last = wend.function(lambda x: x + log[-1])

    @wend.function
    def note(x: Any) -> Any:
        log.append(x)
        return last(x)

    with pytest.raises(SideEffectError, match="each length would be another trace"):
        note(2.0)
    assert log == [1.0]


def test_an_error_leaves_what_was_changed_before_it() -> None:
    counter = Counter()

    @wend.function
    def check(x: Any) -> Any:
        counter.add(x)
        counter.seen[0] = x
        if x > 2:
            raise ValueError(f"{x} is too large")
        counter.total = -1.0
        return x

    check(1.0)
    with pytest.raises(ValueError, match=r"3\.0 is too large"):
        check(3.0)
    assert (counter.count, counter.total, counter.seen) == (2, 2.0, [3.0])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_trace_that_is_interrupted_leaves_the_state(error: type[BaseException]) -> None:
    counter = Counter()
    stops = [False]

    @wend.function
    def add(x: Any) -> Any:
        counter.seen[0] = counter.add(x)
        if stops[0]:
            raise error
        return x

    add(1.0)
    stops[0] = True
    with pytest.raises(error):
        add(2.0)
    assert not any(isinstance(x, wend.eager.dispatch.Staged) for x in vars(counter).values())
    assert not isinstance(counter.seen[0], wend.eager.dispatch.Staged)


def test_a_trace_around_it_takes_the_state_itself() -> None:
    counter = Counter()
    mean = wend.function(counter.add)

    @wend.function
    def twice(x: Any) -> Any:
        return mean(x) + mean(x + 1)

    assert [twice(1.0), mean(6.0), twice(3.0)] == [2.5, 3.0, 3 + 16 / 5 - 0.0]
    assert counter.count == 5


def test_declared_signatures_have_no_further_argument() -> None:
    counter = Counter()
    mean = wend.function(counter.add, input_signature=[wend.TensorSpec([], "float64")])
    with pytest.raises(SideEffectError, match="outlives the call"):
        mean(1.0)
    assert counter.count == 0


def test_concrete_functions_have_no_further_argument() -> None:
    counter = Counter()
    mean = wend.function(counter.add)
    for _ in range(2):
        with pytest.raises(SideEffectError, match="outlives the call"):
            mean.get_concrete_function(1.0)
        assert mean(1.0) == 1.0


def test_arguments_of_any_name() -> None:
    calls = [0]

    @wend.function
    def add(outside: Any, *args: Any, outside_: Any = 1.0, **others: Any) -> Any:
        calls[0] += 1
        return outside + sum(args) + outside_ + sum(others.values())

    assert add(1.0, 2.0, outside_=3.0, outside__=4.0) == 10.0
    assert add(1.0) == 2.0
    assert calls == [2]


def test_an_array_in_two_places() -> None:
    """A change by one name is seen by the other, or it is refused."""
    buffers = {"now": np.zeros(2)}
    buffers["last"] = buffers["now"]

    @wend.function
    def write(x: Any) -> Any:
        buffers["now"][0] = x
        return buffers["last"][0]

    try:
        assert write(1.0) == 1.0
    except wend.WendError:
        assert buffers["now"].tolist() == [0.0, 0.0]


def test_many_rounds_of_new_places() -> None:
    """Each list is met where the one before holds a number."""
    chain = [[0.0] for _ in range(4)]

    @wend.function
    def step(x: Any) -> Any:
        for items in chain:
            items[0] += x
            x = items[0]
        return x

    expected = [[0.0] for _ in range(4)]
    for x in 1.0, 2.0, 3.0:
        value = x
        for items in expected:
            items[0] += value
            value = items[0]
        assert step(x) == value
    assert chain == expected


class Schedule:
    def __init__(self) -> None:
        self.rate, self.size = 1.0, 2


def test_numbers_that_others_change_become_arguments() -> None:
    schedule, table = Schedule(), {"k": 1}
    run = wend.function(lambda x: x * schedule.rate + table["k"])
    for k in range(20):
        schedule.rate, table["k"] = 0.5 * k, k
        assert run(2.0) == k + k
    assert run.trace_count <= 4


def test_numbers_that_python_needs_have_a_trace_for_each_value() -> None:
    schedule = Schedule()
    run = wend.function(lambda x: x * schedule.rate + np.ones(schedule.size).sum())
    for k in range(12):
        schedule.rate, schedule.size = 0.5 * k, 2 + k // 6
        assert run(2.0) == k + schedule.size
    assert run.trace_count <= 5


def test_numbers_that_choose_texts() -> None:
    schedule = Schedule()

    def f(x: Any) -> Any:
        return x, ("even", "odd")[schedule.size % 2]

    run = wend.function(f)
    for k in range(8):
        schedule.size = k
        assert run(2.0) == (2.0, ("even", "odd")[k % 2])


def test_objects_that_no_key_tells_apart_are_refused_as_before() -> None:
    counter = Counter()
    counter.total = {1, 2}

    @wend.function
    def add(x: Any) -> Any:
        counter.count += 1
        counter.total = {1, 2, 3}
        return x

    with pytest.raises(SideEffectError, match=r"`counter\.(count|total)` is changed"):
        add(1.0)
    assert (counter.count, counter.total) == (0, {1, 2})
