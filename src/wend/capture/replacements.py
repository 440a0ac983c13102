"""Callees of captured code: user functions are captured, some builtins are replaced."""

from __future__ import annotations

import bisect
import builtins
import functools
import inspect
import itertools
import math
import operator
import re
import traceback
import types
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base import refusals
from wend.base.errors import UnsupportedError, explain
from wend.base.instances import stored_attribute
from wend.base.source import at, is_wend_file, user_source
from wend.capture.builtins import builtins as standard
from wend.capture.builtins import (
    eigenvalues,
    math_module,
    namespaces,
    sequence_methods,
    strings,
)
from wend.capture.builtins.attributes import number_method
from wend.capture.builtins.builtins import has_staged_items
from wend.capture.builtins.conversions import as_weak
from wend.capture.builtins.library import bisection, heaps
from wend.capture.builtins.library.statistics_module import statistics_function
from wend.capture.builtins.streams import print_in_run
from wend.capture.builtins.world import replacement_of_call
from wend.capture.stage.iterables import GridPositions, TracedRange, ZippedIterable, reversed_range
from wend.capture.stage.operators import check_filter, compare, contains, is_, is_not, not_
from wend.capture.state import operands
from wend.eager.dispatch import Staged, any_staged
from wend.eager.promotion import PYTHON_SCALARS, is_weak
from wend.ir.dtypes import SHORT_NAMES
from wend.numpy import (
    copying,
    creating,
    fft,
    indexing,
    ranges,
    rearranging,
    shaping,
    views,
)
from wend.numpy.operands import operand, staged
from wend.numpy.public import STAGED
from wend.numpy.unknown import unknown
from wend.trace.arrays.attributes import example_of_value
from wend.trace.arrays.concrete_array import adopt_result
from wend.trace.arrays.shown_text import ShownText
from wend.trace.arrays.tracer import TracedNumber
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import is_traced_now


def _with_stacked_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of a sequence of arrays so that it takes a traced list or range."""

    def run(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_range_as_array, args))
        if not args or not isinstance(args[0], TensorList):
            if args and function is shaping.stack:
                args = (_stacked(function, "arrays", args[0]), *args[1:])
            return function(*args, **kwargs)
        xs, *others = args
        if function is shaping.stack:
            return _stack(xs, *others, **kwargs)
        return function(xs.as_array(), *others, **kwargs)

    return run


def _range_as_array(x: Any) -> Any:
    return x.as_array() if isinstance(x, TracedRange) else x


def _deque_as_list(x: Any) -> Any:
    """Return a deque of traced values, which to NumPy is a sequence, as a list."""
    return list(x) if isinstance(x, deque) and any_staged(x) else x


def _stack(xs: TensorList, axis: int = 0, **kwargs: Any) -> Any:
    """Return `np.stack(xs, axis)`."""
    joined = xs.as_array()
    joined = joined if axis == 0 else shaping.moveaxis(joined, 0, axis)
    return creating.asarray(joined, **kwargs) if kwargs else joined


# Builtins and array functions -> their versions for traced values.
_STAGED_VERSIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **standard.STAGED,
    np.array: _with_stacked_list(creating.array),
    np.asarray: _with_stacked_list(creating.asarray),
    np.stack: _with_stacked_list(shaping.stack),
    creating.array: _with_stacked_list(creating.array),
    creating.asarray: _with_stacked_list(creating.asarray),
    shaping.stack: _with_stacked_list(shaping.stack),
    # These do not ask for `__array_function__`
    np.asanyarray: _with_stacked_list(copying.asanyarray),
    np.ascontiguousarray: _with_stacked_list(copying.ascontiguousarray),
    np.asfortranarray: _with_stacked_list(copying.asfortranarray),
    # `__array_function__` does not dispatch on indices, counts and sizes
    np.take: indexing.take,
    np.repeat: rearranging.repeat,
    np.roll: rearranging.roll,
    np.reshape: views.reshape,
    np.broadcast_to: views.broadcast_to,
    np.full: ranges.full,
    np.zeros: ranges.zeros,
    np.ones: ranges.ones,
    np.empty: ranges.empty,
    np.ndarray: ranges.empty,
    np.eye: ranges.eye,
    np.identity: ranges.identity,
    np.arange: ranges.arange,
    np.linspace: ranges.linspace,
    np.fft.fftfreq: fft.fftfreq,
    np.fft.rfftfreq: fft.rfftfreq,
    **math_module.STAGED,
    **bisection.STAGED,
}


def _dispatch_on_any(
    original: Callable[..., Any], staged: Callable[..., Any]
) -> Callable[..., Any]:
    is_of_numpy = getattr(original, "__module__", None) == "numpy"
    kinds = (TensorList, TracedRange) if is_of_numpy else TensorList

    def run(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_deque_as_list, args)) if is_of_numpy else args
        operands = (*args, *kwargs.values())
        is_staged = any_staged(operands) or any(isinstance(arg, kinds) for arg in operands)
        return staged(*args, **kwargs) if is_staged else adopt_result(original(*args, **kwargs))

    return run


def _ndindex(*shape: Any) -> Any:
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        (shape,) = shape
    if not any_staged(shape):
        np.ndindex(*shape)  # NumPy's error
    return ZippedIterable(GridPositions(tuple(shape)), function=lambda key: key, kind=np.ndindex)


def _ndenumerate(arr: Any) -> Any:
    array = operand(arr)
    if isinstance(array, PYTHON_SCALARS):
        array = np.asarray(array)
    elif isinstance(array, TracedNumber):
        array = array.as_zero_dim()
    positions = GridPositions(shaping.shape(array))
    elements = array if isinstance(array, Staged) or not is_traced_now() else staged(array)
    return ZippedIterable(positions, function=lambda k: (k, elements[k]), kind=np.ndenumerate)


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    return ZippedIterable(iterable, enumerate_from=start, kind=enumerate)


def _is_indexable(part: Any) -> bool:
    return isinstance(part, (Staged, np.ndarray, TensorList, TracedRange, ZippedIterable))


def _zip(*iterables: Any, strict: bool = False) -> Any:
    if any(map(_is_indexable, iterables)):
        return ZippedIterable(*iterables, strict=strict)
    return builtins.zip(*iterables, strict=strict)


def _map(function: Callable[..., Any], *iterables: Any) -> Any:
    if any(isinstance(part, (Staged, TracedRange, ZippedIterable)) for part in iterables):
        return ZippedIterable(*iterables, function=function, kind=map)
    return builtins.map(function, *iterables)


def _filtering(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the items for which another holds, or those from there on."""
    takes_none = original in (builtins.filter, itertools.filterfalse)

    def run(function: Callable[..., Any] | None, iterable: Any, /) -> Any:
        def passes(item: Any) -> Any:
            is_identity = function is None and takes_none
            test = item if is_identity else function(item)  # type: ignore[misc]  # Python's error
            return check_filter(test, f"`{original.__name__}`")

        return original(passes, iterable)

    return run


_FILTERS = (builtins.filter, itertools.filterfalse, itertools.takewhile, itertools.dropwhile)


def _reversed(sequence: Any) -> Any:
    if isinstance(sequence, TracedRange):
        return ZippedIterable(reversed_range(sequence), kind=reversed)
    if isinstance(sequence, Staged):
        if sequence.type.shape == ():
            reversed(example_of_value(sequence))  # Python's error
        return ZippedIterable(sequence[::-1], kind=reversed)  # type: ignore[index]  # an array
    return builtins.reversed(sequence)


def _any(xs: Any) -> Any:
    return builtins.any(xs) if isinstance(xs, np.ndarray) else standard.any_of(xs)


def _all(xs: Any) -> Any:
    return builtins.all(xs) if isinstance(xs, np.ndarray) else standard.all_of(xs)


def _bool(*args: Any) -> Any:
    return standard.to_bool(*args) if len(args) == 1 else bool(*args)


def _type(*args: Any) -> Any:
    return standard.type_of(*args) if len(args) == 1 else type(*args)


# Builtins whose result for a list does not depend on its items.
_UNARY_BUILTINS = (builtins.len, builtins.float, builtins.int, builtins.round)


def _dispatch_on_first(
    original: Callable[..., Any], staged: Callable[..., Any]
) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], ShownText):
            raise args[0].looked_at()
        is_staged = bool(args) and isinstance(args[0], (Staged, TensorList, TracedRange))
        return (staged if is_staged else original)(*args, **kwargs)

    return run


def _returns_number(function: Callable[..., Any]) -> bool:
    """Return whether it returns a Python number whatever the class of its operands."""
    return function.__module__ == "math" and function is not math.prod


def _returning_weak(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it returns a Python number."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return as_weak(function(*args, **kwargs))

    return run


def _nditer(*args: Any, op_flags: Any = (), **options: Any) -> Any:
    """Return `np.nditer(…)`, which must not write: it does so behind the back of arrays."""
    if "write" in str(op_flags):
        raise UnsupportedError(
            explain(
                f"np.nditer{at(user_source())} writes to memory, which is not recorded.",
                cure="assign to the elements: for i in range(a.size): a[i] = …",
            )
        )
    if op_flags:
        options["op_flags"] = op_flags
    if not any_staged((*args, *options.values())):
        return np.nditer(*args, **options)
    (array, *others), order = args, options.get("order", "K")
    is_single = isinstance(array, Staged) and not others and not options.keys() - {"order"}
    if not is_single or (order != "C" and shaping.rank_of(array) > 1):
        raise UnsupportedError(
            explain(
                f"np.nditer{at(user_source())} of a traced array needs order='C', as a trace does "
                "not know how memory is laid out; and takes no flags, and no several arrays.",
                cure="loop over x.flat, zip(x.flat, y.flat) or np.ndenumerate(x).",
            )
        )
    elements = views.broadcast_to(views.reshape(array, -1), (math.prod(shaping.shape(array)),))
    return ZippedIterable(elements, function=lambda x: x.as_zero_dim(), kind=np.nditer)


def _fromiter(items: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    items = list(items if count < 0 else itertools.islice(items, count))
    if not any_staged(items):
        return np.fromiter(items, dtype, count, like=like)
    if len(items) < count:
        text = f"iterator too short: Expected {count} but iterator had only {len(items)} items."
        raise ValueError(text)
    return creating.array(items, dtype)


def _scalar_type(kind: type[np.generic]) -> Callable[..., Any]:
    """Return a class of NumPy's numbers as a function that casts traced values, too."""

    def staged(x: Any) -> Any:
        return shaping.astype(creating.asarray(x, np.dtype(kind) if is_weak(x) else None), kind)

    return _dispatch_on_first(kind, staged)


_REPLACEMENTS: dict[Callable[..., Any], Callable[..., Any]] = {
    original: (_dispatch_on_first if original in _UNARY_BUILTINS else _dispatch_on_any)(
        original, _returning_weak(staged) if _returns_number(original) else staged
    )
    for original, staged in _STAGED_VERSIONS.items()
}
_REPLACEMENTS |= {dtype.type: _scalar_type(dtype.type) for dtype in SHORT_NAMES}
_REPLACEMENTS |= strings.REPLACED | namespaces.REPLACEMENTS | eigenvalues.REPLACED
_REPLACEMENTS |= heaps.REPLACED | sequence_methods.REPLACED | operands.BY_FUNCTION
_REPLACEMENTS |= {
    operate: lambda left, right, name=name: compare(left, name, right)
    for name, (_, _, _, operate) in operands.COMPARISONS.items()
}
_REPLACEMENTS |= {original: _filtering(original) for original in _FILTERS}
_REPLACEMENTS |= {
    builtins.all: _all,
    builtins.any: _any,
    builtins.enumerate: _enumerate,
    builtins.isinstance: standard.is_instance,
    builtins.map: _map,
    builtins.max: standard.STAGED[builtins.max],
    builtins.min: standard.STAGED[builtins.min],
    builtins.print: print_in_run,
    builtins.reversed: _reversed,
    builtins.sorted: standard.sorted_of,
    builtins.type: _type,
    builtins.zip: _zip,
    np.fromiter: _fromiter,
    np.ndenumerate: _ndenumerate,
    np.ndindex: _ndindex,
    np.isscalar: standard.is_scalar,
    np.nditer: _nditer,
    operator.contains: contains,
    operator.is_: is_,
    operator.is_not: is_not,
    operator.not_: not_,
    builtins.bool: _bool,
    operator.truth: _bool,
}


_REPLACED_TYPES = frozenset(map(type, _REPLACEMENTS))
_HIGHER_ORDER_BUILTINS = (
    builtins.filter,
    builtins.map,
    builtins.max,
    builtins.min,
    builtins.sorted,
    functools.reduce,
    *(bisect.bisect_left, bisect.bisect_right, bisect.insort_left, bisect.insort_right),
)


def is_higher_order(fun: Any) -> bool:
    """Return whether a function written in C calls the functions that it gets."""
    is_listed = any(fun is builtin for builtin in _HIGHER_ORDER_BUILTINS)
    return is_listed or getattr(fun, "__module__", None) == "itertools"


def calls_arguments(fun: Any) -> bool:
    """Return whether code that is not captured may call the functions that it gets, unseen."""
    owner = stored_attribute(fun, "__self__")
    is_method = owner is not None and not isinstance(owner, types.ModuleType)
    module = type(owner).__module__ if is_method else getattr(fun, "__module__", None)
    is_listed = any(fun is function for function in _CALLING_FUNCTIONS)
    return is_listed or str(module).partition(".")[0] in _CALLING_LIBRARIES


_CALLING_FUNCTIONS = (functools.cmp_to_key, builtins.eval, builtins.exec, defaultdict)
_CALLING_LIBRARIES = frozenset(
    {
        *("numpy", "contextlib", "contextvars", "_contextvars", "re", "threading", "concurrent"),
        *("weakref", "_weakref"),
    }
)


def replacement_of(fun: Any) -> Any:
    """Return the replacement of a builtin or array function, or the function itself."""
    # The `__hash__` and `__eq__` of other objects may be the user's
    replacement = _REPLACEMENTS.get(fun) if type(fun) in _REPLACED_TYPES else None
    replacement = (
        replacement
        or strings.text_method(fun)
        or sequence_methods.sequence_method(fun)
        or sequence_methods.unbound_method(fun)
        or number_method(fun)
        or statistics_function(fun)
        or replacement_of_call(fun)
    )
    if replacement is not None:
        return replacement
    return functools.partial(_call_with_stacked_lists, fun) if _is_array_function(fun) else fun


# The position and name of an argument that is cast to a dtype item by item
_CAST_BY_ITEM = {
    np.put: (2, "v"),
    np.place: (2, "vals"),
    **dict.fromkeys((np.putmask, np.insert, np.put_along_axis), (2, "values")),
    **dict.fromkeys((np.asanyarray, np.ascontiguousarray, np.asfortranarray), (0, "a")),
}

# Which arguments of the methods of ufuncs are arrays, if not the first alone
_ARRAYS_OF_METHODS = {"outer": (0, 1), "at": (0, 2)}


def _is_ufunc_method(fun: Any) -> bool:
    return isinstance(fun, types.BuiltinMethodType) and isinstance(fun.__self__, np.ufunc)


def _is_array_function(fun: Any) -> bool:
    module = getattr(fun, "__module__", None)
    return (
        isinstance(fun, np.ufunc)
        or _is_ufunc_method(fun)
        or (
            callable(fun)
            and not isinstance(fun, (type, types.MethodType))
            and isinstance(module, str)
            and f"{module}.".startswith(("numpy.", "wend.numpy."))
        )
    )


def _call_with_stacked_lists(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call an array function with traced lists, and lists of traced values, as arrays."""
    args = tuple(_range_as_array(_deque_as_list(arg)) for arg in args)
    args = tuple(arg.as_array() if isinstance(arg, TensorList) else arg for arg in args)
    if any(map(has_staged_items, (*args, *kwargs.values()))):
        names = _parameters(fun, len(args))
        position, parameter = _CAST_BY_ITEM.get(fun, (None, None))
        args = tuple(
            arg if k == position else _stacked(fun, name, arg)
            for k, (name, arg) in enumerate(zip(names, args, strict=True))
        )
        kwargs = {k: arg if k == parameter else _stacked(fun, k, arg) for k, arg in kwargs.items()}
    try:
        return adopt_result(fun(*args, **kwargs))
    except TypeError as error:
        # One in C that knows no protocol of NumPy's, such as `np.frombuffer`
        is_in_c = isinstance(fun, types.BuiltinFunctionType) and not refusals.is_refusal(error)
        is_method = isinstance(stored_attribute(fun, "__self__"), np.ufunc)
        if not is_in_c or is_method or not any_staged((*args, *kwargs.values())):
            raise
        raise refusals.refusal(unknown(fun)) from error


# Parameters of array functions that take shapes, axes, or several arrays
_OTHER_PARAMETERS = frozenset(
    {
        *("shape", "newshape", "axis", "axes", "reps", "size", "pad_width", "repeats", "shift"),
        *("dims", "indices_or_sections", "arrays", "tup", "seq", "keys", "operands", "args"),
        *("condlist", "choicelist", "choices", "funclist", "bins", "range", "out", "xi", "key"),
        "multi_index",
    }
)


def _is_array_parameter(name: str) -> bool:
    return name not in _OTHER_PARAMETERS


def _stacked(fun: Callable[..., Any], name: str, arg: Any) -> Any:
    """Return an argument with arrays in place of lists that hold traced values."""
    if not has_staged_items(arg):
        return arg
    if name in _SEVERAL_ARRAYS and fun.__name__ != "block":  # whose lists tell where blocks are
        return tuple(creating.asarray(x) if has_staged_items(x) else x for x in arg)
    return creating.asarray(arg) if _is_array_parameter(name) else arg


_SEVERAL_ARRAYS = frozenset({"arrays", "tup", "seq", "keys", "choicelist", "choices"})


def _parameters(fun: Callable[..., Any], count: int) -> list[str]:
    """Return the names of an array function's positional arguments; `args` are of no array."""
    if _is_ufunc_method(fun):
        positions = _ARRAYS_OF_METHODS.get(fun.__name__, (0,))
        return ["x" if k in positions else "args" for k in range(count)]
    if isinstance(fun, np.ufunc):
        return ["x" if k < fun.nin else "out" for k in range(count)]
    try:
        parameters = inspect.signature(fun).parameters.values()
    except ValueError:  # of a function written in C
        parameters = inspect.signature(STAGED.get(fun, len)).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    return [names[k] if k < len(names) else "args" for k in range(count)]


def is_plain_function(fun: Any) -> bool:
    """Return whether an object is a function written in Python."""
    return isinstance(fun, types.FunctionType)


_IN_C = (
    *(type, types.BuiltinFunctionType, types.MethodWrapperType),
    *(operator.attrgetter, operator.methodcaller),
)
# What Python says of arguments that a function in Python does not take
_OF_ARGUMENTS = re.compile(r"\(\) (missing \d+ required|takes .*positional|got an unexpected key)")


def with_own_errors(fun: Any, replacement: Any) -> Any:
    """Return what stands for a function in C, with its errors for arguments it does not take."""
    if replacement is fun or not isinstance(fun, _IN_C):
        return replacement
    return functools.partial(_call_replacement, fun, replacement)


def _call_replacement(fun: Any, replacement: Any, /, *args: Any, **kwargs: Any) -> Any:
    try:
        return replacement(*args, **kwargs)
    except TypeError as error:
        is_of_arguments = not refusals.is_refusal(error) and _OF_ARGUMENTS.search(str(error))
        if is_of_arguments and _is_raised_here(error):
            _raise_own_error(fun, args, kwargs)
        raise


def _is_raised_here(error: TypeError) -> bool:
    """Return whether wend made the call that an error is of; the user's may have had effects."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return is_wend_file(frames[-1].f_code.co_filename)


def _raise_own_error(fun: Any, args: Any, kwargs: Any) -> None:
    """Raise the TypeError of a function in C, if it raises one."""
    try:
        with refusals.tentative():
            fun(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  # of another kind: it takes the arguments
        if isinstance(error, TypeError) and not refusals.is_refusal(error):
            raise error.with_traceback(None) from None
