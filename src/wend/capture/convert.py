"""Capture: functions that can be recorded, and what their rewritten code calls."""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import explain
from wend.base.handling import handlers
from wend.capture import patterns
from wend.capture.attributes import (
    attribute,
    attribute_target,
    change_attribute,
    method,
    peek,
    set_again,
    set_attribute,
)
from wend.capture.builtins import builtins as standard
from wend.capture.builtins import strings
from wend.capture.calls import call, derive_from
from wend.capture.chosen_methods import call_at, call_at_default, call_of_item
from wend.capture.conversion import RUNTIME_FUNCTIONS, CaptureError, captured, rewritten_tree
from wend.capture.filters import filtered_call, filtered_item, filtered_list
from wend.capture.guards.outside import (
    entered_items,
    imported,
    load_closure,
    load_global,
    read_held,
)
from wend.capture.heap.container_phis import with_known_keys
from wend.capture.heap.locations import (
    evaluate,
    log_write_contents,
    log_write_variable,
)
from wend.capture.libraries import include_package
from wend.capture.managers import check_suppress, context
from wend.capture.replacements import is_plain_function
from wend.capture.rewrite.syntax import Operations
from wend.capture.stage.branches import if_, if_return
from wend.capture.stage.cleanup import begin_finally, watch_finally
from wend.capture.stage.failing_operations import divert_errors
from wend.capture.stage.float_errors import refuse_float_operations
from wend.capture.stage.guard import (
    check_caught,
    translate_errors,
)
from wend.capture.stage.handlers import try_, try_finally
from wend.capture.stage.loops import for_, while_
from wend.capture.stage.operators import (
    and_,
    assert_,
    assertion_error,
    choose_value,
    compare,
    if_expression,
    not_,
    or_,
    require_concrete,
    text,
)
from wend.capture.stage.raises import divert_operation
from wend.capture.stage.truth import truth_of
from wend.capture.state import one_shot_iterators, operands, optional_value
from wend.capture.state.assignments import (
    ItemBefore,
    change_item,
    get_item,
    get_row,
    in_place,
    mutated,
    note_attribute_write,
    set_item,
    set_item_in_place,
    set_item_of,
    store_item,
    store_item_in_place,
)
from wend.capture.state.paths import decided_truth
from wend.capture.state.special_methods import (
    array_of,
    ask_ufuncs,
    proxied,
    proxied_items,
    spread,
)
from wend.capture.state.state import State, is_unbound
from wend.capture.state.unbound import check_bound, is_maybe_bound, require_bound, unwrap
from wend.capture.state.unbound_attributes import deleted_from
from wend.capture.uncaptured import is_captured
from wend.eager import raising
from wend.numpy import ufuncs
from wend.trace.arrays import foreign_operands
from wend.trace.arrays.attributes import class_name, class_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.control import returned_optional
from wend.trace.recording import recording
from wend.trace.state import text_choice
from wend.trace.state.templates import Text


def do_not_capture(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude a function from capture when captured code calls it.

    Its `for` loops then run in Python while it is recorded, and its `if` statements decide there.

    Example:
        >>> import wend
        >>> @wend.do_not_capture
        ... def power(x, n):
        ...     result = x
        ...     for _ in range(n - 1):
        ...         result = result * x
        ...     return result
        >>> cube = wend.function(lambda x: power(x, 3))
        >>> print(cube.get_concrete_function(2.0).graph)
        graph '<lambda>'(%0: f64[]) {
          %1: f64[] = mul(%0, %0)
          %2: f64[] = mul(%1, %0)
          return %2
        }
    """
    fun.__wend_do_not_capture__ = True  # type: ignore[attr-defined]
    return fun


def capture(fun: Any) -> Any:
    """Return the captured form of a function, whose errors show the user's lines."""
    _check_kind(fun)
    code = getattr(inspect.unwrap(fun), "__code__", None)
    if code is not None:
        include_package(code.co_filename)
    captured_fun = captured(fun)
    return (
        translate_errors(captured_fun)
        if captured_fun is not fun or is_plain_function(fun)
        else captured_fun
    )


def _check_kind(fun: Any) -> None:
    """Refuse generators and async functions."""
    target = inspect.unwrap(fun) if is_plain_function(fun) else fun
    name = getattr(target, "__name__", "it")
    if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        cure = "wend.function takes plain functions; await around the call, not in it."
        raise CaptureError(explain(f"`{name}` is an async function.", cure=cure))
    if inspect.isgeneratorfunction(target):
        cure = "collect the values in a list (out.append(x)) and return them."
        raise CaptureError(explain(f"`{name}` is a generator function: it has `yield`.", cure=cure))


def source(fun: Callable[..., Any]) -> str:
    """Return the rewritten code of a captured function, as text.

    Args:
        fun: a function, plain or decorated.

    Example:
        >>> import wend
        >>> def sign(x):
        ...     return -1.0 if x < 0 else 1.0
        >>> "if_expression(x < 0, " in wend.source(sign)
        True
    """
    plain = inspect.unwrap(fun)
    plain = getattr(plain, "__func__", plain)
    capture(plain)
    tree = rewritten_tree(plain)
    if tree is None:
        return inspect.getsource(plain)
    return ast.unparse(Operations().visit(copy.deepcopy(tree)))


def _entered(value: Any) -> Any:
    return entered_items(one_shot_iterators.consume(value))


def _unpackable(value: Any) -> Any:
    """Return a value that is assigned to several names; a number cannot be."""
    if isinstance(value, Tracer) and value.type.shape == () and class_of(value) is not np.ndarray:
        text = f"cannot unpack non-iterable {class_name(value)} object"
        raise TypeError(text)
    return value


vars(RUNTIME_FUNCTIONS).update(
    **operands.RUNTIME_FUNCTIONS,
    State=State,
    and_=and_,
    assert_=assert_,
    assertion_error=assertion_error,
    attribute=attribute,
    attribute_target=attribute_target,
    bound=check_bound,
    call=call,
    call_at=call_at,
    call_at_default=call_at_default,
    call_of_item=call_of_item,
    derive_from=derive_from,
    change_attribute=change_attribute,
    change_item=change_item,
    check_caught=check_caught,
    compare=compare,
    consumed=lambda value: entered_items(one_shot_iterators.consume(value)),
    check_suppress=check_suppress,
    context=context,
    decided=require_concrete,
    decomposed=patterns.check_match_subject,
    filtered=filtered_item,
    filtered_call=lambda fun, /, *args, **kwargs: filtered_call(fun, call(fun), *args, **kwargs),
    filtered_list=filtered_list,
    for_=for_,
    get_item=get_item,
    get_row=get_row,
    gone_through=lambda value: proxied_items(_entered(value)),
    spread=lambda value: spread(_entered(value)),
    unpacked=lambda value: proxied_items(_entered(_unpackable(value))),
    load_closure=load_closure,
    imported=imported,
    load_global=load_global,
    if_=if_,
    if_expression=if_expression,
    if_return=if_return,
    in_place=in_place,
    deleted_from=deleted_from,
    item_owner=proxied,
    has_keys=patterns.has_keys,
    is_builtin=lambda fun, name: fun is getattr(builtins, name),
    is_mapping=patterns.is_mapping,
    is_of_class=patterns.is_of_class,
    is_perhaps=is_maybe_bound,
    is_sequence=patterns.is_sequence,
    is_unbound=is_unbound,
    item_before=ItemBefore,
    keyed=with_known_keys,
    known=require_bound,
    made=one_shot_iterators.register,
    other_items=patterns.other_items,
    part_taken=patterns.TakenParts.part,
    taken_parts=patterns.TakenParts,
    method=method,
    mutated=mutated,
    peek=peek,
    read_held=read_held,
    not_=not_,
    or_=or_,
    refuse_float_operations=refuse_float_operations,
    watch_finally=watch_finally,
    begin_finally=begin_finally,
    returned=evaluate,
    set_again=set_again,
    set_attribute=set_attribute,
    set_item=set_item,
    store_item=store_item,
    store_item_in_place=store_item_in_place,
    set_item_of=set_item_of,
    set_item_in_place=set_item_in_place,
    slice=slice,
    surely=unwrap,
    formatted=Text.formatted,
    text=text,
    log_write_attribute=note_attribute_write,
    log_write_contents=log_write_contents,
    log_write_variable=log_write_variable,
    while_=while_,
    truth_of=truth_of,
    try_=try_,
    try_finally=try_finally,
)
operands.call, operands.not_, operands.remainder = call, not_, strings.remainder
ufuncs.ask, foreign_operands.as_array = ask_ufuncs, array_of
foreign_operands.operate, foreign_operands.truth_of = operands.operate, standard.to_bool
operands.numbers, optional_value.compare = optional_value.numbers, compare
returned_optional.optional_value = optional_value.OptionalValue
text_choice.if_value, text_choice.decide = choose_value, decided_truth
# What lower layers ask about handlers
handlers.is_rewritten = is_captured
raising.divert = divert_operation
recording.divert_errors = divert_errors
