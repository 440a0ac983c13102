"""Texts that name traced values: they can be printed or raised, but not examined.

While a function is recorded, `str(x)` of a traced `x` is not yet the text that the run will print.
"""

from __future__ import annotations

from typing import Any

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source


class ShownText(str):
    """A text that names traced values, such as `<traced f64[], argument x>`.

    Raises:
        ConcreteValueError: it is compared, measured, taken apart or made part of another text.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return True  # a text of numbers is never empty

    def __format__(self, spec: str) -> str:
        if spec:
            raise self.looked_at()
        return str(self)

    def looked_at(self) -> ConcreteValueError:
        """Return the error for any use other than showing the text."""
        return ConcreteValueError(
            explain(
                f"the text {str(self)!r:.60} is used{at(user_source())}, but the numbers in it are "
                "only known when the function runs.",
                cure="print it, or compute with the numbers themselves; make the text of what "
                "the function returns.",
            )
        )


def _refusing_method(name: str) -> Any:
    def run(self: ShownText, *args: Any, **kwargs: Any) -> Any:
        raise self.looked_at()

    run.__name__ = name
    return run


_COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"}
_ALLOWED = {*vars(ShownText), "__getnewargs__"}
for _name in ({*dir(str), "__radd__", "__rmod__"} - {*dir(object)} - _ALLOWED) | _COMPARISONS:
    setattr(ShownText, _name, _refusing_method(_name))
