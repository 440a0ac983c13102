"""`vmap`: a function applied to every element of axes of its arguments, as `jax.vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import ShapeError, StructureError, TypeMismatchError, explain
from wend.capture.convert import capture
from wend.capture.state.paths import tracing_element
from wend.function.function import Function
from wend.function.mapping.axes import axes_of_leaves, axis_within, check_axes, positional_axes
from wend.function.signature.signature import Arguments, Signature, argument_paths
from wend.ir.types import TensorType
from wend.numpy.shaping import moveaxis
from wend.ops.parallel_map import LIMITS
from wend.trace.aliasing.rebuilt_containers import numbered
from wend.trace.control.parallel_map import MappedCall
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.recording import current
from wend.trace.trace_function import trace_function

_LANES = (1, 2, 4, 8, 16, 32, 64)


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    chunk_size: int | None = None,
    *,
    lanes: int | None = None,
    threads: int | None = None,
) -> Function:
    """Return a function that applies `fun` to each element of axes of its arguments.

    Each element is computed as by a call of its own: its loops make as many trips as it needs, and
    its branches run alone. The elements run in no particular order, unless `fun` prints or calls
    Python.

    Args:
        fun: a function of pytrees of arrays, plain, compiled or differentiated.
        in_axes: the axis of each positional argument that counts the elements: an int, or None for
            what every element gets whole. One for all arguments, or a tuple of one for each, which
            may hold containers that the argument begins with. Keyword arguments are mapped over
            axis 0.
        out_axes: where that axis is in the results: an int, None for what is the same for every
            element, or containers of these that the result begins with.
        axis_name: not supported: elements do not communicate.
        axis_size: the number of elements, where no argument tells it.
        spmd_axis_name: not supported: there are no devices to spread the elements over.
        chunk_size: how many elements to compute together at most; None: all. It bounds the memory,
            and changes no result.
        lanes: how many elements a loop that they leave at different trips computes side by side: a
            power of two up to 64, or 1 for one after the other; None: as many as suit the loop.
            Bodies that cannot run so ignore it.
        threads: how many threads compute such loops at most; None: as many as
            `config(threads=…)` allows.

    Returns:
        A function of the same arguments, with one axis more in those that are mapped.

    Raises:
        ShapeError: the mapped axes have different sizes.
        StructureError: `in_axes` or `out_axes` do not fit the arguments or the result.
        ValueError: a number of elements, lanes or threads is none.
        VariableError: `fun` assigns to a variable, or draws from a `Generator`.

    Example:
        >>> import numpy as np, wend
        >>> def halvings(x):
        ...     n = 0
        ...     while x > 1.0:
        ...         x, n = x / 2, n + 1
        ...     return n
        >>> wend.vmap(halvings)(np.array([1.0, 8.0, 100.0]))
        array([0, 3, 7])
    """
    if not callable(fun):
        raise TypeError(f"vmap takes a function, not {fun!r}")
    name = str(getattr(fun, "__name__", "function"))
    _refuse_names(axis_name, spmd_axis_name)
    what = f"vmap of {name}"
    check_axes(in_axes, what, "in_axes")
    check_axes(out_axes, what, "out_axes")
    if not isinstance(in_axes, (int, np.integer, tuple, list, type(None))):
        raise TypeMismatchError(
            explain(
                f"{what}: in_axes is a {type(in_axes).__name__}.",
                cure="give an int, None, or a tuple with one entry for each argument.",
            )
        )
    _check_count("axis_size", axis_size, 0)
    _check_count("chunk_size", chunk_size, 1)
    _check_count("threads", threads, 1)
    if lanes is not None and (isinstance(lanes, bool) or lanes not in _LANES):
        raise ValueError(f"vmap: lanes is a power of two from 1 to {_LANES[-1]}, not {lanes!r}")

    def record(*args: Any, **kwargs: Any) -> Any:
        call = _VmapCall(what, fun, in_axes, axis_size, args, kwargs)
        counts = zip(LIMITS, (lanes, threads, chunk_size), strict=True)
        limits = {name: int(count) for name, count in counts if count is not None}
        return call.results(out_axes, limits)

    functools.update_wrapper(record, fun, updated=())
    del record.__wrapped__  # type: ignore[attr-defined]  # keywords are mapped over axis 0
    mapped = Function(
        record,
        capture_by_value=isinstance(fun, Function) and fun.capture_by_value,
        backend=fun.backend if isinstance(fun, Function) else None,
        name=f"vmap_{name}",
        reduce_retracing=chunk_size is None and _retracing_of(fun),  # chunks have known sizes
    )
    mapped.signature.parameters = _signature_of(fun).parameters  # names for messages
    return mapped


def _retracing_of(fun: Callable[..., Any]) -> bool | str:
    return fun.reduce_retracing if isinstance(fun, Function) else "auto"


def _signature_of(fun: Callable[..., Any]) -> Signature:
    return fun.signature if isinstance(fun, Function) else Signature(fun)


def _refuse_names(axis_name: Any, spmd_axis_name: Any) -> None:
    if axis_name is not None:
        cure = "let fun return what is to be combined, and sum or compare it after the vmap."
        what = f"vmap(axis_name={axis_name!r}): elements do not communicate."
        raise NotImplementedError(explain(what, cure=cure))
    if spmd_axis_name is not None:
        what = f"vmap(spmd_axis_name={spmd_axis_name!r}): there are no devices to spread over."
        raise NotImplementedError(explain(what, cure="leave it out."))


def _check_count(option: str, count: Any, least: int) -> None:
    is_integer = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
    if count is not None and not (is_integer and count >= least):
        raise ValueError(f"vmap: {option} is an int of at least {least}, not {count!r}")


class _VmapCall:
    """One call of a mapped function, in the current trace."""

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        in_axes: Any,
        axis_size: int | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.what, self.fun = what, fun
        self.parameters = _signature_of(fun).parameters
        self.arguments: Arguments = Signature(_any_arguments).bind(args, kwargs)
        self.paths = argument_paths(self.arguments.treedef, self.parameters)
        self.axes = self._axes(in_axes, args, kwargs)
        self.axis_size = axis_size
        self._check_sizes()

    def _axes(
        self, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[int | None]:
        """Return the axis of each leaf of the arguments, counted from the front."""
        names = self.parameters
        by_position = positional_axes(in_axes, self.what, len(args), names)
        axes: list[int | None] = []
        for k, (axis, argument) in enumerate(zip(by_position, args, strict=True)):
            root = f"in_axes[{k}]" if isinstance(in_axes, (tuple, list)) else "in_axes"
            of = f"argument {names[k] if k < len(names) else k}"
            axes += axes_of_leaves(axis, argument, self.what, root, of)
        axes += [0] * (len(self.arguments.leaves) - len(axes))
        return [self._normalized(k, axis) for k, axis in enumerate(axes)]

    def _normalized(self, k: int, axis: int | None) -> int | None:
        if axis is None:
            return None
        leaf, of = self.arguments.leaves[k], f"argument {self.paths[k]}"
        if k not in self.arguments.traced_positions:
            raise TypeMismatchError(
                explain(
                    f"{self.what}: {of} is {type(leaf).__name__}, which has no axes.",
                    cure="give it None in in_axes, which passes it to every element.",
                )
            )
        position = self.arguments.traced_positions.index(k)
        if self.arguments.types[position].variable is not None:
            raise TypeMismatchError(
                explain(
                    f"{self.what}: {of} is a Variable, which cannot be mapped over.",
                    cure="pass its value, or give it None in in_axes.",
                )
            )
        rank = len(self.arguments.types[position].type.dims)
        return axis_within(axis, rank, self.what, "in_axes", of)

    def _check_sizes(self) -> None:
        """Check that all mapped axes have one size, where it is known."""
        sizes: dict[str, Any] = {}
        for k, type in zip(self.arguments.traced_positions, self.arguments.types, strict=True):
            axis = self.axes[k]
            if axis is not None:
                sizes[f"axis {axis} of {self.paths[k]}"] = type.type.dims[axis]
        if self.axis_size is not None:
            sizes["axis_size"] = self.axis_size
        if not sizes:
            raise StructureError(
                explain(
                    f"{self.what}: no argument is mapped, so the number of elements is not known.",
                    cure="give an axis for one of them in in_axes, or axis_size.",
                )
            )
        known = {size for size in sizes.values() if isinstance(size, int)}
        if len(known) > 1:
            raise ShapeError(
                explain(
                    f"{self.what}: the mapped axes have different sizes.",
                    *(f"{name}: {size}" for name, size in sizes.items()),
                    cure="pass what every element shares with None in in_axes.",
                )
            )

    def results(self, out_axes: Any, limits: Mapping[str, int]) -> Any:
        """Record the call, and return its result."""
        recording = current()
        assert recording is not None
        axes = [self.axes[k] for k in self.arguments.traced_positions]
        types = [
            type if axis is None else _element_type(type, axis)
            for type, axis in zip(self.arguments.types, axes, strict=True)
        ]
        fun = self.fun if isinstance(self.fun, Function) else capture(self.fun)
        names = [f"argument {self.paths[k]}" for k in self.arguments.traced_positions]
        name = self.what.removeprefix("vmap of ")
        with tracing_element():
            traced = trace_function(fun, types, self.arguments.call, name, names)
        recording.notes.update(dict.fromkeys(traced.notes))
        leaves = [
            moveaxis(leaf, axis, 0) if axis else leaf
            for leaf, axis in zip(self.arguments.arrays, axes, strict=True)
        ]
        is_mapped = [axis is not None for axis in axes]
        call = MappedCall(self.what, traced, leaves, is_mapped, self.axis_size, limits)
        numbers = numbered(traced.result_tree)
        parts = trees.flatten_deep(numbers, with_objects=True)[0]
        after = [  # constants in the result have no axes
            axis
            for part, axis in zip(
                parts,
                axes_of_leaves(out_axes, numbers, self.what, "out_axes", "the result"),
                strict=True,
            )
            if type(part) is int and part < len(traced.result_types)
        ]
        paths = trees.paths(traced.result_tree, "result")
        after = [
            None
            if axis is None
            else axis_within(axis, len(tensor.type.dims) + 1, self.what, "out_axes", path)
            for axis, tensor, path in zip(after, traced.result_types, paths, strict=True)
        ]
        shared = [k for k, axis in enumerate(after) if axis is None]
        for k in shared:
            if call.depends_on_element(k):
                raise StructureError(
                    explain(
                        f"{self.what}: {paths[k]} differs from element to element, but its axis in "
                        "out_axes is None.",
                        cure="give an int for it: the position of the new axis.",
                    )
                )
        stacked = call.record(shared)
        moved = [
            moveaxis(x, 0, axis) if axis else x for x, axis in zip(stacked, after, strict=True)
        ]
        return trees.unflatten(traced.result_tree, moved)


def _element_type(type: LeafType, axis: int) -> LeafType:
    """Return the type of an element along an axis, which is a scalar of NumPy where it has none."""
    dims = type.type.dims
    return LeafType(TensorType(type.type.dtype, (*dims[:axis], *dims[axis + 1 :])))


def _any_arguments(*args: Any, **kwargs: Any) -> None:
    """Stand for a function whose arguments stay where the caller put them."""
