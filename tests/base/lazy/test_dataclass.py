"""A lazy dataclass is a dataclass of the standard library's, with the same methods."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import pickle
import re
import threading
from functools import partial
from typing import ClassVar

import pytest

from wend.base.lazy import dataclass as lazy
from wend.base.lazy.dataclass import dataclass

OPTIONS = [
    dict(zip(("frozen", "eq", "repr", "weakref_slot"), given, strict=True))
    for given in itertools.product((False, True), repeat=4)
]
KINDS = ("plain", "own hash", "own eq", "own repr", "derived")


def pair(kind: str, options: dict[str, bool]) -> tuple[type, type]:
    """Return a class by the standard decorator, and one by this module's."""
    return tuple(
        _make(kind, by(slots=True, **options)) for by in (dataclasses.dataclass, dataclass)
    )


def _make(kind: str, decorate):
    class Pair:
        """Two numbers."""

        count: ClassVar[int] = 3
        a: int
        b: list[int] = dataclasses.field(default_factory=list)
        c: float = 0.5

        def total(self) -> float:
            return self.a + self.c

        if kind == "own hash":

            def __hash__(self) -> int:
                return 7

        if kind == "own eq":

            def __eq__(self, other: object) -> bool:
                return True

        if kind == "own repr":

            def __repr__(self) -> str:
                return "pair"

    made = decorate(Pair)
    if kind != "derived":
        return made

    class Triple(made):
        """Three."""

        d: int = 9

    return decorate(Triple)


def attempt(run):
    """Return what a call gives, or the class and text of its error."""
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


USES = {
    "repr": lambda c: re.sub(" at 0x.*", "", repr(c(1))),
    "eq": lambda c: (c(1) == c(1), c(1) == c(2), c(1) != 1),
    "hash": lambda c: c.__eq__ is object.__eq__ or hash(c(1, ())) == hash(c(1, ())),
    "hashable": lambda c: c.__hash__ is None,
    "signature": lambda c: str(inspect.signature(c)),
    "fields": lambda c: [(f.name, f.type, f.default) for f in dataclasses.fields(c)],
    "replace": lambda c: dataclasses.replace(c(1), c=2.0).c,
    "defaults": lambda c: (c(1).b, c(1).b is c(1).b, c(1, c=4).c, c.count, c(2).total()),
    "too few": lambda c: c(),
    "set": lambda c: setattr(c(1), "a", 2),
    "set another": lambda c: type(attempt(lambda: setattr(c(1), "z", 2))),
    "delete": lambda c: delattr(c(1), "a"),
    "match": lambda c: c.__match_args__,
    "copy": lambda c: copy.copy(c(1, [2])).b,
    "is one": lambda c: (dataclasses.is_dataclass(c), dataclasses.asdict(c(1))),
    "doc": lambda c: (c.__doc__, c.__qualname__, c.__module__),
    "slots": lambda c: (c.__slots__, hasattr(c(1), "__dict__")),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_methods_are_the_standard_ones(kind: str, options: dict[str, bool]) -> None:
    if kind == "derived" and options["weakref_slot"]:
        return  # two slots of one name
    for use in USES.values():  # each is the first use of its classes
        standard, own = pair(kind, options)
        assert attempt(partial(use, own)) == attempt(partial(use, standard))


def test_nothing_is_made_before_it_is_used() -> None:
    _, own = pair("plain", OPTIONS[0])
    assert isinstance(own.__dict__["__init__"], lazy._MadeByStandard)
    own(1)
    assert inspect.isfunction(own.__dict__["__init__"])
    assert isinstance(own.__dict__["__dataclass_fields__"], dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that a pickle finds."""

    a: int
    b: str = "x"


def test_pickles_need_no_earlier_call() -> None:
    data = pickle.dumps(Kept(3))
    assert pickle.loads(data) == Kept(3)
    fresh = dataclass(frozen=True, slots=True)(type("Fresh", (), {"__annotations__": {"a": "int"}}))
    one = fresh.__new__(fresh)
    one.__setstate__([5])
    assert one.a == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.a = 6


def test_threads_complete_a_class_once() -> None:
    for _ in range(20):
        _, own = pair("plain", OPTIONS[0])
        barrier, found = threading.Barrier(8), []

        def make(own=own, barrier=barrier, found=found) -> None:
            barrier.wait()
            found.append(own(1, c=2.0).c)

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [2.0] * 8
