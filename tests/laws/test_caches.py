"""What wend keeps for the whole process is bounded, or goes with what it belongs to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import wend

SOURCES = Path(wend.__file__).parent

# Everything that modules fill as they run, and why it does not grow without end.
KNOWN = {
    "backends/native/run/entry.py:_methods": "one",
    "backends/jax/boundary.py:_warned": "one",
    "backends/native/run/guard_table.py:_checksum_function": "one",
    "base/source.py:is_users_file": "the last files",
    "base/config.py:CHECKS": "filled when wend is imported",
    "base/source.py:OUTERMOST": "filled when wend is imported",
    "base/source.py:_line_tables": "the last long functions",
    "base/handling/handler_blocks.py:_indexes": "the last files",
    "base/keys.py:_layouts": "weak: goes with the class",
    "base/instances.py:_are_rebuildable": "weak: goes with the class",
    "base/instances.py:_static_fields": "weak: goes with the class",
    "base/reporting/dump.py:_dumps": "weak: goes with the graph",
    "backends/native/jit/llvm.py:_dropped": "emptied when the next library is compiled",
    "backends/native/jit/llvm.py:_engine": "one; keeps the last libraries",
    "backends/native/target/host_cpu.py:name": "one",
    "backends/native/target/host_cpu.py:features": "one",
    "saving/checks.py:_attr_kinds": "one for each operation",
    "trace/arrays/concrete_array.py:_BY_BASE": "weak: goes with the array",
    "backends/native/run/threads.py:_helpers": "one; has as many threads as were asked for",
    "backends/native/run/profiled.py:seconds_a_tick": "one number",
    "backends/native/run/profiled.py:_clock": "one library",
    "backends/native/rt/linalg/blas_functions.py:_address": "one for each of its functions in use",
    "backends/native/rt/numpy_fft.py:_address": "one for each of its loops and dtypes",
    "backends/native/rt/numpy_loops.py:_pointers": "one for each loop in use",
    "backends/native/rt/ordering/numpy_sorts.py:_address": "one for each dtype",
    "backends/native/rt/numpy_draws.py:_address": "one for each of its functions in use",
    "backends/native/rt/special_functions.py:_address": "one for each of its functions in use",
    "backends/strict.py:_as_host_op": "one for each operation that rounding leaves open",
    "backends/native/run/workspace.py:CHECKED": "weak: goes with the workspace",
    "backends/native/jit/llvm.py:_enable_ordered_reductions": "an option of LLVM, given once",
    "backends/native/jit/llvm.py:c_function": "one for each function of the C library in use",
    "backends/native/math/library.py:_text": "one for each platform",
    "backends/native/math/library.py:_writers": "one for each platform",
    "backends/native/math/library.py:_cold_names": "one for each platform",
    "backends/native/math/vector_variants.py:_vector_variants": "one for each platform",
    "backends/native/math/vector_variants.py:_inlined_variants": "one for each platform",
    "backends/native/rt/shared.py:_shared_modules": "one for each platform",
    "backends/native/target/platform.py:this_process": "one",
    "backends/native/target/platform.py:host_features": "one",
    "backends/native/math/trig.py:pi": "one for each precision",
    "ir/graph.py:_ops": "weak: goes with the graph",
    "ir/graph.py:_types": "weak: goes with the graph",
    "capture/builtins/draws/numpy_draws.py:_legacy_offset": "one number",
    "capture/builtins/draws/python_draws.py:offset": "one number",
    "capture/builtins/draws/python_draws.py:_text_of_empty_range": "one for each of three methods",
    "capture/builtins/world.py:_families": "weak: goes with the class",
    "base/keys.py:_frozen_keys": "weak: goes with the object",
    "capture/conversion.py:_captured_code": "weak: goes with the code",
    "capture/libraries.py:_packages": "one for each installed package",
    "capture/guards/free_names.py:_free_paths_cache": "weak: goes with the code",
    "capture/heap/user_operators.py:_with_operators": "weak: goes with the class",
    "capture/state/made_objects.py:_made_in": "weak: goes with the recording",
    "capture/state/one_shot_iterators.py:_created": "weak: goes with the recording",
    "capture/state/unsure_iterators.py:_taken_by": "weak: goes with the recording",
    "capture/heap/trace_log.py:HOLDERS": "filled when wend is imported",
    "capture/guards/unseen_calls.py:_called_methods": "the last functions",
    "capture/heap/unseen_code.py:_stored_attributes": "the last functions",
    "capture/heap/unseen_code.py:_stored_names": "the last functions",
    "capture/uncaptured.py:NOT_CAPTURED": "weak: goes with the code",
    "capture/source.py:_indexes": "the last files",
    "interop/jax/calling.py:_functions": "one for each function compiled into a program of XLA",
    "interop/jax/calling.py:_register": "one",
    "interop/jax/primitives.py:_jitted": "the last functions",
    "interop/torch/operations.py:_functions": "one for each function in graphs of torch.compile",
    "function/closures/shared_traces.py:_entries": "the last kinds of functions",
    "function/host/progress.py:_while_tests": "the last tests of loops that Python runs",
    "function/retraces.py:_redefinitions": "the last pieces of code",
    "numpy/public.py:STAGED": "filled when wend is imported",
    "ops/contracting.py:_orders": "the last kinds of products",
    "runtime/spool.py:_spools": "weak: goes with the segments",
    "runtime/cache_secret.py:_read": "one for each folder of caches",
    "base/locks.py:_locks": "one for each rank",
    "base/locks.py:_held": "those that a fork holds",
    "runtime/build_fingerprint.py:build_fingerprint": "one text",
    "trace/arrays/shown_text.py:_fields": "weak: goes with the recording",
    "trace/arrays/frozen.py:_holds": "arrays that a recording holds; each is released",
    "runtime/disk_cache.py:_rooms": "one number for each cache folder",
    "runtime/graph_cache.py:_graph_keys": "weak: goes with the graph",
    "runtime/array_boundary.py:_foreign": "one for each class of arrays of a backend",
    "backends/compiled_graph.py:_compiled": "weak: goes with the graph",
}
CONTAINERS = {"dict", "set", "list", "deque", "defaultdict", "OrderedDict", "Counter"}
CONTAINERS |= {"NumberedFunctions"}  # a container of wend's own
WEAK = {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}


def kept() -> Iterator[str]:
    """Empty containers at the top of a module, and functions that remember results."""
    for file in sorted(SOURCES.rglob("*.py")):
        name = file.relative_to(SOURCES).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_empty_container(node.value):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                yield f"{name}:{ast.unparse(target)}"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(map(remembers, node.decorator_list)):
                yield f"{name}:{node.name}"


def is_empty_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, (ast.List, ast.Set)):
        return not value.elts
    if not isinstance(value, ast.Call):
        return False
    function = ast.unparse(value.func).rpartition(".")[2]
    return function in WEAK or (function in CONTAINERS and not value.args)


def remembers(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function).rpartition(".")[2] in ("cache", "lru_cache")


def test_everything_that_is_kept_is_known() -> None:
    assert {*kept()} == {*KNOWN}
