"""A fact about an operation is a field of its record: no module outside `ops` lists operations.

Comprehensions ask for such fields. Tables that dispatch (an emitter, a rule for each operation) are
no facts, nor is what an algorithm matches; lists of that stand below, each with what it matches.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import wend
from wend.ir.op import TABLE, Op

ROOT = Path(wend.__file__).parent
PATTERNS = {
    "autodiff.backward._SHAPE_READS": "sizes of arrays, which the forward pass reads",
    "autodiff.jvp_interpreter._MAYBE_OPS": "what gives a maybe, of which a jvp takes the operand",
    "autodiff.reassociate._SCALING_OPS": "the sums and products that are reordered",
    "autodiff.residuals._CUTS": "what cuts a part out of an array at positions of the run",
    "backends.native.analysis.affine_positions._ARITHMETIC": "instructions of affine numbers",
    "backends.native.analysis.affine_positions._POSITIONS": "positions of elements and items",
    "backends.native.analysis.list_ownership._RETURNS_OWNED": "what makes a list of its own",
    "backends.native.analysis.list_uses.READS": "the uses of a list that need no class",
    "backends.native.analysis.positions_in_range._PARTS": "positions of parts, by one rule",
    "backends.native.codegen.lowering._ANY_ARRAY": "whose emitters take arrays of any layout",
    "backends.native.codegen.lowering._READERS": "whose emitters read a complex number in place",
    "backends.native.emit.array.reducing._DECIDING_BYTES": "reductions that end early",
    "backends.native.emit.array.reducing._ROW_EXTREMES": "the instructions of a row's extremes",
    "backends.native.emit.control.align_operands._LAYOUT_OPS": "what the predicate looks through",
    "backends.native.emit.control.precompute._SINCOS": "what one call computes together",
    "backends.native.emit.control.precompute._TRANSCENDENTAL": "what is computed ahead in lanes",
    "backends.native.analysis.vectorizable_loops._REDUCTIONS": "reductions that LLVM vectorizes",
    "backends.native.emit.control.precompute._ARITHMETIC": "what may stand between those",
    "backends.native.emit.loops.index_maps._DIMS_FROM_OPERANDS": "whose sizes are looked up",
    "backends.native.emit.scalar.functions._FROM_LIBM": "names of C's mathematical library",
    "backends.native.emit.scalar.functions._FROM_SCIPY": "names of SciPy's library",
    "backends.native.fusion.concurrent_nodes._TASK_OPS": "what may take long enough for a thread",
    "backends.native.fusion.fuse._RECOMPUTED_OPS": "what each reader makes for itself",
    "backends.native.fusion.fusion_group._LIGHT_OPS": "of which a formula may have many",
    "backends.native.fusion.op_classes._LAYOUT": "what has an index map",
    "backends.native.fusion.op_classes.READS_SUBVIEWS": "the last node of a nest that is no loop",
    "backends.native.fusion.op_classes._LOOKUPS": "reads at positions from an array",
    "backends.native.fusion.subview_alias.SUBVIEW_LOADS": "what reads a block of an array",
    "backends.native.fusion.subview_alias.SUBVIEW_STORES": "what writes a block of an array",
    "backends.native.fusion.subview_alias._SLICES": "blocks by slices",
    "backends.native.fusion.subview_alias._NARROW": "blocks of one axis",
    "backends.native.fusion.subview_alias._LEADING_AXES": "blocks by positions in leading axes",
    "backends.native.scalarize.permute._NUM_DATA_OPERANDS": "how many operands are no sizes",
    "backends.native.scalarize.plan._LOOP_OPS": "what one loop over elements computes",
    "backends.numpy.program._INFIX": "operators of Python's text",
    "function.remarks._FREE_OPS": "what a remark does not name",
    "passes.attach_writes._TRANSPARENT": "nodes with regions, which are searched",
    "passes.defer_checks._REGIONS": "nodes with regions, which take a flag and give one",
    "passes.fold_views._ADDING": "those of the stores in views that add",
    "passes.fold_views._FOLDED": "what reads or stores at positions, by one rule for each",
    "passes.fold_views._PARTS": "what reads a part, by one rule for each",
    "passes.fold_views._PARTS_OF_NUMBERS": "elementwise views of NumPy's",
    "passes.forward_stores._ACCESSES": "what stores in an array, and what reads it",
    "passes.forward_stores._ARITHMETIC": "what makes affine positions, by one rule for each",
    "passes.integer_ranges._LOGIC": "what joins tests, by one rule for each",
    "passes.integer_ranges._TESTS": "comparisons, by one rule for each",
    "passes.put_back._PUTTING_BACK": "what puts a view back, by one rule for each",
    "passes.put_back._STORES": "what stores at positions, by one rule for each",
    "passes.view_positions.VIEWS": "what makes a view, by one rule for each",
    "passes.inline._INLINED": "calls that are inlined",
    "passes.number_elements._TRANSPARENT": "nodes with regions, which take numbers of elements",
    "passes.merge_ifs._SINKABLE": "what follows a maybe into its branch",
    "passes.reassociate_minima._EXTREMA": "what gives a minimum or a maximum, by one rule for each",
    "passes.reassociate_minima._LESS": "comparisons by which a minimum is selected",
    "passes.reassociate_minima._MORE": "comparisons by which a maximum is selected",
    "passes.rematerialize_fills._FILLS": "what repeats a number, or counts",
    "passes.specialize_zeros._ZERO_OPS": "whose presence means that there is something to decide",
    "pictures.words._TAPE_OPS": "what a picture calls the tape",
}


def _asks_a_field(value: ast.expr | None) -> bool:
    """Return whether a collection is a comprehension, over something else than what it lists."""
    if not isinstance(value, (ast.SetComp, ast.DictComp)):
        return False
    listed = (ast.Tuple, ast.List, ast.Set)
    return not any(isinstance(source.iter, listed) for source in value.generators)


def _collections(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the collections at the top of a module that ask no field, by name."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    targets = [
        target.id
        for stmt in ast.parse(path.read_text()).body
        if not _asks_a_field(getattr(stmt, "value", None))
        for target in getattr(stmt, "targets", [getattr(stmt, "target", None)])
        if isinstance(target, ast.Name)
    ]
    if not targets:
        return
    module = importlib.import_module(f"wend.{name}")
    for target in dict.fromkeys(targets):
        value = getattr(module, target, None)
        if isinstance(value, (set, frozenset, tuple, list, Mapping)):
            yield f"{name}.{target}", value


def _lists_facts(value: Any) -> bool:
    """Return whether a collection holds operations, and dispatches to nothing by them."""
    if isinstance(value, Mapping):
        return not all(map(_is_rule, value.values())) and any(isinstance(key, Op) for key in value)
    return any(isinstance(item, Op) or _is_nested_list(item) for item in value)


def _is_rule(x: Any) -> bool:
    if isinstance(x, list):
        return all(map(_is_rule, x))
    return callable(x) or dataclasses.is_dataclass(x)


def _is_nested_list(item: Any) -> bool:
    if not isinstance(item, (set, frozenset, tuple, list, Mapping)):
        return False
    is_pair = isinstance(item, tuple) and len(item) == 2 and callable(item[1])
    return not is_pair and _lists_facts(item)


def test_no_module_outside_ops_lists_operations():
    paths = [p for p in ROOT.rglob("*.py") if p.stem not in ("__main__", "__init__")]
    outside = [p for p in paths if p.relative_to(ROOT).parts[0] != "ops"]
    optional = [
        p for p in outside if {"jax", "torch"} & {*p.relative_to(ROOT).parts}
    ]  # may not be installed
    lists = {
        name
        for path in outside
        if path not in optional
        for name, value in _collections(path)
        if name != "ir.op.TABLE" and _lists_facts(value)
    }
    assert lists == {*PATTERNS}, lists ^ {*PATTERNS}


def test_the_law_sees_lists_in_comprehensions_and_in_lists():
    def value(text: str) -> ast.expr:
        return ast.parse(text, mode="eval").body

    assert _asks_a_field(value("{op for op in TABLE.values() if op.step}"))
    assert not _asks_a_field(value("{op for op in (add, sub)}"))
    assert not _asks_a_field(value("{add, sub}"))
    add = TABLE["add"]
    assert _lists_facts(((add, 1), (add, 2)))
    assert _lists_facts({add: 1})
    assert not _lists_facts({add: len})
    assert not _lists_facts([(add, len)])


# Fields that say what an operation is, which most of the system reads
_DEFINING = {"name", "infer", "kernel", "derivative", "effect", "regions"}
_READ_THROUGH = {"raises": "errors_of|may_fail|raises", "traps": "may_fail"}


def test_the_page_on_operations_tells_who_reads_each_field():
    page = Path(__file__).parents[2] / "docs" / "adding-an-op.md"
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page.read_text(), re.MULTILINE)
    told = {field: set(re.findall(r"`([^`]+)`", readers)) for field, readers in rows}
    sources = {p.relative_to(ROOT).as_posix(): p.read_text() for p in ROOT.rglob("*.py")}
    del sources["ir/op.py"]
    fields = {field.name for field in dataclasses.fields(Op)} - _DEFINING
    assert told == {
        field: {
            path
            for path, text in sources.items()
            if re.search(rf"\bop\.({_READ_THROUGH.get(field, field)})\b", text)
        }
        for field in fields
    }
