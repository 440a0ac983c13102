"""Traced arrays: what a function sees in place of its arrays while it is recorded."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from wend.base.errors import (
    AliasError,
    ConcreteValueError,
    LeakedValueError,
    ShapeError,
    TypeMismatchError,
    explain,
)
from wend.base.source import Source, at, user_frame, user_source
from wend.eager.dispatch import Recorder, Staged, recorder
from wend.eager.promotion import PYTHON_SCALARS, tensor_type
from wend.ir.graph import Value
from wend.ir.types import Symbol, TensorType
from wend.numpy import (
    changing,
    contracting,
    creating,
    indexing,
    numbers,
    orders,
    parts,
    reducing,
    shaping,
    ufunc_methods,
    updating,
)
from wend.numpy import elementwise as ew
from wend.numpy.public import STAGED
from wend.numpy.unknown import unknown
from wend.trace.arrays.methods import Methods
from wend.trace.arrays.provenance import static_advice
from wend.trace.arrays.view_transforms import ViewTransform

_CAST = (
    "leave it as it is, or cast it by .astype({}); what takes Python's numbers only has a "
    "counterpart in wend.numpy."
)


OWN = "let it be an array of its own: y = np.where(test, x, z), or y = y.copy() before."


def _is_scalar(x: Any) -> bool:
    return type(x) in PYTHON_SCALARS or (isinstance(x, Tracer) and x.weak)


def _binary(function: Callable[..., Any], *, of_bools: bool = False) -> tuple[Any, Any]:
    """The operator and its reflection. Two Python scalars give a Python scalar (D4).

    Python counts with its bools as integers; `of_bools`: this operator is one of bools too.
    """

    def run(x: Any, y: Any) -> Any:
        weak = _is_scalar(x) and _is_scalar(y)
        if weak and not of_bools:
            x, y = _number(x), _number(y)
        return _kept_weak(function(x, y), weak)

    def forward(self: Tracer, other: Any) -> Any:
        if isinstance(other, list):
            _check_list(self, other)
        return run(self, _joined(other)) if _is_operand(other) else NotImplemented

    def reflected(self: Tracer, other: Any) -> Any:
        if isinstance(other, list):
            _check_list(self, other)
        return run(_joined(other), self) if _is_operand(other) else NotImplemented

    return forward, reflected


def _check_list(x: Tracer, other: list[Any]) -> None:
    """Refuse a list beside a number of Python: it repeats the list, or is an error there."""
    if x.type.shape == () and (x.weak or x.type.dtype.kind in "bi"):
        raise TypeError(
            explain(
                f"a list of {len(other)} items meets {x!r}, which Python would take for how often "
                "to repeat it.",
                cure="make the list an array: wnp.array(items) * n; or np.full(n, value).",
            )
        )


def _number(x: Any) -> Any:
    """A Python scalar as a number: True is 1."""
    is_bool = isinstance(x, Tracer) and x.weak and x.type.dtype.kind == "b"
    return _kept_weak(shaping.astype(x, np.int64), True) if is_bool else x


def _is_operand(x: Any) -> bool:
    return isinstance(x, (Staged, np.ndarray, np.generic, list, *PYTHON_SCALARS))


def _joined(x: Any) -> Any:
    """A list of traced numbers as one array; anything else as it is."""
    return creating.asarray(x) if isinstance(x, list) else x


def _kept_weak(result: Any, weak: bool) -> Any:
    if weak and isinstance(result, tuple):
        return tuple(_kept_weak(part, weak) for part in result)
    if weak and isinstance(result, Tracer):
        return type(result)(result.value, result.recording, weak=True)
    return result


def _in_place(function: Callable[..., Any]) -> Any:
    """`x += y` and its kin: numbers are replaced, arrays changed, keeping dtype and shape."""

    def change(self: Tracer, other: Any) -> Any:
        if not _is_operand(other) or self.type.shape == ():
            return NotImplemented
        return _put(self, function(self, _joined(other)))

    return change


def _has_its_own_way(out: Any) -> bool:
    return type(out) not in _SEEN_TO and hasattr(type(out), "__array_ufunc__")


def _put(array: Tracer, result: Any) -> Tracer:
    """Let an array take the numbers of a result of its shape, as NumPy's `out=` does."""
    found, mine = tensor_type(result), array.type
    if found.rank == mine.rank and found.shape != mine.shape and _may_be_equal(found, mine):
        result = shaping.broadcast_to_shape_of(result, array)
        found = tensor_type(result)
    if not np.can_cast(found.dtype, mine.dtype, "same_kind"):
        raise TypeMismatchError(
            f"cannot put {found} into {mine} in place; use x = x + y to make a new array"
        )
    if found.shape != mine.shape:
        raise ShapeError(f"non-broadcastable output operand: {found} does not fit {mine}")
    array.replace(shaping.astype(result, mine.dtype))
    return array


def put_into(out: Any, result: Any) -> Any:
    """Let an array take a result, as NumPy's `out=` does.

    Raises:
        TypeMismatchError: it is one that cannot become traced.
    """
    if not isinstance(out, Staged):
        raise TypeMismatchError(
            explain(
                "out= is an array that Python knows, of a result that is traced.",
                cure="use the result: x = np.add(x, y).",
            )
        )
    if out.type.shape != tensor_type(result).shape and out.type.is_static:
        result = shaping.broadcast_to(result, out.type.dims)
    _put(out.read(), result)
    return out


def _may_be_equal(a: TensorType, b: TensorType) -> bool:
    """Whether two shapes of one rank can be the same at run time."""
    pairs = zip(a.dims, b.dims, strict=True)
    return all(m == n or isinstance(m, Symbol) or isinstance(n, Symbol) for m, n in pairs)


class Tracer(Methods):
    """An array of a function that is being recorded: it has a shape and a dtype, but no numbers.

    It takes part in NumPy's functions, operators and indexing, each of which adds a node to the
    graph.
    """

    __slots__ = (
        *("__weakref__", "_base", "_stale", "_taken", "_views", "choices", "is_changed_as_another"),
        *("origins", "recording", "value", "weak"),
    )
    __array_priority__ = 1000

    def __init__(self, value: Value, recording: Recorder, *, weak: bool = False) -> None:
        self.value = value
        self.recording = recording
        self.weak = weak
        self._base: Tracer | np.ndarray | None = None  # the array that this is a view of
        self._taken: tuple[Tracer, Any] | None = None  # of which array it is a part, by which key
        self._views: list[weakref.ref[Tracer]] = []
        self._stale: Source | None = None  # where the base was changed after this was taken
        # Of what a branch or loop gives: the arrays that it may be, those that somebody else holds
        self.origins: tuple[Any, ...] = ()
        self.choices: tuple[Any, ...] = ()
        self.is_changed_as_another = False

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        assert isinstance(self.value.type, TensorType)
        return self.value.type

    def __repr__(self) -> str:
        is_number = self.weak and self.type.dtype.kind != "b"
        return f"<traced {self.value.type}{' (weak)' if is_number else ''}{self._born()}>"

    def _born(self) -> str:
        node = self.value.node
        if node is None:
            return f", {self.value.name}" if self.value.name else ""
        return f", {node.op.name}{at(node.source)}"

    # Where Python wants the numbers
    def leaked(self) -> LeakedValueError:
        here: Any = recorder.get()
        used = "" if here is None or here.runs_now() else f", and used in {here.role}"
        return LeakedValueError(
            explain(
                f"{self!r} was used outside the trace that made it.",
                f"it was made in {self.recording.role}{used}",
                cure="return it from the function, loop body or branch that computes it.",
            )
        )

    def is_reachable(self) -> bool:
        """Whether what is recorded here and now may use it."""
        here: Any = recorder.get()
        return here is not None and bool(here.can_lift(self))

    def _no_number(self, wanted: str, cure: str, reason: str | None = None) -> Exception:
        if not self.is_reachable():
            return self.leaked()
        what = (
            f"{wanted} of {self!r} is needed{at(user_source())}, "
            "but its number is not known while the function is recorded."
        )
        advice = self._static_advice()
        if advice is not None:
            cure = f"{cure.removesuffix('.')}; or {advice}."
        error = ConcreteValueError(explain(what, reason, cure=cure))
        frame = user_frame()
        error.wanted, error.code = what, frame and frame.f_code
        return error

    def _static_advice(self) -> str | None:
        """How Python would know the number."""
        return static_advice(self.value, self.recording)

    def __bool__(self) -> bool:
        raise self._no_number(
            "the truth",
            "let wend capture the code that asks (it leaves libraries, wend.do_not_capture and "
            "code without source text alone); or use wend.cond for a branch, wend.while_loop for "
            "a loop, wnp.where for a choice element by element.",
        )

    def __float__(self) -> float:
        raise self._no_number("float()", _CAST.format("float"))

    def __complex__(self) -> complex:
        raise self._no_number("complex()", _CAST.format("complex"))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise self._no_number(
            "the text",
            'print it by wend.print(x, format="{:.3f}"), or by print(f"{x:.3f}") in captured code.',
        )

    def __int__(self) -> int:
        raise self._no_number("int()", _CAST.format("int"))

    def __index__(self) -> int:
        raise self._no_number(
            "the integer",
            "read arrays and lists by wnp.take(values, i), use wend.fori_loop instead of range.",
        )

    def __hash__(self) -> int:
        if getattr(self.value.type, "shape", None) != ():
            raise TypeError("unhashable type: 'numpy.ndarray'")
        raise self._no_number(
            "the hash",
            "look things up by what Python knows; put numbers in an array, and read it by "
            "wnp.take(values, i).",
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
        if not self._has(key, value):
            self.replace(updating.set_at(self, key, value))

    def _has(self, key: Any, value: Any) -> bool:
        """Whether a part is put back that has been changed in place, as by `x[key] += v`."""
        if not isinstance(value, Tracer) or value._taken is None or value._stale is not None:
            return False
        whole, mine = value._taken
        is_here = value.recording is recorder.get()
        return whole is self and is_here and parts.are_same(key, mine)

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
            is_current = self._stale is None and recording is self.recording
            if isinstance(key, ViewTransform):
                whole.replace(key.back(new, whole.type))
            else:
                whole[key] = new
            if not is_current:
                return  # in another region it is taken again, which has its own whole
            self._stale = None
            assert isinstance(self._base, Tracer)
            self._base._views.append(weakref.ref(self))
        elif self._base is not None:
            raise AliasError(
                explain(
                    f"{self!r} is a view: changing it would change {self._base!r:.60} in NumPy.",
                    cure="change the array itself (x[2:5] += 1), or take a .copy() of the part.",
                )
            )
        if self.choices:
            raise AliasError(
                explain(
                    f"{self!r} is changed{at(user_source())}, and may be {self.choices[0]!r:.80}, "
                    "which only the run tells; in NumPy both would change.",
                    cure=OWN,
                )
            )
        self.mark_origins()
        recording.assign(self, recording.lift(new))
        self.mark_views()

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

    def look_at(self, base: Tracer | np.ndarray) -> None:
        """Note that this is a view of another array, or of one that Python knows."""
        self._base = base._base if isinstance(base, Tracer) and base._base is not None else base
        if isinstance(self._base, Tracer):
            self._base._views.append(weakref.ref(self))

    def is_part(self, whole: Tracer, key: Any) -> None:
        """Note that this is `whole[key]`, or `key.of(whole)`: changing it changes the whole."""
        if self._base is None:
            self.look_at(whole)
        self._taken = whole, key

    def is_seen_in(self, base: Tracer) -> None:
        """Note that this is a view of all of an array as it is now, and no part of another."""
        self._base = self._taken = self._stale = None
        self.look_at(base)

    def is_in_a_row(self) -> bool:
        """Whether this is a vector, or one in another shape: any shape of it is a view."""
        if self._taken is None or not isinstance(self._taken[1], ViewTransform):
            return self.type.shape is not None and len(self.type.shape) < 2
        whole, how = self._taken
        return how.is_reshape() and whole.is_in_a_row()

    def mark_origins(self) -> None:
        """Note that what this may be changes with it."""
        for origin in self.origins:
            if isinstance(origin, Tracer) and not origin.is_changed_as_another:
                origin.is_changed_as_another = True
                origin.mark_origins()

    def mark_views(self) -> None:
        """Note that this array changes here: what looks at it must be taken again.

        Not what was made in another branch, which has left this one's array as it was.
        """
        where = user_source()
        here: Any = recorder.get()
        views, self._views = self._views, []
        for ref in views:
            view = ref()
            if view is None:
                continue
            if here is None or here.is_in(view.recording):
                view._stale = where
                view.mark_views()
            else:
                self._views.append(ref)

    def watch(self, other: Tracer) -> None:
        """Note that another array may be this one: it must not be read when this has changed."""
        self._views.append(weakref.ref(other))

    def base(self) -> Any:
        """The array that this looks at, or itself."""
        whole = self.whole()
        return whole if whole._base is None else whole._base

    def whole(self) -> Tracer:
        """The array of which this is a part, or itself."""
        return self if self._taken is None else self._taken[0].whole()

    def current(self) -> Tracer:
        """This array as it is here: a part whose array has changed since is taken again.

        Raises:
            AliasError: it is another view of such an array, or may be one.
        """
        if self._stale is None:
            return self
        if self._taken is not None:
            whole, key = self._taken
            found: Tracer
            found = (
                key.of(whole) if isinstance(key, ViewTransform) else indexing.getitem(whole, key)
            )
            return found
        if self.choices:
            raise AliasError(
                explain(
                    f"{self!r} may be, or hold, an array that was changed{at(self._stale)}, "
                    "so it would have changed too.",
                    cure="let it have a .copy(): y = np.where(test, x, z), out.append(x.copy()).",
                )
            )
        raise AliasError(
            explain(
                f"{self!r} is a view of an array that was changed{at(self._stale)}, "
                "so it would have changed too.",
                cure="take a .copy() of the part before, or take the part again after.",
            )
        )

    # NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        outs = options.pop("out", None)
        if outs is not None and any(map(_has_its_own_way, outs)):
            return NotImplemented  # an array with a way of its own
        found = ufunc_methods.run(ufunc, method, *inputs, **options)
        if outs is None:
            return found
        results = found if isinstance(found, tuple) else (found,)
        kept = [
            result if out is None else put_into(out, result)
            for out, result in zip(outs, results, strict=True)
        ]
        return kept[0] if len(kept) == 1 else tuple(kept)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        staged = STAGED.get(function)
        if staged is None:
            raise unknown(function)
        return staged(*args, **kwargs)

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: str, /, *, stream: None = None) -> Any:
        """The array itself, for there is one device.

        Raises:
            ValueError: it is another device, or a stream is given.
        """
        if device != "cpu" or stream is not None:
            raise ValueError(f"arrays are on the device 'cpu', not on {device!r}")
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise self._no_number(
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
            part.is_part(self, key)
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
    __divmod__, __rdivmod__ = _binary(numbers.divmod)
    __pow__, __rpow__ = _binary(ew.power)
    __and__, __rand__ = _binary(ew.bitwise_and, of_bools=True)
    __or__, __ror__ = _binary(ew.bitwise_or, of_bools=True)
    __xor__, __rxor__ = _binary(ew.bitwise_xor, of_bools=True)
    __lshift__, __rlshift__ = _binary(ew.left_shift)
    __rshift__, __rrshift__ = _binary(ew.right_shift)
    __matmul__, __rmatmul__ = _binary(contracting.matmul)
    __lt__, _ = _binary(ew.less, of_bools=True)
    __le__, _ = _binary(ew.less_equal, of_bools=True)
    __gt__, _ = _binary(ew.greater, of_bools=True)
    __ge__, _ = _binary(ew.greater_equal, of_bools=True)
    __eq__, _ = _binary(ew.equal, of_bools=True)
    __ne__, _ = _binary(ew.not_equal, of_bools=True)

    def __neg__(self) -> Any:
        return _kept_weak(ew.negative(_number(self)), self.weak)

    def __pos__(self) -> Any:
        result = ew.positive(_number(self))
        return self.copy() if result is self else _kept_weak(result, self.weak)

    def __abs__(self) -> Any:
        return _kept_weak(ew.absolute(_number(self)), self.weak)

    def __invert__(self) -> Any:
        is_carry = self.value.node is None and getattr(self.recording, "is_region", False)
        if self.weak and self.type.dtype.kind == "b" and not is_carry:
            raise TypeError(
                explain(
                    f"~ of {self!r}, a bool of Python, is an integer: ~True is -2, which is true.",
                    cure="write `not b`; or np.logical_not(b), which takes arrays as well.",
                )
            )
        return _kept_weak(ew.invert(self), self.weak)

    # Methods that change it
    def sort(
        self, axis: int = -1, kind: Any = None, order: None = None, *, stable: bool | None = None
    ) -> None:
        """`ndarray.sort`: in place, always stable."""
        if not self.ndim:
            raise AxisError(axis, 0)
        self.replace(reducing.sort(self, axis, kind, order, stable=stable))

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """`ndarray.partition`: in place, sorted altogether."""
        self.replace(orders.partition(self, kth, axis, kind))

    def fill(self, value: Any) -> None:
        """`ndarray.fill`."""
        self[...] = value

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """`ndarray.put`: elements of the flattened array replaced."""
        changing.put(self, indices, values, mode)

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """Not possible: an array keeps its size."""
        raise TypeError(
            explain(
                f"{self!r} cannot change its size in place.",
                cure="make another: x = np.resize(x, shape).",
            )
        )


# What `out=` may be for an operation on a traced array to put its result into it
_SEEN_TO = (Tracer, np.ndarray, type(None))
