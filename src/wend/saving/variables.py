"""The tables of arrays and variables of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import LoadError, SaveError, explain
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import LONG_NAMES, short
from wend.ir.types import TensorType
from wend.random.generator import Generator
from wend.runtime.array_boundary import to_host
from wend.runtime.storage import PassedStorage, Storage
from wend.saving.archive import ArchiveReader, ArchiveWriter
from wend.saving.arrays import from_npy, to_npy
from wend.saving.fields import Fields
from wend.trace.state.variable import Variable


class ArrayWriter:
    """Writes arrays to an archive, each once."""

    def __init__(self, archive: ArchiveWriter) -> None:
        self._archive = archive
        self._members: dict[int, str] = {}
        self._arrays: list[Any] = []  # kept alive: ids are keys

    def __call__(self, array: Any) -> str:
        """Return the member of an array."""
        if id(array) not in self._members:
            name = f"arrays/{len(self._members)}.npy"
            self._members[id(array)] = self._archive.add(name, to_npy(to_host(array)))
            self._arrays.append(array)
        return self._members[id(array)]


class ArrayTable:
    """Reads arrays from an archive, each once."""

    def __init__(self, archive: ArchiveReader) -> None:
        self._archive = archive
        self._arrays: dict[str, np.ndarray] = {}

    def __call__(self, name: Any) -> np.ndarray:
        """Return the array of a member.

        Raises:
            LoadError: there is no such member, or it is no array.
        """
        if type(name) is not str:
            raise LoadError(f"{name!r:.40} is no member of the file")
        if name not in self._arrays:
            self._arrays[name] = from_npy(self._archive.read(name), name)
        return self._arrays[name]


class VariableWriter:
    """Numbers the variables of a file and writes their values.

    Attributes:
        records: what the manifest says about each.
    """

    def __init__(self, array: Callable[[Any], str]) -> None:
        self._array = array
        self.records: list[dict[str, Any]] = []
        self._numbers: dict[Storage, int] = {}

    def number(self, storage: Storage) -> int:
        """Return the number of a variable by its storage.

        Raises:
            VariableError: the variable is gone, or has no value yet.
        """
        if storage not in self._numbers:
            self.records.append(self._record(storage))
            self._numbers[storage] = len(self.records) - 1
        return self._numbers[storage]

    def number_of_placeholder(self, storage: Storage, type: TensorType) -> int:
        """Return the number of the variable that stands for an argument."""
        if storage not in self._numbers:
            self.records.append({"placeholder": [short(type.dtype), list(type.dims)]})
            self._numbers[storage] = len(self.records) - 1
        return self._numbers[storage]

    def _record(self, storage: Storage) -> dict[str, Any]:
        if isinstance(storage, PassedStorage):
            raise SaveError(
                explain(
                    "a variable that is an argument of another function is not in this file.",
                    cure="save the outermost function that takes it.",
                )
            )
        variable = storage.owner
        return {
            "name": variable.name,
            "trainable": bool(variable.trainable),
            "stream": bool(variable.is_stream),
            "array": self._array(variable.concrete),
        }


@dataclass(frozen=True, slots=True)
class LoadedVariable:
    """A variable of a file.

    Attributes:
        variable: the variable.
        generator: the generator whose state it is, if it is one.
        is_placeholder: whether it stands for an argument.
    """

    variable: Variable
    generator: Generator | None = None
    is_placeholder: bool = False


def read_variables(records: Sequence[Fields], array: ArrayTable) -> list[LoadedVariable]:
    """Return the variables of a file.

    Raises:
        LoadError: a record is of no variable.
    """
    return [_read_variable(record, array) for record in records]


def _read_variable(record: Fields, array: ArrayTable) -> LoadedVariable:
    if "placeholder" in record.data:
        return LoadedVariable(_placeholder(record), is_placeholder=True)
    value = array(record.get("array", str))
    if record.get("stream", bool):
        try:
            generator = Generator(value)
        except (TypeError, ValueError):
            raise LoadError(f"{record.where}: {value.dtype} is no key of a generator") from None
        return LoadedVariable(generator.state, generator)
    name, trainable = record.optional("name", str), record.get("trainable", bool)
    return LoadedVariable(Variable(value, name, trainable))


def _placeholder(record: Fields) -> Variable:
    parts = record.get("placeholder", list)
    if len(parts) != 2 or type(parts[0]) is not str or type(parts[1]) is not list:
        raise LoadError(f"{record.where}: {parts!r:.40} is no type")
    name, dims = parts
    if name not in LONG_NAMES or any(type(n) is not int or n < 0 for n in dims):
        raise LoadError(f"{record.where}: {parts!r:.40} is no type")
    return Variable.placeholder(TensorType(LONG_NAMES[name], tuple(dims)), None)
