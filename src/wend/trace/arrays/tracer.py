"""Traced arrays, which stand for a function's arrays while it is recorded."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from wend.base.errors import ConcreteValueError, LeakedValueError, explain
from wend.base.source import at, user_frame, user_source
from wend.eager.dispatch import Recorder, recorder
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.numpy import changing, indexing, orders, parts, reducing, shaping, ufunc_methods, updating
from wend.numpy import elementwise as ew
from wend.numpy.public import STAGED
from wend.numpy.unknown import unknown
from wend.trace.arrays.methods import Methods
from wend.trace.arrays.operators import Operators, overrides_ufuncs, put_into
from wend.trace.arrays.provenance import static_advice

_CAST = (
    "leave it as it is, or cast it by .astype({}); functions that take only Python numbers have "
    "counterparts in wend.numpy."
)


class Tracer(Operators, Methods):
    """An array of a function that is being recorded: it has a shape and a dtype, but no elements.

    It works with NumPy's functions, operators and indexing; each adds a node to the graph.
    """

    __slots__ = ("__weakref__", "recording", "value", "weak")
    __array_priority__ = 1000

    def __init__(self, value: Value, recording: Recorder, *, weak: bool = False) -> None:
        self.value = value
        self.recording = recording
        self.weak = weak
        self._start_unlinked()

    def as_weak(self) -> Tracer:
        return type(self)(self.value, self.recording, weak=True)

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        assert isinstance(self.value.type, TensorType)
        return self.value.type

    def __repr__(self) -> str:
        is_number = self.weak and self.type.dtype.kind != "b"
        return f"<traced {self.value.type}{' (weak)' if is_number else ''}{self._origin_text()}>"

    def _origin_text(self) -> str:
        node = self.value.node
        if node is None:
            return f", {self.value.name}" if self.value.name else ""
        return f", {node.op.name}{at(node.source)}"

    # Operations that need concrete elements
    def leaked(self) -> LeakedValueError:
        scope: Any = recorder.get()
        used = "" if scope is None or scope.runs_now() else f", and used in {scope.role}"
        return LeakedValueError(
            explain(
                f"{self!r} was used outside the trace that made it.",
                f"it was made in {self.recording.role}{used}",
                cure="return it from the function, loop body or branch that computes it.",
            )
        )

    def is_reachable(self) -> bool:
        """Return whether the innermost recording may use it."""
        scope: Any = recorder.get()
        return scope is not None and bool(scope.can_lift(self))

    def _concrete_error(self, request: str, cure: str, reason: str | None = None) -> Exception:
        if not self.is_reachable():
            return self.leaked()
        summary = (
            f"{request} of {self!r} is needed{at(user_source())}, "
            "but its value is not known while the function is traced."
        )
        advice = self._static_advice()
        if advice is not None:
            cure = f"{cure.removesuffix('.')}; or {advice}."
        error = ConcreteValueError(explain(summary, reason, cure=cure))
        frame = user_frame()
        error.summary, error.code = summary, frame and frame.f_code
        return error

    def _static_advice(self) -> str | None:
        """Return advice that would make the number known to Python, or None."""
        return static_advice(self.value, self.recording)

    def __bool__(self) -> bool:
        raise self._concrete_error(
            "the truth value",
            "let wend capture the code that asks (it leaves libraries, wend.do_not_capture and "
            "code without source text alone); or use wend.cond for a branch, wend.while_loop for "
            "a loop, wnp.where for a choice element by element.",
        )

    def __float__(self) -> float:
        raise self._concrete_error("float()", _CAST.format("float"))

    def __complex__(self) -> complex:
        raise self._concrete_error("complex()", _CAST.format("complex"))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise self._concrete_error(
            "the text",
            'print it by wend.print(x, format="{:.3f}"), or by print(f"{x:.3f}") in captured code.',
        )

    def __int__(self) -> int:
        raise self._concrete_error("int()", _CAST.format("int"))

    def __index__(self) -> int:
        raise self._concrete_error(
            "the integer",
            "read arrays and lists by wnp.take(values, i), use wend.fori_loop instead of range.",
        )

    def __hash__(self) -> int:
        if getattr(self.value.type, "shape", None) != ():
            raise TypeError("unhashable type: 'numpy.ndarray'")
        raise self._concrete_error(
            "the hash",
            "look things up by concrete keys; put numbers in an array, and read it by "
            "wnp.take(values, i).",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise self._concrete_error(
            "a NumPy array", "use functions of wend.numpy, which take traced arrays as well."
        )

    def item(self) -> Any:
        """Raise an error: the number is not known while the function is recorded."""
        raise self._concrete_error(
            ".item()", "leave it as it is: a traced scalar behaves like a number."
        )

    def tolist(self) -> Any:
        """Raise an error: the numbers are not known while the function is recorded."""
        raise self._concrete_error(".tolist()", "iterate over it, or keep it as an array.")

    # Changes in place (D7)
    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._is_updated_part(key, value):
            self.replace(updating.set_at(self, key, value))

    def _is_updated_part(self, key: Any, value: Any) -> bool:
        """Return whether `value` is `self[key]` after an in-place change, as in `x[key] += v`."""
        if not isinstance(value, Tracer) or value._part is None or value._stale_since is not None:
            return False
        whole, part_key = value._part
        is_current = value.recording is recorder.get()
        return whole is self and is_current and parts.same_key(key, part_key)

    @property
    def at(self) -> updating.At:
        """Updates that return a new array: `x.at[key].set(v)`, `.add`, `.mul`, `.min`, `.max`."""
        return updating.At(self)

    # NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        outs = options.pop("out", None)
        if outs is not None and any(map(overrides_ufuncs, outs)):
            return NotImplemented  # that array's type decides
        returned = ufunc_methods.run(ufunc, method, *inputs, **options)
        if outs is None:
            return returned
        results = returned if isinstance(returned, tuple) else (returned,)
        outputs = [
            result if out is None else put_into(out, result)
            for out, result in zip(outs, results, strict=True)
        ]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        staged = STAGED.get(function)
        if staged is None:
            raise unknown(function)
        return staged(*args, **kwargs)

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: str, /, *, stream: None = None) -> Any:
        """Return the array itself, since there is only one device.

        Raises:
            ValueError: it is another device, or a stream is given.
        """
        if device != "cpu" or stream is not None:
            raise ValueError(f"arrays are on the device 'cpu', not on {device!r}")
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise self._concrete_error(
            "the memory", "use functions of wend.numpy, which take traced arrays as well."
        )

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

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.replace(shaping.reshape(self, shape))

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

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            advice = self._static_advice()
            cure = advice and f"if a number is needed here, {advice}."
            raise TypeError(explain("iteration over a 0-d array", f"it is {self!r}", cure=cure))
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        part = indexing.getitem(self, key)
        if part is not self and part.type.shape != () and parts.is_basic(key):
            part.link_part(self, key)
        return part

    def __contains__(self, item: Any) -> Any:
        return bool(reducing.any(ew.equal(self, item)))

    # Methods that change the array
    def sort(
        self, axis: int = -1, kind: Any = None, order: None = None, *, stable: bool | None = None
    ) -> None:
        """Sort in place, always stably, like `ndarray.sort`."""
        if not self.ndim:
            raise AxisError(axis, 0)
        self.replace(reducing.sort(self, axis, kind, order, stable=stable))

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """Partition in place, like `ndarray.partition`; the array is sorted fully."""
        self.replace(orders.partition(self, kth, axis, kind))

    def fill(self, value: Any) -> None:
        """Assign a value to all elements, like `ndarray.fill`."""
        self[...] = value

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Assign to elements of the flattened array, like `ndarray.put`."""
        changing.put(self, indices, values, mode)

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """Raise an error: a traced array keeps its size."""
        raise TypeError(
            explain(
                f"{self!r} cannot change its size in place.",
                cure="make another: x = np.resize(x, shape).",
            )
        )
