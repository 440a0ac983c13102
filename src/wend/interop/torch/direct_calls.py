"""Fast paths of eager calls: one Python function for each number of arguments, in straight code.

What PyTorch's own calls take in C++, a call from here takes in Python: about 0.05 µs for each
question to a tensor, and 0.1 µs for each function or list between. So the code is made for a number
of arguments, as `collections.namedtuple` makes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from wend.interop.bridged import SignatureTrace
from wend.interop.torch.operations import apply_call, call, dispatch, is_transformed, modes
from wend.interop.torch.running import PLAIN_TENSORS

MISSED = object()  # what a fast path returns for arguments that it does not take

_SOURCE = """
def direct({x}):
    if not ({all_are_plain}):
        return MISSED
    known = traces.get(({types}))
    if known is None:
        return MISSED
    function, enter, models, result_of = known
    if is_transformed():
        return result_of(dispatch(function, [{x}]))
    if (
        enter is None or modes() or forward_ad._current_level >= 0
        or not ({all_are_readable})
    ):
        return result_of(call(function, [{x}]))
    {models} = models
    {allocations}
    enter({pointers})
    if is_grad_enabled() and ({any_needs_grad}):
        {results} = apply_call(function, ({results}), {x})
    return {result}
"""


class DirectCalls:
    """The fast paths of a function.

    Attributes:
        by_count: the fast paths by the number of arguments.
    """

    def __init__(self) -> None:
        self.by_count: dict[int, Callable[..., Any]] = {}
        # By the number of arguments: how many results there are, and whether one is returned alone
        self._kinds: dict[int, tuple[int, bool]] = {}
        self._traces: dict[Any, Any] = {}  # by the dtypes and shapes of arguments

    def add(self, args: Sequence[Any], trace: SignatureTrace) -> None:
        """Take calls with arguments like these from now on.

        Args:
            args: the arguments; tensors alone are taken.
            trace: the trace for them, which has run.
        """
        function = trace.flat
        if not args or function.entry is None or not all(type(x) in PLAIN_TENSORS for x in args):
            return
        enter, models = function.entry
        kind = len(models), trace.structure is None
        if self._kinds.setdefault(len(args), kind) != kind or not models:
            return
        if any(type.dtype.kind == "c" for type in (*function.types, *function.result_types)):
            enter = None  # they may have to be conjugated
        key = tuple(part for x in args for part in (x.dtype, x.shape))
        self._traces[key] = function, enter, models, trace.result_of
        if len(args) not in self.by_count:
            self.by_count[len(args)] = _compiled(len(args), *kind, self._traces)


def _compiled(
    count: int, result_count: int, is_one: bool, traces: dict[Any, Any]
) -> Callable[..., Any]:
    """Return the fast path for a number of arguments and a kind of result."""
    names = [f"x{k}" for k in range(count)]
    results = [f"y{k}" for k in range(result_count)]

    def of_each(names: Sequence[str], text: str, joint: str = ", ") -> str:
        return joint.join(text.format(x=x) for x in names)

    source = _SOURCE.format(
        x=", ".join(names),
        all_are_plain=of_each(names, "type({x}) in PLAIN_TENSORS", " and "),
        types=of_each(names, "{x}.dtype, {x}.shape"),
        all_are_readable=of_each(
            names,
            "{x}.is_cpu and {x}.is_contiguous() and not ({x}.is_neg() or {x}._is_zerotensor())",
            " and ",
        ),
        models=of_each(results, "like_{x}, ", ""),
        allocations=of_each(results, "{x} = empty_like(like_{x})", "; "),
        pointers=of_each([*names, *results], "{x}.data_ptr()"),
        any_needs_grad=of_each(names, "{x}.requires_grad", " or "),
        results=of_each(results, "{x}, ", ""),
        result="y0" if is_one else f"result_of(({of_each(results, '{x}, ', '')}))",
    )
    namespace: dict[str, Any] = {
        "MISSED": MISSED,
        "PLAIN_TENSORS": PLAIN_TENSORS,
        "apply_call": apply_call,
        "call": call,
        "dispatch": dispatch,
        "empty_like": torch.empty_like,
        "forward_ad": forward_ad,
        "is_grad_enabled": torch.is_grad_enabled,
        "is_transformed": is_transformed,
        "modes": modes,
        "traces": traces,
    }
    exec(source, namespace)
    direct: Callable[..., Any] = namespace["direct"]
    return direct
