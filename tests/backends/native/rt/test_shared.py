"""The run-time library is sound text: each module assembles alone, and finds all that it calls."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import pytest

from wend.backends.native.rt.python_callbacks import python_function
from wend.backends.native.rt.shared import SharedModule, shared_modules

EXPORTED = {name for module in shared_modules() for name in module.exports}


def assembled(module: SharedModule) -> llvm.ModuleRef:
    parsed = llvm.parse_assembly(module.text())
    parsed.verify()
    return parsed


def is_in_process(name: str) -> bool:
    """Whether Python or the C library provides a function."""
    try:
        return python_function(name) != 0
    except AttributeError:
        return hasattr(ctypes.CDLL(None), name)


@pytest.mark.parametrize("module", shared_modules(), ids=lambda module: module.exports[0])
def test_a_module_assembles_alone_and_finds_what_it_calls(module: SharedModule) -> None:
    functions = {function.name: function for function in assembled(module).functions}
    defined = {name for name, function in functions.items() if not function.is_declaration}
    assert {*module.exports} <= defined
    assert not module.forget or module.forget in defined
    imported = functions.keys() - defined - EXPORTED - module.addresses().keys()
    missing = [name for name in imported if not name.startswith("llvm.")]
    assert [name for name in missing if not is_in_process(name)] == []


def test_no_function_is_exported_twice() -> None:
    assert len(EXPORTED) == sum(len(module.exports) for module in shared_modules())
