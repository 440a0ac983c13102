"""What `Function.explain` tells: each trace, and how it differs from the nearest earlier one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from wend.backends.protocol import Executable, Explains, HoldsMemory
from wend.base import trees
from wend.base.source import at
from wend.function.remarks import fused_loops, hoisted, largest, recomputed
from wend.function.signature.keys import ByIdentity
from wend.function.signature.shape_relaxation import serves
from wend.function.signature.signature import Arguments
from wend.ir.dtypes import short
from wend.ir.graph import Graph, Node
from wend.ir.types import Dim
from wend.ops.records import Record, records
from wend.trace.recording.arguments import LeafType

_PYTHON = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


class Explanation(str):
    """A text that a prompt shows as it reads."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class ArgumentSummary:
    """What a trace was made for, by name; holds no argument.

    Attributes:
        leaves: each leaf's type, or the key of its value.
        texts: how those are shown.
        treedef: the structure of the arguments.
        parameters: the names of the positional ones.
    """

    leaves: dict[str, LeafType | Hashable]
    texts: dict[str, str]
    treedef: trees.TreeDef
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        if not self.leaves:
            return "no arguments"
        return ", ".join(f"{name} {self.texts[name]}" for name in self.leaves)

    def by_parameter(self) -> dict[str, Any]:
        """The structure of each argument, with something in place of leaves."""
        args, kwargs = trees.unflatten(self.treedef, [0] * self.treedef.num_leaves)
        names = [*self.parameters, *map(str, range(len(self.parameters), len(args)))]
        return {**dict(zip(names, args, strict=False)), **kwargs}


def given(arguments: Arguments) -> ArgumentSummary:
    """What a trace is made for."""
    leaves: dict[str, LeafType | Hashable] = {}
    texts: dict[str, str] = {}
    types, rest = iter(arguments.types), iter(arguments.rest)
    traced = {*arguments.places}
    sizes: dict[Dim, str] = {}
    for k, name in enumerate(arguments.all_names()):
        if k in traced:
            type = next(types)
            leaves[name], texts[name] = type, _type_text(type, sizes)
        else:
            leaves[name], texts[name] = next(rest), _value_text(arguments.leaves[k])
    return ArgumentSummary(leaves, texts, arguments.treedef, arguments.parameters)


def _type_text(type: LeafType, sizes: dict[Dim, str]) -> str:
    """`f64[3]`, unknown sizes numbered as graphs print them; or `float` for a Python number."""
    dtype, shape = type.type.dtype, type.type.shape
    if type.variable is not None:
        return str(type)
    if type.weak:
        return _PYTHON[dtype.kind]
    dims = [
        str(dim) if isinstance(dim, int) else sizes.setdefault(dim, f"n{len(sizes)}")
        for dim in shape or ()
    ]
    return f"{short(dtype)}[{'...' if shape is None else ','.join(dims)}]"


def _value_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text:.37}..."


def differences(new: ArgumentSummary, old: ArgumentSummary) -> list[str]:
    """How what a trace was made for differs from what an earlier one was made for."""
    found = []
    if new.treedef != old.treedef:
        mine, theirs = new.by_parameter(), old.by_parameter()
        for name in dict.fromkeys([*mine, *theirs]):
            if name not in theirs:
                found.append(f"{name} is given")
            elif name not in mine:
                found.append(f"{name} is not given")
            else:
                found += _structure(theirs[name], mine[name], name)
    for name, leaf in new.leaves.items():
        if name in old.leaves and not _fits(leaf, old.leaves[name]):
            found.append(_changed(name, new, old))
    if not found and new.leaves != old.leaves:
        found.append("sizes that are one there differ")
    return found


def _fits(new: LeafType | Hashable, old: LeafType | Hashable) -> bool:
    """Whether a leaf does not need another trace."""
    if new == old:
        return True
    if not isinstance(new, LeafType) or not isinstance(old, LeafType) or new.weak != old.weak:
        return False
    if new.variable != old.variable:
        return False
    return serves([old], [new], special=False)


def _structure(old: Any, new: Any, name: str) -> list[str]:
    difference = trees.first_difference(old, new, name)
    if difference is None:
        return []
    path, _, kinds = difference.replace("an array or number", "a single value").partition(": ")
    before, _, now = kinds.partition(" against ")
    return [f"{path} is {now}, not {before}" if now else path]


def _changed(name: str, new: ArgumentSummary, old: ArgumentSummary) -> str:
    mine, theirs = new.leaves[name], old.leaves[name]
    now, before = new.texts[name], old.texts[name]
    if not isinstance(mine, LeafType) or not isinstance(theirs, LeafType):
        if now == before and _kind_text(mine) == _kind_text(theirs):
            return f"{name} is another {_kind_text(mine)}"
        if now == before:
            now, before = (f"{now} ({_kind_text(key)})" for key in (mine, theirs))
        return f"{name} is {now}, not {before}"
    if mine.variable != theirs.variable:
        if mine.variable is None or theirs.variable is None:
            return f"{name} is {now}, not {before}"
        return f"{name} is variable {mine.variable + 1} of the call, not {theirs.variable + 1}"
    if mine.weak or theirs.weak:
        known = {True: "the Python {}", False: "the array {}"}
        return f"{name} is {known[mine.weak].format(now)}, not {known[theirs.weak].format(before)}"
    if mine.type.dtype != theirs.type.dtype:
        if mine.type.rank != theirs.type.rank:
            return f"{name} is {now}, not {before}"
        return f"the dtype of {name} is {mine.type.dtype}, not {theirs.type.dtype}"
    if mine.type.rank != theirs.type.rank:
        return f"the rank of {name} is {mine.type.rank}, not {theirs.type.rank}"
    shapes = [text[text.index("[") :] for text in (now, before)]
    return f"the shape of {name} is {shapes[0]}, not {shapes[1]}"


def _kind_text(key: Any) -> str:
    if isinstance(key, ByIdentity):
        value = key.reference()
        return "object" if value is None else type(value).__name__
    return key[0].__name__ if isinstance(key, tuple) and isinstance(key[0], type) else "value"


def nearest(
    new: ArgumentSummary, earlier: Sequence[ArgumentSummary]
) -> tuple[int, list[str]] | None:
    """Which earlier trace differs least, the last of several, and how."""
    best: tuple[int, list[str]] | None = None
    for k, old in enumerate(earlier):
        found = differences(new, old)
        if best is None or len(found) <= len(best[1]):
            best = k, found
    return best


_MOST_RECORDS = 3  # in a line


def costs(graphs: Sequence[Graph], runs: Sequence[Executable]) -> list[str]:
    """A line for each of them, and for what was done to save some.

    Args:
        graphs: those of a trace, as they are run, each once.
        runs: what runs them.
    """
    explaining = [run for run in runs if isinstance(run, Explains)]
    loops = [loop for run in explaining for loop in run.fused_loops]
    calls = [node for run in explaining for node in run.host_nodes]
    in_python = [f"runs in Python: {node.op.name}{at(node.source)}" for node in calls]
    done = [*recomputed(graphs), *hoisted(graphs), *fused_loops(loops)]
    return [*_kept(graphs), *done, *dict.fromkeys(in_python)]


def _kept(graphs: Sequence[Graph]) -> list[str]:
    """A line for each loop that keeps records."""
    of_loops: dict[Node, list[Record]] = {}
    for kept in (kept for graph in graphs for kept in records(graph)):
        of_loops.setdefault(kept.loop, []).append(kept)
    found = []
    for loop, group in of_loops.items():
        group.sort(key=lambda kept: (kept.variable_part == "records", -kept.min_bytes))
        names = [*dict.fromkeys(map(str, group))]
        more = len(names) - _MOST_RECORDS
        what = ", ".join(names[:_MOST_RECORDS]) + (f" and {more} more" if more > 0 else "")
        least = sum(kept.min_bytes for kept in group)
        rest = dict.fromkeys(kept.variable_part for kept in group if kept.variable_part)
        size = " and its ".join([f"{least:,} bytes", *rest])
        found.append((least, f"keeps {what}, {size} a trip of the loop{at(loop.source)}"))
    return largest(found)


def memory(runs: Sequence[Executable]) -> list[str]:
    """A line about the memory that waits for the next call, if any does."""
    holding = [run for run in runs if isinstance(run, HoldsMemory)]
    sizes = [item for run in holding for item in run.held_memory().items()]
    texts = [f"{size:,} bytes of {what}" for what, size in sizes if size]
    return [f"holds for the next call: {', '.join(texts)}"] if texts else []
