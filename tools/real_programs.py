"""Runs published NumPy functions with nothing but the decorator, and compares with plain Python.

    python tools/real_programs.py FOLDER [--only WORD] [--out results.json] [--limit SECONDS]

`tools/real_programs.txt` lists the functions: repository, commit, path, function and inputs. FOLDER
holds a checkout of each repository, named `owner+name`; none of their text is here. Each
function runs in a process of its own: as plain Python, then by `wend.function`, up to three calls.
Value, dtype, output, error and changed arguments must be equal, and the gradient of the first call
must agree with central differences.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import importlib
import io
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.real_corpus import Entry, calls_of, load, read_list  # noqa: E402
from tools.real_outcomes import Outcome, differ, gradient_outcome, is_as_sensitive  # noqa: E402

import wend  # noqa: E402
from wend.base.refusals import is_refusal  # noqa: E402

PLAIN_LIMIT = 5.0
_WIDELY_USED = (
    *("scipy.linalg", "scipy.special", "scipy.stats", "scipy.ndimage", "scipy.spatial.transform"),
    *("scipy.optimize", "scipy.signal", "scipy.integrate", "matplotlib.pyplot", "pandas"),
)


def run_call(function: Any, args: Any, kwargs: Any) -> Outcome:
    """Call a function on copies of its arguments, and say all that a caller could see."""
    args, kwargs = copy.deepcopy((args, kwargs))
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - published programs use the global stream
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value, error = function(*args, **kwargs), None
            if hasattr(value, "__next__"):
                value = list(value)
        except Exception as raised:  # noqa: BLE001 - the error is the outcome
            value, error = None, raised
    return Outcome(value, error, out.getvalue(), (args, kwargs))


def check(entry: Entry, folder: Path, limit: float) -> dict[str, Any]:
    """Return what became of one function: its status, cause, times, and gradient."""
    try:
        module, function = load(entry, folder)
        calls = calls_of(entry, folder, module, function)
        start = time.perf_counter()
        expected = [run_call(function, *c) for c in calls]
        if time.perf_counter() - start > PLAIN_LIMIT:
            return {"status": "not admitted", "cause": "plain Python takes too long"}
        again = [run_call(function, *c) for c in calls]
    except Exception as error:  # noqa: BLE001
        return {"status": "not admitted", "cause": f"{type(error).__name__}: {error}"[:300]}
    if not calls or all(o.error for o in expected):
        cause = repr(expected[0].error)[:300] if calls else "no calls"
        return {"status": "not admitted", "cause": cause}
    if any(differ(a, b) for a, b in zip(expected, again, strict=True)):
        return {"status": "not admitted", "cause": "two plain runs differ"}
    report = _run_compiled(function, calls, expected)
    if report["status"] == "works":
        report["gradient"] = gradient_outcome(function, calls, expected)
    return report


def _run_compiled(function: Any, calls: Any, expected: list[Outcome]) -> dict[str, Any]:
    compiled, seconds = wend.function(function), []
    for n, (call, outcome) in enumerate(zip(calls, expected, strict=True)):
        start = time.perf_counter()
        result = run_call(compiled, *call)
        seconds.append(time.perf_counter() - start)
        error = result.error
        if isinstance(error, RecursionError) and isinstance(outcome.error, RecursionError):
            continue
        if error is not None and is_refusal(error):
            cause = f"{type(error).__name__}: {error}"
            return {"status": "refused", "call": n, "cause": cause, "seconds": seconds}
        difference = differ(outcome, result)
        if difference and not error and _is_as_sensitive(function, call, outcome, result):
            continue
        if difference:
            is_raw = error is not None and outcome.error is None
            if error is not None:
                difference += "\n" + "".join(traceback.format_exception(error)[-6:])
            status = "raw" if is_raw else "different"
            return {"status": status, "call": n, "cause": difference, "seconds": seconds}
    return {"status": "works", "seconds": seconds}


def _is_as_sensitive(function: Any, call: Any, expected: Outcome, found: Outcome) -> bool:
    return is_as_sensitive(lambda moved: run_call(function, *moved), call, expected, found)


def _child(pipe: Any, entry: Entry, folder: Path, limit: float) -> None:
    seconds = int(limit)  # of the processor: how busy the machine is does not matter
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    sys.stderr = sys.stdout = io.StringIO()
    pipe.send(check(entry, folder, limit))
    pipe.close()


def in_process(entry: Entry, folder: Path, limit: float) -> dict[str, Any]:
    """Check an entry in a process of its own, which is ended after `limit` seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, entry, folder, limit))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"status": "slow", "cause": f"more than {limit:g} s of processor time"}
        return {"status": "crash", "cause": f"exit code {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def summary(results: list[dict[str, Any]]) -> str:
    """Return the counts as a table of repositories."""
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for r in results:
        for name in (r["repository"], "**all**"):
            rows[name][r["status"]] += 1
            rows[name]["gradient " + r.get("gradient", {}).get("status", "none")] += 1
    lines = [
        "| repository | functions | work | refused | other | gradients right | refused | wrong |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, c in rows.items():
        admitted = sum(c[s] for s in ("works", "refused", "raw", "different", "slow", "crash"))
        other = admitted - c["works"] - c["refused"]
        lines.append(
            f"| {name} | {admitted} | {c['works']} | {c['refused']} | {other} "
            f"| {c['gradient right']} | {c['gradient refused']} | {c['gradient wrong']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the list, print a line for each function that does not work, and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--list", type=Path, default=ROOT / "tools" / "real_programs.txt")
    options = parser.parse_args()
    for name in _WIDELY_USED:  # once for all processes
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    wend.function(lambda x: x + 1.0)(np.ones(2))
    results = []
    for entry in read_list(options.list):
        if options.only not in str(entry):
            continue
        report = in_process(entry, options.folder, options.limit)
        report |= {"repository": entry.repository, "path": entry.path, "name": entry.name}
        results.append(report)
        if report["status"] not in ("works", "not admitted"):
            print(f"{report['status']}: {entry}: {report['cause'].splitlines()[0]}", flush=True)
        elif report.get("gradient", {}).get("status") in ("wrong", "refused", "raw"):
            print(f"gradient {report['gradient']['status']}: {entry}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))
    print(summary(results))


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main()
