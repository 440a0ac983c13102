"""NumPy's promotion (NEP 50) and broadcasting, made explicit in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError, explain
from wend.eager.dispatch import Staged, apply, recorder, type_of
from wend.ir.builder import new_symbol
from wend.ir.dtypes import BOOL, INT64, is_supported, unsupported
from wend.ir.op import Op
from wend.ir.types import Dim, Shape, Symbol, TensorType, shape_as_tuple_text
from wend.ops import effects, elementwise, shaping
from wend.runtime.array_boundary import foreign_boundary

PYTHON_SCALARS = (bool, int, float, complex)
_MISMATCH = "operands could not be broadcast together with shapes"
_WEAK_KINDS = {"b": np.dtype(np.bool_), "i": int, "f": float, "c": complex}


def as_array(x: Any) -> Any:
    """Return an operand as a staged or NumPy array; Python scalars stay as they are."""
    if isinstance(x, Staged):
        return x.read()
    if isinstance(x, (np.ndarray, np.generic)) or type(x) in PYTHON_SCALARS:
        return x
    boundary = foreign_boundary(x)
    if boundary is None:
        return np.asarray(x)
    current = recorder.get()
    return boundary.to_host(x) if current is None else current.capture(x)


def tensor_type(x: Any) -> TensorType:
    """Return the type of an operand.

    Raises:
        TypeMismatchError: it is no array of a dtype that graphs know.
    """
    if isinstance(x, Staged):
        return x.type
    type = type_of(x)
    if not isinstance(type, TensorType) or type.dtype.kind not in "biufcV":
        raise TypeMismatchError(f"expected an array of numbers, found {x!r:.60}")
    if not is_supported(type.dtype):
        raise unsupported(type.dtype)
    return type


def is_weak(x: Any) -> bool:
    """Return whether an operand is a Python scalar, plain or staged."""
    return x.weak if isinstance(x, Staged) else type(x) in PYTHON_SCALARS


def is_scalar(x: Any) -> bool:
    """Return whether an operand is a scalar of NumPy, plain or staged, and no 0-d array."""
    if not isinstance(x, Staged):
        return isinstance(x, np.generic)
    is_array = x.zero_dim is not False  # perhaps in some runs only
    return x.type.shape == () and not x.weak and not is_array


def promotion_kinds(xs: Sequence[Any]) -> list[Any]:
    """Return the operands of NumPy's promotion: dtypes, or the Python types of scalars.

    If all are Python scalars, their dtypes decide, as if they were arrays.
    """
    dtypes = [tensor_type(x).dtype for x in xs]
    if all(map(is_weak, xs)):
        return list(dtypes)
    return [
        _WEAK_KINDS[dtype.kind] if is_weak(x) else dtype
        for x, dtype in zip(xs, dtypes, strict=True)
    ]


def are_unified(xs: Sequence[Any], dtypes: Sequence[np.dtype]) -> bool:
    """Return whether operands are staged, of one shape and each of its dtype: nothing converts."""
    shape = None
    for x, dtype in zip(xs, dtypes, strict=True):
        if not isinstance(x, Staged):
            return False
        type = x.type
        if type.dtype != dtype or type.shape is None or (shape is not None and type.shape != shape):
            return False
        shape = type.shape
    return True


def result_dtype(*xs: Any) -> np.dtype:
    """Return the common dtype of operands, as `np.result_type` gives it."""
    examples = {int: 0, float: 0.0, complex: 0j}
    return np.result_type(*(examples.get(kind, kind) for kind in promotion_kinds(xs)))


def cast(x: Any, dtype: np.dtype) -> Any:
    """Return the operand with this dtype; a Python scalar out of range is NumPy's OverflowError."""
    dtype = np.dtype(dtype)
    if not isinstance(x, (Staged, np.ndarray)):
        if type(x) is int and dtype == INT64 and not -(2**63) <= x < 2**63:
            cure = "compute with floats: write it as 1e19, not 10**19; or compute it outside."
            raise OverflowError(explain(f"the Python integer {x} does not fit int64.", cure=cure))
        return np.asarray(x, None if dtype == BOOL else dtype).astype(dtype)[()]
    known = tensor_type(x).dtype
    if known == dtype:
        return x
    if known == INT64 and dtype.kind in "iu" and is_weak(x):
        x = _in_range(x, dtype)
    return _convert_operand(elementwise.cast, x, dtype=dtype)


def as_element(x: Any, dtype: np.dtype, *, is_assigned: bool = False) -> Any:
    """Return the operand as an element of this dtype: Python's floats, too, have to fit integers.

    A whole array is cast by `cast`, which raises nothing, and so is a scalar of NumPy, unless it
    is assigned to elements of a signed dtype, or stands in their list: NumPy makes a Python number
    of it there.
    """
    dtype = np.dtype(dtype)
    is_number = is_weak(x) or (is_assigned and dtype.kind == "i" and is_scalar(x))
    if not is_number or dtype.kind not in "iu":
        return cast(x, dtype)
    if not isinstance(x, Staged):
        return np.array([x], dtype)[0] if is_assigned else cast(x, dtype)
    kind = tensor_type(x).dtype.kind
    if kind != "f":
        return cast(_in_range(x, dtype) if kind in "iu" else x, dtype)
    return _truncated_in_range(cast(x, np.dtype(np.float64)), dtype)


def _truncated_in_range(x: Any, dtype: np.dtype) -> Any:
    """Return a Python float as an integer; if it does not fit, NumPy's error is raised."""
    limits = np.iinfo(dtype)
    number = apply(elementwise.trunc, x)
    is_low = apply(elementwise.lt, number, np.float64(limits.min))
    is_high = apply(elementwise.ge, number, np.float64(limits.max + 1))
    is_below = apply(elementwise.lt, number, np.float64(-(2.0**63)))
    end = np.float64(2.0**64 if dtype in (np.uint32, np.uint64) else 2.0**63)
    is_huge = apply(elementwise.bit_or, apply(elementwise.ge, number, end), is_below)
    out_of_bounds = f"Python integer {{:.0f}} out of bounds for {dtype}"
    checks = (
        (apply(elementwise.isnan, x), ValueError, "cannot convert float NaN to integer"),
        (apply(elementwise.isinf, x), OverflowError, "cannot convert float infinity to integer"),
        (is_huge, OverflowError, "Python int too large to convert to C long"),
        (is_low, OverflowError, out_of_bounds),
        (is_high, OverflowError, out_of_bounds),
    )
    predicates, errors, texts = zip(*checks, strict=True)
    number = apply(
        effects.checked,
        number,
        *predicates,
        errors=tuple(map(effects.error_name, errors)),
        texts=texts,
    )
    return _convert_operand(elementwise.cast, number, dtype=dtype)


def wrapped(x: Any, dtype: np.dtype) -> Any:
    """Return an integer modulo the range of an integer dtype, Python's integers too."""
    if tensor_type(x).dtype == dtype:
        return x
    return _convert_operand(elementwise.cast, x, dtype=dtype)


def _in_range(x: Any, dtype: np.dtype) -> Any:
    """Return a Python integer; if it does not fit a dtype, NumPy's OverflowError is raised."""
    limits, own = np.iinfo(dtype), np.iinfo(tensor_type(x).dtype)
    outside = []
    if own.min < limits.min:
        outside.append(apply(elementwise.lt, x, own.dtype.type(limits.min)))
    if limits.max < own.max:
        outside.append(apply(elementwise.gt, x, own.dtype.type(limits.max)))
    if not outside:
        return x
    is_out = outside[0] if len(outside) == 1 else apply(elementwise.bit_or, *outside)
    return apply(
        effects.checked,
        x,
        is_out,
        errors=(effects.error_name(OverflowError),),
        texts=(f"Python integer {{}} out of bounds for {dtype}",),
    )


def _convert_operand(op: Op, x: Any, **attrs: Any) -> Any:
    """Apply a conversion to an operand.

    In a trace the conversion is recorded even for a plain array: its elements may change (D9), and
    a scalar broadcast to a shape is one constant in the graph, not an array.
    """
    current = recorder.get()
    return apply(op, x, **attrs) if current is None else current.emit(op, (x,), attrs)[0]


def broadcast(*xs: Any, error: str = "value") -> list[Any]:
    """Broadcast operands to their common shape.

    Args:
        *xs: arrays and numbers.
        error: "index" for arrays that index another one: that of the run is an IndexError.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    shapes = [tensor_type(x).shape for x in xs]
    if all(shape == shapes[0] and shape is not None for shape in shapes):
        return list(xs)
    target = common_shape(shapes)
    if target is not None and _is_static(target):
        unknown = sum(shape is None or not _is_static(shape) for shape in shapes)
        if not unknown or (unknown == 1 and error == "value"):
            return [_broadcast_static(x, target, shapes) for x in xs]
    elif target is not None:
        for x in xs:
            if tensor_type(x).shape == target and isinstance(x, Staged):
                size = apply(shaping.shape_of, x)
                return [_broadcast_dynamic(y, size, target) for y in xs]
    attrs = {"error": error} if error != "value" else {}
    size = apply(shaping.broadcast_shapes, *(apply(shaping.shape_of, x) for x in xs), **attrs)
    return [_broadcast_dynamic(x, size, target) for x in xs]


def _is_static(shape: Shape) -> bool:
    return all(isinstance(dim, int) for dim in shape)


def _broadcast_static(x: Any, target: Shape, shapes: Sequence[Shape | None]) -> Any:
    """Broadcast one of the arrays of some shapes; those of the others are known."""
    shape = tensor_type(x).shape
    if shape == target:
        return x
    if shape is None or _is_static(shape):
        return _convert_operand(shaping.broadcast_to, x, shape=target)
    texts = [shape_as_tuple_text(y) if y and _is_static(y) else "{operand}" for y in shapes]
    message = f"{_MISMATCH} {' '.join(texts)}"
    return _convert_operand(shaping.broadcast_to, x, shape=target, message=message)


def _broadcast_dynamic(x: Any, size: Any, shape: Shape | None) -> Any:
    if shape is not None and tensor_type(x).shape == shape:
        return x
    return apply(shaping.broadcast_to, x, size, shape=shape)


def common_shape(shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the shape that shapes broadcast to; None where a rank is unknown.

    A new symbol stands for a size that only the run decides.
    """
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max(len(shape) for shape in known)
    dims: list[Dim] = []
    for k in range(rank):
        column = [s[k - rank + len(s)] for s in known if k - rank + len(s) >= 0]
        dims.append(_common_dim(column, known))
    return tuple(dims)


def _common_dim(column: Sequence[Dim], shapes: Sequence[Shape]) -> Dim:
    numbers = {dim for dim in column if isinstance(dim, int) and dim != 1}
    names = {dim for dim in column if isinstance(dim, Symbol)}
    if len(numbers) > 1:
        shape_texts = " ".join(map(shape_as_tuple_text, shapes))
        raise ShapeError(f"{_MISMATCH} {shape_texts}")
    if numbers:
        return numbers.pop()
    if len(names) > 1:
        current = recorder.get()
        return new_symbol() if current is None else current.size_of_spread(names)
    return names.pop() if names else 1
