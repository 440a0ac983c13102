"""Makes the public function of a ufunc that is composed of other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.eager.dispatch import any_staged, read_all
from wend.eager.promotion import broadcast, cast, promotion_kinds
from wend.numpy.operands import staged
from wend.numpy.public import STAGED
from wend.numpy.ufuncs import own


def composed(original: np.ufunc, compute: Callable[..., Any], note: str = "") -> Callable[..., Any]:
    """Make the public function of a ufunc that is composed of others.

    Args:
        original: the ufunc; it says which dtypes are taken and given.
        compute: the same for staged operands of the dtypes taken, of one shape.
        note: what else its users should know.
    """

    def function(*xs: Any, **options: Any) -> Any:
        if any_staged(xs):
            xs = tuple(read_all(xs))
        if not any_staged(xs):
            return original(*xs, **options)
        if options:
            raise TypeMismatchError(
                f"{original.__name__} on a traced array takes no {', '.join(options)}; "
                "use the result, and wnp.where in place of where="
            )
        if len(xs) != original.nin:
            raise TypeError(f"{original.__name__} takes {original.nin} arrays, not {len(xs)}")
        arrays = [staged(x) for x in xs]
        dtypes = original.resolve_dtypes((*promotion_kinds(arrays), *(None,) * original.nout))
        taken, given = dtypes[: original.nin], dtypes[original.nin :]
        operands = broadcast(*(cast(x, d) for x, d in zip(arrays, taken, strict=True)))
        found = compute(*operands)
        if original.nout == 1:
            return own(cast(found, given[0]), xs)
        return tuple(own(cast(x, d), xs) for x, d in zip(found, given, strict=True))

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well.{note}"
    STAGED[original] = function
    return function
