"""Object files of functions: their code, and all of the run-time library that it calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llvmlite import binding

from wend.backends.native.jit.optimize import optimize, run_passes
from wend.backends.native.module import write
from wend.backends.native.objects.entry import (
    constant_definition,
    entry_functions,
    run_symbol,
    state_functions,
    workspace_words,
)
from wend.backends.native.objects.interface import Interface
from wend.backends.native.objects.targets import machine_of
from wend.backends.native.program import ENTRY, Program
from wend.backends.native.rt import blocks
from wend.backends.native.rt.shared import shared_module_of
from wend.backends.native.target.platform import Platform, generating_for
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class ObjectFile:
    """The object file of some functions.

    Attributes:
        image: its bytes.
        workspaces: the words of the workspace of each function, by name.
        blas: the functions of BLAS and LAPACK that it calls.
        text: the LLVM IR that it was made of.
    """

    image: bytes
    workspaces: dict[str, int]
    blas: tuple[str, ...]
    text: str


def object_file(functions: Sequence[Interface], platform: Platform) -> ObjectFile:
    """Compile functions to an object file.

    Args:
        functions: the functions; those with variables share one state.
        platform: the machine and what is beside the code.

    Raises:
        UnsupportedError: an operation needs Python, NumPy or SciPy; it is named, with its line.
    """
    machine = machine_of(platform)
    exports, workspaces = [], {}
    with generating_for(platform):
        linked: Any = binding.parse_assembly("")
        for function in functions:
            program = write(function.graph, threads=1)
            assert not program.host_calls
            linked.link_in(optimize(_graph_module(function, program), machine))
            linked.link_in(optimize(entry_functions(function, program), machine))
            workspaces[function.name] = workspace_words(program)
            exports += [
                function.name,
                f"{function.name}_workspace_init",
                f"{function.name}_workspace_release",
            ]
        state = next((f for f in functions if f.state is not None), None)
        if state is not None and state.state is not None:
            linked.link_in(optimize(state_functions(state), machine))
            exports += [f"{state.state.name}_init", f"{state.state.name}_copy"]
        _link_library(linked, machine)
    _make_internal(linked, exports)
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    options = binding.create_pipeline_tuning_options()
    run_passes(passes, linked, binding.create_pass_builder(machine, options))
    declared = sorted(f.name for f in linked.functions if f.is_declaration)
    called = tuple(name for name in declared if _BLAS.fullmatch(name))
    image: bytes = machine.emit_object(linked)  # type: ignore[attr-defined]
    return ObjectFile(image, workspaces, called, str(linked))


_BLAS = re.compile(r"[sd](gemm|gemv|gesv|getrf|getrs|trtrs|potrf)_")
_EXTERNAL_CONSTANT = re.compile(r"^@const(\d+) = external constant i8$", re.M)


def _graph_module(function: Interface, program: Program) -> str:
    """Return the text of a graph's module, with its constants, as a function of its own name."""
    text = _EXTERNAL_CONSTANT.sub(
        lambda match: constant_definition(f"const{match[1]}", program.constants[int(match[1])]),
        program.text,
    )
    return text.replace(f"@{ENTRY}(", f"@{run_symbol(function)}(")


def _link_library(linked: Any, machine: Any) -> None:
    """Link what is called of the run-time library, and what that calls."""
    defined: set[str] = set()
    while True:
        called = {
            f.name for f in linked.functions if f.is_declaration and f.name.startswith("wend.")
        } - defined
        if not called:
            return
        name = min(called)
        if name in blocks.NAMES:
            defined.add(name)
            linked.link_in(optimize(blocks.OWN_LIBRARY, machine))
            continue
        module = shared_module_of(name)
        defined.update(module.exports)
        linked.link_in(optimize(module.text(), machine, module.level))


def _make_internal(linked: Any, exports: Sequence[str]) -> None:
    """Hide all but the exported functions."""
    for value in (*linked.functions, *linked.global_variables):
        is_special = value.name.startswith("llvm.")
        if not value.is_declaration and not is_special and value.name not in exports:
            value.linkage = "internal"
