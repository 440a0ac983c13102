"""Typed access to JSON that is not trusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from wend.base.errors import LoadError

T = TypeVar("T")


class Fields:
    """A JSON object whose fields are read with their types.

    Args:
        data: the object.
        where: its place in the file, for messages.

    Raises:
        LoadError: `data` is no object.
    """

    def __init__(self, data: Any, where: str) -> None:
        if type(data) is not dict:
            raise LoadError(f"{where} is no object, but {data!r:.40}")
        self.data, self.where = data, where

    def get(self, name: str, kind: type[T]) -> T:
        """Return a field of exactly this type; a bool is no int.

        Raises:
            LoadError: the field is missing, or of another type.
        """
        value = self.data.get(name)
        if type(value) is not kind:
            raise LoadError(f"{self.where}: {name} is {value!r:.40}, expected {kind.__name__}")
        return value

    def optional(self, name: str, kind: type[T]) -> T | None:
        """Return a field of this type, or None."""
        return None if self.data.get(name) is None else self.get(name, kind)

    def counts(self, name: str, below: int) -> tuple[int, ...]:
        """Return a list of distinct integers from 0 to below a bound."""
        numbers = self.get(name, list)
        if any(type(k) is not int or not 0 <= k < below for k in numbers):
            raise LoadError(f"{self.where}: {name} is {numbers!r:.40}, expected positions")
        return tuple(numbers)

    def objects(self, name: str) -> list[Fields]:
        """Return a list of objects."""
        return [
            Fields(item, f"{self.where}: {name}[{k}]")
            for k, item in enumerate(self.get(name, list))
        ]

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        texts = self.get(name, list)
        if any(type(text) is not str for text in texts):
            raise LoadError(f"{self.where}: {name} is {texts!r:.40}, expected texts")
        return texts

    def entry(self, name: str, table: Sequence[T]) -> T:
        """Return the entry of a table that a field refers to by its number."""
        return pick(table, self.data.get(name), f"{self.where}: {name}")


def pick(table: Sequence[T], number: Any, where: str) -> T:
    """Return an entry of a table by its number.

    Raises:
        LoadError: there is no such entry.
    """
    if type(number) is not int or not 0 <= number < len(table):
        raise LoadError(f"{where} is {number!r:.40}, expected a number below {len(table)}")
    return table[number]


def tagged(data: Any, where: str) -> tuple[str, Any]:
    """Return the tag and the contents of `{tag: contents}`.

    Raises:
        LoadError: it is something else.
    """
    if type(data) is not dict or len(data) != 1:
        raise LoadError(f"{where} is {data!r:.40}, expected an object with one field")
    ((tag, contents),) = data.items()
    return tag, contents


def read_json(data: bytes, where: str) -> Any:
    """Return what JSON says.

    Raises:
        LoadError: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{where} is no JSON: {error}") from None


def write_json(data: Any) -> bytes:
    """Return JSON that people can read and programs compare: one field a line at the top."""
    return json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8")
