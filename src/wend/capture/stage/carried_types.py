"""The types of what a captured loop carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.eager.promotion import as_array, cast
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.trace.control.loop_types import LoopTypes
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.recording import Recording


class CarriedTypes(LoopTypes):
    """The types of a loop's carried variables; messages use the user's names."""

    def __init__(self, where: str, labels: Sequence[str], values: Sequence[Any]) -> None:
        super().__init__(where, list(values))
        self.labels = labels
        self.paths = leaf_labels(self.treedef, labels)

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
        types, paths = self.types, self.paths
        arrays = [k for k, leaf in enumerate(results) if not is_list(leaf)]
        self.types = [types[k] for k in arrays]
        self.paths = [paths[k] for k in arrays]
        try:
            changed = super().unify([results[k] for k in arrays], body)
        finally:
            self.paths = paths
        unified = list(types)
        for k, type in zip(arrays, self.types, strict=True):
            unified[k] = type
        self.types = unified
        self.carry_types.record(unified)
        return changed

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
