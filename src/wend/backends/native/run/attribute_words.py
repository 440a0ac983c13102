"""Where CPython keeps an attribute: words of objects that tell whether it is what it was.

CPython numbers the states of a class: whatever changes in it or in a base gives it another number
(its version tag). With the class, its number and the dict of an object as they were, only the item
of that dict is to be looked up. The places of these words are found by looking, not assumed.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from wend.backends.fastcall import MISSING
from wend.backends.native.fastcall.descriptor import TYPE_AT, VALUE_AT

_MANAGED_DICT = 1 << 4  # the flag of classes whose instances have the pointer to their dict before
_MANAGED_DICT_AT = -24


class Word(NamedTuple):
    """A word at an offset in an object, and its value."""

    owner: Any
    offset: int
    value: int


class DictItem(NamedTuple):
    """An item of the dict of an object; `MISSING`: there is none."""

    owner: dict[str, Any]
    key: str
    expected: Any


def words_of_attribute(owner: Any, name: str, expected: Any) -> list[Word | DictItem] | None:
    """Return what to compare so that `owner.name` is `expected`, or a method of that function.

    None if it is not known, or if the attribute is another one now.
    """
    try:
        return [*_words(owner, name, expected)]
    except LookupError:
        return None


def _words(owner: Any, name: str, expected: Any) -> Iterator[Word | DictItem]:
    kind: Any = type(owner)
    if kind is type:
        _expect(_held_by(kind, name) is MISSING and _held_by(owner, name) is expected)
        yield _version(owner)
        return
    _expect(not issubclass(kind, type) and kind.__getattribute__ is object.__getattribute__)
    held = _held_by(kind, name)
    yield Word(owner, TYPE_AT, id(kind))
    yield _version(kind)
    if isinstance(held, types.MemberDescriptorType):
        yield _slot(owner, held, expected)
        return
    _expect(held is MISSING or not hasattr(type(held), "__set__"))
    if not kind.__dictoffset__:
        _expect(held is expected)
        return
    attributes = _instance_dict(owner)
    value = attributes.get(name, MISSING)
    _expect((held if value is MISSING else value) is expected)
    offset = _MANAGED_DICT_AT if kind.__flags__ & _MANAGED_DICT else kind.__dictoffset__
    _expect(_word(owner, offset) == id(attributes))
    yield Word(owner, offset, id(attributes))
    yield DictItem(attributes, name, value)


def _expect(is_as_expected: bool) -> None:
    if not is_as_expected:
        raise LookupError


def _word(owner: Any, offset: int) -> int:
    return ctypes.c_size_t.from_address(id(owner) + offset).value


def _held_by(cls: type, name: str) -> Any:
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), MISSING)


def _instance_dict(owner: Any) -> dict[str, Any]:
    attributes: Any = ctypes.pythonapi.PyObject_GenericGetDict(ctypes.py_object(owner), None)
    _expect(type(attributes) is dict)
    return attributes  # type: ignore[no-any-return]


ctypes.pythonapi.PyObject_GenericGetDict.restype = ctypes.py_object
ctypes.pythonapi.PyObject_GenericGetDict.argtypes = ctypes.py_object, ctypes.c_void_p


def _slot(owner: Any, slot: types.MemberDescriptorType, expected: Any) -> Word:
    """Return the word of a slot, whose offset its descriptor's definition has."""
    definition = _word(slot, VALUE_AT + 24)
    offset = ctypes.c_size_t.from_address(definition + 16).value
    size = type(owner).__basicsize__
    _expect(0 < offset <= size - 8)
    value = 0 if expected is MISSING else id(expected)
    _expect(_word(owner, offset) == value)
    return Word(owner, offset, value)


# The number of a class's state
def _version(cls: type) -> Word:
    _expect(_VERSION_AT is not None)
    getattr(cls, "__doc__", None)  # gives it a number
    number = _word(cls, _VERSION_AT)
    _expect(number != 0)
    return Word(cls, _VERSION_AT, number)


def _version_offset() -> int | None:
    """Return the offset of the number of a class's state; None if it is not where it used to be."""
    offset = 384

    class Sample:
        rate = 1

    def number() -> int:
        Sample().rate  # noqa: B018  # a lookup gives it a number
        return _word(Sample, offset)

    metaclass: Any = type
    if metaclass.__basicsize__ < offset + 8:
        return None
    first, again = number(), number()
    Sample.rate = 2
    changed = _word(Sample, offset)
    second = number()
    is_number = 0 < first == again < second < 1 << 32 and changed == 0
    return offset if is_number else None


_VERSION_AT: Any = _version_offset()
