"""`LoadedRecord`: stands for an instance of a class that a file names but no caller gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base import trees


class LoadedRecord:
    """A node of a pytree with the fields of a class that was saved.

    `wend.load(path, types=[State])` gives instances of `State` in place of records.

    Attributes:
        class_name: the name of the class.
    """

    def __init__(
        self, class_name: str, names: Sequence[str], values: Sequence[Any], metadata: Any
    ) -> None:
        self.class_name = class_name
        self._names, self._metadata = tuple(names), metadata
        vars(self).update(zip(names, values, strict=True))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"<{self.class_name.rpartition('.')[2]}: {fields}>"


def _flatten(node: LoadedRecord) -> Any:
    values = [getattr(node, name) for name in node._names]
    return values, (node.class_name, node._names, node._metadata), node._names


def _unflatten(metadata: Any, values: Sequence[Any]) -> LoadedRecord:
    class_name, names, of_class = metadata
    return LoadedRecord(class_name, names, values, of_class)


# Its children are attributes, and are called so in messages.
trees.register_node(LoadedRecord, _flatten, _unflatten, by_attributes=True)
