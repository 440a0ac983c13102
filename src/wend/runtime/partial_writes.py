"""Contents of changed arguments that the error of a run carries to the caller (D36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ATTRIBUTE = "_wend_contents"


def attach_contents(error: BaseException, contents: Mapping[int, Any]) -> None:
    """Attach the contents of changed arguments, by their numbers, to the error of a run."""
    setattr(error, _ATTRIBUTE, contents)


def take_contents(error: BaseException) -> Mapping[int, Any]:
    """Return the contents that an error carries, and detach them."""
    contents: Mapping[int, Any] = vars(error).pop(_ATTRIBUTE, {})
    return contents
