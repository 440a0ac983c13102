"""Values that are part of signatures and structures, as JSON: numbers, texts, tuples, dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from wend.base.errors import LoadError, SaveError, explain
from wend.ir.dtypes import LONG_NAMES, SHORT_NAMES
from wend.saving.fields import tagged

_PLAIN = (type(None), bool, int, str)
_COLLECTIONS: Mapping[str, Callable[[Iterable[Any]], Any]] = {
    kind.__name__: kind for kind in (tuple, list, set, frozenset)
}


def literal_to_json(value: Any, what: str) -> Any:
    """Return a value as JSON.

    Raises:
        SaveError: a file cannot hold it; `what` names it in the message.
    """
    kind = type(value)
    if kind in _PLAIN or (kind is float and math.isfinite(value)):
        return value
    if kind is float:
        return {"float": str(value)}
    if kind is complex:
        return {"complex": [literal_to_json(part, what) for part in (value.real, value.imag)]}
    if kind in (tuple, list, set, frozenset):
        items = [literal_to_json(item, what) for item in value]
        return {kind.__name__: sorted(items, key=repr) if kind in (set, frozenset) else items}
    if kind is dict:
        return {
            "dict": [[literal_to_json(x, what) for x in (key, item)] for key, item in value.items()]
        }
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is slice or kind is range:
        parts = (value.start, value.stop, value.step)
        return {kind.__name__: [literal_to_json(part, what) for part in parts]}
    if value is Ellipsis:
        return {"ellipsis": None}
    if isinstance(value, np.dtype) and value in SHORT_NAMES:
        return {"dtype": SHORT_NAMES[value]}
    if isinstance(value, np.generic) and value.dtype in SHORT_NAMES:
        return {"scalar": [SHORT_NAMES[value.dtype], value.tobytes().hex()]}
    raise SaveError(
        explain(
            f"{what} is {value!r:.60}, which a file cannot hold.",
            cure="pass numbers, texts, or tuples of these; or save a function of fewer arguments, "
            "such as wend.function(lambda x: f(x, np.tanh)).",
        )
    )


def literal_from_json(data: Any, where: str) -> Any:
    """Return the value.

    Raises:
        LoadError: the JSON is of no value.
    """
    if type(data) in (*_PLAIN, float):
        return data
    tag, contents = tagged(data, where)
    try:
        return _of(tag, contents, where)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"{where}: {data!r:.60} is no value") from None


def _of(tag: str, contents: Any, where: str) -> Any:
    if tag == "ellipsis":
        return Ellipsis
    if tag in ("float", "bytes", "dtype"):
        if type(contents) is not str:
            raise LoadError(f"{where}: {contents!r:.40} is no text")
        if tag == "dtype":
            return _dtype(contents, where)
        return float(contents) if tag == "float" else bytes.fromhex(contents)
    if type(contents) is not list:
        raise LoadError(f"{where}: {contents!r:.40} is no list")
    if tag == "dict":
        pairs = [[literal_from_json(x, where) for x in pair] for pair in contents]
        return {key: item for key, item in pairs}  # noqa: C416 - a pair of three is an error
    if tag == "scalar":
        name, digits = contents
        return np.frombuffer(bytes.fromhex(digits), _dtype(name, where), 1)[0]
    items = [literal_from_json(item, where) for item in contents]
    if tag in ("slice", "range", "complex"):
        if tag == "range" and items[2] == 0:
            raise LoadError(f"{where}: a range has no step")
        return {"slice": slice, "range": range, "complex": complex}[tag](*items)
    if tag in _COLLECTIONS:
        return _COLLECTIONS[tag](items)
    raise LoadError(f"{where}: there are no values of kind {tag!r:.40}")


def _dtype(name: Any, where: str) -> np.dtype:
    if type(name) is not str or name not in LONG_NAMES:
        raise LoadError(f"{where}: there is no dtype {name!r:.40}")
    return LONG_NAMES[name]
