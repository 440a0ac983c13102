"""Calls that share a trace: one omits an argument, the other passes its default."""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wend.backends.fastcall import GuardCheck
from wend.base.keys import is_equal, key_of
from wend.base.lazy.dataclass import dataclass
from wend.function.signature.signature import Arguments, Signature

_TYPES = (float, int, bool, str, type(None))  # of the defaults that are compared by value
# Left out, these stay what they are in Python: a traced integer may promote otherwise (D04).
_LEFT_OUT_ONLY = (int, bool)
_MAX_VARIED = 3  # parameters of which each may be left out or given


@dataclass(frozen=True)
class EqualCall:
    """A call equal to another one, in which other arguments are omitted.

    Attributes:
        args: its positional arguments.
        kwargs: its keyword arguments.
        left_out: the parameters that it leaves out, and the other call does not.
        filled: the parameters that it gives, and the other call does not.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    left_out: frozenset[str]
    filled: frozenset[str]

    def compared(self, arguments: Arguments) -> Arguments:
        """Return the other call's arguments, those as static that this call leaves out."""
        names = arguments.all_names()
        compared = {k for k in arguments.traced_positions if names[k] in self.left_out}
        keys = arguments.keys_by_position() | {k: key_of(arguments.leaves[k]) for k in compared}
        kinds = dict(zip(arguments.traced_positions, arguments.types, strict=True))
        remaining = [k for k in arguments.traced_positions if k not in compared]
        return replace(
            arguments,
            traced_positions=tuple(remaining),
            types=tuple([kinds[k] for k in remaining]),
            static_keys=tuple([keys[k] for k in sorted(keys)]),
        )


def equal_calls(
    signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]
) -> Iterator[EqualCall]:
    """Yield the equal calls, by the defaults that the function has now."""
    defaults = _defaults_of(signature.fun)
    if not defaults or signature.inspected is None:
        return
    bound, known = signature.bound(args, kwargs), signature.inspected.parameters
    passed = {**bound.arguments}
    has_more = any(known[name].kind is inspect.Parameter.VAR_POSITIONAL for name in passed)
    varied = [
        name
        for name, default in defaults.items()
        if type(default) in _TYPES
        and (is_equal(passed[name], default) if name in passed else _may_be_filled(default))
        and not (has_more and known[name].kind is not inspect.Parameter.KEYWORD_ONLY)
    ]
    del varied[_MAX_VARIED:]
    for count in range(1, len(varied) + 1):
        for changed in map(frozenset, itertools.combinations(varied, count)):
            now = {name: x for name, x in passed.items() if name not in changed}
            now |= {name: defaults[name] for name in changed if name not in passed}
            if _has_gap(known, now):
                continue
            bound.arguments = {name: now[name] for name in known if name in now}
            left_out = changed & passed.keys()
            yield EqualCall(bound.args, bound.kwargs, left_out, changed - left_out)


def _may_be_filled(default: Any) -> bool:
    return type(default) not in _LEFT_OUT_ONLY


def _has_gap(known: Mapping[str, inspect.Parameter], passed: Container[str]) -> bool:
    """Return whether a parameter that is positional only would follow one that is left out."""
    names = [n for n, p in known.items() if p.kind is inspect.Parameter.POSITIONAL_ONLY]
    is_passed = [name in passed for name in names]
    return is_passed != sorted(is_passed, reverse=True)


def default_checks(fun: Callable[..., Any], names: frozenset[str]) -> list[GuardCheck]:
    """Return checks that parameters have the defaults that they have now."""
    checks = [GuardCheck("part", fun, "__defaults__", fun.__defaults__)]
    of_keywords = fun.__kwdefaults__ or {}
    if not names.isdisjoint(of_keywords):
        checks.append(GuardCheck("part", fun, "__kwdefaults__", of_keywords))
        checks += [GuardCheck("dict", of_keywords, k, x) for k, x in of_keywords.items()]
    return checks


def _defaults_of(fun: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of a Python function as they are now, by name."""
    if type(fun) is not types.FunctionType or {"__wrapped__", "__signature__"} & vars(fun).keys():
        return {}
    names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
    by_position = fun.__defaults__ or ()
    first = len(names) - len(by_position)
    return {**dict(zip(names[first:], by_position, strict=True)), **(fun.__kwdefaults__ or {})}
