"""The LLVM pass pipeline of a module: outlining, inlining and the optimization level."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import llvmlite.binding as binding

from wend.backends.native.math.vector_variants import INLINED_VARIANTS
from wend.backends.native.target.writer import IN_LOOP

# At level 3 LLVM unswitches loops: four fifths of the compile time of a graph of nested loops, and
# no faster code.
DEFAULT_LEVEL = 2
# In modules with more lines, jump threading and value propagation are off as well: their time grows
# faster than the module.
MAX_LINES_AT_DEFAULT_LEVEL, LARGE_MODULE_LEVEL = 10_000, 1

# The loops of a module with at least so many are outlined into functions (D25). The time of the
# vectorizer and the register allocator grows with the whole function: 400 loops take 9 s in one
# function, 3 s in one each. With fewer loops outlining would only add calls.
MIN_LOOPS_TO_OUTLINE = 128
# A function with branches and more call sites than this is not inlined: 400 sines in a row take
# 1.4 s to compile inlined, 0.5 s as calls.
MAX_INLINED_CALLS = 32
# Outlining takes out the outermost loops; it is repeated for nested ones until no outlined function
# has more basic blocks than this, in at most so many rounds. (Then the inner loops of small nests
# become functions, too.)
MAX_OUTLINED_BLOCKS = 2 * MIN_LOOPS_TO_OUTLINE
MAX_OUTLINING_ROUNDS = 4


def optimize(text: str, machine: Any, level: int | None = None) -> Any:
    """Return the module after LLVM's passes; the default level depends on its size."""
    module = binding.parse_assembly(_limit_inlining(text))
    module.verify()
    outlined = False
    if text.count(f"\n{IN_LOOP}") >= MIN_LOOPS_TO_OUTLINE:
        module, outlined = _outline_loops(module, machine)
    if level is None:
        level = (
            DEFAULT_LEVEL
            if outlined or text.count("\n") <= MAX_LINES_AT_DEFAULT_LEVEL
            else LARGE_MODULE_LEVEL
        )
    options = binding.create_pipeline_tuning_options(speed_level=level)
    # They take a third of the compile time, and the code is no faster.
    options.loop_interleaving = options.loop_unrolling = False
    builder = binding.create_pass_builder(machine, options)
    _run(builder.getModulePassManager(), module, builder)
    _inline_vector_variants(module, builder)
    return module


_ALWAYS_INLINED = re.compile(
    r"^define internal [^@]*@([\w.]+)\(.*alwaysinline.*\{\n(?s:.*?)^\}$", re.M
)


def _limit_inlining(text: str) -> str:
    """Mark functions with branches and many call sites as noinline.

    Functions without branches stay inlined, as the vectorizer can widen them.
    """
    for match in _ALWAYS_INLINED.finditer(text):
        definition, name = match[0], match[1]
        if "\n  br " in definition and text.count(f"@{name}(") > MAX_INLINED_CALLS:
            text = text.replace(definition, definition.replace("alwaysinline", "noinline", 1))
    return text


def _outline_loops(module: Any, machine: Any) -> tuple[Any, bool]:
    """Outline loops into functions; return the module and whether there are many of these."""
    original_names = {function.name for function in module.functions}
    new_functions: list[Any] = []
    for _ in range(MAX_OUTLINING_ROUNDS):
        options = binding.create_pipeline_tuning_options(speed_level=0)
        passes = binding.create_new_module_pass_manager()
        passes.add_loop_simplify_pass()
        passes.add_loop_extract_pass()
        _run(passes, module, binding.create_pass_builder(machine, options))
        new_functions = [
            f for f in module.functions if f.name not in original_names and not f.is_declaration
        ]
        if not any(
            sum(1 for _ in function.blocks) > MAX_OUTLINED_BLOCKS for function in new_functions
        ):
            break
    new_names = {function.name for function in new_functions}
    return _mark_noinline(module, new_names), len(new_names) >= MIN_LOOPS_TO_OUTLINE // 2


def _mark_noinline(module: Any, names: Collection[str]) -> Any:
    """Return the module with the named functions marked noinline."""

    def marked(head: re.Match[str]) -> str:
        return f"{head[1]} noinline {{" if head[2] in names else head[0]

    # On the text: llvmlite sets function attributes on the return value instead.
    return binding.parse_assembly(_DEFINE.sub(marked, str(module)))


_DEFINE = re.compile(r'^(define [^@\n]*@"?([\w.$]+)"?\([^\n]*) \{$', re.M)


def _inline_vector_variants(module: Any, builder: Any) -> None:
    """Inline the vector variants that the vectorizer has put into loops."""
    variants = [f for f in module.functions if f.name.removeprefix("wend.") in INLINED_VARIANTS]
    if not variants:
        return
    for variant in variants:
        variant.linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    _run(passes, module, builder)


def _run(passes: Any, module: Any, builder: Any) -> None:
    passes.run(module, builder)
    # llvmlite leaks it: the class inherits another `_dispose` before its own.
    binding.ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
    passes.detach()
