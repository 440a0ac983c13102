"""LLVM's passes over a module."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import llvmlite.binding as binding

from wend.backends.native.math.vector_variants import INLINED_FORMS
from wend.backends.native.target.writer import IN_LOOP

# At level 3 LLVM makes copies of loops for each way that a branch in them may go: four fifths of
# the time for a graph of nested loops, and nothing gained by it.
LEVEL = 2
# In modules of more lines the values at branches are not followed either, which takes longer
# than in proportion.
LARGE, LEVEL_OF_LARGE = 10_000, 1

# A function with more loops than this gives them functions of their own (D25). LLVM vectorises a
# loop, and finds registers, in a time that grows with the whole function: 400 loops in one take
# 9 s, in a function each 3 s. For few it would only add calls.
MANY_LOOPS = 128
# A function with branches that is called in more places is not copied to each of them: 400 sines
# in a row take 1.4 s, with calls 0.5 s.
MANY_CALLS = 32
# Where one loop holds the others it is taken out first, then they are: until no function that was
# taken out has more blocks than this. (Then inner loops of small nests are functions, too.)
MANY_BLOCKS = 2 * MANY_LOOPS
LEVELS = 4


def optimize(text: str, machine: Any, level: int | None = None) -> Any:
    """The module after LLVM's passes, of a level that goes by its size if none is given."""
    module = binding.parse_assembly(_with_calls(text))
    module.verify()
    outlined = False
    if text.count(f"\n{IN_LOOP}") >= MANY_LOOPS:
        module, outlined = _outlined(module, machine)
    if level is None:
        level = LEVEL if outlined or text.count("\n") <= LARGE else LEVEL_OF_LARGE
    options = binding.create_pipeline_tuning_options(speed_level=level)
    # A third of the time to compile, and nothing gained by it
    options.loop_interleaving = options.loop_unrolling = False
    builder = binding.create_pass_builder(machine, options)
    _run(builder.getModulePassManager(), module, builder)
    _inline_forms(module, builder)
    return module


_INLINED = re.compile(r"^define internal [^@]*@([\w.]+)\(.*alwaysinline.*\{\n(?s:.*?)^\}$", re.M)


def _with_calls(text: str) -> str:
    """The module with calls of what is called in many places.

    What has no branches is left alone: in loops it becomes a part of their vectors.
    """
    for found in _INLINED.finditer(text):
        whole, name = found[0], found[1]
        if "\n  br " in whole and text.count(f"@{name}(") > MANY_CALLS:
            text = text.replace(whole, whole.replace("alwaysinline", "noinline", 1))
    return text


def _outlined(module: Any, machine: Any) -> tuple[Any, bool]:
    """The module with the outermost loops as functions; and whether these are many now."""
    known = {function.name for function in module.functions}
    made: list[Any] = []
    for _ in range(LEVELS):
        options = binding.create_pipeline_tuning_options(speed_level=0)
        passes = binding.create_new_module_pass_manager()
        passes.add_loop_simplify_pass()
        passes.add_loop_extract_pass()
        _run(passes, module, binding.create_pass_builder(machine, options))
        made = [f for f in module.functions if f.name not in known and not f.is_declaration]
        if not any(sum(1 for _ in function.blocks) > MANY_BLOCKS for function in made):
            break
    names = {function.name for function in made}
    return _not_inlined(module, names), len(names) >= MANY_LOOPS // 2


def _not_inlined(module: Any, names: Collection[str]) -> Any:
    """The module with functions that stay what they are."""

    def marked(head: re.Match[str]) -> str:
        return f"{head[1]} noinline {{" if head[2] in names else head[0]

    # By the text: llvmlite gives what a function returns the attributes that it should have.
    return binding.parse_assembly(_HEAD.sub(marked, str(module)))


_HEAD = re.compile(r'^(define [^@\n]*@"?([\w.$]+)"?\([^\n]*) \{$', re.M)


def _inline_forms(module: Any, builder: Any) -> None:
    """Make the vector forms of functions a part of the loops that were given them."""
    forms = [f for f in module.functions if f.name.removeprefix("wend.") in INLINED_FORMS]
    if not forms:
        return
    for form in forms:
        form.linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    _run(passes, module, builder)


def _run(passes: Any, module: Any, builder: Any) -> None:
    passes.run(module, builder)
    # llvmlite does not: its class of passes inherits another `_dispose` before its own
    binding.ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
    passes.detach()
