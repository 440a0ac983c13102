"""The C header of an object file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wend.backends.native.codegen.messages import MESSAGE_BYTES
from wend.backends.native.objects.interface import REASONS, Input, Interface, OutputParameter
from wend.backends.native.objects.object_file import ObjectFile
from wend.base.version import VERSION
from wend.build.c_types import C_TYPES
from wend.ir.types import Symbol, TensorType


def header(name: str, functions: Sequence[Interface], code: ObjectFile) -> str:
    """Return the text of the header of a library.

    Args:
        name: the name of the library.
        functions: its functions.
        code: its object file.
    """
    guard = f"{name.upper()}_H"
    prefix = name.upper()
    blas = f", and BLAS and LAPACK: {', '.join(code.blas)}" if code.blas else ""
    reasons = ", ".join(f"{prefix}_{reason} = {k}" for k, reason in enumerate(REASONS))
    state = next((f.state for f in functions if f.state is not None), None)
    lines = [
        f"/* {name}: made by wend {VERSION}. Link it with libm{blas}. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* What a function returns. The workspace has the message of an error. A call that fails",
        "   changes neither its arguments nor the state. */",
        f"enum {{ {reasons} }};",
        "",
    ]
    if state is not None:
        lines += [
            "/* The variables. Any number of states may be in use. */",
            "typedef struct {",
            *(f"  {_field(field.name, field.type)};" for field in state.fields),
            f"}} {state.name};",
            f"void {state.name}_init({state.name} *state);  /* the values that wend has stored */",
            f"void {state.name}_copy({state.name} *state, const {state.name} *source);",
            "",
        ]
    for function in functions:
        lines += _function(function, code.workspaces[function.name])
    lines += ["#ifdef __cplusplus", "}", "#endif", "#endif", ""]
    return "\n".join(lines)


def _function(function: Interface, words: int) -> Iterator[str]:
    name, workspace = function.name, f"{function.name}_workspace"
    yield f"/* The memory of {name}: for one call at a time, and for any number of calls. */"
    yield "typedef struct {"
    yield f"  char message[{MESSAGE_BYTES}];  /* of the last call's error; empty if it had none */"
    yield "  void (*print)(void *context, const char *text);  /* may be NULL */"
    yield "  void *print_context;"
    yield f"  uint64_t words[{words}];"
    yield f"}} {workspace};"
    yield f"void {workspace}_init({workspace} *workspace);"
    yield f"void {workspace}_release({workspace} *workspace);  /* frees what calls allocated */"
    yield ""
    yield f"/* {signature_comment(function)} */"
    yield f"int {name}({', '.join(_parameters(function))});"
    yield ""


def signature_comment(function: Interface) -> str:
    """Return the types of a function as wend writes them."""
    names = function.sizes

    def text(type: TensorType) -> str:
        dims = ", ".join(
            names.get(dim, "?") if isinstance(dim, Symbol) else str(dim) for dim in type.dims
        )
        plain = str(type).partition("[")[0]
        return f"{plain}[{dims}]" if type.dims else plain

    inputs = ", ".join(f"{x.name}: {text(x.type)}" for x in function.inputs)
    outputs = ", ".join(f"{x.name}: {text(x.type)}" for x in function.outputs)
    return f"({inputs}) -> ({outputs})"


def _parameters(function: Interface) -> Iterator[str]:
    yield f"{function.name}_workspace *workspace"
    if function.state is not None:
        yield f"{function.state.name} *state"
    for x, sizes in zip(function.inputs, function.new_sizes(), strict=True):
        yield _input(x)
        yield from (f"int64_t {function.sizes[size]}" for size in sizes)
    for output in function.outputs:
        yield from _output(output)


def _input(x: Input) -> str:
    c = C_TYPES[x.type.dtype]
    if not x.type.dims and c.parts == 1 and not x.is_written:
        return f"{c.name} {x.name}"
    return f"{'' if x.is_written else 'const '}{c.name} *{x.name}"


def _output(output: OutputParameter) -> Iterator[str]:
    c = C_TYPES[output.type.dtype]
    if not output.is_lent:
        yield f"{c.name} *{output.name}"
        return
    # In the workspace, or in an argument, until the next call
    yield f"const {c.name} **{output.name}"
    yield f"int64_t {output.name}_sizes[{len(output.type.dims)}]"


def _field(name: str, type: TensorType) -> str:
    c = C_TYPES[type.dtype]
    dims = [*type.dims, *([c.parts] if c.parts > 1 else [])]
    return f"{c.name} {name}{''.join(f'[{dim}]' for dim in dims)}"
