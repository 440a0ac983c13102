"""`wend.load`: reads files of `wend.save`, and trusts nothing in them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, BinaryIO

from wend.base.errors import LoadError, TypeMismatchError, explain
from wend.base.lazy.dataclass import dataclass
from wend.function.function import Function
from wend.ir.graph import Graph
from wend.ir.op import TABLE
from wend.saving.archive import ArchiveReader
from wend.saving.fields import Fields
from wend.saving.functions import read_function
from wend.saving.graphs import GraphReader
from wend.saving.objects import LoadedObject, ObjectReader
from wend.saving.save import FORMAT
from wend.saving.structures import Classes, check_names, class_name
from wend.saving.traces import TraceReader
from wend.saving.variables import ArrayTable, read_variables


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The contents of a file.

    Attributes:
        value: what was saved.
        functions: all functions in it.
        graphs: all graphs in it.
    """

    value: Any
    functions: list[Function]
    graphs: list[Graph]


def load(
    path: str | os.PathLike[str] | BinaryIO, *, types: Iterable[type] = (), verify: bool = True
) -> Any:
    """Return what `wend.save` has saved.

    Loading runs no code of the file and imports nothing that it names; graphs are checked as if
    they were new. Loaded functions are functions: they can be called, differentiated to any order,
    and called by others. They have the traces that were saved, and no others.

    Args:
        path: the file, or a binary stream.
        types: classes that the file may name; of others it gives records with the same attributes.
        verify: whether members must have the digests that the file says; False loads an edited
            file.

    Returns:
        An object with the functions as attributes, or what stands for the object that was saved.

    Raises:
        LoadError: it is no such file, it was changed, or a later version of wend has written it.
        OSError: it cannot be read.

    Example:
        >>> import io, wend
        >>> file = io.BytesIO()
        >>> total = wend.Variable(1.0)
        >>> add = wend.function(lambda x: total.assign_add(x).value)
        >>> add(2.0)
        np.float64(3.0)
        >>> wend.save(file, add=add)
        >>> _ = file.seek(0)
        >>> wend.load(file).add(10.0), total.value
        (np.float64(13.0), np.float64(3.0))
    """
    return load_file(path, types=types, verify=verify).value


def load_file(
    path: str | os.PathLike[str] | BinaryIO, *, types: Iterable[type] = (), verify: bool = True
) -> LoadedFile:
    """Return the contents of a file; see `load`."""
    classes: list[Any] = [*types] if isinstance(types, Iterable) else [types]
    for cls in classes:
        if not isinstance(cls, type):
            what = f"wend.load: types={cls!r:.40} is no class."
            raise TypeMismatchError(explain(what, cure="pass a list of classes: types=[State]."))
    archive = ArchiveReader(path, verify=verify)
    try:
        return _read(archive, {class_name(cls): cls for cls in classes})
    except RecursionError:
        raise LoadError(f"{archive.name} is nested too deeply") from None


def _read(archive: ArchiveReader, classes: Classes) -> LoadedFile:
    manifest = archive.manifest
    _check_versions(manifest, archive.name)
    array = ArrayTable(archive)
    variables = read_variables(manifest.objects("variables"), array)
    graphs = GraphReader(archive, array, [x.variable.storage for x in variables]).graphs
    reader = TraceReader(array, variables, graphs, classes)
    functions = [
        read_function(record, reader, f"loaded from {archive.name}", variables)
        for record in manifest.objects("functions")
    ]
    objects = ObjectReader(manifest.objects("objects"), array, variables, functions, classes)
    if not manifest.get("named", bool):
        value = objects.value(manifest.data.get("root"), "root")
        return LoadedFile(value, functions, graphs)
    root = manifest.get("root", dict)
    loaded = LoadedObject("functions")
    for name in check_names([*root], "root"):
        vars(loaded)[name] = objects.value(root[name], f"root: {name}")
    return LoadedFile(loaded, functions, graphs)


def _check_versions(manifest: Fields, name: str) -> None:
    """Refuse files of a later version, and operations that have changed since."""
    format = manifest.get("format", int)
    writer = manifest.get("wend", str)
    if not 1 <= format <= FORMAT:
        raise LoadError(
            explain(
                f"{name} has format {format}, written by wend {writer:.20}; this version reads "
                f"formats up to {FORMAT}.",
                cure="load it with that version of wend, or a later one.",
            )
        )
    for op_name, version in manifest.get("ops", dict).items():
        known = TABLE[op_name].version if op_name in TABLE else 0
        if version != known:
            raise LoadError(
                explain(
                    f"{name} uses version {version!r:.20} of {op_name!r:.40}, written by wend "
                    f"{writer:.20}; this version has {known or 'no such operation'}.",
                    cure="load it with that version of wend, and save it again.",
                )
            )
