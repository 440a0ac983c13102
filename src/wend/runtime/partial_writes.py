"""Contents of changed arguments that the error of a run carries to the caller (D36)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Stands among the numbers of arguments for the number of the element that `vmap` is at; lower
# numbers are of arrays in containers of the caller, and those from `_OUTER` on of the elements of
# the maps around it, the innermost first
ELEMENT = -1
_OUTER = 1 << 30
_ATTRIBUTE = "_wend_contents"


def attach_contents(error: BaseException, contents: Mapping[int, Any]) -> None:
    """Attach the contents of changed arguments, by their numbers, to the error of a run.

    Of an element of `vmap` a note tells the number, of nested ones that of the outer one first.
    """
    elements = element_keys(contents)
    if elements:
        numbers = [int(contents[k]) for k in elements]
        shown = numbers[0] if len(numbers) == 1 else tuple(numbers)
        error.add_note(f"in element {shown} of vmap")
    setattr(error, _ATTRIBUTE, {k: x for k, x in contents.items() if k not in elements})


def is_element(key: int) -> bool:
    """Return whether a number stands for the number of an element."""
    return key == ELEMENT or key >= _OUTER


def element_keys(contents: Iterable[int]) -> list[int]:
    """Return those of some numbers that stand for the numbers of elements, of the outer first."""
    return sorted(filter(is_element, contents), reverse=True)


def outside(key: int, depth: int) -> int:
    """Return what stands for an element around so many others; other numbers as they are."""
    if not depth or not is_element(key):
        return key
    return _OUTER + depth - 1 + (0 if key == ELEMENT else key - _OUTER + 1)


def take_contents(error: BaseException) -> Mapping[int, Any]:
    """Return the contents that an error carries, and detach them."""
    contents: Mapping[int, Any] = vars(error).pop(_ATTRIBUTE, {})
    return {} if getattr(error, "drops_contents", False) else contents
