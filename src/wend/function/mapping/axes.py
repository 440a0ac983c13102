"""Axes to map over, as pytrees that are prefixes of the arguments or of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import StructureError, TypeMismatchError, explain
from wend.function.signature.prefixes import spread


def axes_of_leaves(axes: Any, tree: Any, what: str, root: str, of: str) -> list[int | None]:
    """Return the axis for each leaf of a pytree.

    Args:
        axes: an int or None for all of it, or containers of these that `tree` begins with.
        tree: the pytree.
        what: the transform, for messages.
        root: the name of `axes` for messages.
        of: that of `tree`.

    Raises:
        StructureError: `tree` does not begin with the containers of `axes`.
        TypeMismatchError: a leaf of `axes` is neither an int nor None.
    """

    def is_axis(entry: Any, path: str) -> bool:
        if isinstance(entry, bool):
            raise _no_axis(entry, what, path)
        is_end = entry is None or isinstance(entry, (int, np.integer))
        if not is_end and trees.children_of(entry) is None:
            raise _no_axis(entry, what, path)
        return is_end

    entries = spread(axes, tree, what, root, of, "axis", is_axis)
    return [None if axis is None else int(axis) for axis in entries]


def check_axes(axes: Any, what: str, root: str) -> None:
    """Check that a pytree of axes holds only ints and None.

    Raises:
        TypeMismatchError: it holds something else.
    """
    leaves, treedef = trees.flatten_deep(axes)
    for leaf, path in zip(leaves, trees.paths(treedef, root), strict=True):
        if isinstance(leaf, bool) or not isinstance(leaf, (int, np.integer)):
            raise _no_axis(leaf, what, path)


def axis_within(axis: int, rank: int, what: str, option: str, of: str) -> int:
    """Return an axis counted from the front.

    Raises:
        TypeMismatchError: there is no such axis.
    """
    if not -rank <= axis < rank:
        has = "1 axis" if rank == 1 else f"{rank} axes" if rank else "no axes"
        cure = f"choose one of {-rank} to {rank - 1}."
        if not rank:
            cure = f"put None for it in {option}, which passes it to every element."
        problem = f"{what}: {option} says axis {axis} for {of}, which has {has}."
        raise TypeMismatchError(explain(problem, cure=cure))
    return axis % rank


def positional_axes(in_axes: Any, what: str, count: int, names: Sequence[str]) -> tuple[Any, ...]:
    """Return the axes of each positional argument.

    Raises:
        StructureError: `in_axes` is a tuple or list of another length.
    """
    if not isinstance(in_axes, (tuple, list)):
        return (in_axes,) * count
    if len(in_axes) != count:
        arguments = f"{count} positional argument{'' if count == 1 else 's'}"
        listed = f" ({', '.join(names[:count])})" if len(names) >= count > 0 else ""
        raise StructureError(
            explain(
                f"{what}: in_axes has {len(in_axes)} entries, but there are {arguments}{listed}.",
                cure="give one entry for each positional argument; keywords are mapped over "
                "axis 0.",
            )
        )
    return tuple(in_axes)


def _no_axis(axis: Any, what: str, root: str) -> TypeMismatchError:
    return TypeMismatchError(
        explain(f"{what}: {root} is {axis!r}, which is no axis.", cure="give an int, or None.")
    )
