"""Types of loop carries, which are unified over the trips of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, StructureError, explain
from wend.eager.dispatch import apply
from wend.eager.promotion import as_array, cast, result_dtype
from wend.ir.builder import new_symbol
from wend.ir.dtypes import short
from wend.ir.graph import Value
from wend.ir.types import Dim, Symbol, TensorType, accepts, symbols
from wend.numpy import elementwise as ew
from wend.ops import shaping
from wend.trace.recording.arguments import (
    LeafType,
    common_value,
    leaf_type,
    leaf_type_with_flags,
    promotion_example,
)
from wend.trace.recording.carry_type_cache import CarryTypeCache
from wend.trace.recording.checks import check_leaves
from wend.trace.recording.recording import Recording, current


class LoopTypes:
    """The carry of a loop: its structure, and the types that its leaves are unified to.

    Args:
        where: the loop and its location, for messages.
        init: the carry to start from.
        paths: the names of its leaves, if a counter is carried with it.
        is_resizable: whether `shape_invariants` can make its sizes variable.
    """

    def __init__(
        self,
        where: str,
        init: Any,
        paths: Sequence[str] | None = None,
        *,
        is_resizable: bool = False,
    ) -> None:
        self.is_resizable = is_resizable
        self.where, self.init = where, init
        self.leaves, self.treedef = trees.flatten_deep(init, keeps_static=True, with_objects=True)
        self.paths = paths or trees.paths(self.treedef, "carry")
        self.has_counter = paths is not None
        self._check_kinds(self.leaves)
        recording = current()
        self.carry_types = (
            CarryTypeCache() if recording is None else recording.carry_types.loop(where)
        )
        self.types = self.carry_types.start([leaf_type_with_flags(leaf) for leaf in self.leaves])
        self.free_dims: set[Symbol] = set()  # sizes that shape_invariants makes variable

    def relax(self, invariants: Any) -> None:
        """Put symbols for the sizes that `shape_invariants` makes variable."""
        shapes = _invariant_shapes(self.where, self.treedef, invariants)
        for k, (shape, path) in enumerate(zip(shapes, self.paths, strict=True)):
            if shape is None:
                continue
            entry_type = self.types[k].type
            dims = tuple(new_symbol() if dim is None else dim for dim in shape)
            if not accepts(entry_type.with_shape(dims), entry_type):
                raise CarryError(f"{self.where}: {path} enters as {entry_type}, not as {shape}")
            self.free_dims.update(symbols(entry_type.with_shape(dims)))
            self.types[k] = replace(self.types[k], type=entry_type.with_shape(dims))

    def params(self, region: Recording) -> Any:
        """Add params for the carry to a region, and return them in its structure."""
        region.carry_types = self.carry_types.region(region.b.name)
        params = [
            region.param_of(t, name=path) for t, path in zip(self.types, self.paths, strict=True)
        ]
        return trees.unflatten(self.treedef, params)

    def leaves_of(self, result: Any) -> list[Any]:
        """Return the leaves of what a body returned; it must have the carry's structure."""
        leaves, treedef = trees.flatten_deep(result, keeps_static=True, with_objects=True)
        if not trees.is_same_structure(treedef, self.treedef):
            expected, actual = self.init, result
            if self.has_counter:
                expected, actual = expected[1], actual[1]
            raise StructureError(
                explain(
                    f"{self.where}: the body returns a carry of another structure.",
                    trees.first_difference(expected, actual, "carry"),
                    f"it enters as {trees.described(expected)}, "
                    f"the body returns {trees.described(actual)}",
                    cure="return exactly what the loop was given, leaf for leaf.",
                )
            )
        self._check_kinds(leaves)
        return [as_array(leaf) for leaf in leaves]

    def _check_kinds(self, leaves: Sequence[Any]) -> None:
        check_leaves(self.where, leaves, self.paths)

    def unify(self, results: Sequence[Any], body: Recording | None = None) -> bool:
        """Unify the carry's types with those of a trip; return whether any changed.

        Weak leaves take the strong dtypes they meet (D5).

        Args:
            results: what the body returned.
            body: where sizes that may be equal are compared at run time; None: nowhere.

        Raises:
            CarryError: a leaf comes back with another dtype or shape.
        """
        unified = []
        for carry_type, result, path in zip(self.types, results, self.paths, strict=True):
            result_type = leaf_type_with_flags(result)
            dtype = (
                result_dtype(promotion_example(carry_type), promotion_example(result_type))
                if carry_type.weak
                else carry_type.type.dtype
            )
            new = LeafType(
                carry_type.type.with_dtype(dtype),
                carry_type.weak and result_type.weak,
                zero_dim=common_value((carry_type.zero_dim, result_type.zero_dim)),
                writeable=common_value((carry_type.writeable, result_type.writeable)),
            )
            self._check_leaf(carry_type, new, result_type, path, body)
            unified.append(new)
        changed = unified != self.types
        self.types = unified
        self.carry_types.record(unified)
        return changed

    def _check_leaf(
        self,
        old: LeafType,
        new: LeafType,
        result: LeafType,
        path: str,
        body: Recording | None,
    ) -> None:
        if result_dtype(promotion_example(new), promotion_example(result)) != new.type.dtype or (
            not result.weak and result.type.dtype != new.type.dtype
        ):
            raise CarryError(self._changed_dtype(path, old.type, result.type))
        result_type = result.type.with_dtype(new.type.dtype)
        if not self._is_accepted(new.type, result_type, body):
            raise CarryError(self._changed_shape(path, str(old.type), str(result.type)))

    def _is_accepted(
        self, carry_type: TensorType, result_type: TensorType, body: Recording | None
    ) -> bool:
        return self._accepts(carry_type, self._with_entry_sizes(carry_type, result_type, body))

    def _changed_dtype(self, path: str, old: TensorType, new: TensorType) -> str:
        what = f"{self.where}: {path} enters as {old}, the body returns {new}."
        cure = (
            f"start it as {new.dtype}, or cast it back in the body with "
            f".astype({old.dtype.name!r})."
        )
        return explain(what, cure=cure)

    def _changed_shape(self, path: str, old: str, new: str) -> str:
        what = f"{self.where}: {path} enters as {old}, the body returns {new}."
        cure = "return the shape it enters with"
        if self.is_resizable:
            cure += ", or let sizes change with shape_invariants (None for each that does)"
        return explain(what, cure=f"{cure}.")

    def _accepts(self, carry_type: TensorType, result_type: TensorType) -> bool:
        # A size that may not vary must be the same dimension after the trip, symbolic or not.
        fixed: dict[Symbol, Dim] = {s: s for s in symbols(carry_type) if s not in self.free_dims}
        return accepts(carry_type, result_type, fixed)

    def _with_entry_sizes(
        self, carry_type: TensorType, result_type: TensorType, body: Recording | None
    ) -> TensorType:
        """Return the result's type, with the carry's sizes wherever the two may be equal."""
        if body is None or carry_type.shape is None or result_type.shape is None:
            return result_type
        if len(carry_type.shape) != len(result_type.shape):
            return result_type
        pairs = zip(carry_type.shape, result_type.shape, strict=True)
        dims = (a if a not in self.free_dims and body.may_be_equal(a, b) else b for a, b in pairs)
        return result_type.with_shape(tuple(dims))

    def next_carry(self, results: Sequence[Any], body: Recording) -> list[Value]:
        """Return what the body returned, coerced to the unified types."""
        rows = zip(results, self.types, self.leaves, self.paths, strict=True)
        return [body.lift(self._coerce(*row, body)) for row in rows]

    def _coerce(self, result: Any, type: LeafType, leaf: Any, path: str, body: Recording) -> Any:
        """Return a result in the carry's dtype, with a run-time check of its shape where needed."""
        result = cast(result, type.type.dtype)
        carry_type, result_type = type.type, leaf_type(result).type
        if self._accepts(carry_type, result_type) or carry_type.shape is None:
            return result
        assert body.parent is not None
        with body.parent.active():
            entry_shape = apply(shaping.shape_of, as_array(leaf))
        if any(dim in self.free_dims for dim in carry_type.shape):
            is_free = np.array([dim in self.free_dims for dim in carry_type.shape])
            with body.parent.active():
                entry_shape = ew.where(is_free, -1, entry_shape)
        name = short(carry_type.dtype)
        message = self._changed_shape(path, f"{name}[{{shape}}]", f"{name}[{{its}}]")
        shape = self._with_entry_sizes(carry_type, result_type, body).shape
        with body.active():
            return apply(
                shaping.keep_shape, result, entry_shape, shape=shape, message=message, error="carry"
            )

    def start(self, outer: Recording) -> list[Value]:
        """Return the carry on entry, coerced to the unified types."""
        pairs = zip(self.leaves, self.types, strict=True)
        return [outer.lift(cast(leaf, type.type.dtype)) for leaf, type in pairs]

    def rebuild(self, outer: Recording, values: Sequence[Value]) -> Any:
        """Return the carry after the loop."""
        pairs = zip(values, self.types, strict=True)
        return trees.unflatten(self.treedef, [outer.wrap_as(v, t) for v, t in pairs])


def _invariant_shapes(where: str, treedef: trees.TreeDef, invariants: Any) -> list[Any]:
    try:
        shapes = trees.flatten_up_to(treedef, invariants)
    except ValueError as error:
        raise StructureError(f"{where}: shape_invariants must be like init: {error}") from error
    return [getattr(shape, "shape", shape) for shape in shapes]
