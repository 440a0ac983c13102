"""A wend function of arrays alone, for fixed types, with its derivatives built on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import wend.numpy as wnp
from wend.backends.fastcall import CallArgument, CallConstant, CallOperand
from wend.backends.protocol import BufferCall, BufferCallable
from wend.base.config import settings
from wend.base.errors import TypeMismatchError, VariableError, explain
from wend.base.lazy.cached_property import cached_property
from wend.base.lazy.dataclass import dataclass
from wend.eager.dispatch import Staged
from wend.eager.promotion import cast, tensor_type
from wend.function.concrete import ConcreteFunction
from wend.function.derivatives.jvp import jvp
from wend.function.derivatives.vjp import vjp
from wend.function.function import Function
from wend.function.mapping.vmap import vmap
from wend.function.signature.spec import TensorSpec
from wend.ir.op import Effect
from wend.runtime.array_boundary import to_host
from wend.trace.recording.recording import current
from wend.trace.state.creation import described
from wend.trace.state.effects import raise_if

Arrays: TypeAlias = tuple[Any, ...]


# The dtypes of Python's numbers
PYTHON_DTYPES = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}


def as_weak(x: Any) -> Any:
    """Return a traced number that follows the dtype of what it meets, as Python's do (D4)."""
    recording = current()
    return x if recording is None else recording.wrap(recording.lift(x), weak=True)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def is_differentiable(self) -> bool:
        """Whether tangents of it are arrays."""
        return self.dtype.kind in "fc"


@dataclass(frozen=True, slots=True)
class Bridge:
    """A system that calls wend: its arrays, its pytrees, and its words for messages.

    Attributes:
        name: the public function: `as_jax`.
        compiler: what may drop, merge and repeat calls.
        arrays: what it calls its arrays.
        call: calls a function on its arrays.
        flatten, unflatten: take pytrees apart, and put them together.
        as_operand: returns a leaf as one of its arrays, None if the leaf is part of the signature.
        type_of: returns the type of one of its arrays.
        is_weak: whether a leaf, and the array of it, follow the dtype of what they meet.
        as_weak: returns a traced number that does.
        leaf_cure: what helps with a leaf that has no hash.
        own_dtype: returns the dtype in which it takes a result, None if it refuses it.
        dtype_cure: what helps against that.
        range_cure: what helps where it takes integers with fewer bits, and one does not fit.
    """

    name: str
    compiler: str
    arrays: str
    call: Callable[[FlatFunction, Sequence[Any]], Sequence[Any]]
    flatten: Callable[[Any], tuple[list[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    as_operand: Callable[[Any], Any]
    type_of: Callable[[Any], ArrayType]
    is_weak: Callable[[Any, Any], bool]
    as_weak: Callable[[Any], Any]
    leaf_cure: str
    own_dtype: Callable[[np.dtype[Any]], np.dtype[Any] | None]
    dtype_cure: str = ""
    range_cure: str = ""


class FlatFunction:
    """A function of arrays that returns a tuple of arrays, for operands of fixed types.

    Args:
        bridge: the system that calls it.
        name: its name, in messages.
        fun: the function, of traced arrays.
        types: the types of its operands.
        backend: the backend that runs it; None: the one of the settings.
    """

    def __init__(
        self,
        bridge: Bridge,
        name: str,
        fun: Callable[..., Arrays],
        types: Sequence[ArrayType],
        backend: str | None = None,
    ) -> None:
        self.bridge, self.name, self.fun, self.types = bridge, name, fun, tuple(types)
        self._backend = backend
        self.number: int | None = None  # by which compiled programs call it
        self.entry: Any = None  # what the other system keeps for its calls
        self.pullbacks: dict[Any, Any] = {}  # … and for its derivatives
        self._derived: dict[Any, FlatFunction] = {}

    def __repr__(self) -> str:
        return self.name

    @property
    def backend(self) -> str:
        """The backend that runs it."""
        return self._backend or settings().backend

    @cached_property
    def concrete(self) -> ConcreteFunction:
        """The function, traced and ready to be compiled.

        Raises:
            VariableError: it uses a variable.
            TypeMismatchError: it changes an argument in place, has effects, or gives results whose
                size only a run can tell.
        """
        function = Function(self._in_own_dtypes, name=self.name)
        specs = [TensorSpec(type.shape, type.dtype) for type in self.types]
        concrete = function.get_concrete_function(*specs)
        _check_pure(self.bridge, self.name, concrete)
        return concrete

    @cached_property
    def result_types(self) -> tuple[ArrayType, ...]:
        """The types of its results, as the other system has them."""
        results = []
        for k, leaf in enumerate(self.concrete.traced.result_types):
            if not leaf.type.is_static:
                cure = "return arrays of fixed shapes, padded where they have to be."
                where = f"{self.bridge.name} of {self.name}"
                problem = f"{where}: the size of result {k} is known to a run only."
                raise TypeMismatchError(explain(problem, cure=cure))
            shape = tuple(dim for dim in leaf.type.dims if isinstance(dim, int))
            results.append(ArrayType(shape, self._dtype(k, leaf.type.dtype)))
        return tuple(results)

    def _dtype(self, k: int, dtype: np.dtype[Any]) -> np.dtype[Any]:
        own = self.bridge.own_dtype(dtype)
        if own is None:
            problem = (
                f"{self.bridge.name} of {self.name}: result {k} is {dtype}, which is not taken."
            )
            raise TypeMismatchError(explain(problem, cure=self.bridge.dtype_cure))
        return own

    def _in_own_dtypes(self, *arrays: Any) -> Arrays:
        """Return the results in the dtypes in which the other system takes them.

        Raises:
            OverflowError: an integer does not fit; a check, where a run knows that.
        """
        results = []
        for k, x in enumerate(self.fun(*arrays)):
            dtype = _dtype_of(x)
            own = None if dtype is None else self.bridge.own_dtype(dtype)
            if own is not None and own != dtype:
                self._check_range(k, x, own)
                x = cast(x, own)
            results.append(x)
        return tuple(results)

    def _check_range(self, k: int, x: Any, dtype: np.dtype[Any]) -> None:
        """Check that the integers of a result fit a dtype of fewer bits."""
        if 0 in np.shape(x):
            return
        low, high, info = wnp.min(x), wnp.max(x), np.iinfo(dtype)
        problem = (
            f"{self.bridge.name} of {self.name}: result {k} has integers from {{}} to {{}}, and "
            f"{self.bridge.compiler} takes {dtype}."
        )
        fails = (low < info.min) | (high > info.max)
        raise_if(fails, OverflowError, explain(problem, cure=self.bridge.range_cure), low, high)

    @cached_property
    def buffer_call(self) -> BufferCall | None:
        """The entry for machine code of the other system; None if each run needs Python."""
        traced = self.concrete.traced
        if traced.pending or traced.has_passed_containers or not traced.is_closed():
            return None
        operands: list[CallOperand] = [CallArgument(k) for k in range(len(self.types))]
        operands += [None] if traced.has_world else []
        operands += [CallConstant(x) for x in traced.captured]
        execute = self.concrete.compiled.executable(self.backend)
        if not isinstance(execute, BufferCallable):
            return None
        return execute.buffer_call(operands, len(self.result_types))

    @cached_property
    def differentiable_results(self) -> tuple[int, ...]:
        """The positions of the results that have tangents."""
        return tuple(k for k, t in enumerate(self.result_types) if t.is_differentiable)

    def run(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results for NumPy arrays of its types."""
        return [to_host(x) for x in self.run_on(self.backend, [np.asarray(x) for x in arrays])]

    def run_on(self, backend: str, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results for arrays of its types, by a backend that takes them."""
        results: Sequence[Any] = self.concrete.run(backend, arrays)
        return results

    # Derived functions
    def _with(
        self, name: str, fun: Callable[..., Arrays], types: Sequence[ArrayType]
    ) -> FlatFunction:
        return FlatFunction(self.bridge, name, fun, types, self._backend)

    def tangents(self, wrt: tuple[int, ...]) -> FlatFunction:
        """Return the function (operands, tangents of `wrt`) → tangents of the results.

        Only results of floats and complex numbers have one.
        """

        def derive() -> FlatFunction:
            count = len(self.types)

            def fun(*operands: Any) -> Arrays:
                primals, tangents = operands[:count], operands[count:]
                restricted = self._restricted(primals, wrt)
                _, result = jvp(restricted, tuple(primals[k] for k in wrt), tuple(tangents))
                return tuple(result)

            types = [*self.types, *(self.types[k] for k in wrt)]
            return self._with(f"jvp of {self.name}", fun, types)

        return self._memo(("jvp", wrt), derive)

    @cached_property
    def differentiable_operands(self) -> tuple[int, ...]:
        """The positions of the operands that have cotangents."""
        return tuple(k for k, t in enumerate(self.types) if t.is_differentiable)

    def cotangents(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> FlatFunction:
        """Return the function (operands, cotangents of results) → cotangents of `wrt`.

        Args:
            wrt: the operands.
            seeded: the results that have cotangents, counted among the differentiable ones.
        """

        def derive() -> FlatFunction:
            count = len(self.types)

            def fun(*operands: Any) -> Arrays:
                primals, cts = operands[:count], operands[count:]
                restricted = self._restricted(primals, wrt, seeded)
                _, pull_back = vjp(restricted, *(primals[k] for k in wrt))
                return tuple(pull_back(tuple(cts)))

            results = [self.result_types[self.differentiable_results[k]] for k in seeded]
            return self._with(f"vjp of {self.name}", fun, [*self.types, *results])

        return self._memo(("vjp", wrt, seeded), derive)

    def mapped(self, axes: tuple[int | None, ...], size: int) -> FlatFunction:
        """Return the function for each element of axes of the operands."""

        def derive() -> FlatFunction:
            fun = vmap(self.fun, in_axes=axes, axis_size=size)
            types = [
                type
                if axis is None
                else ArrayType((*type.shape[:axis], size, *type.shape[axis:]), type.dtype)
                for type, axis in zip(self.types, axes, strict=True)
            ]
            return self._with(f"vmap of {self.name}", fun, types)

        return self._memo(("vmap", axes, size), derive)

    def _restricted(
        self,
        primals: Sequence[Any],
        wrt: tuple[int, ...],
        seeded: tuple[int, ...] | None = None,
    ) -> Callable[..., Arrays]:
        """Return the differentiable results as a function of some operands."""
        chosen = self.differentiable_results
        if seeded is not None:
            chosen = tuple(chosen[k] for k in seeded)

        def restricted(*some: Any) -> Arrays:
            operands = list(primals)
            for k, x in zip(wrt, some, strict=True):
                operands[k] = x
            results = self.fun(*operands)
            return tuple(results[k] for k in chosen)

        return restricted

    def _memo(self, key: Any, derive: Callable[[], FlatFunction]) -> FlatFunction:
        if key not in self._derived:
            self._derived[key] = derive()
        return self._derived[key]


def _dtype_of(x: Any) -> np.dtype[Any] | None:
    """Return the dtype of a result, None if it is no number and no array."""
    if isinstance(x, Staged):  # a traced Python number has no `dtype`
        return tensor_type(x).dtype
    dtype = getattr(x, "dtype", None) or PYTHON_DTYPES.get(type(x))
    return None if dtype is None else np.dtype(dtype)


def _check_pure(bridge: Bridge, name: str, concrete: ConcreteFunction) -> None:
    """Check that the other system may drop, merge and repeat calls."""
    where, traced = f"{bridge.name} of {name}", concrete.traced
    repeats = f"{bridge.compiler} may drop, merge and repeat calls."
    variables = concrete.variables
    if variables:
        cure = "pass its value as an argument, and return the new one."
        problem = f"{where}: it uses {described(variables[0])}; {repeats}"
        raise VariableError(explain(problem, cure=cure))
    if traced.written:
        cure = "change a copy of it, x = x.copy(), and return that."
        problem = f"{where}: an argument is changed in place, which {bridge.arrays} do not allow."
        raise TypeMismatchError(explain(problem, cure=cure))
    if traced.graph.effects() - {Effect.CHECK}:
        cure = "return what is to be printed or passed on, and do it outside."
        raise TypeMismatchError(
            explain(f"{where}: it prints, or calls Python; {repeats}", cure=cure)
        )
