"""`grad`, `value_and_grad` and `vjp`; signatures as in `jax`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.autodiff.vjp import joint
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import (
    NotDifferentiableError,
    ShapeError,
    StructureError,
    TypeMismatchError,
    explain,
)
from wend.capture.convert import capture
from wend.eager.promotion import as_array, cast, tensor_type
from wend.function.concrete import ConcreteFunction
from wend.function.eager import EagerPullback, gradient_now, runs_eagerly
from wend.function.function import Function
from wend.function.signature import Signature
from wend.ir.types import ListType, accepts, is_differentiable, without_maybe
from wend.passes.pipeline import TIDY, run_passes
from wend.runtime.sequence import Sequence as Sequence_
from wend.trace.arguments import LeafType, is_array_leaf, leaf_type, to_run
from wend.trace.recording import Recording, current
from wend.trace.traced import copied, owned, trace_function
from wend.trace.tracer import Tracer


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """A function that returns `fun`'s value and its gradient.

    Args:
        fun: returns a real scalar, or with `has_aux` a pair of that and a pytree.
        argnums: which positional arguments to differentiate with respect to; each a pytree of
            float arrays. Integer leaves in it get None.
        has_aux: whether `fun` returns more than its value.

    Returns:
        A function of the same arguments: `(value, gradient)`, or `((value, aux), gradient)`. The
        gradient has the structure of the argument, or is a tuple of those for a tuple of
        argnums.

    Raises:
        NotDifferentiableError: an argument of integers, or a value that is no real scalar.

    Example:
        >>> import wend
        >>> wend.value_and_grad(lambda x: x * x)(3.0)
        (np.float64(9.0), np.float64(6.0))
    """
    name = getattr(fun, "__name__", "function")

    @functools.wraps(fun, updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        return _Gradient(fun, name, args, kwargs, argnums, has_aux).record()

    def eagerly(*args: Any, **kwargs: Any) -> Any:
        return gradient_now(_Gradient(fun, name, args, kwargs, argnums, has_aux))

    return Function(
        value_and_gradient,
        eagerly=eagerly,
        input_signature=fun.input_signature if isinstance(fun, Function) else None,
        static_argnames=sorted(_signature_of(fun).static),
        backend=fun.backend if isinstance(fun, Function) else None,
        name=f"grad_{name}",
    )


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """A function that returns `fun`'s gradient; see `value_and_grad`.

    Returns:
        A function of the same arguments: the gradient, or `(gradient, aux)`.

    Example:
        >>> import wend
        >>> wend.grad(wend.grad(lambda x: x * x * x))(2.0)
        np.float64(12.0)
    """
    both = value_and_grad(fun, argnums, has_aux)

    @functools.wraps(fun, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both.python_function(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    def eagerly(*args: Any, **kwargs: Any) -> Any:
        assert both.eagerly is not None
        value, found = both.eagerly(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    static = sorted(both.signature.static)
    return Function(
        gradient,
        eagerly=eagerly,
        input_signature=both.input_signature,
        static_argnames=static,
        backend=both.backend,
        name=both.name,
    )


def _signature_of(fun: Callable[..., Any]) -> Signature:
    return fun.signature if isinstance(fun, Function) else Signature(fun)


class _Gradient:
    """The gradient of one call, recorded into the trace that is under way."""

    def __init__(
        self,
        fun: Callable[..., Any],
        name: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: int | Sequence[int],
        has_aux: bool,
    ) -> None:
        self.name, self.has_aux = name, has_aux
        self.is_single = not isinstance(argnums, Sequence)
        numbers = argnums if isinstance(argnums, Sequence) else (argnums,)
        self.numbers = [self._position(number, len(args)) for number in numbers]
        self.fun = fun.python_function if isinstance(fun, Function) else fun
        self.captures = not isinstance(fun, Function) or fun.capture
        chosen = set(self.numbers)
        args = [self._floating(a, k) if k in chosen else a for k, a in enumerate(args)]
        self.arguments = _signature_of(fun).bind(args, kwargs)

    def _position(self, number: int, count: int) -> int:
        if not -count <= number < count:
            raise TypeError(
                f"argnums={number}: {self.name} was called with {count} positional arguments"
            )
        return number % count

    def _floating(self, argument: Any, number: int) -> Any:
        """An argument to differentiate: Python ints become floats, integer arrays are refused."""
        is_weak = type(argument) is int or (isinstance(argument, Tracer) and argument.weak)
        if is_weak and tensor_type(argument).dtype.kind == "i":
            return _weak_float(argument)
        if is_array_leaf(argument) and tensor_type(argument).dtype.kind not in "fc":
            raise NotDifferentiableError(
                explain(
                    f"grad of {self.name}: argument {number} is {tensor_type(argument)}, "
                    "which has no derivative.",
                    cure="pass floats (x.astype(float)), or choose another argument by argnums.",
                )
            )
        return argument

    def record(self) -> Any:
        recording = current()
        assert recording is not None
        arguments = self.arguments
        traced = trace_function(
            capture(self.fun) if self.captures else self.fun,
            arguments.types,
            arguments.call,
            self.name,
            [f"argument {name}" for name in arguments.names()],
        )
        seed = self._check_value(traced.result_tree, traced.result_types)
        wrt = self._differentiated()
        for k in sorted({*wrt} & {*traced.written}):
            what = f"grad of {self.name}: argument {arguments.names()[k]} is changed in place."
            cure = "change a copy of it: x = x.copy()."
            raise NotDifferentiableError(explain(what, cure=cure))
        graph, connected = joint(run_passes(traced.graph, TIDY), list(wrt), seed)
        node = traced.call_graph(recording, graph, arguments.arrays).results
        count = len(traced.result_types)
        results = [recording.wrap(v) for v in node[:count]]
        value = trees.unflatten(traced.result_tree, results)
        cotangents = iter(node[len(traced.graph.results) :])
        grads = {
            k: recording.wrap(next(cotangents)) if found else self._zeros(recording, k)
            for k, found in zip(wrt, connected, strict=True)
        }
        return value, self._structured(grads)

    def _check_value(self, tree: trees.TreeDef, types: Sequence[LeafType]) -> int:
        if self.has_aux:
            outer = trees.unflatten(tree, list(range(len(types))))
            if not isinstance(outer, tuple) or len(outer) != 2:
                raise StructureError(f"grad of {self.name}: has_aux=True takes a pair (value, aux)")
            wanted = outer[0]
        else:
            wanted = trees.unflatten(tree, list(range(len(types))))
        if not isinstance(wanted, int):
            raise NotDifferentiableError(
                explain(
                    f"grad of {self.name}: it returns a {type(wanted).__name__}, not a scalar.",
                    cure="return one number; has_aux=True lets it return (value, anything).",
                )
            )
        found = types[wanted].type
        if found.shape != () or found.dtype.kind != "f":
            cures = {
                "c": "take the real part, or the absolute value.",
                "f": "sum it, or use wend.vjp with a cotangent of its shape.",
            }
            raise NotDifferentiableError(
                explain(
                    f"grad of {self.name}: it returns {found}, not a real scalar.",
                    cure=cures.get(found.dtype.kind, "return a float."),
                )
            )
        return wanted

    def _differentiated(self) -> list[int]:
        """Positions, among the traced leaves, of the float leaves of the chosen arguments."""
        wrt = []
        for k, (place, type) in enumerate(
            zip(self.arguments.places, self.arguments.types, strict=True)
        ):
            if self._owner(place) in self.numbers and is_differentiable(type.type):
                wrt.append(k)
        return wrt

    def _owner(self, place: int) -> int | None:
        """Which positional argument a leaf belongs to; None for keyword ones."""
        args, _ = trees.unflatten(self.arguments.treedef, list(range(len(self.arguments.leaves))))
        for number, arg in enumerate(args):
            if place in trees.flatten(arg)[0]:
                return number
        return None

    def _zeros(self, recording: Recording, k: int) -> Tracer:
        value = recording.lift(self.arguments.arrays[k])
        return recording.wrap(recording.b.zeros_like(value))

    def _structured(self, grads: dict[int, Tracer]) -> Any:
        by_place = {self.arguments.places[k]: grad for k, grad in grads.items()}
        leaves = [by_place.get(place) for place in range(len(self.arguments.leaves))]
        args, _ = trees.unflatten(self.arguments.treedef, leaves)
        found = tuple(args[number] for number in self.numbers)
        return found[0] if self.is_single else found


def _weak_float(x: Any) -> Any:
    if not isinstance(x, Tracer):
        return float(x)
    value = x.recording.b.cast(x.value, np.float64)  # type: ignore[attr-defined]
    return Tracer(value, x.recording, weak=True)


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and a function that pulls cotangents back to them.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another.
        *primals: pytrees of arrays.
        has_aux: whether `fun` returns more than what is differentiated.

    Returns:
        `(value, pullback)`, or `(value, pullback, aux)`. `pullback(cotangent)` takes a pytree like
        the value, and gives a tuple with a cotangent for each primal: zeros where nothing
        depends on it, None for integers. It may be called many times.

    Example:
        >>> import wend
        >>> value, pullback = wend.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pullback(1.0)
        (np.float64(3.0), np.float64(2.0))
    """
    if runs_eagerly():
        plain = fun.python_function if isinstance(fun, Function) else fun
        return EagerPullback(plain, getattr(fun, "__name__", "fun"), primals).start(has_aux)
    return _Pullback(fun, primals, has_aux).start()


class _Pullback:
    """One run of a forward graph, with what its backward graph needs."""

    def __init__(self, fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> None:
        self.has_aux = has_aux
        # A plain function is traced at each call: what it reads from outside may have changed.
        self.function = fun if isinstance(fun, Function) else Function(fun)
        self.primals = primals
        self.arguments = self.function._bind(primals, {})
        self.concrete: ConcreteFunction = self.function._find(self.arguments)
        types = self.concrete.traced.result_types
        tree = self.concrete.traced.result_tree
        numbered = trees.unflatten(tree, list(range(len(types))))
        if has_aux and (not isinstance(numbered, tuple) or len(numbered) != 2):
            raise StructureError("vjp: has_aux=True takes a function that returns (value, aux)")
        outputs, self.output_tree = trees.flatten(numbered[0] if has_aux else numbered)
        self.outputs = outputs
        self.seeded = tuple(k for k in outputs if is_differentiable(types[k].type))
        self.wrt = tuple(k for k, t in enumerate(self.arguments.types) if is_differentiable(t.type))
        if self.concrete.traced.written:
            raise NotDifferentiableError(
                explain(
                    f"vjp of {self.function.name}: it changes an argument in place.",
                    cure="change a copy of it: x = x.copy().",
                )
            )
        self.forms = self.concrete.vjp(self.wrt, self.seeded)

    def start(self) -> Any:
        traced = self.concrete.traced
        recording = current()
        if recording is not None:
            node = traced.call_graph(recording, self.forms.forward, self.arguments.arrays)
            results: Sequence[Any] = [recording.wrap(value) for value in node.results]
        else:
            execute = self.concrete.executable(self._backend(), self.forms.forward)
            # Copies, for what the caller writes into arguments and value must not reach residuals.
            results = execute(copied(traced.arguments(self.arguments.arrays)))
            traced.assign(results)
        count = len(self.concrete.graph.results)
        self.residuals = list(results[count:])
        own = results if recording else copied(results[:count])
        value = trees.unflatten(traced.result_tree, list(own[: len(traced.result_types)]))
        return (value[0], self, value[1]) if self.has_aux else (value, self)

    def _backend(self) -> str:
        """The function's backend; numpy where records of a loop go from one graph to the other.

        Only the numpy backend hands lists across a call so far.
        """
        types = self.forms.forward.result_types
        if any(isinstance(without_maybe(type), ListType) for type in types):
            return "numpy"
        return self.function.backend or settings().backend

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the value back to the primals."""
        leaves, tree = trees.flatten(cotangent)
        if tree != self.output_tree:
            raise StructureError(
                f"pullback: the cotangent is {trees.described(cotangent)}, the value is "
                f"{trees.described(trees.unflatten(self.output_tree, self.outputs))}"
            )
        seeds = [
            self._seed(as_array(leaf), k)
            for leaf, k in zip(leaves, self.outputs, strict=True)
            if k in self.seeded
        ]
        recording = current()
        if recording is not None:
            if any(isinstance(x, Sequence_) for x in self.residuals):
                raise NotImplementedError(
                    explain(
                        f"the pullback of {self.function.name}, run outside a trace, keeps the "
                        "records of a loop, which cannot enter a trace.",
                        cure="call wend.vjp inside the traced function.",
                    )
                )
            values = [recording.lift(x) for x in (*self.residuals, *seeds)]
            node = recording.b.call(self.forms.backward, values)
            found: Sequence[Any] = [recording.wrap(value) for value in node.results]
        else:
            execute = self.concrete.executable(self._backend(), self.forms.backward)
            given = [*self.residuals, *map(to_run, seeds)]
            found = owned(execute(given), given)
        return self._structured(iter(found))

    def _seed(self, leaf: Any, k: int) -> Any:
        wanted = self.concrete.traced.result_types[k].type
        given = leaf_type(leaf)
        if given.weak or given.type.dtype == wanted.dtype:
            leaf = cast(leaf, wanted.dtype)
        found = tensor_type(leaf)
        if found.dtype != wanted.dtype:
            raise TypeMismatchError(f"pullback: the cotangent is {found}, the value is {wanted}")
        if not accepts(wanted, found):
            raise ShapeError(f"pullback: the cotangent is {found}, the value is {wanted}")
        return leaf

    def _structured(self, found: Any) -> tuple[Any, ...]:
        connected = dict(zip(self.wrt, self.forms.connected, strict=True))
        leaves: list[Any] = [None] * len(self.arguments.leaves)
        for k, place in enumerate(self.arguments.places):
            if k in connected:
                leaves[place] = next(found) if connected[k] else self._zeros(k)
        args, _ = trees.unflatten(self.arguments.treedef, leaves)
        return tuple(args)

    def _zeros(self, k: int) -> Any:
        array = self.arguments.arrays[k]
        recording = current()
        if recording is not None:
            return recording.wrap(recording.b.zeros_like(recording.lift(array)))
        return np.zeros_like(array)[()]
