"""Compare programs with Python, and print how they differ.

`python -m tests.semantics FILE…` runs the programs of files; `--seeds A:B` runs random ones, makes
those that differ small, and prints what the equal ones have and why others are refused.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import wend
from tests.fuzz.quick import quickly
from tests.semantics import corpus
from tests.semantics.generator import Generated, generate
from tests.semantics.shrink import shrink
from tests.semantics.tally import Tally
from tests.semantics.world import WAYS, Program, compare


def main() -> None:
    """Print each difference, and how many there are of each kind."""
    parser = argparse.ArgumentParser(prog="python -m tests.semantics", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="programs to run")
    parser.add_argument("--seeds", metavar="A:B", help="run the programs of these seeds")
    parser.add_argument("--ways", default=",".join(WAYS), help="the ways to run them")
    parser.add_argument("--refused", metavar="WORDS", help="print refused programs, too")
    parser.add_argument("--no-shrink", action="store_true", help="print programs as they are")
    options = parser.parse_args()
    ways = options.ways.split(",")
    for path in options.files:
        kinds: Counter[str] = Counter()
        for program, _ in corpus.read(path):
            try:
                difference = compare(program, ways)
            except Exception as error:
                error.add_note(f"in {program.name}")
                raise
            kinds[difference.kind if difference else "equal"] += 1
            if difference:
                print(f"== {program.name}: {difference}")
        print(dict(kinds))
    if options.seeds:
        warnings.simplefilter("ignore")
        logging.raiseExceptions = False  # shrunk programs may log nonsense
        with quickly(), wend.config(cache_dir=""):
            run_seeds(options.seeds, ways, options.refused, options.no_shrink)


def run_seeds(seeds: str, ways: list[str], refused: str | None, no_shrink: bool) -> None:
    """Run the programs of the seeds `A:B`."""
    first, _, last = seeds.partition(":")
    tally, start = Tally(), time.perf_counter()
    for program in _progress(range(int(first), int(last or int(first) + 1))):
        difference = compare(program, ways)
        tally.add(program, difference)
        is_asked = refused is not None and difference and refused in difference.found
        if difference and (difference.kind != "refused" or is_asked):
            small: Program = program if no_shrink else shrink(program, difference)
            difference = compare(small, [difference.way])
            print(f"\n=== {program.name}\n{small}\n{difference}\n", flush=True)
    print(tally)
    print(f"{(time.perf_counter() - start) * 1e3 / max(tally.count, 1):.0f} ms a program")


def _progress(seeds: range) -> Iterator[Generated]:
    for done, seed in enumerate(seeds):
        if done % 50 == 0 and sys.stderr.isatty():
            print(f"\r{done} of {len(seeds)}", end="", file=sys.stderr, flush=True)
        yield generate(seed)


main()
