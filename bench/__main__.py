"""`python -m bench [workload ...]`: run workloads on wend and on every peer that is installed.

Without a name, all of them. `--peers-setup DIR` makes environments with the peers, `--peers DIR`
uses them.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import environments, goals, summary, table, threads, workloads
from bench.figures import Results
from bench.measure import Plan, measure
from bench.peers import CATALOGUE

RESULTS = Path(__file__).parent / "results"


def main(given: list[str] | None = None) -> int:
    """Run what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    known_names = (*workloads.GROUPS, *workloads.NAMES)
    add("names", nargs="*", metavar="workload", help=f"or group of some: {', '.join(known_names)}")
    add("--peers", type=Path, metavar="DIR", help="a folder with environments of peers")
    add("--peers-setup", type=Path, metavar="DIR", help="make these environments, and stop")
    add("--only", metavar="PEERS", help=f"some peers, with commas: {', '.join(CATALOGUE)}")
    add("--runs", type=int, default=9, help="rounds to take medians of (9)")
    add("--patience", type=float, default=60.0, help="seconds to wait for an answer (60)")
    add("--budget", type=float, default=20.0, help="seconds for the rounds of one program (20)")
    add("--core", type=int, default=threads.last_core(), help="where all run; -1: anywhere")
    add(
        "--clock", choices=["wall", "cpu"], default="wall", help="cpu: for a machine that is shared"
    )
    add("--small", action="store_true", help="small arguments, to see whether it runs")
    add("--json", type=Path, metavar="FILE", help="where figures go (bench/results/TIME.json)")
    options = parser.parse_args(given)
    asked = options.only.split(",") if options.only else list(CATALOGUE)
    for what, names, known in (
        ("workload", options.names, known_names),
        ("peer", asked, CATALOGUE),
    ):
        for name in names:
            if name not in known:
                parser.error(f"no {what} {name!r}; there are {', '.join(known)}")
    if options.peers_setup:
        environments.set_up(options.peers_setup)
        return 0
    plan = Plan(
        environments.interpreters(asked, options.peers),
        runs=options.runs,
        patience=options.patience,
        budget=options.budget,
        clock=options.clock,
        core=None if options.core == -1 else options.core,
        small=options.small,
    )
    missing = [CATALOGUE[name].label for name in asked if name not in plan.interpreters]
    if missing:
        print(f"not installed: {', '.join(missing)}\n")
    found = {}
    for name in workloads.named(options.names):
        found[name] = measure(workloads.load(name), plan)
        print("\n".join(table.lines(found[name])), end="\n\n", flush=True)
    print("\n".join((*summary.lines(found), *goals.lines(found))))
    save(found, options.json, options.clock)
    return 0


def save(found: dict[str, Results], file: Path | None, clock: str) -> None:
    """Write the figures as JSON."""
    now = datetime.now(UTC)
    file = file or RESULTS / f"{now:%Y-%m-%dT%H%M%S}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "time": now.isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "system": platform.platform(),
        "processor": processor(),
        "clock": clock,
        "python": platform.python_version(),
        "workloads": [results.as_json() for results in found.values()],
    }
    file.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def processor() -> str:
    """Return the name of the processor, where the system tells."""
    told = Path("/proc/cpuinfo")
    for line in told.read_text().splitlines() if told.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
