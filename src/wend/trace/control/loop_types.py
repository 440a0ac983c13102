"""The types of what a loop carries."""

from __future__ import annotations

from collections.abc import Sequence
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
from wend.trace.recording.arguments import LeafType, leaf_type
from wend.trace.recording.carry_types import CarryTypeCache
from wend.trace.recording.checks import check_leaves
from wend.trace.recording.recording import Recording, current


class LoopTypes:
    """The carry of a loop: its structure, and the types its leaves settle on.

    Args:
        where: what loop and where, for messages.
        init: the carry to start from.
        paths: names of its leaves, where a counter goes with it.
        is_resizable: whether `shape_invariants` can let its sizes change.
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
        self.leaves, self.treedef = trees.flatten(init)
        self.paths = paths or trees.paths(self.treedef, "carry")
        self.has_counter = paths is not None
        self._check_kinds(self.leaves)
        around = current()
        self.carry_types = CarryTypeCache() if around is None else around.carry_types.loop(where)
        self.types = self.carry_types.start([leaf_type(leaf) for leaf in self.leaves])
        self.changing: set[Symbol] = set()  # sizes that shape_invariants lets change

    def relax(self, invariants: Any) -> None:
        """Put symbols where `shape_invariants` lets sizes change."""
        shapes = _invariant_shapes(self.where, self.treedef, invariants)
        for k, (shape, path) in enumerate(zip(shapes, self.paths, strict=True)):
            if shape is None:
                continue
            mine = self.types[k].type
            dims = tuple(new_symbol() if dim is None else dim for dim in shape)
            if not accepts(mine.with_shape(dims), mine):
                raise CarryError(f"{self.where}: {path} enters as {mine}, not as {shape}")
            self.changing.update(symbols(mine.with_shape(dims)))
            self.types[k] = LeafType(mine.with_shape(dims), self.types[k].weak)

    def params(self, region: Recording) -> Any:
        """Params of a region for the carry, in its structure."""
        region.carry_types = self.carry_types.region(region.b.name)
        params = [
            region.param(t.type, weak=t.weak, name=path)
            for t, path in zip(self.types, self.paths, strict=True)
        ]
        return trees.unflatten(self.treedef, params)

    def leaves_of(self, result: Any) -> list[Any]:
        """The leaves of what a body returned, which must have the carry's structure."""
        leaves, treedef = trees.flatten(result)
        if treedef != self.treedef:
            expected, found = self.init, result
            if self.has_counter:
                expected, found = expected[1], found[1]
            raise StructureError(
                explain(
                    f"{self.where}: the body returns a carry of another structure.",
                    trees.first_difference(expected, found, "carry"),
                    f"it enters as {trees.described(expected)}, "
                    f"the body returns {trees.described(found)}",
                    cure="return exactly what the loop was given, leaf for leaf.",
                )
            )
        self._check_kinds(leaves)
        return [as_array(leaf) for leaf in leaves]

    def _check_kinds(self, leaves: Sequence[Any]) -> None:
        check_leaves(self.where, leaves, self.paths)

    def settle(self, results: Sequence[Any], body: Recording | None = None) -> bool:
        """Let weak leaves take the strong dtypes they meet (D5); say whether any type changed.

        Args:
            results: what the body returned.
            body: where sizes that may be one are compared when it runs; None: nowhere.

        Raises:
            CarryError: a leaf comes back with another dtype or shape.
        """
        settled = []
        for mine, result, path in zip(self.types, results, self.paths, strict=True):
            theirs = leaf_type(result)
            dtype = result_dtype(_example(mine), _example(theirs)) if mine.weak else mine.type.dtype
            new = LeafType(mine.type.with_dtype(dtype), mine.weak and theirs.weak)
            self._check_leaf(mine, new, theirs, path, body)
            settled.append(new)
        changed = settled != self.types
        self.types = settled
        self.carry_types.settle(settled)
        return changed

    def _check_leaf(
        self,
        old: LeafType,
        new: LeafType,
        theirs: LeafType,
        path: str,
        body: Recording | None,
    ) -> None:
        if result_dtype(_example(new), _example(theirs)) != new.type.dtype or (
            not theirs.weak and theirs.type.dtype != new.type.dtype
        ):
            raise CarryError(self._changed_dtype(path, old.type, theirs.type))
        found = theirs.type.with_dtype(new.type.dtype)
        if not self._takes(new.type, self._as_entered(new.type, found, body)):
            raise CarryError(self._changed_shape(path, str(old.type), str(theirs.type)))

    def _changed_dtype(self, path: str, old: TensorType, found: TensorType) -> str:
        what = f"{self.where}: {path} enters as {old}, the body returns {found}."
        cure = (
            f"start it as {found.dtype}, or cast it back in the body with "
            f".astype({old.dtype.name!r})."
        )
        return explain(what, cure=cure)

    def _changed_shape(self, path: str, old: str, found: str) -> str:
        what = f"{self.where}: {path} enters as {old}, the body returns {found}."
        cure = "return the shape it enters with"
        if self.is_resizable:
            cure += ", or let sizes change with shape_invariants (None for each that does)"
        return explain(what, cure=f"{cure}.")

    def _takes(self, mine: TensorType, found: TensorType) -> bool:
        # A size that may not change is the same one afterwards, known before the run or not.
        fixed: dict[Symbol, Dim] = {s: s for s in symbols(mine) if s not in self.changing}
        return accepts(mine, found, fixed)

    def _as_entered(
        self, mine: TensorType, found: TensorType, body: Recording | None
    ) -> TensorType:
        """A type with the sizes it must have where these may turn out to be them."""
        if body is None or mine.shape is None or found.shape is None:
            return found
        if len(mine.shape) != len(found.shape):
            return found
        pairs = zip(mine.shape, found.shape, strict=True)
        dims = (a if a not in self.changing and body.may_be_one(a, b) else b for a, b in pairs)
        return found.with_shape(tuple(dims))

    def following(self, results: Sequence[Any], body: Recording) -> list[Value]:
        """What the body returned, as the types that the carry has settled on."""
        rows = zip(results, self.types, self.leaves, self.paths, strict=True)
        return [body.lift(self._kept(*row, body)) for row in rows]

    def _kept(self, result: Any, type: LeafType, leaf: Any, path: str, body: Recording) -> Any:
        """A result in its dtype, with a check of its shape where only the run can tell."""
        result = cast(result, type.type.dtype)
        mine, found = type.type, leaf_type(result).type
        if self._takes(mine, found) or mine.shape is None:
            return result
        assert body.parent is not None
        with body.parent.active():
            entered = apply(shaping.shape_of, as_array(leaf))
        if any(dim in self.changing for dim in mine.shape):
            free = np.array([dim in self.changing for dim in mine.shape])
            with body.parent.active():
                entered = ew.where(free, -1, entered)
        name = short(mine.dtype)
        message = self._changed_shape(path, f"{name}[{{shape}}]", f"{name}[{{its}}]")
        shape = self._as_entered(mine, found, body).shape
        with body.active():
            return apply(
                shaping.keep_shape, result, entered, shape=shape, message=message, error="carry"
            )

    def start(self, outer: Recording) -> list[Value]:
        """The values to start from, as the types that the carry has settled on."""
        pairs = zip(self.leaves, self.types, strict=True)
        return [outer.lift(cast(leaf, type.type.dtype)) for leaf, type in pairs]

    def rebuild(self, outer: Recording, values: Sequence[Value]) -> Any:
        """The carry after the loop."""
        pairs = zip(values, self.types, strict=True)
        return trees.unflatten(self.treedef, [outer.wrap(v, weak=t.weak) for v, t in pairs])


def _example(type: LeafType) -> Any:
    """Something that promotes as a leaf of this type does."""
    if type.weak:
        return {"b": False, "i": 0, "f": 0.0, "c": 0j}[type.type.dtype.kind]
    return type.type.dtype.type(0)


def _invariant_shapes(where: str, treedef: trees.TreeDef, invariants: Any) -> list[Any]:
    try:
        found = trees.flatten_up_to(treedef, invariants)
    except ValueError as error:
        raise StructureError(f"{where}: shape_invariants must be like init: {error}") from error
    return [getattr(shape, "shape", shape) for shape in found]
