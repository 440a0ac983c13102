"""Contents of changed arguments that the error of a run carries to the caller (D36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Stands among the numbers of arguments for the number of the element that `vmap` is at; lower
# numbers are of arrays in containers of the caller
ELEMENT = -1
_ATTRIBUTE = "_wend_contents"


def attach_contents(error: BaseException, contents: Mapping[int, Any]) -> None:
    """Attach the contents of changed arguments, by their numbers, to the error of a run.

    Of an element of `vmap` a note tells the number.
    """
    if ELEMENT in contents:
        error.add_note(f"in element {contents[ELEMENT]} of vmap")
    setattr(error, _ATTRIBUTE, {k: x for k, x in contents.items() if k != ELEMENT})


def take_contents(error: BaseException) -> Mapping[int, Any]:
    """Return the contents that an error carries, and detach them."""
    contents: Mapping[int, Any] = vars(error).pop(_ATTRIBUTE, {})
    return contents
