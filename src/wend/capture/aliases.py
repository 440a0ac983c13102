"""Other names for a list that has become a traced one: they would go on showing the old list."""

from __future__ import annotations

from typing import Any

from wend.base.errors import StructureError, explain
from wend.trace.holders import holders


def refuse_others(old: list[Any], label: str, where: str) -> None:
    """Refuse a list that variables of the calls under way hold besides `label`.

    `label` and what else the loop knows of hold the traced list already.

    Raises:
        StructureError: with the name of the variable.
    """
    for name, of, value in holders(lambda value: value is old):
        same = "is the same list as" if value is old else "holds the list"
        cure = "append in the function that makes the list, and keep one name for it"
        if value is old:
            cure += f"; or let {name} be a copy, list({label})"
        raise StructureError(
            explain(
                f"{where}: `{name}`{of} {same} `{label}`, which grows there.",
                cure=f"{cure}.",
            )
        )
