"""Models as they are read: files that nobody vouches for, within bounds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from wend.base.errors import LoadError, UnsupportedError, explain
from wend.interop.onnx.operators.operands import dtype_of

MAX_BYTES = 1 << 31  # of a file, and of all tensors
MAX_NODES = 100_000
MAX_DEPTH = 30  # of subgraphs


def read_model(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose tensors are all in it.

    Tensors in files of their own are read from the folder of the model only.

    Raises:
        LoadError: the file is no model, or is larger than it may be.
    """
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        model.CopyFrom(source)
    else:
        if not isinstance(source, bytes):
            folder = Path(source).resolve().parent
            if os.path.getsize(source) > MAX_BYTES:
                raise LoadError(f"{source} has more than {MAX_BYTES} bytes")
            source = Path(source).read_bytes()
        model = onnx.ModelProto()
        try:
            model.ParseFromString(source)
        except Exception as error:  # noqa: BLE001 - of protobuf's, which differ by version
            raise LoadError(f"this is no ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise LoadError("this is no ONNX model: it has no graph")
    check_graphs(model)
    total = 0
    for tensor in tensors(model.graph):
        total += check_tensor(tensor, folder)
        if total > MAX_BYTES:
            raise LoadError(f"the tensors of the model have more than {MAX_BYTES} bytes")
    return model


def subgraphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that the nodes of a graph hold themselves."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield attribute.g


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield all tensors of a graph and of the graphs in it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
    for inner in subgraphs(graph):
        yield from tensors(inner)


def check_graphs(model: onnx.ModelProto) -> None:
    """Refuse what is too large to translate, before anything is done with it."""
    level, count, depth = [model.graph], 0, 0
    while level:
        depth += 1
        count += sum(len(graph.node) for graph in level)
        if depth > MAX_DEPTH or count > MAX_NODES:
            raise LoadError(f"the model has more than {MAX_NODES} nodes, or {MAX_DEPTH} levels")
        for graph in level:
            if any(type(text) is not str for text in _texts(graph)):
                raise LoadError("the model has names that are no text")
            if graph.sparse_initializer:
                raise UnsupportedError("sparse tensors are not supported")
        level = [inner for graph in level for inner in subgraphs(graph)]


def _texts(graph: onnx.GraphProto) -> Iterator[object]:
    """Yield the names in a graph; those that are no UTF-8 come as bytes."""
    yield graph.name
    for node in graph.node:
        yield from (node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    yield from (x.name for x in (*graph.input, *graph.output, *graph.initializer))


def check_tensor(tensor: onnx.TensorProto, folder: Path | None) -> int:
    """Read what a tensor has in another file, check its size, and return it in bytes.

    Raises:
        LoadError: the data are elsewhere, or not as many as the shape says.
        UnsupportedError: they are strings, or of another type that NumPy lacks.
    """
    if tensor.data_type == onnx.TensorProto.STRING:
        raise UnsupportedError(explain("the model has strings, which are not supported."))
    dtype = dtype_of(tensor.data_type)
    if any(dim < 0 for dim in tensor.dims):
        raise LoadError(f"a tensor has a negative size: {list(tensor.dims)}")
    count = 1
    for dim in tensor.dims:
        count *= dim
    size = count * dtype.itemsize
    if size > MAX_BYTES:
        raise LoadError(f"a tensor has {size} bytes")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        _read_external(tensor, folder, size)
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != size:
            raise LoadError(f"a tensor of {size} bytes has {len(tensor.raw_data)}")
        return size
    fields = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data)
    if sum(map(len, (*fields, tensor.uint64_data))) != count:
        raise LoadError(f"a tensor of {count} elements has others")
    return size


def _read_external(tensor: onnx.TensorProto, folder: Path | None, size: int) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise LoadError("the model has its data in other files: load it by its path")
    path = (folder / location).resolve()
    if not location or not path.is_relative_to(folder) or not path.is_file():
        raise LoadError(f"the model has data in {location!r}, which is no file in its folder")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise LoadError(f"the place of data in {location!r} is no number") from None
    if offset < 0 or length != size or offset + length > path.stat().st_size:
        raise LoadError(f"{size} bytes of data are not in {location!r} at {offset}")
    with path.open("rb") as file:
        file.seek(offset)
        tensor.raw_data = file.read(length)
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


def array_of(tensor: onnx.TensorProto) -> np.ndarray:
    """Return the elements of a tensor that has been checked."""
    array: np.ndarray = numpy_helper.to_array(tensor)
    array = array.copy()
    array.setflags(write=False)
    return array
