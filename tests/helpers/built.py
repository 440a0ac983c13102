"""Functions of object files, linked to a shared library and called through `ctypes`."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wend.backends.native.codegen.messages import HEADER_BYTES, MESSAGE_BYTES, PRINT
from wend.backends.native.objects.interface import REASONS, Interface
from wend.build import Built
from wend.build.linking import find_compiler
from wend.ir.types import Symbol

# What object files may call: functions of the C library and of libm
C_LIBRARY = frozenset(
    """aligned_alloc free malloc realloc memchr memcmp memcpy memmove memset snprintf
    acos acosh asin asinh atan atan2 atanh cbrt ceil ceilf copysign cos cosh erf erfc exp exp2 expm1
    fabs floor floorf fma fmaf fmod fmodf hypot lgamma log log10 log1p log2 pow rint rintf round
    sin sinh tan tanh tgamma trunc truncf""".split()
)

PRINTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class CallError(Exception):
    """A call that returned a reason other than 0."""


def compiler(language: str = "c") -> list[str]:
    """A compiler; the test is skipped, loudly, if there is none."""
    if language == "c":
        command = find_compiler()
    else:
        name = {"c++": "g++", "fortran": "gfortran"}[language]
        command = [name] if shutil.which(name) else None
    if command is None:
        pytest.skip(f"NO COMPILER OF {language.upper()}: {language} programs are not tested here")
    return command


def undefined_symbols(path: Path) -> set[str]:
    """The symbols that an object file leaves undefined."""
    lines = subprocess.run(["nm", "-u", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in lines.splitlines()}


class CLibrary:
    """A shared library made of an object file; its functions take and return arrays of NumPy."""

    def __init__(self, built: Built) -> None:
        path = built.object.with_suffix(".so")
        command = [*compiler(), "-shared", "-o", str(path), str(built.object), "-lm"]
        subprocess.run(command, check=True, capture_output=True)
        self._library = ctypes.CDLL(str(path))
        self._functions = {function.name: function for function in built.functions}
        self.states: dict[str, Any] = {}
        self.printed: list[str] = []
        self._printer = PRINTER(lambda _, text: self.printed.append(text.decode()))
        self._workspaces = {
            name: self._new_workspace(name, words) for name, words in built.workspaces.items()
        }

    def _new_workspace(self, name: str, words: int) -> Any:
        workspace = ctypes.create_string_buffer(HEADER_BYTES + 8 * words)
        self._library[f"{name}_workspace_init"](workspace)
        printer = ctypes.cast(self._printer, ctypes.c_void_p).value or 0
        ctypes.c_uint64.from_buffer(workspace, PRINT).value = printer
        return workspace

    def state(self, function: Interface) -> Any:
        """The one state of a function."""
        assert function.state is not None
        name = function.state.name
        if name not in self.states:
            self.states[name] = ctypes.create_string_buffer(function.state.size)
            self._library[f"{name}_init"](self.states[name])
        return self.states[name]

    def field(self, name: str, field: str) -> np.ndarray:
        """The contents of a field of a function's state."""
        state = self._functions[name].state
        assert state is not None
        (x,) = (x for x in state.fields if x.name == field)
        data = self.states[state.name].raw[x.offset : x.offset + x.size]
        return np.frombuffer(data, x.type.dtype).reshape(x.initial.shape)

    def call(self, name: str, leaves: Sequence[Any]) -> list[Any]:
        """The results of a function; arrays that it changes are changed.

        Raises:
            CallError: it returned a reason.
        """
        function = self._functions[name]
        arguments: list[Any] = [self._workspaces[name]]
        if function.state is not None:
            arguments.append(self.state(function))
        sizes: dict[Symbol, int] = {}
        pairs = zip(function.inputs, function.new_sizes(), leaves, strict=True)
        for param, fresh, leaf in pairs:
            array = np.ascontiguousarray(leaf, param.type.dtype)
            shape = np.shape(leaf)
            sizes |= {
                dim: shape[axis] for axis, dim in enumerate(param.type.dims) if dim in fresh
            }
            is_number = not param.type.dims and param.type.dtype.kind != "c"
            arguments.append(_number(array) if is_number else array)
            arguments += [ctypes.c_int64(sizes[dim]) for dim in fresh]
        readers = []
        for output in function.outputs:
            dtype, dims = output.type.dtype, output.type.dims
            if output.is_lent:
                address, lent = ctypes.c_void_p(), (ctypes.c_int64 * len(dims))()
                arguments += [ctypes.byref(address), lent]
                readers.append(lambda a=address, n=lent, t=dtype: _read(a, [*n], t))
            else:
                shape = [sizes[dim] if isinstance(dim, Symbol) else dim for dim in dims]
                result = np.empty(shape, dtype)
                arguments.append(result)
                readers.append(lambda x=result: x if x.ndim else x[()])
        passed = [x.ctypes.data_as(ctypes.c_void_p) if isinstance(x, np.ndarray) else x
                  for x in arguments]
        status = self._library[name](*passed)
        if status:
            message = self._workspaces[name].raw[:MESSAGE_BYTES].partition(b"\0")[0].decode()
            raise CallError(REASONS[status], message)
        return [read() for read in readers]

    def close(self) -> None:
        """Free what calls have allocated."""
        for name, workspace in self._workspaces.items():
            self._library[f"{name}_workspace_release"](workspace)


def _number(array: np.ndarray) -> Any:
    types = {
        **{f"i{n}": getattr(ctypes, f"c_int{8 * n}") for n in (1, 2, 4, 8)},
        **{f"u{n}": getattr(ctypes, f"c_uint{8 * n}") for n in (1, 2, 4, 8)},
        **{"f4": ctypes.c_float, "f8": ctypes.c_double, "b1": ctypes.c_bool},
    }
    return types[array.dtype.str[1:]](array.item())


def _read(address: Any, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)
