"""The texts of `Function.explain`: each trace, and how it differs from the nearest earlier one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

from wend.backends.protocol import Executable, Explains, HoldsMemory
from wend.base import trees
from wend.base.config import traced_settings
from wend.base.keys import ByIdentity
from wend.base.lazy.dataclass import dataclass
from wend.base.memory import (
    OFFLOAD,
    SPILL,
    Checkpoints,
    Every,
    Memory,
    parsed,
    shown,
    shown_size,
    without_segments,
)
from wend.base.source import at
from wend.function.remarks import (
    carried,
    copied,
    counted,
    fused_loops,
    hoisted,
    largest,
    mapped,
    recomputed,
)
from wend.function.signature.shape_relaxation import subsumes
from wend.function.signature.signature import Arguments
from wend.ir.dtypes import short
from wend.ir.graph import Graph, Node
from wend.ir.types import Dim
from wend.ops.control import AGAIN, WhileParts
from wend.ops.effects import host_action
from wend.ops.records import Record, records
from wend.ops.spilling import SEGMENTS
from wend.trace.recording.arguments import LeafType

# What becomes of a tape that leaves memory
_LEAVING = {OFFLOAD: ("moves", "the memory of the host"), SPILL: ("spills", "a file")}

_PYTHON_KINDS = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


class Explanation(str):
    """A string whose repr is its text, for prompts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class ArgumentSummary:
    """The arguments that a trace was made for, by name, without the arguments themselves.

    Attributes:
        leaves: the type of each leaf, or the key of its value.
        texts: the texts of those.
        treedef: the structure of the arguments.
        parameters: the names of the positional parameters.
        memory: the policy of `memory=` in force.
        tape_limit: the limit of the tape of a loop, in bytes; 0: none.
        spills: whether tapes go on in files past it.
    """

    leaves: dict[str, LeafType | Hashable]
    texts: dict[str, str]
    treedef: trees.TreeDef
    parameters: tuple[str, ...]
    memory: str
    tape_limit: int
    spills: bool

    def __str__(self) -> str:
        if not self.leaves:
            return "no arguments"
        return ", ".join(f"{name} {self.texts[name]}" for name in self.leaves)

    def by_parameter(self) -> dict[str, Any]:
        """Return the structure of each argument, with placeholders for leaves."""
        args, kwargs = trees.unflatten(self.treedef, [0] * self.treedef.num_leaves)
        names = [*self.parameters, *map(str, range(len(self.parameters), len(args)))]
        return {**dict(zip(names, args, strict=False)), **kwargs}


def summarize(arguments: Arguments) -> ArgumentSummary:
    """Return the summary of the arguments of a trace."""
    leaves: dict[str, LeafType | Hashable] = {}
    texts: dict[str, str] = {}
    types, static_keys = iter(arguments.types), iter(arguments.static_keys)
    traced = {*arguments.traced_positions}
    symbol_names: dict[Dim, str] = {}
    for k, name in enumerate(arguments.all_names()):
        if k in traced:
            type = next(types)
            leaves[name], texts[name] = type, _type_text(type, symbol_names)
        else:
            leaves[name], texts[name] = next(static_keys), _value_text(arguments.leaves[k])
    in_force = traced_settings()
    return ArgumentSummary(leaves, texts, arguments.treedef, arguments.parameters, *in_force)


def _type_text(type: LeafType, symbol_names: dict[Dim, str]) -> str:
    """Return `f64[3]` with symbols named as in printed graphs, or `float` for a Python number."""
    dtype, shape = type.type.dtype, type.type.shape
    if type.variable is not None:
        return str(type)
    if type.weak:
        return _PYTHON_KINDS[dtype.kind]
    dims = [
        str(dim) if isinstance(dim, int) else symbol_names.setdefault(dim, f"n{len(symbol_names)}")
        for dim in shape or ()
    ]
    return f"{short(dtype)}[{'...' if shape is None else ','.join(dims)}]"


def _value_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text:.37}..."


def differences(new: ArgumentSummary, old: ArgumentSummary) -> list[str]:
    """Return how the arguments of a new trace differ from those of an earlier one."""
    texts = []
    if not trees.is_same_structure(new.treedef, old.treedef):
        new_arguments, old_arguments = new.by_parameter(), old.by_parameter()
        for name in dict.fromkeys([*new_arguments, *old_arguments]):
            if name not in old_arguments:
                texts.append(f"{name} is given")
            elif name not in new_arguments:
                texts.append(f"{name} is not given")
            else:
                texts += _structure_difference(old_arguments[name], new_arguments[name], name)
    for name, leaf in new.leaves.items():
        if name in old.leaves and not _needs_no_trace(leaf, old.leaves[name]):
            texts.append(_leaf_difference(name, new, old))
    if new.memory != old.memory:
        texts.append(f"memory is {shown(new.memory)}, not {shown(old.memory)}")
    if new.tape_limit != old.tape_limit:
        limits = [shown_size(x) if x else "none" for x in (new.tape_limit, old.tape_limit)]
        texts.append(f"tape_limit is {limits[0]}, not {limits[1]}")
    if new.spills != old.spills:
        texts.append("tapes spill past the limit" if new.spills else "tapes stop at the limit")
    if not texts and new.leaves != old.leaves:
        texts.append("sizes that are one there differ")
    return texts


def _needs_no_trace(new: LeafType | Hashable, old: LeafType | Hashable) -> bool:
    """Return whether a trace for the old leaf accepts the new one."""
    if new == old:
        return True
    if not isinstance(new, LeafType) or not isinstance(old, LeafType) or new.weak != old.weak:
        return False
    if new.variable != old.variable:
        return False
    return subsumes([old], [new], accepts_zero_one=False)


def _structure_difference(old: Any, new: Any, name: str) -> list[str]:
    difference = trees.first_difference(old, new, name)
    if difference is None:
        return []
    path, _, kinds = difference.replace("an array or number", "a single value").partition(": ")
    before, _, now = kinds.partition(" against ")
    return [f"{path} is {now}, not {before}" if now else path]


def _leaf_difference(name: str, new: ArgumentSummary, old: ArgumentSummary) -> str:
    new_leaf, old_leaf = new.leaves[name], old.leaves[name]
    new_text, old_text = new.texts[name], old.texts[name]
    if not isinstance(new_leaf, LeafType) or not isinstance(old_leaf, LeafType):
        if new_text == old_text and _kind_text(new_leaf) == _kind_text(old_leaf):
            return f"{name} is another {_kind_text(new_leaf)}"
        if new_text == old_text:
            new_text, old_text = (f"{new_text} ({_kind_text(key)})" for key in (new_leaf, old_leaf))
        return f"{name} is {new_text}, not {old_text}"
    if new_leaf.variable != old_leaf.variable:
        if new_leaf.variable is None or old_leaf.variable is None:
            return f"{name} is {new_text}, not {old_text}"
        return (
            f"{name} is variable {new_leaf.variable + 1} of the call, not {old_leaf.variable + 1}"
        )
    if new_leaf.weak or old_leaf.weak:
        templates = {True: "the Python {}", False: "the array {}"}
        return (
            f"{name} is {templates[new_leaf.weak].format(new_text)}, "
            f"not {templates[old_leaf.weak].format(old_text)}"
        )
    if new_leaf.zero_dim != old_leaf.zero_dim and new_leaf.type == old_leaf.type:
        kinds = "a 0-d array", "a NumPy scalar"
        new_kind, old_kind = kinds if new_leaf.zero_dim else reversed(kinds)
        return f"{name} is {new_kind}, not {old_kind}"
    if new_leaf.type.dtype != old_leaf.type.dtype:
        if new_leaf.type.rank != old_leaf.type.rank:
            return f"{name} is {new_text}, not {old_text}"
        return f"the dtype of {name} is {new_leaf.type.dtype}, not {old_leaf.type.dtype}"
    if new_leaf.type.rank != old_leaf.type.rank:
        return f"the rank of {name} is {new_leaf.type.rank}, not {old_leaf.type.rank}"
    shapes = [text[text.index("[") :] for text in (new_text, old_text)]
    return f"the shape of {name} is {shapes[0]}, not {shapes[1]}"


def _kind_text(key: Any) -> str:
    if isinstance(key, ByIdentity):
        value = key.reference()
        return "object" if value is None else type(value).__name__
    return key[0].__name__ if isinstance(key, tuple) and isinstance(key[0], type) else "value"


def nearest(
    new: ArgumentSummary, earlier: Sequence[ArgumentSummary]
) -> tuple[int, list[str]] | None:
    """Return the earlier trace with the fewest differences, the last of several, and these."""
    best: tuple[int, list[str]] | None = None
    for k, old in enumerate(earlier):
        changes = differences(new, old)
        if best is None or len(changes) <= len(best[1]):
            best = k, changes
    return best


_MAX_RECORDS_PER_LINE = 3


def costs(graphs: Sequence[Graph], executables: Sequence[Executable]) -> list[str]:
    """Return a line for each cost of runs, and for each optimisation that saved some.

    `graphs` are the optimised graphs of a trace, each once.
    """
    explaining = [run for run in executables if isinstance(run, Explains)]
    loops = [loop for run in explaining for loop in run.fused_loops]
    hosted = [node for run in explaining for node in run.host_nodes if node.op not in SEGMENTS]
    calls = [node for node in hosted if not _remark_of(node)]
    in_python = [f"runs in Python: {node.op.name}{at(node.source)}" for node in calls]
    noted = [
        f"{_remark_of(node)}{at(node.source)}"
        for graph in graphs
        for node in graph.walk()
        if _remark_of(node)
    ]
    remarks = [
        *counted(graphs),
        *carried(graphs),
        *mapped(graphs),
        *copied(graphs),
        *recomputed(graphs),
        *hoisted(graphs),
        *fused_loops(loops),
        *dict.fromkeys(remark for run in explaining for remark in run.remarks),
    ]
    return [*_kept_records(graphs), *remarks, *dict.fromkeys((*noted, *in_python))]


def _remark_of(node: Node) -> str | None:
    """Return what is said of a call of Python that the user's code makes, or None."""
    return node.attrs["action"].remark if node.op is host_action else None


def _kept_records(graphs: Sequence[Graph]) -> list[str]:
    """Return a line for each loop that keeps records."""
    of_loops: dict[Node, list[Record]] = {}
    for record in (record for graph in graphs for record in records(graph)):
        of_loops.setdefault(record.loop, []).append(record)
    sized_lines = []
    for loop, loop_records in of_loops.items():
        if WhileParts.of(loop).applied in _LEAVING:
            what, where = _LEAVING[WhileParts.of(loop).applied]
            sized_lines.append((0, f"{what} the tape of the loop{at(loop.source)} to {where}"))
            continue
        loop_records.sort(key=lambda record: (record.variable_part == "records", -record.min_bytes))
        names = [*dict.fromkeys(map(str, loop_records))]
        more = len(names) - _MAX_RECORDS_PER_LINE
        record_names = ", ".join(names[:_MAX_RECORDS_PER_LINE]) + (
            f" and {more} more" if more > 0 else ""
        )
        fixed_bytes = sum(record.min_bytes for record in loop_records)
        variable_parts = dict.fromkeys(
            record.variable_part for record in loop_records if record.variable_part
        )
        size = " and its ".join([f"{fixed_bytes:,} bytes", *variable_parts])
        line = f"keeps {record_names}, {size} {_frequency(loop)}{at(loop.source)}"
        if loop_records[0].is_transient:
            line += ", while it runs that again"
        sized_lines.append((fixed_bytes, line + _policy(loop)))
    return largest(sized_lines)


def _frequency(loop: Node) -> str:
    """Return how often a loop keeps a record."""
    match _applied(loop)[0]:
        case Checkpoints(slots=slots):
            return f"in each of at most {slots} slots of the loop"
        case "thin":
            return "in each of at most √(2 T) slots of the loop"
        case Every(trips=trips) if trips > 1:
            return f"every {trips} trips of the loop"
    return "a trip of the loop"


def _policy(loop: Node) -> str:
    """Return the policy of a loop that runs its trips again, in parentheses."""
    policy, _ = without_segments(WhileParts.of(loop).applied)
    if policy in ("", AGAIN):
        return ""
    return f" (memory={shown(policy)}: runs {_evaluations(loop)})"


def _applied(loop: Node) -> tuple[Memory, int]:
    """Return the policy by which a loop was rewritten, and the trips of its segments."""
    text, trips = without_segments(WhileParts.of(loop).applied)
    return parsed(text), trips


def _evaluations(loop: Node) -> str:
    """Return how often the backward pass of a loop runs trips again."""
    policy, trips = _applied(loop)
    if not isinstance(policy, Checkpoints):
        return "each trip once more"
    # A loop that changes arrays in place has been strip-mined.
    is_mined = any(node.attrs.get("applied") == AGAIN for node in WhileParts.of(loop).after.walk())
    unit = "segment" if is_mined else "trip"
    reach = [math.comb(policy.slots + r, r) for r in (1, 2, 3)]
    if trips > 1:  # they run once more, to be recorded
        reach = [policy.slots * trips, *(count * trips for count in reach[:2])]
    limits = [f"{count:,}" for count in reach]
    return (
        f"each {unit} again at most once for up to {limits[0]} {unit}s, "
        f"twice for up to {limits[1]}, 3 times for up to {limits[2]}"
    )


def memory(executables: Sequence[Executable]) -> list[str]:
    """Return lines about the memory that a call needed, and that is held for the next one."""
    holding = [run for run in executables if isinstance(run, HoldsMemory)]
    sizes = [item for run in holding for item in run.held_memory().items()]
    texts = [f"{size:,} bytes of {what}" for what, size in sizes if size]
    held = [f"holds for the next call: {', '.join(texts)}"] if texts else []
    peak = max((run.peak_memory() for run in holding), default=0)
    return [f"needed up to {peak:,} bytes of lists and arrays in a call", *held] if peak else held
