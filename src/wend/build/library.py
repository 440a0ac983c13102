"""`wend.build.build`: a function as an object file and a C header."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wend.backends.native.objects.object_file import ObjectFile, object_file
from wend.backends.native.objects.targets import target_platform
from wend.base.errors import UnsupportedError, explain
from wend.build.built import Built
from wend.build.c_types import LIBRARY, RESERVED
from wend.build.header import header
from wend.build.interfaces import interface_of, state_of
from wend.build.layout import layout_of
from wend.build.signature import NamedSpec, parse_signature
from wend.build.wheel import make_wheel
from wend.function.concrete import ConcreteFunction
from wend.function.derivatives.gradient import value_and_grad
from wend.function.function import BoundFunction, Function, function
from wend.ir.types import Symbol
from wend.runtime.storage import Storage

_OTHER_NAME = 'pass another one: name="…", or --name on the command line.'


def build(
    fun: Callable[..., Any] | ConcreteFunction,
    signature: str | Sequence[Any] | None = None,
    *,
    out: str | os.PathLike[str] = ".",
    name: str | None = None,
    gradient: bool = False,
    cpu: str | None = None,
    target: str | None = None,
    blas: bool = True,
    wheel: bool = False,
    libraries: str = "",
) -> Built:
    """Compile a function to an object file that needs neither Python nor wend.

    It writes `NAME.o` and `NAME.h`. The object file calls the C library and libm only, and BLAS
    and LAPACK for products of more than 64³ multiplications and for factorizations; the header says
    which functions. Variables become fields of a state, checks become results and messages.

    Args:
        fun: the function, or a trace of it.
        signature: the types of its arguments, as in `"f64[n], f64"`, or examples of them; None for
            a trace, or a function with an `input_signature`.
        out: the folder.
        name: the name of the function in C, and of the files; None: its own.
        gradient: also build `NAME_gradient`, which returns the value and the gradients with respect
            to all arguments of floats.
        cpu: LLVM's name of the processor, such as `"x86-64-v3"`; None: this one.
        target: LLVM's name of a machine, such as `"aarch64-linux-gnu"`; None: this one.
        blas: whether it may call BLAS and LAPACK.
        wheel: also link a shared library, and write a wheel for any Python with NumPy.
        libraries: further options of the linker, such as `"-lopenblas"`.

    Raises:
        LinkError: there is no compiler that links the wheel's library, or it fails.
        UnsupportedError: an operation needs Python, NumPy or SciPy; it is named, with its line.

    Example:
        >>> import tempfile, wend
        >>> from wend.build import build
        >>> built = build(lambda x: x * x, "f64", out=tempfile.mkdtemp(), name="square")
        >>> "int square(square_workspace *workspace, double x, double *result);" in (
        ...     built.header.read_text()
        ... )
        True
    """
    specs = parse_signature(signature) if isinstance(signature, str) else signature
    concrete = _concrete(fun, specs)
    name = name or re.sub(r"\W", "_", concrete.name)
    if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in RESERVED:
        raise ValueError(explain(f"name={name!r} is no name in C.", cure=_OTHER_NAME))
    if name in LIBRARY:
        what = f"name={name!r} is that of a function of the C library."
        raise ValueError(explain(what, cure=_OTHER_NAME))
    concretes: dict[str, ConcreteFunction] = {name: concrete}
    labels: dict[str, list[str] | None] = {name: None}
    if gradient:
        derived, names = _gradient(fun, concrete, specs)
        concretes[f"{name}_gradient"], labels[f"{name}_gradient"] = derived, names
    state = state_of([*concretes.values()], name)
    storages = _storages([*concretes.values()], state)
    size_names: dict[Symbol, str] = {}
    for spec in specs or ():
        if isinstance(spec, NamedSpec):
            size_names |= spec.names()
    platform = target_platform(target, cpu, has_blas=blas)
    functions = [
        interface_of(traced, label, state, storages, size_names, labels[label])
        for label, traced in concretes.items()
    ]
    code: ObjectFile = object_file(functions, platform)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    object_path, header_path = folder / f"{name}.o", folder / f"{name}.h"
    object_path.write_bytes(code.image)
    header_path.write_text(header(name, functions, code))
    layout = layout_of(functions, code.workspaces)
    built = Built(name, object_path, header_path, tuple(functions), code.blas, layout)
    if not wheel:
        return built
    path = make_wheel(built, platform, folder, target=target, libraries=libraries)
    return replace(built, wheel=path)


def _concrete(fun: Any, specs: Sequence[Any] | None) -> ConcreteFunction:
    if not isinstance(fun, ConcreteFunction):
        fun = fun if isinstance(fun, (Function, BoundFunction)) else function(fun)
        fun = fun.get_concrete_function(*(specs or ()))
    concrete: ConcreteFunction = fun
    if concrete.traced.pending or concrete.first_call is not None:
        what = f"{concrete.name} has been traced, but not called: its first call makes variables."
        raise UnsupportedError(explain(what, cure="call it once before you build it."))
    if not concrete.traced.is_closed():
        what = f"{concrete.name} uses values of another trace."
        raise UnsupportedError(explain(what, cure="build the function that was traced around it."))
    return concrete


def _gradient(
    fun: Any, concrete: ConcreteFunction, specs: Sequence[Any] | None
) -> tuple[ConcreteFunction, list[str]]:
    """Return the trace of value and gradient, and the names of its results."""
    if isinstance(fun, ConcreteFunction) or specs is None:
        what = "the gradient of a trace is not built."
        raise UnsupportedError(explain(what, cure="pass the function, and a signature."))
    types = [type.type for type in concrete.input_types]
    numbers = [k for k, type in enumerate(types) if np.issubdtype(type.dtype, np.inexact)]
    if len(types) != len(specs) or not numbers:
        what = f"{concrete.name} has no arguments of floats, or arguments of several arrays."
        raise UnsupportedError(explain(what, cure="build value_and_grad of it yourself."))
    derived = value_and_grad(fun, argnums=tuple(numbers))
    names = ["value", *(f"{concrete.input_names[k]}_gradient" for k in numbers)]
    return _concrete(derived, specs), names


def _storages(concretes: Sequence[ConcreteFunction], state: Any) -> dict[Storage, Any]:
    """Return the field of each variable, in the order of `state_of`."""
    storages = dict.fromkeys(
        binding
        for concrete in concretes
        for binding in concrete.traced.captured
        if isinstance(binding, Storage)
    )
    return dict(zip(storages, state.fields if state else (), strict=True))
