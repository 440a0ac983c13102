"""Compare random calls with NumPy: `python -m tests.numpy.oracle --seeds A:B`."""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter

import wend
from tests.numpy.oracle.calls import make_call
from tests.numpy.oracle.search import differences


def main() -> None:
    """Print the differences, grouped by function."""
    parser = argparse.ArgumentParser(prog="python -m tests.numpy.oracle", description=__doc__)
    parser.add_argument("--seeds", metavar="A:B", default="0:2000")
    parser.add_argument("--name", help="calls of this function only")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--show", type=int, default=3, help="how many to print of a function")
    parser.add_argument("--refused", action="store_true", help="print what is refused, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    first, last = map(int, options.seeds.split(":"))
    start = time.perf_counter()
    with wend.config(cache_dir=""):
        calls = [make_call(seed, options.name) for seed in range(first, last)]
        counts: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        for call, words in differences(calls, options.backend):
            if words.startswith("refused"):
                refused[call.name] += 1
                if options.refused and refused[call.name] <= options.show:
                    print(f"{call}\n    {words}", flush=True)
                continue
            counts[call.name] += 1
            if counts[call.name] <= options.show:
                print(f"{call}\n    {words}", flush=True)
    print(f"{len(calls)} calls, {sum(counts.values())} differ: {dict(counts.most_common())}")
    print(f"refused: {dict(refused.most_common())}")
    print(f"{(time.perf_counter() - start) * 1e3 / max(len(calls), 1):.1f} ms a call")


main()
