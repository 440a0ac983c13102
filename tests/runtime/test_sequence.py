"""`wend.runtime.sequence`: every version of a list stays what it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from wend.base.zero import ZERO
from wend.runtime.sequence import Sequence, add_values, zeros_like

Version = tuple[Sequence, tuple[int, ...]]


class Versions(RuleBasedStateMachine):
    """Old and new versions are changed and read in any order, beside plain tuples."""

    versions = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Version] = []

    def keep(self, sequence: Sequence, model: tuple[int, ...]) -> Version:
        self.made.append((sequence, model))
        return sequence, model

    @initialize(target=versions, items=st.lists(st.integers(), max_size=3))
    def start(self, items: list[int]) -> Version:
        return self.keep(Sequence.of(list(items)), tuple(items))

    @rule(target=versions, version=versions, item=st.integers())
    def push(self, version: Version, item: int) -> Version:
        sequence, model = version
        return self.keep(sequence.push(item), (*model, item))

    @rule(target=versions, version=versions)
    def pop(self, version: Version) -> Version:
        sequence, model = version
        if not model:
            with pytest.raises(IndexError):
                sequence.pop()
            return version
        rest, last = sequence.pop()
        assert last == model[-1]
        return self.keep(rest, model[:-1])

    @rule(target=versions, version=versions, place=st.integers(-4, 4), item=st.integers())
    def set(self, version: Version, place: int, item: int) -> Version:
        sequence, model = version
        if not -len(model) <= place < len(model):
            with pytest.raises(IndexError):
                sequence.set(np.int64(place), item)
            return version
        changed = list(model)
        changed[place] = item
        return self.keep(sequence.set(np.int64(place), item), tuple(changed))

    @rule(version=versions, place=st.integers(-4, 4))
    def read(self, version: Version, place: int) -> None:
        sequence, model = version
        assert len(sequence) == len(model)
        if -len(model) <= place < len(model):
            assert sequence[place] == model[place]
        else:
            with pytest.raises(IndexError):
                sequence[place]

    def teardown(self) -> None:
        for sequence, model in self.made:
            assert tuple(sequence.items()) == model


TestVersions = Versions.TestCase


def test_going_forward_copies_nothing() -> None:
    first = Sequence.of([-1])
    buffer = first.items()
    sequence = first
    for number in range(1000):
        sequence = sequence.push(number)
    assert sequence[-1] == 999
    assert sequence.items() is buffer
    assert len(first) == 1  # which undoes every push
    assert len(sequence) == 1001


def test_zeros_and_sums_of_nested_lists() -> None:
    def nested(*rows: list[float]) -> Sequence:
        return Sequence.of([Sequence.of([np.float64(x) for x in row]) for row in rows])

    def plain(value: Sequence) -> list[list[float]]:
        return [[float(x) for x in row.items()] for row in value.items()]

    x, y = nested([1, 2], []), nested([3, 4], [])
    assert plain(add_values(x, y)) == [[4, 6], []]
    assert plain(zeros_like(x)) == [[0, 0], []]
    assert add_values(x, ZERO) is x
    assert add_values(ZERO, x) is x
    with pytest.raises(ValueError):
        add_values(x, nested([1, 2]))


def test_zeros_keep_the_dtype() -> None:
    zeros = zeros_like(Sequence.of([np.ones(2, np.float32), np.int8(3)]))
    assert [item.dtype for item in zeros.items()] == [np.float32, np.int8]


def test_versions_of_one_list_add_up() -> None:
    first = Sequence.of([1.0, 2.0])
    second = first.set(0, 7.0)
    assert add_values(first, second).items() == [8.0, 4.0]
    assert add_values(second, first).items() == [8.0, 4.0]


def test_what_is_absent_has_no_zeros() -> None:
    assert zeros_like(Sequence.of([ZERO, 1.0])).items() == [ZERO, 0.0]
