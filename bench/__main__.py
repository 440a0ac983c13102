"""`python -m bench [name ...] [--runs N]`: run measurements, all of them without a name."""

from __future__ import annotations

import argparse

from bench import scalar_while

BENCHES = {"scalar_while": scalar_while.main}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHES))
    parser.add_argument("--runs", type=int, default=9, help="rounds to take medians of")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHES]
    if unknown:
        parser.error(f"no measurement {unknown[0]!r}; there are {', '.join(BENCHES)}")
    for name in given.names or BENCHES:
        BENCHES[name](given.runs)


if __name__ == "__main__":
    main()
