"""Calls of the functions of a library from Python; wheels of `wend build` have a copy of this file.

It imports nothing of wend.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

MESSAGE_BYTES = 512
_ERRORS = (None, MemoryError, IndexError, ValueError, ValueError, RuntimeError)
_PRINTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_NUMBERS: Mapping[str, Any] = {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    **{
        f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}


class StateArrays:
    """The variables of a library: attributes are arrays, which may be changed in place."""

    def __init__(self, library: CLibrary, source: StateArrays | None = None) -> None:
        layout = library.layout["state"]
        self._library = library
        self._memory = ctypes.create_string_buffer(layout["bytes"])
        if source is None:
            library.symbols[f"{layout['name']}_init"](self._memory)
        else:
            library.symbols[f"{layout['name']}_copy"](self._memory, source._memory)
        for field in layout["fields"]:
            shape, dtype = field["shape"], np.dtype(field["dtype"])
            memory = memoryview(self._memory).cast("B")
            array = np.frombuffer(memory, dtype, int(np.prod(shape)), field["offset"])
            setattr(self, field["name"], array.reshape(shape))

    def copy(self) -> StateArrays:
        """Return an independent copy."""
        return StateArrays(self._library, self)


class CLibrary:
    """A shared library and the layout of its functions.

    Args:
        path: the shared library.
        layout: what `wend build` has noted of its functions.
        print: what is called with each text that a function prints.
    """

    def __init__(
        self, path: str, layout: Mapping[str, Any], print: Callable[[str], None] = print
    ) -> None:
        self.symbols, self.layout = ctypes.CDLL(path), layout
        self._workspaces = threading.local()
        self._printer = _PRINTER(lambda context, text: print(text.decode()))
        self._functions = {function["name"]: function for function in layout["functions"]}

    def call(self, name: str, arguments: Sequence[Any], state: StateArrays | None = None) -> Any:
        """Call a function; return its result, or a tuple of several.

        Raises:
            ArithmeticError: a check of the function has failed; the message says which.
            IndexError: a position is outside an array.
            MemoryError: there is not enough memory.
        RuntimeError: a check of the function has failed; the message says which.
            ValueError: sizes do not fit.
        """
        function = self._functions[name]
        workspace = self._workspace(function)
        if len(arguments) != len(function["inputs"]):
            raise TypeError(f"{name} takes {len(function['inputs'])} arguments")
        passed: list[Any] = [workspace]
        if function["state"]:
            if state is None:
                raise TypeError(f"{name} has variables: pass state=StateArrays()")
            passed.append(state._memory)
        sizes: dict[str, int] = {}
        arrays = []  # alive until the call is over
        for param, argument in zip(function["inputs"], arguments, strict=True):
            arrays.append(_as_array(argument, param, sizes, passed))
        readers = [self._result(output, sizes, passed) for output in function["outputs"]]
        status = self.symbols[name](*passed)
        if status:
            message = workspace.raw[:MESSAGE_BYTES].partition(b"\0")[0].decode(errors="replace")
            error = _ERRORS[status]
            assert error is not None
            raise error(message)
        results = tuple([read() for read in readers])
        return results[0] if len(results) == 1 else results

    def _workspace(self, function: Mapping[str, Any]) -> Any:
        """Return the workspace of this thread."""
        name = function["name"]
        if not hasattr(self._workspaces, name):
            setattr(self._workspaces, name, _ThreadWorkspace(self.symbols, function, self._printer))
        workspace: _ThreadWorkspace = getattr(self._workspaces, name)
        return workspace.memory

    def _result(
        self, output: Mapping[str, Any], sizes: Mapping[str, int], passed: list[Any]
    ) -> Callable[[], Any]:
        """Append the addresses of a result; return what reads it after the call."""
        dtype, dims = np.dtype(output["dtype"]), output["dims"]
        if output["lent"]:
            address, lent = ctypes.c_void_p(), (ctypes.c_int64 * len(dims))()
            passed += [ctypes.byref(address), lent]

            def read() -> Any:
                size = int(np.prod([*lent])) * dtype.itemsize
                return np.frombuffer(ctypes.string_at(address, size), dtype).reshape([*lent])

            return read
        array = np.empty([sizes.get(dim, dim) for dim in dims], dtype)
        passed.append(array.ctypes.data_as(ctypes.c_void_p))
        return lambda: array if array.ndim else array[()]


class _ThreadWorkspace:
    """The workspace of one function for one thread; it is released with the thread."""

    def __init__(self, symbols: Any, function: Mapping[str, Any], printer: Any) -> None:
        name = function["name"]
        self.memory = ctypes.create_string_buffer(function["workspace"])
        self._release = symbols[f"{name}_workspace_release"]
        symbols[f"{name}_workspace_init"](self.memory)
        ctypes.c_void_p.from_buffer(self.memory, MESSAGE_BYTES).value = ctypes.cast(
            printer, ctypes.c_void_p
        ).value

    def __del__(self) -> None:
        self._release(self.memory)


def _as_array(
    argument: Any, param: Mapping[str, Any], sizes: dict[str, int], passed: list[Any]
) -> np.ndarray:
    """Append an argument, and its sizes that no earlier one has; return what it points to."""
    dtype, dims = np.dtype(param["dtype"]), param["dims"]
    array: np.ndarray = np.ascontiguousarray(argument, dtype).reshape(np.shape(argument))
    if param["written"] and array is not argument and not np.shares_memory(array, argument):
        raise TypeError(f"{param['name']} is changed: pass a contiguous array of {dtype}")
    if array.ndim != len(dims):
        raise ValueError(f"{param['name']} has {array.ndim} axes, not {len(dims)}")
    if not dims and dtype.kind != "c" and not param["written"]:
        passed.append(_NUMBERS[dtype.name](array.item()))
    else:
        passed.append(array.ctypes.data_as(ctypes.c_void_p))
    for dim, size in zip(dims, array.shape, strict=True):
        if isinstance(dim, str) and dim not in sizes:
            sizes[dim] = size
            passed.append(ctypes.c_int64(size))
        elif size != sizes.get(dim, dim):
            raise ValueError(f"{param['name']}: a size is {size}, not {sizes.get(dim, dim)}")
    return array
