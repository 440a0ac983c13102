"""Operators of traced arrays: those of NumPy, with Python's rules for Python scalars (D4)."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import AliasError, ShapeError, TypeMismatchError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager import raising
from wend.eager.dispatch import Staged
from wend.eager.promotion import PYTHON_SCALARS, as_array, broadcast, tensor_type
from wend.ir.types import Symbol, TensorType, shape_as_tuple_text
from wend.numpy import contracting, creating, numbers, shaping, ufuncs
from wend.numpy import elementwise as ew
from wend.numpy.ufuncs import has_own_ufuncs, scalar
from wend.runtime.array_boundary import foreign_boundary
from wend.trace.arrays import foreign_operands, python_numbers
from wend.trace.arrays.attributes import class_of, example_of_value
from wend.trace.arrays.decided_integers import decided_integer, marked
from wend.trace.arrays.foreign_operands import (
    SEQUENCES,
    asks_ufuncs,
    check_number,
    check_object,
    computes_by_items,
    has_own_equality,
    is_in_python,
    is_taken_as_array,
    raise_as_numpy,
)
from wend.trace.arrays.provenance import static_advice
from wend.trace.arrays.view_link import ViewLink


def _is_scalar(x: Any) -> bool:
    """Return whether an operand is a Python number, also one of a subclass, as of an `IntEnum`."""
    if isinstance(x, Operators):
        return x.weak
    return isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic)


def _binary(
    function: Callable[..., Any],
    of_numbers: Callable[..., Any] | None = None,
    *,
    of_bools: bool = False,
) -> tuple[Any, Any]:
    """Return an operator and its reflection; two Python scalars give a Python scalar (D4).

    `of_numbers` is the operator of two Python scalars, if it is another. Python computes with bools
    as integers, except where the operator is also one `of_bools`.
    """
    of_numbers = of_numbers or function
    name = _NAMES[function]
    reflected_name = _reflected_name(name)

    def run(x: Any, y: Any) -> Any:
        if not (_is_scalar(x) and _is_scalar(y)):
            return _with_weakness(function(x, y), False)
        operands = _exact(x), _exact(y)
        if not of_bools:
            operands = _as_number(operands[0]), _as_number(operands[1])
        try:
            return _with_weakness(of_numbers(*operands), True)
        except TypeError:
            if name not in _MIRRORED:
                _raise_as_python(_operator(name), x, y)
            raise

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, SEQUENCES):
            if function is ew.multiply and (count := decided_integer(self)) is not None:
                return operator.mul(other, count)
            if self.weak and (name != "mul" or is_in_python(type(other), reflected_name)):
                return NotImplemented
            if name == "mul":
                _check_product(self, other)
        if self.weak and _is_asked(other, reflected_name, self):
            return NotImplemented
        if _is_operand(other):
            return run(self, _list_as_array(other))
        check_number(self, other)
        if not self.weak:
            if asks_ufuncs(other):
                return ufuncs.ask(_UFUNCS[function], self, other)
            if is_taken_as_array(self, other):
                return run(self, foreign_operands.as_array(other))
            is_matmul = function is contracting.matmul
            check_object(self, other, None if is_matmul else reflected_name)
            if function not in _EQUALITIES:
                raise_as_numpy(self, other, _operator(name), reflected_name)
            elif class_of(self) is np.ndarray and not has_own_equality(other):
                elements = creating.full_like(self, function is ew.not_equal, bool)
                return elements if self.type.shape != () else scalar(elements)
            if not is_matmul and computes_by_items(self, other, reflected_name):
                result = foreign_operands.operate(_operator(name), self.item(), other)
                return _truth_of_array(result) if name in _MIRRORED and self.zero_dim else result
            if function in _EQUALITIES and isinstance(other, (str, bytes)):
                return np.bool_(function is ew.not_equal)
        return NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        if isinstance(other, SEQUENCES):
            if function is ew.multiply and (count := decided_integer(self)) is not None:
                return operator.mul(other, count)
            if self.weak and name != "mul":
                return NotImplemented
            if name == "mul":
                _check_product(self, other)
        if _is_operand(other):
            return run(_list_as_array(other), self)
        check_number(self, other)
        if not self.weak:
            if asks_ufuncs(other):
                return ufuncs.ask(_UFUNCS[function], other, self)
            if is_taken_as_array(self, other):
                return run(foreign_operands.as_array(other), self)
            check_object(self, other, None)
            raise_as_numpy(self, other, _operator(name), f"__{name}__", is_left=False)
            is_matmul = function is contracting.matmul
            if not is_matmul and computes_by_items(self, other, f"__{name}__"):
                return foreign_operands.operate(_operator(name), other, self.item())
        return NotImplemented

    return forward, reflected


# What Python calls each operator
_NAMES = {
    ew.add: "add",
    ew.subtract: "sub",
    ew.multiply: "mul",
    ew.divide: "truediv",
    ew.floor_divide: "floordiv",
    ew.remainder: "mod",
    numbers.divmod: "divmod",
    ew.operator_power: "pow",
    ew.bitwise_and: "and",
    ew.bitwise_or: "or",
    ew.bitwise_xor: "xor",
    ew.left_shift: "lshift",
    ew.right_shift: "rshift",
    contracting.matmul: "matmul",
    ew.less: "lt",
    ew.less_equal: "le",
    ew.greater: "gt",
    ew.greater_equal: "ge",
    ew.equal: "eq",
    ew.not_equal: "ne",
}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _reflected_name(name: str) -> str:
    """Return the method of the right operand, which a subclass of `float` or `int` may define."""
    return f"__{_MIRRORED.get(name) or 'r' + name}__"


def _operator(name: str) -> Callable[[Any, Any], Any]:
    operation: Callable[[Any, Any], Any] = getattr(operator, f"__{name}__", divmod)
    return operation


# What an array asks an object for that has ufuncs of its own
_UFUNCS: dict[Callable[..., Any], np.ufunc] = {
    ew.add: np.add,
    ew.subtract: np.subtract,
    ew.multiply: np.multiply,
    ew.divide: np.true_divide,
    ew.floor_divide: np.floor_divide,
    ew.remainder: np.remainder,
    numbers.divmod: np.divmod,
    ew.operator_power: np.power,
    ew.bitwise_and: np.bitwise_and,
    ew.bitwise_or: np.bitwise_or,
    ew.bitwise_xor: np.bitwise_xor,
    ew.left_shift: np.left_shift,
    ew.right_shift: np.right_shift,
    contracting.matmul: np.matmul,
    ew.less: np.less,
    ew.less_equal: np.less_equal,
    ew.greater: np.greater,
    ew.greater_equal: np.greater_equal,
    ew.equal: np.equal,
    ew.not_equal: np.not_equal,
}
_EQUALITIES = (ew.equal, ew.not_equal)


def _truth_of_array(result: Any) -> Any:
    """Return the truth of what a comparison of an array without axes gives, as NumPy's scalar."""
    return scalar(creating.asarray(foreign_operands.truth_of(result), bool))


def _raise_as_python(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> None:
    """Raise Python's error if an operator is not defined for two numbers."""
    operation(*(class_of(n)(1) if isinstance(n, Operators) else n for n in (x, y)))


def _is_asked(x: Any, name: str, left: Operators) -> bool:
    """Return whether Python asks the right operand, of a subclass of its numbers, and not a left.

    It has its own operator, and the left operand's class is a base of its class, or knows no such
    numbers: float does not know complex.
    """
    kind = type(x)
    if kind in PYTHON_SCALARS or not isinstance(x, PYTHON_SCALARS) or isinstance(x, np.generic):
        return False
    numbers_of_python = PYTHON_SCALARS[1:]
    base = next(base for base in numbers_of_python if isinstance(x, base))
    left_kind = class_of(left)
    if getattr(kind, name, None) is getattr(base, name, None):
        return False
    if issubclass(kind, left_kind):
        return True
    left_base = next(other for other in numbers_of_python if issubclass(left_kind, other))
    return numbers_of_python.index(base) > numbers_of_python.index(left_base)


def _check_product(x: Any, other: Sequence[Any]) -> None:
    """Raise TypeError for the product of a list and a number, of which Python makes no array.

    Raises:
        TypeError: Python raises it; or it repeats the list, which is refused.
    """
    if x.type.shape != () or x.zero_dim is not False:
        return
    if x.type.dtype.kind not in ("bi" if x.weak else "iu") or isinstance(other, range):
        operator.mul(other, example_of_value(x))
        return
    advice = static_advice(x.value, x.recording) if hasattr(x, "value") else None
    cure = "make an array: np.full(n, value), or np.array(items) * n for a product"
    error = TypeError(
        explain(
            f"a {type(other).__name__} of {len(other)} items meets {x!r}, which Python "
            "would use as a repeat count.",
            cure=f"{advice}; or {cure}." if advice else f"{cure}.",
        )
    )
    raise refusal(marked(error, x))


def _exact(x: Any) -> Any:
    """Return an operand as Python's operators take it: they do not ask a subclass's `__float__`."""
    if isinstance(x, Operators) or type(x) in PYTHON_SCALARS:
        return x
    kind = next(kind for kind in (int, float, complex) if isinstance(x, kind))
    return kind.__pos__(x)


def _as_number(x: Any) -> Any:
    """Return a Python scalar as a number: True is 1."""
    is_bool = isinstance(x, Operators) and x.weak and x.type.dtype.kind == "b"
    return _with_weakness(shaping.astype(x, np.int64), True) if is_bool else x


def _is_operand(x: Any) -> bool:
    if isinstance(x, (Staged, np.ndarray, np.generic, *SEQUENCES, *PYTHON_SCALARS)):
        return True
    return foreign_boundary(x) is not None


def _list_as_array(x: Any) -> Any:
    """Return a list, tuple or range of numbers as one array; anything else as it is."""
    return creating.asarray([*x]) if isinstance(x, SEQUENCES) else x


def _with_weakness(result: Any, weak: bool) -> Any:
    if weak and isinstance(result, tuple):
        return tuple(_with_weakness(part, weak) for part in result)
    if weak and isinstance(result, Operators):
        return result.as_weak()
    return result


def _in_place(function: Callable[..., Any]) -> Any:
    """Return an in-place operator: numbers are rebound, arrays keep their dtype and shape."""

    def change(self: Any, other: Any) -> Any:
        if not is_changeable(self):
            return NotImplemented
        self.check_writeable("output array")
        if has_own_ufuncs(other):
            return ufuncs.ask(_UFUNCS[function], self, other, out=self)
        if is_taken_as_array(self, other):
            other = foreign_operands.as_array(other)
        if not _is_operand(other):
            raise_as_numpy(self, other, _operator(f"i{_NAMES[function]}"), None)
            return NotImplemented
        array, other = self, _list_as_array(other)
        if function is not _matmul_in_place and shaping.rank_of(other):
            # NumPy's error names the shape of the result, too
            array, other, _ = broadcast(*map(as_array, (self, other, self)))
        return _put(self, function(array, other))

    return change


def _matmul_in_place(x: Any, y: Any) -> Any:
    if x.type.rank < 1 or shaping.rank_of(y) < 2:
        raise ValueError(
            "inplace matrix multiplication requires the first operand to have at least one and the "
            "second at least two dimensions."
        )
    return contracting.matmul(x, y)


_UFUNCS[_matmul_in_place] = np.matmul
_NAMES[_matmul_in_place] = "matmul"


def is_changeable(x: Any) -> bool:
    """Return whether a traced value is an array, which can change in place.

    Raises:
        AliasError: it is a 0-d array in some runs, and a scalar in others.
    """
    if x.type.shape != () or x.zero_dim is not None:
        return x.type.shape != () or bool(x.zero_dim)
    raise AliasError(
        explain(
            f"{x!r} is changed in place{at(user_source())}, and only the run knows whether it is a "
            "0-d array, which changes, or a number, which is replaced.",
            cure="write x = x + y; or make it a number before: x = x[()].",
        )
    )


def overrides_ufuncs(out: Any) -> bool:
    """Return whether an `out=` argument has its own `__array_ufunc__`, which takes precedence."""
    is_ours = isinstance(out, (Operators, type(None))) or type(out) is np.ndarray
    return not is_ours and hasattr(type(out), "__array_ufunc__")


_MISMATCH = (
    "non-broadcastable output operand with shape {shape[0:]} doesn't match the broadcast shape "
    "{operand}"
)


def _put(array: Any, result: Any) -> Any:
    """Store a result in an array of its shape, as NumPy's `out=` does."""
    source, target = tensor_type(result), array.type
    may_broadcast = source.rank == target.rank and source.shape != target.shape
    if may_broadcast and _may_be_equal(source, target):
        result = shaping.broadcast_like(result, array, message=_MISMATCH)
        source = tensor_type(result)
    if not np.can_cast(source.dtype, target.dtype, "same_kind"):
        raise TypeMismatchError(
            f"cannot put {source} into {target} in place; use x = x + y to make a new array"
        )
    if source.shape != target.shape:
        shapes = shape_as_tuple_text(source.dims), shape_as_tuple_text(target.dims)
        text = _MISMATCH.replace("{operand}", shapes[0]).replace("{shape[0:]}", shapes[1])
        raise ShapeError(text)
    array.replace(shaping.astype(result, target.dtype))
    return array


def _may_be_equal(a: TensorType, b: TensorType) -> bool:
    """Return whether two shapes of one rank may be equal at run time."""
    pairs = zip(a.dims, b.dims, strict=True)
    return all(m == n or isinstance(m, Symbol) or isinstance(n, Symbol) for m, n in pairs)


def _is_zero(divisor: Any) -> bool:
    return bool(divisor == 0)


def _is_negative(exponent: Any) -> bool:
    return isinstance(exponent, (int, float)) and exponent < 0


class Operators(ViewLink):
    """Python's operators on traced arrays, in-place ones included."""

    __slots__ = ()
    weak: bool

    @abstractmethod
    def as_weak(self) -> Any:
        """Return the same value as a Python scalar (D4)."""

    __add__, __radd__ = _binary(ew.add)
    __sub__, __rsub__ = _binary(ew.subtract)
    __mul__, __rmul__ = _binary(ew.multiply)
    __truediv__, __rtruediv__ = _binary(ew.divide, raising.noting("/", ew.divide, _is_zero))
    __floordiv__, __rfloordiv__ = _binary(
        ew.floor_divide, raising.noting("//", ew.floor_divide, _is_zero)
    )
    __mod__, __rmod__ = _binary(ew.remainder, raising.noting("%", ew.remainder, _is_zero))
    __divmod__, __rdivmod__ = _binary(
        numbers.divmod, raising.noting("divmod", numbers.divmod, _is_zero)
    )
    __pow__, __rpow__ = _binary(
        ew.operator_power, raising.noting("**", python_numbers.power, _is_negative)
    )
    __and__, __rand__ = _binary(ew.bitwise_and, of_bools=True)
    __or__, __ror__ = _binary(ew.bitwise_or, of_bools=True)
    __xor__, __rxor__ = _binary(ew.bitwise_xor, of_bools=True)
    __lshift__, __rlshift__ = _binary(ew.left_shift, python_numbers.shift(ew.left_shift))
    __rshift__, __rrshift__ = _binary(ew.right_shift, python_numbers.shift(ew.right_shift))
    __matmul__, __rmatmul__ = _binary(contracting.matmul)
    __lt__, _ = _binary(ew.less, python_numbers.comparison(operator.lt), of_bools=True)
    __le__, _ = _binary(ew.less_equal, python_numbers.comparison(operator.le), of_bools=True)
    __gt__, _ = _binary(ew.greater, python_numbers.comparison(operator.gt), of_bools=True)
    __ge__, _ = _binary(ew.greater_equal, python_numbers.comparison(operator.ge), of_bools=True)
    __eq__, _ = _binary(ew.equal, python_numbers.comparison(operator.eq), of_bools=True)
    __ne__, _ = _binary(ew.not_equal, python_numbers.differs, of_bools=True)

    __iadd__: Any = _in_place(ew.add)
    __isub__: Any = _in_place(ew.subtract)
    __imul__: Any = _in_place(ew.multiply)
    __itruediv__: Any = _in_place(ew.divide)
    __ifloordiv__: Any = _in_place(ew.floor_divide)
    __imod__: Any = _in_place(ew.remainder)
    __ipow__: Any = _in_place(ew.operator_power)
    __iand__: Any = _in_place(ew.bitwise_and)
    __ior__: Any = _in_place(ew.bitwise_or)
    __ixor__: Any = _in_place(ew.bitwise_xor)
    __ilshift__: Any = _in_place(ew.left_shift)
    __irshift__: Any = _in_place(ew.right_shift)
    __imatmul__: Any = _in_place(_matmul_in_place)

    def __neg__(self) -> Any:
        return _with_weakness(ew.negative(_as_number(self)), self.weak)

    def __pos__(self: Any) -> Any:
        if self.weak:
            return _as_number(self)
        result = ew.positive(self)
        return self.copy() if result is self else result

    def __abs__(self) -> Any:
        return _with_weakness(ew.absolute(_as_number(self)), self.weak)

    def __invert__(self: Any) -> Any:
        is_carry = self.value.node is None and getattr(self.recording, "is_region", False)
        if self.weak and self.type.dtype.kind == "b" and not is_carry:
            raise refusal(
                TypeError(
                    explain(
                        f"~ of {self!r}, a Python bool, is an integer: ~True is -2, which is true.",
                        cure="write `not b`; or np.logical_not(b), which takes arrays as well.",
                    )
                )
            )
        if self.weak and self.type.dtype.kind in "fc":
            operator.invert(class_of(self)(1))  # Python's error
        return _with_weakness(ew.invert(self), self.weak)
