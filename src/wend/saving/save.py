"""`wend.save`: functions and objects with functions, in one file."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from wend.base.errors import SaveError, explain
from wend.base.version import VERSION
from wend.saving.archive import ArchiveWriter
from wend.saving.functions import FunctionWriter
from wend.saving.graphs import GraphWriter
from wend.saving.objects import LeftOutError, ObjectWriter
from wend.saving.structures import is_attribute
from wend.saving.traces import TraceWriter
from wend.saving.variables import ArrayWriter, VariableWriter

FORMAT = 1  # increases when the manifest changes
_NOTHING = object()


def save(
    path: str | os.PathLike[str] | BinaryIO, value: Any = _NOTHING, /, **functions: Any
) -> None:
    """Save functions, or an object that has functions, in a file that `wend.load` reads.

    The file holds the traces that the functions have now, as data: graphs as text, arrays, and the
    values of variables. It holds no Python code. Functions share the variables they share here. The
    file is written whole or not at all.

    Args:
        path: the file, or a binary stream.
        value: an object, or a pytree of objects, functions, variables, arrays and numbers. Of an
            object its attributes are saved, and the methods that are functions of wend.
        functions: functions by name, in place of `value`.

    Raises:
        SaveError: a function has no trace, calls Python, or holds what a file cannot.

    Example:
        >>> import io, wend
        >>> file = io.BytesIO()
        >>> square = wend.function(lambda x: x * x, input_signature=[wend.TensorSpec([])])
        >>> wend.save(file, square=square, slope=square.get_concrete_function())
        >>> _ = file.seek(0)
        >>> wend.grad(wend.load(file).square)(3.0)
        np.float64(6.0)
    """
    if (value is _NOTHING) != bool(functions):
        what = "wend.save takes functions by name, or one object."
        raise SaveError(explain(what, cure="write wend.save(path, f=f) or wend.save(path, model)."))
    archive = ArchiveWriter()
    array = ArrayWriter(archive)
    variables = VariableWriter(array)
    graphs = GraphWriter(archive, array, variables.number)
    writer = FunctionWriter(TraceWriter(array, variables, graphs))
    objects = ObjectWriter(array, variables, writer)
    for name in functions:
        if not is_attribute(name):
            what = f"wend.save: {name!r:.40} is no name of an attribute."
            cure = "choose another; or save a dict: wend.save(path, {name: f})."
            raise SaveError(explain(what, cure=cure))
    try:
        if functions:
            root = {name: objects.value(fun, name) for name, fun in functions.items()}
        else:
            root = objects.value(value, type(value).__name__)
    except LeftOutError as error:  # it is all that was to be saved
        raise SaveError(*error.args) from None
    entries = graphs.entries()
    manifest = {
        "format": FORMAT,
        "wend": VERSION,
        "ops": dict(sorted(graphs.versions.items())),
        "named": bool(functions),
        "root": root,
        "functions": writer.records,
        "objects": objects.records,
        "variables": variables.records,
        "graphs": graphs.records,
        "entries": entries,
    }
    archive.write(path, manifest)
