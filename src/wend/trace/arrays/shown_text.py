"""Texts of traced values: they may be shown, in an error or a print, and not be looked at.

What `str(x)` says of a traced `x` while a function is recorded is not what it says when it runs.
"""

from __future__ import annotations

from typing import Any

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source


class ShownText(str):
    """A text in which traced values are named, as `<traced f64[], argument x>`.

    Raises:
        ConcreteValueError: it is compared, measured, taken apart or made another text.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return True  # whatever the numbers are

    def __format__(self, spec: str) -> str:
        if spec:
            raise self.looked_at()
        return str(self)

    def looked_at(self) -> ConcreteValueError:
        """The error where more than to be shown is asked of it."""
        return ConcreteValueError(
            explain(
                f"the text {str(self)!r:.60} is used{at(user_source())}, but the numbers in it are "
                "only known when the function runs.",
                cure="print it, or compute with the numbers themselves; make the text of what "
                "the function returns.",
            )
        )


def _refused(name: str) -> Any:
    def run(self: ShownText, *args: Any, **kwargs: Any) -> Any:
        raise self.looked_at()

    run.__name__ = name
    return run


_COMPARING = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"}
_SHOWING = {*vars(ShownText), "__getnewargs__"}
for _name in ({*dir(str), "__radd__", "__rmod__"} - {*dir(object)} - _SHOWING) | _COMPARING:
    setattr(ShownText, _name, _refused(_name))
