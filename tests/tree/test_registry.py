"""Registered classes are nodes of pytrees."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import wend
from wend.base.errors import StructureError, TypeMismatchError


@wend.tree.register(static=["unit"])
@dataclasses.dataclass
class Length:
    value: object
    unit: str


@wend.tree.register
@dataclasses.dataclass(frozen=True)
class Motion:
    position: object
    velocity: object

    def __post_init__(self):
        assert np.ndim(self.position) == 1  # does not hold for what stands for arrays


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


wend.register_pytree_node(
    Pair, lambda p: ((p.first, p.second), None), lambda _, children: Pair(*children)
)


def test_dataclasses_are_arguments_results_and_carries():
    @wend.function
    def fall(m, dt):
        while m.position[0] > 0.0:
            m = Motion(m.position + dt * m.velocity, m.velocity - dt)
        return m

    landed = fall(Motion(np.ones(1), np.zeros(1)), 0.25)
    assert isinstance(landed, Motion)
    height, speed = np.ones(1), np.zeros(1)
    while height[0] > 0.0:
        height, speed = height + 0.25 * speed, speed - 0.25
    assert landed.position == height
    assert landed.velocity == speed


def test_gradients_have_the_class():
    slope = wend.grad(lambda m: (m.position * m.velocity).sum())(
        Motion(np.ones(2), np.full(2, 3.0))
    )
    assert isinstance(slope, Motion)
    assert slope.position.tolist() == [3.0, 3.0]


def test_static_fields_are_part_of_the_signature():
    @wend.function
    def metres(x):
        return x.value * {"m": 1.0, "km": 1000.0}[x.unit]

    assert (metres(Length(2.0, "km")), metres(Length(2.0, "m"))) == (2000.0, 2.0)
    assert metres(Length(3.0, "km")) == 3000.0
    assert metres.trace_count == 2
    assert wend.tree.structure(Length(1.0, "m")) != wend.tree.structure(Length(1.0, "km"))


def test_a_class_with_functions_of_its_own():
    swapped = wend.function(lambda p: Pair(p.second, p.first))(Pair(1.0, np.ones(2)))
    assert isinstance(swapped, Pair)
    assert swapped.second == 1.0


def test_paths_in_messages_are_attributes():
    with pytest.raises(StructureError, match=r"tree\.velocity: a list against"):
        wend.tree.map(
            lambda a, b: a, Motion(np.ones(1), [1.0, 2.0]), Motion(np.ones(1), (1.0, 2.0))
        )


def test_what_cannot_be_registered():
    class Plain:
        pass

    with pytest.raises(TypeMismatchError, match="Plain: it is no dataclass"):
        wend.tree.register(Plain)
    with pytest.raises(TypeMismatchError, match="flatten and unflatten belong together"):
        wend.tree.register(Plain, lambda x: ((), None))
    with pytest.raises(TypeMismatchError, match="takes a class, not"):
        wend.tree.register(["unit"])
    with pytest.raises(StructureError, match="To fix it: register each class once"):
        wend.tree.register(Length)

    @dataclasses.dataclass
    class Other:
        x: float

    with pytest.raises(TypeMismatchError, match="static='y' is no field of it"):
        wend.tree.register(Other, static=["y"])
