"""The LLVM pass pipeline of a module: inlining and the optimization level."""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as binding

from wend.backends.native.math.library import called_definition
from wend.backends.native.math.vector_variants import CALLED_SUFFIX, inlined_variants

# At level 3 LLVM unswitches loops: four fifths of the compile time of a graph of nested loops, and
# no faster code.
DEFAULT_LEVEL = 2
# Where a function has more lines, jump threading and value propagation are off as well: their time
# grows faster than the function.
MAX_LINES_AT_DEFAULT_LEVEL, LARGE_FUNCTION_LEVEL = 10_000, 1

# In shorter functions loops are unrolled: a quarter less for loops whose trips are a few operations
# on numbers, and a sixth more to compile.
MAX_LINES_OF_UNROLLED = 600

# A function with more call sites than this is not inlined. A loop over 100 operations, of which 20
# are sines and 20 tanhs, compiles in 28 ms instead of 93, its gradient in 283 instead of 523, and
# takes 3 % longer to run.
MAX_INLINED_CALLS = 12
# The same where the module has no loop, so that each call runs once: with 20 sines and 20 tanhs
# among 100 operations, calls compile in 80 ms and inlined code in 125, and both take 0.8 µs to run.
MAX_INLINED_CALLS_OUTSIDE_LOOPS = 4
# Functions without branches are called, too, if they have as many lines: 133 tanhs were 5,000 of
# 6,600 instructions.
MIN_CALLED_LINES = 10


def optimize(text: str, machine: Any, level: int | None = None) -> Any:
    """Return the module after LLVM's passes; the default level depends on its size."""
    module = binding.parse_assembly(_limit_inlining(text))
    module.verify()
    longest = max(part.count("\n") for part in text.split("\n}\n"))
    if level is None:
        level = DEFAULT_LEVEL if longest <= MAX_LINES_AT_DEFAULT_LEVEL else LARGE_FUNCTION_LEVEL
    options = binding.create_pipeline_tuning_options(speed_level=max(level, 0))
    options.loop_interleaving = False  # the code is no faster
    options.loop_unrolling = longest <= MAX_LINES_OF_UNROLLED
    builder = binding.create_pass_builder(machine, options)
    run_passes(builder.getModulePassManager(), module, builder)
    _inline_vector_variants(module, builder)
    return module


_ALWAYS_INLINED = re.compile(
    r"^define internal [^@]*@([\w.]+)\(.*alwaysinline.*\{\n(?s:.*?)^\}$", re.M
)


def _limit_inlining(text: str) -> str:
    """Have functions with many call sites called, not inlined.

    In a module with loops those without branches get a vector variant, for the vectorizer.
    """
    has_loop = _has_loop(text)
    most = MAX_INLINED_CALLS if has_loop else MAX_INLINED_CALLS_OUTSIDE_LOOPS
    for match in _ALWAYS_INLINED.finditer(text):
        definition, name = match[0], match[1]
        if text.count(f"@{name}(") <= most:
            continue
        called: str | None = definition.replace("alwaysinline", "noinline", 1)
        if "\n  br " not in definition:
            if definition.count("\n") < MIN_CALLED_LINES:
                continue
            if has_loop:
                called = called_definition(name.removeprefix("wend."))
        text = text.replace(definition, called or definition)
    return _VARIANT.sub(lambda match: _limited_variant(match, text, most), text)


# A vector variant that is inlined into loops
_VARIANT = re.compile(r"^define [^\n]*@([\w.]+)\.v\d+\([^\n]*alwaysinline", re.M)


def _limited_variant(match: re.Match[str], text: str, most: int) -> str:
    """Return the head of a vector variant: one of many calls is called."""
    is_called = text.count(f"@{match[1]}(") > most
    return match[0].replace("alwaysinline", "noinline") if is_called else match[0]


_LABELS = re.compile(r"^([\w.]+):|label %([\w.]+)", re.M)


def _has_loop(text: str) -> bool:
    """Return whether a function of a module has a branch to a label above it."""
    for function in text.split("\n}\n"):
        above: set[str] = set()
        for label, target in _LABELS.findall(function):
            if label:
                above.add(label)
            elif target in above:
                return True
    return False


def _inline_vector_variants(module: Any, builder: Any) -> None:
    """Inline the vector variants that the vectorizer has put into loops, but those of many calls.

    Those that nothing calls are removed.
    """
    inlined = inlined_variants()
    variants = [
        f
        for f in module.functions
        if f.name.removeprefix("wend.") in inlined or CALLED_SUFFIX in f.name
    ]
    if not variants:
        return
    for variant in variants:
        variant.linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    run_passes(passes, module, builder)


def run_passes(passes: Any, module: Any, builder: Any) -> None:
    """Run a pass manager on a module, and free it."""
    passes.run(module, builder)
    # llvmlite leaks it: the class inherits another `_dispose` before its own.
    binding.ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
    passes.detach()
