"""Random draws of NumPy and of `random` in captured code: the run makes them, in program order.

A draw is a call of the user's generator, so its numbers are those that plain Python gets from the
same stream. It is constant to derivatives.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.draws import python_draws
from wend.capture.builtins.draws.numpy_draws import address_of, direct_draw, lock_of
from wend.capture.builtins.draws.sequence_draws import OF_SEQUENCES, shuffle, takes
from wend.capture.builtins.refused_calls import DRAW, Call, refusing
from wend.capture.state.made_objects import companion_of, is_made, note_made
from wend.capture.state.one_shot_iterators import current_region
from wend.eager.dispatch import Staged, any_staged
from wend.eager.promotion import common_shape, tensor_type
from wend.ir.dtypes import FLOAT64, INT64, is_supported
from wend.ir.types import Shape, TensorType
from wend.numpy import creating
from wend.numpy.operands import staged
from wend.numpy.outputs import put_into
from wend.numpy.shaping import dim_of_size
from wend.ops.effects import NumberDraw
from wend.trace.state import effects

# The parameters of distributions of single numbers
_PARAMETERS = {
    **dict.fromkeys(("random", "random_sample", "standard_cauchy", "standard_normal"), ""),
    **dict.fromkeys(("standard_exponential", "tomaxint"), ""),
    **dict.fromkeys(("gumbel", "laplace", "logistic", "normal"), "loc scale"),
    **dict.fromkeys(("exponential", "rayleigh"), "scale"),
    **dict.fromkeys(("pareto", "power", "weibull", "zipf"), "a"),
    **dict.fromkeys(("chisquare", "standard_t"), "df"),
    **dict.fromkeys(("geometric", "logseries"), "p"),
    **dict.fromkeys(("binomial", "negative_binomial"), "n p"),
    **dict.fromkeys(("integers", "randint", "random_integers", "uniform"), "low high"),
    "beta": "a b",
    "f": "dfnum dfden",
    "gamma": "shape scale",
    "hypergeometric": "ngood nbad nsample",
    "lognormal": "mean sigma",
    "noncentral_chisquare": "df nonc",
    "noncentral_f": "dfnum dfden nonc",
    "poisson": "lam",
    "standard_gamma": "shape",
    "triangular": "left mode right",
    "vonmises": "mu kappa",
    "wald": "mean scale",
}
# What follows their `size`
_OPTIONS = {
    "integers": "dtype endpoint",
    "randint": "dtype",
    **dict.fromkeys(("random", "standard_gamma", "standard_normal"), "dtype out"),
    "standard_exponential": "dtype method out",
}
# Distributions of vectors: the parameters, of which one has the length of a vector, and its name
_VECTORS = {
    "dirichlet": ("alpha size", "alpha"),
    "multinomial": ("n pvals size", "pvals"),
    "multivariate_hypergeometric": ("colors nsample size method", "colors"),
    "multivariate_normal": ("mean cov size check_valid tol method", "mean"),
}
_OF_ARRAYS = {
    "choice": "a size replace p axis shuffle",
    "permutation": "x axis",
    "permuted": "x axis out",
    "shuffle": "x axis",
}
# Parameters for which a distribution is defined; those that are not here are 0.5
_EXAMPLES = {
    **dict.fromkeys(("n", "ngood", "nbad", "nsample"), 1),
    "a": 2.0,
    "left": 0.0,
    "right": 1.0,
    "low": 0,
    "high": 1,
}
# Methods of `random.Random` that give a number, and its dtype
_OF_PYTHON = {
    **dict.fromkeys(("random", "uniform", "triangular", "betavariate", "expovariate"), FLOAT64),
    **dict.fromkeys(("gammavariate", "gauss", "lognormvariate", "normalvariate"), FLOAT64),
    **dict.fromkeys(("vonmisesvariate", "paretovariate", "weibullvariate"), FLOAT64),
    **dict.fromkeys(("randint", "randrange"), INT64),
}
_ALIASES = {"ranf": "random_sample", "sample": "random_sample"}


_ADDRESS = TensorType(np.dtype(np.uint64), ())
MAKERS = frozenset({"default_rng", "RandomState", "Random"})


class _RunGenerator:
    """A generator that captured code makes, as each run makes it.

    What loops and branches draw, and all that comes after, is drawn in the run; what comes before
    is the same in every run, so it is drawn while the function is traced.

    Args:
        make: makes the generator at the start of a run; None before a draw is left to the run.

    Attributes:
        address: that of its bit generator, which the run knows.
    """

    def __init__(self, make: Callable[..., Any] | None) -> None:
        self.make = make
        self.address: Any = None
        self._local = threading.local()  # threads may run one trace at a time

    def start(self, *seeds: Any) -> np.uint64:
        """Make the generator in the run; return the address of its bit generator."""
        if self.make is None:
            return np.uint64(0)
        self._local.generator = self.make(*seeds)
        return address_of(self._local.generator)

    def get(self) -> Any:
        """Return the generator in the run."""
        return self._local.generator

    def saved(self, generator: Any) -> Callable[[], None]:
        """Return what restores the generator, and whether the run draws, as they are now."""
        make = self.make
        if make is not None and not isinstance(make, partial):  # the trace draws nothing of it
            return lambda: None
        is_random_state = hasattr(generator, "get_state")
        holder = generator if is_random_state else getattr(generator, "bit_generator", generator)
        state = _state_of(holder)

        def restore() -> None:
            self.make = make
            if hasattr(holder, "setstate"):
                holder.setstate(state)
            elif is_random_state:
                holder.set_state(state)
            else:
                holder.state = state

        return restore


def _state_of(holder: Any) -> Any:
    """Return the state of a `Random`, a `RandomState` or a bit generator."""
    if hasattr(holder, "getstate"):
        return holder.getstate()
    return holder.get_state() if hasattr(holder, "get_state") else holder.state


def make_now(make: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return a generator with a seed that is the same in every run."""
    generator, companion = make(*args, **kwargs), _RunGenerator(None)
    companion.address = effects.call_in_run(make.__name__, companion.start, result=_ADDRESS)
    return note_made(generator, companion)


def make_in_run(make: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what stands for a generator whose seed only the run knows."""
    leaves, tree = trees.flatten((tuple(args), dict(kwargs)))

    def remake(*values: Any) -> Any:
        args, kwargs = trees.unflatten(tree, values)
        return make(*args, **kwargs)

    companion = _RunGenerator(remake)
    errors = ValueError, TypeError
    companion.address = effects.call_in_run(
        make.__name__, companion.start, *leaves, result=_ADDRESS, errors=errors
    )
    return note_made(make(0), companion)


def draws_now(generator: Any) -> bool:
    """Return whether a generator may be advanced while the function is traced."""
    companion = companion_of(generator)
    return companion is not None and companion.make is None and current_region() is None


def of_method(generator: Any, name: str) -> Call | None:
    """Return what captured code calls in place of a method of a random generator, or None."""
    companion = companion_of(generator)
    shown = f"{type(generator).__name__}.{name}"
    if companion is None:
        if is_made(generator):
            return refusing(shown, DRAW)
    elif draws_now(generator):
        return partial(_draw_now, generator, name)
    elif companion.make is None:
        companion.make = partial(copy.deepcopy, copy.deepcopy(generator))

    def method(*args: Any, **kwargs: Any) -> Any:
        own = generator if companion is None else companion.get()
        return getattr(own, name)(*args, **kwargs)

    if "random" in sys.modules and isinstance(generator, sys.modules["random"].Random):
        if name == "seed":
            return lambda *args: run_draw(shown, method, args, {}, None)
        if name in _OF_PYTHON:
            return partial(_number, generator, name, method)
        return _of_sequence(generator, name, method)
    numpy_random = sys.modules["numpy.random"]
    if not isinstance(generator, (numpy_random.Generator, numpy_random.RandomState)):
        return refusing(shown, DRAW)
    if name == "seed":
        return lambda *args, **kwargs: run_draw(shown, method, args, kwargs, None)
    draw = _Draw(generator, name, method)
    of_name: dict[str, Call] = {
        **dict.fromkeys(("rand", "randn"), draw.of_dims),
        **dict.fromkeys(("permutation", "permuted"), draw.permutation),
        **dict.fromkeys(_VECTORS, draw.vectors),
        "shuffle": draw.shuffle,
        "choice": draw.choice,
    }
    if name in _PARAMETERS:
        return draw.numbers
    return of_name.get(name) or refusing(shown, DRAW)


def _draw_now(generator: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Draw while the function is traced, unless the run alone knows the parameters."""
    if not any_staged(trees.flatten((args, kwargs))[0]):
        return getattr(generator, name)(*args, **kwargs)
    companion_of(generator).make = partial(copy.deepcopy, copy.deepcopy(generator))
    method = of_method(generator, name)
    assert method is not None
    return method(*args, **kwargs)


def _of_sequence(generator: Any, name: str, method: Call) -> Call:
    """Return a draw from a sequence, by `random`."""
    shown = f"{type(generator).__name__}.{name}"

    def run(*args: Any, **kwargs: Any) -> Any:
        if name not in OF_SEQUENCES or not takes(name, args):
            return refusing(shown, DRAW)(*args, **kwargs)
        return OF_SEQUENCES[name](method, partial(_positions, shown, generator), *args, **kwargs)

    return run


def _positions(
    shown: str,
    generator: Any,
    draw: Call,
    inputs: Sequence[Any],
    sizes: Sequence[Any],
    errors: Any,
    count: Any = None,
) -> Any:
    """Draw positions in a sequence; one of `count`, if that is given."""

    def run(*inputs: Any) -> Any:
        return np.asarray(draw(*inputs), INT64)

    result = TensorType(INT64, shape_of_sizes(sizes))
    is_direct = isinstance(count, int) and count > 0 and python_draws.is_known(generator)
    direct = _located(generator, python_draws.below(count)) if is_direct else None
    return run_draw(shown, run, inputs, {}, result, errors=errors, direct=direct)


def of_function(name: str) -> Call | None:
    """Return what captured code calls in place of a function of `numpy.random`, or None."""
    numpy_random: Any = sys.modules["numpy.random"]
    if name == "seed":
        return lambda *args, **kwargs: run_draw(
            f"numpy.random.{name}", numpy_random.seed, args, kwargs, None
        )
    if name not in _ALIASES:
        return None
    return of_method(numpy_random.random_sample.__self__, _ALIASES[name])


def run_draw(
    shown: str,
    method: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: TensorType | None,
    *,
    errors: tuple[type[Exception], ...] = (),
    direct: NumberDraw | None = None,
) -> Any:
    """Call a method of a generator in the run."""
    leaves, tree = trees.flatten((tuple(args), dict(kwargs)))
    leaves = [staged(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]

    def draw(*values: Any) -> Any:
        args, kwargs = trees.unflatten(tree, values)
        return method(*args, **kwargs)

    if not any_staged(leaves):
        draw, leaves = partial(method, *args, **kwargs), []
    remark = None if result is None else f"draws by {shown}, constant to derivatives,"
    return effects.call_in_run(
        shown, draw, *leaves, result=result, errors=errors, remark=remark, draw=direct
    )


def _number(generator: Any, name: str, method: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Draw a number by `random`."""
    direct = _located(generator, python_draws.direct_draw(generator, name, args, kwargs))
    errors = (ValueError,) if any_staged((*args, *kwargs.values())) else ()
    shown, result = f"{type(generator).__name__}.{name}", TensorType(_OF_PYTHON[name], ())
    number = run_draw(shown, method, args, kwargs, result, errors=errors, direct=direct)
    return number.as_weak()


def _located(generator: Any, draw: NumberDraw | None) -> NumberDraw | None:
    """Return a draw with the address of the generator's state, and its lock."""
    if draw is None:
        return None
    companion = companion_of(generator)
    if companion is None:
        draw.lock = lock_of(generator)
        draw.operands.append(staged(np.array(address_of(generator))))
    else:
        draw.operands.append(companion.address)
    return draw


def sizes_of(size: Any) -> tuple[Any, ...]:
    """Return the sizes that `size=` has."""
    if isinstance(size, (tuple, list, np.ndarray)):
        return tuple(size)
    return (size,)


def shape_of_sizes(sizes: Sequence[Any]) -> Shape:
    """Return the shape of sizes, of which traced ones are not known.

    Raises:
        ValueError: one is negative.
    """
    shape = tuple(map(dim_of_size, sizes))
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise ValueError("negative dimensions are not allowed")
    return shape


def shape_of(x: Any) -> Shape | None:
    """Return the shape of a parameter."""
    return tensor_type(creating.asarray(x) if isinstance(x, (list, tuple)) else x).shape


class _Draw:
    """A method of a generator of NumPy's."""

    def __init__(self, generator: Any, name: str, method: Callable[..., Any]) -> None:
        self._generator, self._name, self._method = generator, name, method
        self._kind = kind = type(generator)
        self._shown = f"{kind.__name__}.{name}"

    def _bind(self, parameters: str, args: Any, kwargs: Any) -> dict[str, Any]:
        """Return the arguments by name."""
        names = parameters.split()
        unknown = kwargs.keys() - names
        if unknown or len(args) > len(names):
            what = f"an unexpected argument {unknown.pop()!r}" if unknown else "too many arguments"
            raise TypeError(f"{self._name}() got {what}")
        return {**dict(zip(names, args, strict=False)), **kwargs}

    def _fresh(self) -> Any:
        """Return the method of another generator of this kind, whose numbers do not matter."""
        numpy_random: Any = sys.modules["numpy.random"]
        is_old = issubclass(self._kind, numpy_random.RandomState)
        other = numpy_random.RandomState(0) if is_old else numpy_random.default_rng(0)
        return getattr(other, self._name)

    def _check_items(self, items: np.ndarray) -> None:
        if not is_supported(items.dtype):
            raise UnsupportedError(
                explain(
                    f"{self._shown}{at(user_source())} draws from {items!r:.60}, which are no "
                    "numbers.",
                    cure="draw from numbers that stand for them: rng.choice(len(items)).",
                )
            )

    def _emit(
        self,
        args: Any,
        kwargs: Any,
        bound: Mapping[str, Any],
        result: TensorType,
        *,
        weak: bool = False,
    ) -> Any:
        errors = self._errors(bound)
        direct = self._direct(bound, result, errors)
        array = run_draw(
            self._shown, self._method, args, kwargs, result, errors=errors, direct=direct
        )
        return array.as_weak() if weak else array

    def _direct(
        self, bound: Mapping[str, Any], result: TensorType, errors: Sequence[type[Exception]]
    ) -> NumberDraw | None:
        """Return how native code draws the same, if it can."""
        is_valid = not errors or any_staged(trees.flatten(bound)[0])
        draw = direct_draw(self._generator, self._name, bound, result, is_valid=is_valid)
        return _located(self._generator, draw)

    def _errors(self, bound: Mapping[str, Any]) -> tuple[type[Exception], ...]:
        """Return the errors that a draw may raise in the run."""
        leaves, _ = trees.flatten(bound)
        if any_staged(leaves):
            return (ValueError,)
        once = {name: x for name, x in bound.items() if name != "size" or self._name == "choice"}
        try:
            self._fresh()(**once)
        except (ValueError, TypeError, OverflowError) as error:
            return (type(error),)
        return ()

    def of_dims(self, *dims: Any) -> Any:
        """Draw an array of some sizes."""
        shape = shape_of_sizes(dims)
        result = TensorType(np.dtype(float), shape)
        direct = self._direct({}, result, ())
        array = run_draw(self._shown, self._method, dims, {}, result, direct=direct)
        return array if shape else array.as_weak()

    def numbers(self, /, *args: Any, **kwargs: Any) -> Any:
        """Draw independent numbers of a distribution."""
        names = _PARAMETERS[self._name].split()
        bound = self._bind(f"{' '.join(names)} size {_OPTIONS.get(self._name, '')}", args, kwargs)
        out = bound.pop("out", None)
        if out is not None:
            bound |= {"size": tuple(out.shape), "dtype": out.dtype}
            return put_into(out, self.numbers(**bound))
        parameters = [bound[name] for name in names if bound.get(name) is not None]
        examples = {name: _EXAMPLES.get(name, 0.5) for name in names if name in bound}
        if bound.get("high") is None and "high" in names:
            examples = {"low": 1}  # it is the bound
        options = {name: bound[name] for name in ("dtype", "endpoint", "method") if name in bound}
        size = bound.get("size")
        if size is None:
            shape = common_shape([shape_of(x) for x in parameters]) if parameters else ()
        else:
            shape = shape_of_sizes(sizes_of(size))
        if size is None and shape == ():
            example = self._fresh()(**examples, **options)
        else:
            example = self._fresh()(**examples, size=1, **options)
        is_weak = type(example) in (bool, int, float)
        result = TensorType(np.asarray(example).dtype, shape)
        return self._emit(args, kwargs, bound, result, weak=is_weak)

    def vectors(self, /, *args: Any, **kwargs: Any) -> Any:
        """Draw vectors."""
        names, vector = _VECTORS[self._name]
        bound = self._bind(names, args, kwargs)
        shape = shape_of(bound[vector])
        dtype = np.dtype(float) if self._name in ("dirichlet", "multivariate_normal") else INT64
        if shape is None or not shape:
            return self._fresh()(*args, **kwargs)  # NumPy's error
        if bound.get("size") is not None:
            outer: Shape | None = shape_of_sizes(sizes_of(bound["size"]))
        elif self._name == "multinomial":
            outer = common_shape([shape_of(bound["n"]), shape[:-1]])
        else:
            outer = ()
        assert outer is not None
        return self._emit(args, kwargs, bound, TensorType(dtype, (*outer, shape[-1])))

    def choice(self, /, *args: Any, **kwargs: Any) -> Any:
        """Draw elements of an array, or integers below a number."""
        bound = self._bind(_OF_ARRAYS["choice"], args, kwargs)
        items, size = bound["a"], bound.get("size")
        if isinstance(items, (list, tuple)) and not any_staged(items):
            self._check_items(np.asarray(items))
        outer = () if size is None else shape_of_sizes(sizes_of(size))
        shape = shape_of(items)
        count = items if shape == () else shape[0] if shape and len(shape) == 1 else None
        if bound.keys() <= {"a", "size"} and type(count) is int and count > 0:
            name = "randint" if hasattr(self._generator, "randint") else "integers"
            draw = of_method(self._generator, name)
            assert draw is not None
            positions = draw(0, count, size)
            return positions if shape == () else staged(creating.asarray(items))[positions]
        if not shape:
            is_weak = type(self._fresh()(1)) is int and size is None
            return self._emit(args, kwargs, bound, TensorType(INT64, outer), weak=is_weak)
        axis = range(len(shape))[bound.get("axis", 0)]
        items = creating.asarray(items)
        result = TensorType(tensor_type(items).dtype, (*shape[:axis], *outer, *shape[axis + 1 :]))
        return self._emit(args, kwargs, bound, result)

    def permutation(self, /, *args: Any, **kwargs: Any) -> Any:
        """Draw a permutation of an array, or of the integers below a number."""
        bound = self._bind(_OF_ARRAYS[self._name], args, kwargs)
        out = bound.pop("out", None)
        if out is not None:
            return put_into(out, self.permutation(**bound))
        x = bound["x"]
        if shape_of(x) == ():
            count = x if isinstance(x, Staged) else max(x, 0)
            return self._emit(args, kwargs, bound, TensorType(INT64, shape_of_sizes((count,))))
        x = creating.asarray(x)
        return self._emit(args, kwargs, bound, tensor_type(x))

    def shuffle(self, x: Any, **kwargs: Any) -> None:
        """Permute the rows of an array, or the items of a list, in place."""
        if takes("shuffle", (x,)):
            shuffle(self._method, partial(_positions, self._shown, self._generator), x)
            return
        if type(x) is np.ndarray or not isinstance(x, (np.ndarray, Staged)):
            raise UnsupportedError(
                explain(
                    f"{self._shown}{at(user_source())} changes a {type(x).__name__} in the "
                    "run, which is not recorded.",
                    cure="take the result of a permutation: x = rng.permutation(x).",
                )
            )

        def shuffled(x: Any, **kwargs: Any) -> Any:
            x = np.array(x)
            self._method(x, **kwargs)
            return x

        array: Any = x
        array[...] = run_draw(self._shown, shuffled, (x,), kwargs, tensor_type(x))
