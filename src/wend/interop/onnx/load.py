"""`wend.interop.onnx.load`: an ONNX model as a function."""

from __future__ import annotations

import hashlib
import linecache
import os
import re
from collections.abc import Mapping
from typing import Any

import onnx
from onnx import inliner

from wend.base.errors import LoadError, UnsupportedError, WendError, explain, listed
from wend.function.function import Function, function
from wend.interop.onnx.operators.table import CONTROL, OPERATORS
from wend.interop.onnx.reading import MAX_NODES, check_graphs, read_model
from wend.interop.onnx.translate import Translation, unknown_operators

OLDEST_OPSET = 11


def load(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    *,
    constants: Mapping[str, Any] | None = None,
) -> Function:
    """Return an ONNX model as a function, with gradients of any order.

    Its parameters are the inputs of the model, in order, under their names where those are names in
    Python. `Loop`, `If` and `Scan` are loops and branches as of Python's; sequences are lists, an
    optional that is empty is None. The file is read as data: nothing in it is run, its tensors are
    in the folder of the model, and what has no translation is refused by name.

    Args:
        model: a file, its bytes, or a model.
        constants: values of inputs that are fixed, by name: those that decide on shapes.

    Returns:
        The function; `wend.source` shows it as Python.

    Raises:
        LoadError: the file is no model, damaged, or too large.
        UnsupportedError: it has operators or types that are not supported; all are named.

    Example:
        >>> import numpy as np, wend
        >>> from wend.interop.onnx import export, load
        >>> model = export(lambda x: x * x + 1.0, None, wend.TensorSpec([]))
        >>> square = load(model)
        >>> square(3.0), wend.grad(square)(3.0)
        (np.float64(10.0), np.float64(6.0))
    """
    read = read_model(model)
    opset = next((x.version for x in read.opset_import if x.domain in ("", "ai.onnx")), 0)
    if opset < OLDEST_OPSET:
        what = f"the model uses opset {opset}."
        cure = f"convert it to {OLDEST_OPSET} or later, by onnx.version_converter."
        raise UnsupportedError(explain(what, cure=cure))
    if read.functions:
        _check_calls(read)
        read = inliner.inline_local_functions(read)
        check_graphs(read)
    read = _inline_functions(read)
    unknown = sorted(unknown_operators(read.graph))
    if unknown:
        what = f"the model has operators that are not supported: {', '.join(unknown)}."
        raise UnsupportedError(explain(what, cure="see the table in docs/onnx.md."))
    _check_constants(read.graph, constants or {})
    try:
        translation = Translation(read.graph, opset, constants or {})
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
        if isinstance(error, WendError):
            raise
        what = f"the model is damaged: {type(error).__name__}: {error}"
        raise LoadError(what) from None
    name = re.sub(r"\W", "_", read.graph.name, flags=re.ASCII).strip("_") or "model"
    name = name if name.isidentifier() else f"model_{name}"
    loaded: Function = function(_compiled(translation, name))
    return loaded


def _check_constants(graph: onnx.GraphProto, constants: Mapping[str, Any]) -> None:
    known = [x.name for x in graph.input]
    for name in constants.keys() - {*known}:
        raise ValueError(explain(f"the model has no input {name!r}.", f"it has {listed(known)}"))


def _check_calls(model: onnx.ModelProto) -> None:
    """Refuse functions of a model that call themselves, or that grow too large when inlined."""
    bodies = {(f.domain, f.name): list(f.node) for f in model.functions}
    sizes: dict[tuple[str, str], int] = {}
    pending = [(key, False) for key in bodies]
    open_calls: set[tuple[str, str]] = set()
    while pending:
        key, is_done = pending.pop()
        calls = [(n.domain, n.op_type) for n in bodies[key] if (n.domain, n.op_type) in bodies]
        if is_done:
            open_calls.discard(key)
            sizes[key] = len(bodies[key]) + sum(sizes.get(call, 0) for call in calls)
            if sizes[key] > MAX_NODES:
                raise LoadError(f"the function {key[1]!r} of the model has too many nodes")
        elif key in open_calls:
            raise LoadError(f"the function {key[1]!r} of the model calls itself")
        elif key not in sizes:
            open_calls.add(key)
            pending.append((key, True))
            for call in calls:
                if call in open_calls:
                    raise LoadError(f"the function {call[1]!r} of the model calls itself")
                pending.append((call, False))


def _inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with operators without a translation written by others, where ONNX can."""
    unknown = [name for name in unknown_operators(model.graph) if "." not in name]
    if not unknown:
        return model
    try:
        onnx.checker.check_model(model)
        inferred = onnx.shape_inference.infer_shapes(model)
        inlined = inliner.inline_selected_functions(
            inferred, [("", name) for name in unknown], inline_schema_functions=True
        )
    except Exception:  # noqa: BLE001 - what ONNX cannot infer or inline is refused by name
        return model
    check_graphs(inlined)
    return inlined


def _compiled(translation: Translation, name: str) -> Any:
    """Return the function of a translation, whose text tools can show."""
    digest = hashlib.sha256(translation.text.encode()).hexdigest()[:12]
    file = f"<onnx {name} {digest}>"
    lines = translation.text.splitlines(keepends=True)
    linecache.cache[file] = len(translation.text), None, lines, file
    names = dict(translation.names)
    try:
        code = compile(translation.text, file, "exec")
    except (SyntaxError, RecursionError, MemoryError):  # blocks in blocks, beyond Python's limit
        raise UnsupportedError("loops and branches are nested too deeply") from None
    exec(code, names)
    fun = names["model"]
    fun.__name__ = fun.__qualname__ = name
    return fun


SUPPORTED = tuple(sorted({*OPERATORS, *CONTROL}))
"""The operators that have a translation."""
