"""Traced arrays: what a function sees in place of its arrays while it is recorded."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wend.base.errors import (
    ConcreteValueError,
    LeakedValueError,
    ShapeError,
    TypeMismatchError,
    explain,
)
from wend.base.source import Source, at, user_source
from wend.eager.dispatch import Recorder, Staged, recorder
from wend.eager.promotion import PYTHON_SCALARS, tensor_type
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.numpy import contracting, creating, indexing, reducing, shaping, updating
from wend.numpy import elementwise as ew
from wend.numpy.public import STAGED


def _is_scalar(x: Any) -> bool:
    return type(x) in PYTHON_SCALARS or (isinstance(x, Tracer) and x.weak)


def _binary(function: Callable[..., Any], *, weak: bool = True) -> tuple[Any, Any]:
    """The operator and its reflection. Two Python scalars give a Python scalar (D4)."""

    def forward(self: Tracer, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        other = _joined(other)
        return _kept_weak(function(self, other), weak and _is_scalar(self) and _is_scalar(other))

    def reflected(self: Tracer, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        other = _joined(other)
        return _kept_weak(function(other, self), weak and _is_scalar(self) and _is_scalar(other))

    return forward, reflected


def _is_operand(x: Any) -> bool:
    return isinstance(x, (Staged, np.ndarray, np.generic, list, *PYTHON_SCALARS))


def _joined(x: Any) -> Any:
    """A list of traced numbers as one array; anything else as it is."""
    return creating.asarray(x) if isinstance(x, list) else x


def _kept_weak(result: Any, weak: bool) -> Any:
    if weak and isinstance(result, Tracer) and result.type.dtype.kind != "b":
        return type(result)(result.value, result.recording, weak=True)
    return result


def _in_place(function: Callable[..., Any]) -> Any:
    """`x += y` and its kin: numbers are replaced, arrays changed, keeping dtype and shape."""

    def change(self: Tracer, other: Any) -> Any:
        if not _is_operand(other) or self.type.shape == ():
            return NotImplemented
        result = function(self, other)
        found, mine = tensor_type(result), self.type
        if not np.can_cast(found.dtype, mine.dtype, "same_kind"):
            raise TypeMismatchError(
                f"cannot put {found} into {mine} in place; use x = x + y to make a new array"
            )
        if found.shape != mine.shape:
            raise ShapeError(f"non-broadcastable output operand: {found} does not fit {mine}")
        self.replace(shaping.astype(result, mine.dtype))
        return self

    return change


class Tracer(Staged):
    """An array of a function that is being recorded: it has a shape and a dtype, but no numbers.

    It takes part in NumPy's functions, operators and indexing, each of which adds a node to the
    graph.
    """

    __slots__ = ("__weakref__", "_base", "_stale", "_taken", "_views", "recording", "value", "weak")
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise
    __array_priority__ = 1000

    def __init__(self, value: Value, recording: Recorder, *, weak: bool = False) -> None:
        self.value = value
        self.recording = recording
        self.weak = weak
        self._base: Tracer | None = None  # the array that this is a view of
        self._taken: tuple[Tracer, Any] | None = None  # of which array it is a part, by which key
        self._views: list[weakref.ref[Tracer]] = []
        self._stale: Source | None = None  # where the base was changed after this was taken

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        assert isinstance(self.value.type, TensorType)
        return self.value.type

    def __repr__(self) -> str:
        return f"<traced {self.value.type}{' (weak)' if self.weak else ''}{self._born()}>"

    def _born(self) -> str:
        node = self.value.node
        if node is None:
            return f", {self.value.name}" if self.value.name else ""
        return f", {node.op.name}{at(node.source)}"

    # Where Python wants the numbers
    def leaked(self) -> LeakedValueError:
        return LeakedValueError(
            explain(
                f"{self!r} was used outside the trace that made it.",
                f"it was made in {self.recording.role}",
                cure="return it from the function, loop body or branch that computes it.",
            )
        )

    def _no_number(self, wanted: str, cure: str) -> ConcreteValueError:
        return ConcreteValueError(
            explain(
                f"{wanted} of {self!r} needs its number, "
                "which is not known while the function is recorded.",
                cure=cure,
            )
        )

    def __bool__(self) -> bool:
        raise self._no_number(
            "the truth",
            "use wend.cond for a branch, wend.while_loop for a loop, wnp.where for a choice "
            "element by element.",
        )

    def __float__(self) -> float:
        raise self._no_number("float()", "use .astype(float), or leave it as it is.")

    def __complex__(self) -> complex:
        raise self._no_number("complex()", "use .astype(complex), or leave it as it is.")

    def __int__(self) -> int:
        raise self._no_number("int()", "use .astype(int), or leave it as it is.")

    def __index__(self) -> int:
        raise self._no_number(
            "the integer",
            "read arrays and lists by wnp.take(values, i), use wend.fori_loop instead of range, "
            "or make the argument static with static_argnums.",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise self._no_number(
            "a NumPy array", "use functions of wend.numpy, which take traced arrays as well."
        )

    def item(self) -> Any:
        """Not possible while recording: see the error."""
        raise self._no_number(".item()", "leave it as it is: a traced scalar computes like one.")

    def tolist(self) -> Any:
        """Not possible while recording: see the error."""
        raise self._no_number(".tolist()", "iterate over it, or keep it as an array.")

    # Changes in place (D7)
    def __setitem__(self, key: Any, value: Any) -> None:
        self.replace(updating.set_at(self, key, value))

    @property
    def at(self) -> updating.At:
        """`x.at[key].set(v)`, `.add`, `.mul`, `.min`, `.max`: a new array, as in JAX."""
        return updating.At(self)

    def replace(self, new: Tracer) -> None:
        """Take the value of another traced array, for everyone who holds this one (D7)."""
        recording: Any = recorder.get()
        if recording is None:
            raise self.leaked()
        if self._taken is not None:
            whole, key = self._taken
            whole[key] = new
            self._stale = None
        elif self._base is not None:
            raise TypeError(
                explain(
                    f"{self!r} is a view: changing it would change {self._base!r} in NumPy.",
                    cure="change the array itself (x[2:5] += 1), or take a .copy() of the part.",
                )
            )
        recording.assign(self, recording.lift(new))
        where = user_source()
        for view in (ref() for ref in self._views):
            if view is not None:
                view._stale = where
        self._views = []

    __iadd__: Any = _in_place(ew.add)
    __isub__: Any = _in_place(ew.subtract)
    __imul__: Any = _in_place(ew.multiply)
    __itruediv__: Any = _in_place(ew.divide)
    __ifloordiv__: Any = _in_place(ew.floor_divide)
    __imod__: Any = _in_place(ew.remainder)
    __ipow__: Any = _in_place(ew.power)
    __iand__: Any = _in_place(ew.bitwise_and)
    __ior__: Any = _in_place(ew.bitwise_or)
    __ixor__: Any = _in_place(ew.bitwise_xor)

    def look_at(self, base: Tracer) -> None:
        """Note that this is a view of another array."""
        self._base = base if base._base is None else base._base
        self._base._views.append(weakref.ref(self))

    def check_current(self) -> None:
        """Refuse a view whose array has been changed since: NumPy's would show the change."""
        if self._stale is not None:
            raise TypeError(
                explain(
                    f"{self!r} is a view of an array that was changed{at(self._stale)}, "
                    "so it would have changed too.",
                    cure="take a .copy() of the part before, or take the part again after.",
                )
            )

    # NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = STAGED.get(ufunc)
        if method == "reduce" and ufunc in _REDUCTIONS:
            return _REDUCTIONS[ufunc](*inputs, **options)
        if method != "__call__" or function is None:
            wanted = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise TypeError(f"numpy.{wanted} is not known for traced arrays")
        return function(*inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        staged = STAGED.get(function)
        if staged is None:
            name = getattr(function, "__name__", function)
            raise TypeError(f"numpy.{name} is not known for traced arrays")
        return staged(*args, **kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import wend.numpy

        return wend.numpy

    # Shape and dtype
    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes; those not known before the run are traced integers."""
        return shaping.shape(self)

    @property
    def ndim(self) -> int:
        return shaping.rank_of(self)

    @property
    def size(self) -> Any:
        return shaping.size(self)

    @property
    def T(self) -> Any:  # noqa: N802 - its name in NumPy
        return shaping.transpose(self)

    @property
    def mT(self) -> Any:  # noqa: N802 - its name in NumPy
        return shaping.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return ew.real(self)

    @property
    def imag(self) -> Any:
        return ew.imag(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        part = indexing.getitem(self, key)
        if part._base is not None and part is not self:
            part._taken = self, key  # changing the part changes this
        return part

    def __contains__(self, item: Any) -> Any:
        return bool(reducing.any(ew.equal(self, item)))

    # Operators
    __add__, __radd__ = _binary(ew.add)
    __sub__, __rsub__ = _binary(ew.subtract)
    __mul__, __rmul__ = _binary(ew.multiply)
    __truediv__, __rtruediv__ = _binary(ew.divide)
    __floordiv__, __rfloordiv__ = _binary(ew.floor_divide)
    __mod__, __rmod__ = _binary(ew.remainder)
    __pow__, __rpow__ = _binary(ew.power)
    __and__, __rand__ = _binary(ew.bitwise_and)
    __or__, __ror__ = _binary(ew.bitwise_or)
    __xor__, __rxor__ = _binary(ew.bitwise_xor)
    __lshift__, __rlshift__ = _binary(ew.left_shift)
    __rshift__, __rrshift__ = _binary(ew.right_shift)
    __matmul__, __rmatmul__ = _binary(contracting.matmul)
    __lt__, _ = _binary(ew.less)
    __le__, _ = _binary(ew.less_equal)
    __gt__, _ = _binary(ew.greater)
    __ge__, _ = _binary(ew.greater_equal)
    __eq__, _ = _binary(ew.equal)
    __ne__, _ = _binary(ew.not_equal)

    def __neg__(self) -> Any:
        return _kept_weak(ew.negative(self), self.weak)

    def __pos__(self) -> Any:
        result = ew.positive(self)
        return self.copy() if result is self else _kept_weak(result, self.weak)

    def __abs__(self) -> Any:
        return _kept_weak(ew.absolute(self), self.weak)

    def __invert__(self) -> Any:
        return ew.invert(self)

    # Methods of arrays
    def astype(self, dtype: Any, copy: bool = True) -> Any:
        result = shaping.astype(self, dtype)
        return result.copy() if result is self else result

    def reshape(self, *shape: Any) -> Any:
        return shaping.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Any:
        return shaping.ravel(self)

    def flatten(self) -> Any:
        return shaping.ravel(self).copy()

    def transpose(self, *axes: Any) -> Any:
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return shaping.transpose(self, given or None)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return shaping.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        return shaping.squeeze(self, axis)

    def copy(self) -> Any:
        recording: Any = recorder.get()
        if recording is None:
            raise self.leaked()
        return recording.wrap(recording.lift(self), weak=self.weak)

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return reducing.sum(self, axis, dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return reducing.prod(self, axis, dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return reducing.mean(self, axis, dtype, keepdims=keepdims)

    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
        return reducing.var(self, axis, ddof=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
        return reducing.std(self, axis, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        return reducing.max(self, axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        return reducing.min(self, axis, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        return reducing.any(self, axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        return reducing.all(self, axis, keepdims=keepdims)

    def argmax(self, axis: Any = None) -> Any:
        return reducing.argmax(self, axis)

    def argmin(self, axis: Any = None) -> Any:
        return reducing.argmin(self, axis)

    def argsort(self, axis: Any = -1) -> Any:
        return reducing.argsort(self, axis)

    def cumsum(self, axis: Any = None) -> Any:
        return reducing.cumsum(self, axis)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        return ew.clip(self, min, max)

    def conj(self) -> Any:
        return ew.conjugate(self)

    def dot(self, other: Any) -> Any:
        return contracting.dot(self, other)

    def take(self, indices: Any, axis: Any = None) -> Any:
        return indexing.take(self, indices, axis)


def _reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(
        x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if out is not None:
            raise TypeError("out= is not possible with traced arrays; use the result")
        return function(x, axis, keepdims=keepdims)

    return run


# What `np.add.reduce(x)` and the like become
_REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: _reduce(reducing.sum),
    np.multiply: _reduce(reducing.prod),
    np.maximum: _reduce(reducing.max),
    np.minimum: _reduce(reducing.min),
    np.logical_and: _reduce(reducing.all),
    np.logical_or: _reduce(reducing.any),
}
