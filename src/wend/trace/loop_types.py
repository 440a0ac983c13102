"""The types of what a loop carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import CarryError, StructureError, explain
from wend.eager.promotion import as_array, cast, result_dtype
from wend.ir.builder import new_symbol
from wend.ir.graph import Value
from wend.ir.types import Dim, Symbol, accepts, symbols
from wend.trace.arguments import LeafType, leaf_type
from wend.trace.checks import check_leaves
from wend.trace.recording import Recording, current
from wend.trace.rounds import Rounds


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
        self.rounds = Rounds() if around is None else around.rounds.loop(where)
        self.types = self.rounds.start([leaf_type(leaf) for leaf in self.leaves])
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
        region.rounds = self.rounds.region(region.b.name)
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

    def settle(self, results: Sequence[Any]) -> bool:
        """Let weak leaves take the strong dtypes they meet (D5); say whether any type changed.

        Raises:
            CarryError: a leaf comes back with another dtype or shape.
        """
        settled = []
        for mine, result, path in zip(self.types, results, self.paths, strict=True):
            theirs = leaf_type(result)
            dtype = result_dtype(_example(mine), _example(theirs)) if mine.weak else mine.type.dtype
            new = LeafType(mine.type.with_dtype(dtype), mine.weak and theirs.weak)
            self._check_leaf(mine, new, theirs, path)
            settled.append(new)
        changed = settled != self.types
        self.types = settled
        self.rounds.settle(settled)
        return changed

    def _check_leaf(self, old: LeafType, new: LeafType, theirs: LeafType, path: str) -> None:
        what = f"{self.where}: {path} enters as {old.type}, the body returns {theirs.type}."
        if result_dtype(_example(new), _example(theirs)) != new.type.dtype or (
            not theirs.weak and theirs.type.dtype != new.type.dtype
        ):
            cure = (
                f"start it as {theirs.type.dtype}, or cast it back in the body with "
                f".astype({old.type.dtype.name!r})."
            )
            raise CarryError(explain(what, cure=cure))
        # A size that may not change is the same one afterwards, known before the run or not.
        fixed = {s: s for s in symbols(new.type) if s not in self.changing}
        if not accepts(new.type, theirs.type.with_dtype(new.type.dtype), dict[Symbol, Dim](fixed)):
            cure = "return the shape it enters with"
            if self.is_resizable:
                cure += ", or let sizes change with shape_invariants (None for each that does)"
            cure += "."
            raise CarryError(explain(what, cure=cure))

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
