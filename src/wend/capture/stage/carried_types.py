"""The types of what a captured loop carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.eager.promotion import as_array, cast
from wend.ir.builder import new_symbol
from wend.ir.graph import Value
from wend.ir.types import Dim, Symbol, TensorType
from wend.trace.control.loop_types import LoopTypes
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import LeafType, leaf_type
from wend.trace.recording.recording import Recording


class CarriedTypes(LoopTypes):
    """The types of a loop's carried variables; messages use the user's names.

    Args:
        resizes: whether sizes that change from trip to trip become symbols.

    Attributes:
        changes_sizes: whether unification failed on sizes, which symbols could stand for.
    """

    def __init__(
        self, where: str, labels: Sequence[str], values: Sequence[Any], *, resizes: bool = False
    ) -> None:
        super().__init__(where, list(values))
        self.labels = labels
        self.paths = leaf_labels(self.treedef, labels)
        self.resizes, self.changes_sizes = resizes, False

    def leaves_of(self, result: Any) -> list[Any]:
        leaves, treedef = trees.flatten_deep(result, keeps_static=True, with_objects=True)
        if trees.is_same_structure(treedef, self.treedef):
            return [as_array(leaf) for leaf in leaves]
        for label, old, new in zip(self.labels, self.init, result, strict=True):
            difference = trees.first_difference(old, new, label)
            if difference:
                break
        raise StructureError(
            explain(
                f"{self.where}: `{label}` changes its structure in the loop.",
                difference,
                cure="keep the same keys, in their order, and lengths in every iteration, "
                "or wend.unroll(...) what the loop iterates over.",
            )
        )

    def _check_kinds(self, leaves: Sequence[Any]) -> None:
        """Accept all leaves: the carry holds only arrays, numbers and traced lists."""

    def unify(self, results: Sequence[Any], body: Recording | None = None) -> bool:
        before, paths = self.types, self.paths
        arrays = [k for k, leaf in enumerate(results) if not is_list(leaf)]
        if self.resizes:
            self._resize([(k, leaf_type(results[k]).type) for k in arrays], body)
        types = self.types
        self.types = [types[k] for k in arrays]
        self.paths = [paths[k] for k in arrays]
        try:
            super().unify([results[k] for k in arrays], body)
        finally:
            self.paths = paths
        unified = list(types)
        for k, type in zip(arrays, self.types, strict=True):
            unified[k] = type
        self.types = unified
        self.carry_types.record(unified)
        return unified != before

    def _resize(self, results: Sequence[tuple[int, TensorType]], body: Recording | None) -> None:
        """Put symbols for the sizes that a trip changes.

        Sizes that were equal share one as long as each trip leaves them equal, so that arrays
        that grow or shrink together need no broadcasting.
        """
        types, groups = list(self.types), dict[tuple[Dim, Dim], Dim]()
        for k, result in results:
            entered = types[k].type
            if not isinstance(entered, TensorType) or entered.rank is None:
                continue
            if entered.rank != result.rank:
                continue
            pairs = zip(entered.dims, result.dims, strict=True)
            shape = tuple([self._resized(*pair, groups, body) for pair in pairs])
            types[k] = replace(types[k], type=entered.with_shape(shape))
        self.types = types

    def _resized(
        self,
        dim: Dim,
        next_dim: Dim,
        groups: dict[tuple[Dim, Dim], Dim],
        body: Recording | None,
    ) -> Dim:
        is_free = dim in self.free_dims
        if not is_free and (dim == next_dim or (body and body.may_be_equal(dim, next_dim))):
            return dim
        if (dim, next_dim) not in groups:
            is_first = all(other != dim for other, _ in groups)
            symbol = dim if isinstance(dim, Symbol) and is_free and is_first else new_symbol()
            groups[dim, next_dim] = symbol
            self.free_dims.add(symbol)
        return groups[dim, next_dim]

    def _is_accepted(
        self, carry_type: TensorType, result_type: TensorType, body: Recording | None
    ) -> bool:
        is_accepted = super()._is_accepted(carry_type, result_type, body)
        if not is_accepted and carry_type.rank == result_type.rank:
            self.changes_sizes = True
        return is_accepted

    def start(self, outer: Recording) -> list[Value]:
        pairs = zip(self.leaves, self.types, strict=True)
        return [outer.lift(as_type(leaf, type)) for leaf, type in pairs]

    def _changed_dtype(self, path: str, old: TensorType, new: TensorType) -> str:
        if old.shape != new.shape:
            return self._changed_shape(path, str(old), str(new))
        cure = (
            f"start it as {new.dtype}, or cast it back in the loop with "
            f".astype({old.dtype.name!r})."
        )
        return explain(self._changed(path, str(old), str(new)), cure=cure)

    def _changed_shape(self, path: str, old: str, new: str) -> str:
        cure = (
            "let it have the same shape before the loop and after each iteration; "
            "collect what grows in a list."
        )
        return explain(self._changed(path, old, new), cure=cure)

    def _changed(self, path: str, old: str, new: str) -> str:
        return f"{self.where}: {path} enters the loop as {old}, an iteration leaves it as {new}."

    def _coerce(self, result: Any, type: LeafType, leaf: Any, path: str, body: Recording) -> Any:
        return result if is_list(result) else super()._coerce(result, type, leaf, path, body)


def as_type(leaf: Any, type: LeafType) -> Any:
    """Cast a leaf to the dtype of a type; traced lists stay unchanged."""
    return leaf if is_list(leaf) else cast(leaf, type.type.dtype)


def leaf_labels(treedef: trees.TreeDef, labels: Sequence[str]) -> list[str]:
    """Return the leaves of labelled values as a user would write them: `x`, `d['k'][0]`."""
    result = []
    for accessor in treedef.accessors():
        index, inner = accessor[0].entry, accessor[1:]
        result.append(f"`{labels[index]}{inner.codify('') if len(inner) else ''}`")
    return result
