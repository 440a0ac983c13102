"""`python -m tests.fuzz 50000`: a long search; what it finds is kept in tests/regressions.

A failure is made as small as it can be, and its text is written there, where the tests run it.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, seed, settings

import wend
from tests.fuzz.agree import check
from tests.fuzz.example import REGRESSIONS, Example
from tests.fuzz.making import examples
from tests.fuzz.quick import quickly
from wend.passes.dce import dce

BATCH = 250  # examples of one seed: a failure ends them


def search(count: int, number: int) -> tuple[int, Example | None, BaseException | None]:
    """Try some examples; return how many there were, and the smallest that fails, with why."""
    tried, failing = 0, None

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
    @given(examples())
    def run(example: Example) -> None:
        nonlocal tried, failing
        tried += 1
        try:
            check(example)
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


def keep(example: Example, error: BaseException) -> str:
    """Write an example to where the tests find it; return the name of the file."""
    text = without_dead_code(example).to_text()
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:10]}.txt"
    says = str(error).strip().partition("\n")[0][:90]
    REGRESSIONS.mkdir(exist_ok=True)
    (REGRESSIONS / name).write_text(f"# {type(error).__name__}: {says}\n{text}", encoding="utf-8")
    return name


def main(given: Sequence[str] | None = None) -> int:
    """Search as long as the command line says; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, help="how many examples")
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds")
    options = parser.parse_args(given)
    wend.config(verify=False, cache_dir="")
    done, found, start, number = 0, 0, time.perf_counter(), options.seed
    while done < options.count:
        # LLVM's own passes take most of the time: one batch in eight has them.
        with nullcontext() if number % 8 == 7 else quickly():
            tried, example, error = search(min(BATCH, options.count - done), number)
        done, number = done + tried, number + 1
        if error is not None:
            found += 1
            says = str(error).strip().partition("\n")[0][:160]
            kept = keep(example, error) if example is not None else "none was made"
            print(f"{kept}: {type(error).__name__}: {says}", flush=True)
        rate = done / (time.perf_counter() - start)
        print(f"{done} of {options.count}, {found} failing, {rate:.0f}/s", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
