"""Values of variables in the layout of safetensors: a header of JSON, then the bytes.

https://huggingface.co/docs/safetensors. The layout has no complex numbers: they are stored as
floats with a last axis of two, and their names in the metadata.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from wend.base import trees
from wend.base.errors import LoadError, SaveError, TypeMismatchError, explain, listed
from wend.ir.dtypes import complex_of, real_of
from wend.random.generator import Generator
from wend.runtime.array_boundary import is_array, to_host
from wend.saving.archive import read_whole, write_whole
from wend.saving.fields import Fields, read_json
from wend.trace.state.variable import Variable

_DTYPES = {
    np.dtype(name): tag
    for name, tag in [
        *(("?", "BOOL"), ("u1", "U8"), ("i1", "I8"), ("u2", "U16"), ("i2", "I16"), ("u4", "U32")),
        *(("i4", "I32"), ("u8", "U64"), ("i8", "I64"), ("f2", "F16"), ("f4", "F32"), ("f8", "F64")),
    ]
}
_TAGS = {tag: dtype for dtype, tag in _DTYPES.items()}
_METADATA = "__metadata__"
_COMPLEX = "complex"  # the key of the metadata that lists complex arrays


def save_variables(path: str | os.PathLike[str] | BinaryIO, variables: Any) -> None:
    """Write the values of variables to a file in the layout of safetensors.

    The file is written whole or not at all: a crash leaves the one that was there.

    Args:
        path: the file, or a binary stream.
        variables: a pytree of variables and arrays, or of objects that have some; their names are
            the keys and attributes that lead to them, such as `layers.0.w`.

    Raises:
        SaveError: there is no variable, or two have one name.

    Example:
        >>> import io, wend
        >>> file = io.BytesIO()
        >>> wend.save_variables(file, {"w": wend.Variable([1.0, 2.0]), "n": wend.Variable(3)})
        >>> _ = file.seek(0)
        >>> wend.load_variables(file)
        {'w': array([1., 2.]), 'n': array(3)}
    """
    values = {name: _value(x) for name, x in _named(variables).items()}
    header: dict[str, Any] = {}
    complex_names = [name for name, array in values.items() if array.dtype.kind == "c"]
    if complex_names:
        header[_METADATA] = {_COMPLEX: json.dumps(complex_names)}
    start, contents = 0, []
    for name, array in values.items():
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], axis=-1)
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": _DTYPES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, start + len(data)],
        }
        start += len(data)
        contents.append(data)
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)  # the arrays are aligned
    write_whole(path, b"".join([struct.pack("<Q", len(text)), text, *contents]))


def load_variables(path: str | os.PathLike[str] | BinaryIO, variables: Any = None) -> Any:
    """Read a file of `save_variables`, or another in the layout of safetensors.

    Args:
        path: the file, or a binary stream.
        variables: what `save_variables` was given: its variables are assigned to, all or none.

    Returns:
        The arrays by name.

    Raises:
        LoadError: it is no such file, or it lacks a variable or has one too many.
        TypeMismatchError: a variable has another dtype or shape; none is assigned to.

    Example:
        >>> import io, wend
        >>> file, w = io.BytesIO(), wend.Variable([1.0, 2.0])
        >>> wend.save_variables(file, {"w": w})
        >>> _ = w.assign([0.0, 0.0]), file.seek(0)
        >>> _ = wend.load_variables(file, {"w": w})
        >>> w.value
        array([1., 2.])
    """
    data, file_name = read_whole(path)
    arrays = _read(data, file_name)
    if variables is not None:
        _assign(arrays, _named(variables), file_name)
    return arrays


def _assign(arrays: Mapping[str, np.ndarray], targets: Mapping[str, Any], file_name: str) -> None:
    """Assign arrays to the variables of the same names, after all are known to fit."""
    missing, extra = sorted(targets.keys() - arrays.keys()), sorted(arrays.keys() - targets.keys())
    if missing or extra:
        lacks = f"it lacks {listed(missing)}" if missing else None
        has = f"it has {listed(extra)} besides" if extra else None
        what = f"{file_name} holds other variables."
        cure = "load the arrays by wend.load_variables(path), and assign those that fit."
        raise LoadError(explain(what, lacks, has, cure=cure))
    for name, target in targets.items():
        array = arrays[name]
        if not isinstance(target, Variable):
            what = f"{name} is no variable, but {type(target).__name__}: it cannot be assigned to."
            raise TypeMismatchError(explain(what, cure="make it a wend.Variable."))
        if array.dtype != target.dtype or array.shape != target.shape:
            what = f"{name} holds {target.type}, {file_name} has {array.dtype}{[*array.shape]}."
            cure = "make the variable of that dtype and shape."
            raise TypeMismatchError(explain(what, cure=cure))
    for name, target in targets.items():
        target.assign(arrays[name])


def _value(x: Any) -> np.ndarray:
    return np.asarray(x.concrete if isinstance(x, Variable) else to_host(x))


# Names
def _named(value: Any) -> dict[str, Any]:
    """Return the variables and arrays in a value, by name."""
    named: dict[str, Any] = {}
    for name, leaf in _walk(value, "", set()):
        if named.setdefault(name, leaf) is not leaf:
            what = f"two variables are called {name!r}."
            raise SaveError(explain(what, cure="give the keys that lead to them other names."))
    if not named:
        what = f"there is no variable in {value!r:.60}."
        raise SaveError(explain(what, cure="pass a dict of variables, or an object with some."))
    return named


def _walk(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Variable) or is_array(value):
        if id(value) not in seen:
            seen.add(id(value))
            yield path or "value", value
        return
    if isinstance(value, Generator):
        yield from _walk(value.state, _joined(path, "state"), seen)
        return
    children = trees.children(value)
    if children is None:
        if id(value) in seen or isinstance(value, type) or not hasattr(value, "__dict__"):
            return
        seen.add(id(value))
        children = [*vars(value).items()]
    for name, child in children:
        yield from _walk(child, _joined(path, name), seen)


def _joined(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


# Reading
def _read(data: bytes, file_name: str) -> dict[str, np.ndarray]:
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else len(data)
    if size > len(data) - 8:
        what = f"{file_name} is no file of variables: its header does not end."
        raise LoadError(explain(what, cure="give a file of wend.save_variables."))
    header = Fields(read_json(data[8 : 8 + size], "its header"), file_name)
    complex_names = _complex_names(header)
    arrays = {}
    for name in header.data:
        if name != _METADATA:
            entry = Fields(header.data[name], f"{file_name}: {name:.40}")
            array = _array(entry, memoryview(data)[8 + size :])
            arrays[name] = _as_complex(array, entry.where) if name in complex_names else array
    return arrays


def _complex_names(header: Fields) -> list[Any]:
    metadata = header.optional(_METADATA, dict) or {}
    names = metadata.get(_COMPLEX, "[]")
    parsed = read_json(names.encode("utf-8"), "its metadata") if type(names) is str else None
    if type(parsed) is not list:
        raise LoadError(f"{header.where}: {names!r:.40} lists no complex arrays")
    return parsed


def _array(entry: Fields, data: memoryview) -> np.ndarray:
    tag, shape = entry.get("dtype", str), entry.get("shape", list)
    offsets = entry.get("data_offsets", list)
    if tag not in _TAGS:
        raise LoadError(f"{entry.where}: there are no variables of dtype {tag!r:.40}")
    numbers = [*shape, *offsets]
    if len(offsets) != 2 or any(type(n) is not int or n < 0 for n in numbers) or len(shape) > 64:
        raise LoadError(f"{entry.where}: {shape!r:.40} at {offsets!r:.40} is no array")
    start, stop = offsets
    if stop > len(data) or stop - start != math.prod(shape) * _TAGS[tag].itemsize:
        raise LoadError(f"{entry.where}: {tag} {shape!r:.40} does not fit {offsets!r:.40}")
    return np.frombuffer(data[start:stop], _TAGS[tag]).reshape(shape).copy()


def _as_complex(array: np.ndarray, where: str) -> np.ndarray:
    if array.dtype.kind != "f" or array.shape[-1:] != (2,) or array.dtype.itemsize < 4:
        raise LoadError(f"{where}: {array.dtype}{[*array.shape]} is not complex")
    pair = np.ascontiguousarray(array).view(complex_of(array.dtype))
    assert real_of(pair.dtype) == array.dtype
    return pair[..., 0]
