"""Calls of wend functions by XLA: a handler of its foreign function interface, or a callback.

With `backend="jax"` there is no call: the function is a part of XLA's program.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from wend.backends.jax.boundary import BOUNDARY
from wend.backends.jax.executable import inline
from wend.base.locks import Rank, lock_of
from wend.interop.flat_function import ArrayType, FlatFunction
from wend.interop.jax import ffi_types as ffi
from wend.interop.jax.handler import XlaHandler
from wend.interop.numbered_functions import NumberedFunctions

_TARGET = "wend_call"

_functions = NumberedFunctions()  # that programs of XLA call in this process
_LOCK = lock_of(Rank.BRIDGES)  # XLA keeps the first handler that is registered


def call_on_device(function: FlatFunction, operands: Sequence[Any]) -> Sequence[Any]:
    """Compute a wend function as a part of the program that XLA compiles."""
    traced, lazy = function.concrete.traced, function.concrete.compiled.entry("jax").lazy
    arguments = [*operands, *traced.arguments((), BOUNDARY)]
    results: Sequence[Any] = inline(lazy.optimized, arguments)
    return results[: len(function.result_types)]


def call_from_host(function: FlatFunction, operands: Sequence[Any]) -> Sequence[Any]:
    """Call a wend function in a program that XLA compiles, by copies to and from the host."""
    return jax.pure_callback(  # type: ignore[no-any-return]
        lambda *arrays: function.run(arrays),
        _result_specs(function),
        *operands,
        vmap_method="sequential",
    )


def call_in_place(function: FlatFunction, operands: Sequence[Any]) -> Sequence[Any]:
    """Call a wend function in a program that XLA compiles for the CPU, on XLA's own buffers."""
    handler = _handler()
    if handler is None:
        return call_from_host(function, operands)
    number = _functions.number_of(function)
    buffer_call = function.buffer_call
    with _LOCK:
        handler.add(number, buffer_call)
    call = jax.ffi.ffi_call(_TARGET, _result_specs(function))
    return call(*operands, number=np.int64(number))  # type: ignore[no-any-return]


def _result_specs(function: FlatFunction) -> list[Any]:
    return [jax.ShapeDtypeStruct(type.shape, type.dtype) for type in function.result_types]


def _handler() -> XlaHandler | None:
    """Return the handler of this process, or None if it does not speak XLA's version."""
    with _LOCK:
        return _register()


@functools.cache
def _register() -> XlaHandler | None:
    """Register the handler with XLA; return None if it does not speak this version."""
    major = ffi.major_version()
    if major != ffi.MAJOR:
        warnings.warn(
            f"XLA's foreign function interface has version {major}, not {ffi.MAJOR}: as_jax calls "
            "wend by jax.pure_callback, which is slower. A newer wend may know it.",
            stacklevel=2,
        )
        return None
    handler = XlaHandler(_run, _error)
    capsule = jax.ffi.pycapsule(ctypes.c_void_p(handler.address))
    jax.ffi.register_ffi_target(_TARGET, capsule, platform="cpu")
    return handler


def _array(buffer: ffi.Buffer, type: ArrayType) -> np.ndarray:
    """Return an array of the memory of a buffer."""
    count = int(np.prod(type.shape)) * type.dtype.itemsize
    if not count:
        return np.empty(type.shape, type.dtype)
    memory = memoryview((ctypes.c_char * count).from_address(buffer.data))
    array: np.ndarray = np.frombuffer(memory, type.dtype).reshape(type.shape)
    return array


def _run(frame: Any) -> int | None:
    """Run a call by Python; return the address of an error, or None."""
    try:
        _execute(frame.contents)
    except BaseException as error:  # noqa: BLE001 - XLA raises it where the result is asked for
        return _error(frame, error)
    return None


def _execute(call: ffi.CallFrame) -> None:
    function = _functions[call.attributes.items[0].contents.value.contents.value]
    operands = call.operands.items
    arrays = [_array(operands[k].contents, type) for k, type in enumerate(function.types)]
    for array in arrays:
        array.flags.writeable = False
    outputs = call.results.items
    for k, (result, type) in enumerate(
        zip(function.run(arrays), function.result_types, strict=True)
    ):
        _array(outputs[k].contents, type)[...] = result


def _error(frame: Any, error: BaseException) -> int | None:
    notes = getattr(error, "__notes__", [])
    text = "\n".join([f"{type(error).__name__}: {error}", *notes]).encode()
    arguments = ffi.ErrorArguments(ctypes.sizeof(ffi.ErrorArguments), None, text, ffi.INTERNAL)
    address: int | None = frame.contents.api.contents.create_error(ctypes.byref(arguments))
    return address
