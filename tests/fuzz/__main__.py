"""`python -m tests.fuzz --minutes 60`: a long search; what it finds is kept in tests/regressions.

Graphs, whole programs and programs of numbers under `vmap` take turns, in batches of one seed. A
failure ends its batch; it is made as small as it can be, and its text is written there, where the
tests run it. What was met before in a batch is not run again, nor counted.

A program runs plainly, eagerly and by the interpreter, and its gradient by the interpreter; plain
Python decides of the value, and differences of the plain function of the gradient. The costly ways
take turns, a batch each (`TURNS`): values of several calls, gradients, tangents and second
gradients, in native code that is strict or not, of a traced function or of a plain one. A graph and
its gradient run by the interpreter, and natively in strict mode or not, in turn. LLVM's own passes
run in every seventeenth batch. The tests do all of this to each of a few.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

import wend
from tests.fuzz.agree import check
from tests.fuzz.check import check_program
from tests.fuzz.example import REGRESSIONS, Example
from tests.fuzz.making import examples
from tests.fuzz.mapped import check_mapped, mapped_programs
from tests.fuzz.program import Program
from tests.fuzz.quick import quickly
from tests.fuzz.share import TURNS
from tests.fuzz.writing import programs
from wend.ir import to_text
from wend.passes.dce import dce


@dataclass(frozen=True)
class Searched:
    """What is made at random.

    Attributes:
        made: the strategy that makes it.
        check: what raises if it fails, in the batch of a number.
        batch: how many have one seed; a failure ends them.
        suffix: of the files that keep what fails.
    """

    made: Any
    check: Callable[[Any, int], None]
    batch: int
    suffix: str


SEEN: Counter[str] = Counter()  # what became of the programs


def check_graph(example: Example, number: int) -> None:
    """Natively in strict mode or not, in turn."""
    check(example, modes=(("strict", "loose")[number % 2],))


def check_in_turn(program: Program, number: int) -> None:
    """In a share of the costly ways."""
    check_program(program, share=TURNS[number % len(TURNS)], seen=SEEN)


def check_elements(program: Program, _: int) -> None:
    """Under `vmap`."""
    check_mapped(program, seen=SEEN)


def text_of(made: Any) -> str:
    """What tells a program or a graph from another."""
    return to_text(made.graph) if isinstance(made, Example) else made.text


SEARCHED = {
    "graphs": Searched(examples(), check_graph, 250, ".txt"),
    "programs": Searched(programs(), check_in_turn, 100, ".py"),
    "mapped": Searched(mapped_programs(), check_elements, 40, ".mapped.py"),
}


def search(
    searched: Searched, count: int, number: int, until: float
) -> tuple[int, Any, BaseException | None]:
    """Try some; return how many there were, and the smallest that fails, with why."""
    tried, failing = 0, None
    met: set[str] = set()  # Hypothesis makes a third of the programs again

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(searched.made)
    def run(example: Any) -> None:
        nonlocal tried, failing
        if failing is None and time.perf_counter() > until:
            return
        if failing is None:
            text = text_of(example)
            if text in met:
                return
            met.add(text)
            tried += 1
        try:
            searched.check(example, number)
        except BaseException:
            failing = example  # the last one that Hypothesis tries is the smallest
            raise

    try:
        run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return tried, failing, error
    return tried, None, None


def without_dead_code(example: Example) -> Example:
    """The same example with what no result needs left out, if it fails then, too."""
    smaller = replace(example, graph=dce(example.graph))
    try:
        check(smaller)
    except Exception:
        return smaller
    return example


def keep(example: Any, suffix: str, error: BaseException) -> str:
    """Write an example to where the tests find it; return the name of the file."""
    smallest = without_dead_code(example) if isinstance(example, Example) else example
    text = smallest.to_text()
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:10]}{suffix}"
    says = str(error).strip().partition("\n")[0][:90]
    REGRESSIONS.mkdir(exist_ok=True)
    (REGRESSIONS / name).write_text(f"# {type(error).__name__}: {says}\n{text}", encoding="utf-8")
    return name


def turns(kinds: Sequence[str], first: int) -> Iterator[tuple[str, int]]:
    """Kinds and seeds without end."""
    number = first
    while True:
        for kind in kinds:
            yield kind, number
        number += 1


def print_seen() -> None:
    """Print what became of the programs."""
    print("".join(f"{count:7} {what}\n" for what, count in SEEN.most_common()), end="", flush=True)


def main(given: Sequence[str] | None = None) -> int:
    """Search as long as the command line says; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", help="how many examples, at most")
    parser.add_argument("--minutes", type=float, help="for how long, at most")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first of the seeds")
    parser.add_argument("--only", choices=list(SEARCHED), help="instead of all")
    options = parser.parse_args(given)
    if options.count is None and options.minutes is None:
        parser.error("say how many, or for how many minutes")
    most = options.count or sys.maxsize
    wend.config(verify=False, cache_dir="")
    warnings.simplefilter("ignore")
    done: Counter[str] = Counter()
    found, start = 0, time.perf_counter()
    until = start + 60 * options.minutes if options.minutes is not None else float("inf")
    for kind, number in turns([options.only] if options.only else list(SEARCHED), options.seed):
        count = min(SEARCHED[kind].batch, most - done.total())
        if not count or time.perf_counter() > until:
            break
        # LLVM's own passes take most of the time. 17 has no divisor that the turns have, so in time
        # they are met with all of these.
        with nullcontext() if number % 17 == 16 else quickly():
            tried, example, error = search(SEARCHED[kind], count, number, until)
        done[kind] += tried
        if error is not None:
            found += 1
            says = str(error).strip().partition("\n")[0][:160]
            kept = "none was made"
            if example is not None:
                kept = keep(example, SEARCHED[kind].suffix, error)
            print(f"{kept}: {type(error).__name__}: {says}", flush=True)
        rate = done.total() / (time.perf_counter() - start)
        tally = ", ".join(f"{n} {what}" for what, n in done.items())
        print(f"seed {number}: {tally}, {found} failing, {rate:.1f}/s", flush=True)
        if number % 16 == 0:
            print_seen()
    print_seen()
    return 1 if found else 0


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)  # compiling makes much that lives on: a tenth of the time
    sys.exit(main())
