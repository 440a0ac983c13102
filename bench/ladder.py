"""`python -m bench.ladder`: how first calls grow with the number of operations in a program.

Each figure is a median of calls in fresh processes on one core, with no machine code from before:
tracing, differentiation, compilation and the run. Imports are told apart. A gradient is a value and
gradient in one call. Programs of a kind and size are the same text for wend and JAX, but that JAX
has its loops and branches by functions. *Growth* is the exponent between the last two sizes that
are ten times apart: 1 where ten times the operations take ten times as long.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import environ
from pathlib import Path
from typing import Any

from bench import digest, memory, threads
from bench.environments import first_with
from bench.ladder_programs import KINDS
from bench.worker import CLOCKS, MEMORY_LIMIT

SIZES = (30, 100, 300, 1_000, 3_000, 10_000)
FORMS = ("value", "gradient")
NEEDS = {"wend": ("numpy", "optree", "llvmlite"), "jax": ("jax",)}
MOST_OF_JAX, MOST_GROWTH = 1.0, 1.1  # the goals
TOLERANCE = 1e-6


@dataclass(slots=True)
class Rung:
    """What a library did with a program of one size.

    Attributes:
        samples: seconds of first calls.
        imports: seconds of imports.
        answer: the numbers that stand for the result.
        why: why there are none.
    """

    samples: list[float] = field(default_factory=list)
    imports: list[float] = field(default_factory=list)
    answer: list[float] = field(default_factory=list)
    why: str = ""

    @property
    def seconds(self) -> float | None:
        return statistics.median(self.samples) if self.samples else None


# Kind, form and library → size → what was measured
Ladder = dict[tuple[str, str, str], dict[int, Rung]]


def first_call(library: str, kind: str, form: str, size: int, clock: str) -> dict[str, Any]:
    """Return the seconds of the import and of the first call in this process, and the answer."""
    memory.limit(MEMORY_LIMIT)
    now = CLOCKS[clock]
    import numpy as np

    start = now()
    wrap, finish = OPENED[library](form)
    imported = now() - start
    text, argument = KINDS[kind](size, library == "jax", np)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"  # wend reads the text of functions
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("program", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        start = now()
        result = finish(wrap(module.program)(argument))
        seconds = now() - start
    return {"import": imported, "seconds": seconds, "answer": digest.numbers(flat(result))}


def flat(result: Any) -> Any:
    """Return a result with the values of dicts in their place."""
    if isinstance(result, dict):
        return [flat(result[key]) for key in sorted(result)]  # JAX sorts keys
    return [*map(flat, result)] if isinstance(result, (tuple, list)) else result


def open_wend(form: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Import wend; return what compiles a function, and what waits for a result."""
    import wend

    wend.config(cache_dir="", threads=1)
    return wend.function if form == "value" else wend.value_and_grad, lambda result: result


def open_jax(form: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Import JAX; the same of it."""
    import jax
    import jax.numpy

    def wrap(program: Any) -> Any:
        return jax.jit(program if form == "value" else jax.value_and_grad(program))

    return wrap, jax.block_until_ready


OPENED = {"wend": open_wend, "jax": open_jax}


def measure(options: argparse.Namespace, pythons: Mapping[str, str]) -> Ladder:
    """Run all programs, libraries in turns; print each kind and form when it is there."""
    ladder: Ladder = {}
    for kind in options.names or KINDS:
        for form in options.forms.split(","):
            rows = {library: ladder.setdefault((kind, form, library), {}) for library in pythons}
            for size in map(int, options.sizes.split(",")):
                for run in range(options.runs):
                    for library, row in rows.items():
                        rung = row.setdefault(size, Rung())
                        slow = any(x.why for x in row.values()) or (run and max(rung.samples) > 20)
                        if not slow:
                            _sample(rung, options, pythons[library], library, kind, form, size)
            print("\n".join(lines(kind, form, rows)), end="\n\n", flush=True)
    return ladder


def _sample(
    rung: Rung, options: argparse.Namespace, python: str, library: str, *program: Any
) -> None:
    command = [python, "-m", "bench.ladder", "--one", library, *map(str, program), options.clock]
    seconds = options.patience if options.clock == "wall" else None
    try:
        run = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=threads.environment(environ),
            preexec_fn=partial(_hold, options),
        )
    except subprocess.TimeoutExpired:
        rung.why = f"> {options.patience}"
        return
    if run.returncode:
        is_slow = run.returncode == -signal.SIGXCPU
        rung.why = f"> {options.patience}" if is_slow else "fails"
        print(*run.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return
    told = json.loads(run.stdout.splitlines()[-1])
    rung.samples.append(told["seconds"])
    rung.imports.append(told["import"])
    rung.answer = told["answer"]


def _hold(options: argparse.Namespace) -> None:
    """Keep a process on its core, and to the processor time that it may take."""
    threads.pin(None if options.core == -1 else options.core)
    if options.clock == "cpu":
        resource.setrlimit(resource.RLIMIT_CPU, (options.patience, options.patience + 1))


def lines(kind: str, form: str, rows: Mapping[str, dict[int, Rung]]) -> list[str]:
    """Return the table of a kind and form, in seconds."""
    sizes = list(next(iter(rows.values())))
    head = f"{kind}, {form}"
    table = [f"{head:<22}" + "".join(f"{size:>10,}" for size in sizes) + f"{'growth':>10}"]
    for library, row in rows.items():
        cells = (f"{x.seconds:.3f}" if x.seconds else x.why or "–" for x in row.values())
        grown = growth(row)
        end = f"{grown:.2f}" if grown is not None else "–"
        table.append(f"  {library:<20}" + "".join(f"{cell:>10}" for cell in (*cells, end)))
    if len(rows) > 1:
        cells = ("–" if r is None else f"{r:.2f}×" for r in ratios(rows).values())
        table.append(f"  {'wend over JAX':<20}" + "".join(f"{cell:>10}" for cell in cells))
        table += [f"  answers differ at {size:,}" for size in sizes if differ(rows, size)]
    return table


def ratios(rows: Mapping[str, dict[int, Rung]]) -> dict[int, float | None]:
    """Return how many times as long as JAX's wend's first call takes, by size."""
    pairs = {size: (rung.seconds, rows["jax"][size].seconds) for size, rung in rows["wend"].items()}
    return {size: a / b if a and b else None for size, (a, b) in pairs.items()}


def growth(row: Mapping[int, Rung]) -> float | None:
    """Return the exponent between the last two sizes that are ten times apart."""
    done = {size: rung.seconds for size, rung in row.items() if rung.seconds}
    ends = [size for size in done if 10 * size in done]
    return math.log10(done[10 * ends[-1]] / done[ends[-1]]) if ends else None


def differ(rows: Mapping[str, dict[int, Rung]], size: int) -> bool:
    """Return whether wend and JAX give different results."""
    own, other = (rows[library][size].answer for library in ("wend", "jax"))
    if not own or not other:
        return False
    scale = max(1e-300, *map(abs, other))
    return max(abs(a - b) for a, b in zip(own, other, strict=True)) > TOLERANCE * scale


def verdicts(ladder: Ladder) -> list[str]:
    """Say which goals are met."""
    forms = dict.fromkeys((kind, form) for kind, form, _ in ladder)
    both = {
        key: {lib: ladder[*key, lib] for lib in NEEDS if (*key, lib) in ladder} for key in forms
    }
    told = []
    for (kind, form), rows in both.items():
        over = [
            f"{ratio:.2f}× at {size:,}"
            for size, ratio in (ratios(rows).items() if len(rows) > 1 else ())
            if ratio is not None and ratio > MOST_OF_JAX
        ]
        grown = growth(rows.get("wend", {}))
        if grown is not None and grown > MOST_GROWTH:
            over.append(f"growth {grown:.2f}")
        goal = f"goals ≤ {MOST_OF_JAX:g}× JAX at every size, growth ≤ {MOST_GROWTH}"
        told.append(f"{kind}, {form}: {goal}, {'not met: ' + ', '.join(over) if over else 'met'}")
    return told


def imports(ladder: Ladder) -> str:
    """Say how long imports take."""
    of: dict[str, list[float]] = {}
    for (_, _, library), row in ladder.items():
        of.setdefault(library, []).extend(x for rung in row.values() for x in rung.imports)
    told = (f"{library} {statistics.median(x):.3f} s" for library, x in of.items() if x)
    return f"imports, after NumPy's: {', '.join(told)}"


def main(given: Sequence[str] | None = None) -> int:
    """Print the ladder; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.ladder", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="kind", help=f"one of {', '.join(KINDS)}; all without one")
    add("--sizes", default=",".join(map(str, SIZES)), help="numbers of operations")
    add("--forms", default=",".join(FORMS), help="value,gradient")
    add("--only", default=",".join(NEEDS), help="wend,jax")
    add("--peers", type=Path, metavar="DIR", help="a folder with environments of peers")
    add("--runs", type=int, default=3, help="calls to take medians of (3); one if it takes 20 s")
    add("--patience", type=int, default=60, help="seconds to wait for a process (60)")
    add("--core", type=int, default=threads.last_core(), help="where all run; -1: anywhere")
    add("--clock", choices=[*CLOCKS], default="wall", help="cpu: for a machine that is shared")
    add("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.one:
        library, kind, form, size, clock = options.one
        print(json.dumps(first_call(library, kind, form, int(size), clock)))
        return 0
    asked = options.only.split(",")
    pythons = first_with({library: NEEDS[library] for library in asked}, options.peers)
    ladder = measure(options, pythons)
    print("\n".join((*verdicts(ladder), imports(ladder))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
