"""What gives each thing once: iterators, files, generators of random numbers.

A loop or branch that is recorded runs once, whatever the run will do. What it takes from an
iterator that was there before would be taken once, so that is refused. One that it makes itself
is made, and gone through, in every run.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

from wend.base.errors import StructureError, explain
from wend.base.source import at, user_source
from wend.trace.recording.recording import Recording, current

# What each region has made, by identity: most iterators cannot be held weakly.
_made: WeakKeyDictionary[Recording, dict[int, Any]] = WeakKeyDictionary()


def is_iterator(thing: Any) -> bool:
    """Whether a thing gives its items once."""
    return hasattr(type(thing), "__next__")


def region() -> Recording | None:
    """The loop or branch that is being recorded right here, if any."""
    recording = current()
    return recording if recording is not None and recording.is_region else None


def made(thing: Any) -> Any:
    """Note an iterator that captured code makes; gives it."""
    here = region()
    if here is not None and is_iterator(thing):
        _made.setdefault(here, {})[id(thing)] = thing
    return thing


def taken_from(thing: Any) -> Any:
    """Say that items are about to be taken from a thing; gives it.

    Raises:
        StructureError: it is an iterator from outside of the loop or branch that is recorded.
    """
    if is_iterator(thing):
        here = region()
        if here is not None and id(thing) not in _made.get(here, ()):
            raise StructureError(
                explain(
                    f"a {type(thing).__name__} gives its items once; it is asked for some"
                    f"{at(user_source())}, in a loop or branch that is recorded once.",
                    cure="put the items in an array and read it by position, make the iterator "
                    "in the loop or branch, or let Python run the loop: wend.unroll(...).",
                )
            )
    return thing


def asked(method: Any) -> None:
    """Say that a method written in C is about to be called.

    Raises:
        StructureError: it changes what gives things once, as a file or a random generator.
    """
    owner = getattr(method, "__self__", None)
    if region() is not None and isinstance(owner, _random_generators()):
        raise StructureError(
            explain(
                f"{type(owner).__name__}.{method.__name__} draws a number{at(user_source())}, in a "
                "loop or branch that is recorded once: every run would have the same one.",
                cure="draw with wend.random, or draw an array before and read it by position.",
            )
        )
    taken_from(owner)


def _random_generators() -> tuple[type, ...]:
    """Their classes: of modules that somebody has imported, for that takes 7 ms."""
    python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    found = () if python is None else (python.Random,)
    return found if numpy is None else (*found, numpy.Generator, numpy.RandomState)
