"""`python -m bench.gpu`: `backend="jax"` on a GPU, beside JAX written by hand.

The gradient of an LSTM; that of 100,000 adaptive solves of the predator-prey equations, beside
solves that are masked by hand and have a tape of a given length; and that of an LSTM of twice the
steps whose tape fits on the device, with `memory="offload"`. Each figure is taken in a process of
its own: the minimum of several calls, and the most memory that the device has held.

Where JAX has no GPU, nothing is measured, and it says so. `--small` runs small programs on whatever
JAX has, to see whether they run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MIN_SECONDS, MAX_CALLS = 2.0, 20  # that are timed
SHARE = "0.1"  # of the device's memory, for the tape that is not to fit
CAP = 256  # trips of the tape by hand
MOST_STEPS = 1 << 16
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED", "Out of memory", "MemoryError"
SAME = 1e-3  # of an answer, which is a sum in another order


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the programs are.

    Attributes:
        lstm: steps, sequences and units.
        solves: how many.
        offload: the least number of steps, sequences and units.
    """

    lstm: tuple[int, int, int] = (512, 64, 1024)
    solves: int = 100_000
    offload: tuple[int, int, int] = (64, 256, 1024)


SMALL = Sizes((5, 2, 3), 8, (4, 2, 3))


def lstm(peer: str, sizes: Sizes) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the gradient of an LSTM, and its arguments."""
    from bench.workloads.lstm import WORKLOADS, arguments

    return _gradient(peer, WORKLOADS[0], arguments(*sizes.lstm))


def solves(peer: str, sizes: Sizes) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the gradient of many solves, and their starts and times."""
    import numpy as np

    from bench.workloads import solves

    arguments = solves.scales(sizes.solves), np.full(sizes.solves, 20.0)
    # Records of carries, as the tape by hand has them
    return _gradient(peer, solves.WORKLOADS[0], arguments, "recompute")


def _gradient(
    peer: str, workload: Any, arguments: tuple[Any, ...], memory: str = "keep"
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    from bench import peers
    from bench.peer import make
    from bench.workload import GRADIENT, Refuses

    loaded: Any = peers.load(peer)
    loaded.load()
    name = peer
    if peer == "jax-tape":
        while_loop = loaded.library.while_loop
        loaded.library.while_loop = lambda cond, body, carry, _: while_loop(cond, body, carry, CAP)
    if peer == "wend-jax":
        loaded.wend.config(backend="jax", memory=memory)
        name = "wend"  # the program that is made by `wend.vmap`
    made: Any = make(loaded, name, workload, GRADIENT, arguments)
    fun: Any = made.program if isinstance(made, Refuses) else made
    return fun, arguments


def settled(memory: str, steps: int, sizes: Sizes) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the gradient of an LSTM whose tape is kept where a policy says."""
    import numpy as np

    import wend
    from bench.peers.arrays import like_numpy
    from bench.workloads.lstm import arguments, plain

    library = argparse.Namespace(tanh=np.tanh, sum=np.sum, **like_numpy(np))
    _, sequences, units = sizes.offload
    wend.config(memory=memory, backend="jax")
    return wend.value_and_grad(plain(library), (0, 1, 2)), arguments(steps, sequences, units)


def figures(fun: Callable[..., Any], arguments: tuple[Any, ...]) -> dict[str, float]:
    """Return the seconds of a call, the most bytes that the device has held, and an answer.

    The answer is the sum of the sizes of all numbers that a call gives.
    """
    import jax
    import numpy as np

    inputs = [jax.device_put(x) for x in arguments]
    results = jax.block_until_ready(fun(*inputs))
    answer = sum(float(np.sum(np.abs(np.asarray(x)))) for x in jax.tree.leaves(results))
    del results
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < MIN_SECONDS and len(seconds) < MAX_CALLS):
        start = time.perf_counter()
        jax.block_until_ready(fun(*inputs))
        seconds.append(time.perf_counter() - start)
    statistics = jax.devices()[0].memory_stats() or {}
    peak = statistics.get("peak_bytes_in_use", 0)
    return {"seconds": min(seconds), "bytes": peak, "answer": answer}


def measured(*arguments: str, share: str = "") -> dict[str, float] | None:
    """Return the figures of a process; None where the device has too little memory.

    Raises:
        RuntimeError: the process ends with another error.
    """
    environment = {**os.environ, **({"XLA_PYTHON_CLIENT_MEM_FRACTION": share} if share else {})}
    command = [sys.executable, "-m", "bench.gpu", *arguments]
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if run.returncode:
        if not any(text in run.stderr for text in OUT_OF_MEMORY):
            raise RuntimeError(f"{' '.join(arguments)} fails:\n{run.stderr}")
        return None
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def platform() -> str:
    """Return the platform of JAX's devices, as another process has it."""
    command = [sys.executable, "-c", "import jax; print(jax.default_backend())"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    return run.stdout.strip() or run.stderr.strip().splitlines()[-1]


def compare(name: str, peer: str, options: list[str], goal: float) -> None:
    """Print what wend and a peer take for a program."""
    own, other = (measured(name, which, *options) for which in ("wend-jax", peer))
    if own is None or other is None:
        print(f"{name}: does not fit")
        return
    if abs(own["answer"] - other["answer"]) > SAME * abs(other["answer"]):
        raise AssertionError(f"{name}: {own['answer']} and {other['answer']}")
    ratio = own["seconds"] / other["seconds"]
    tape = f"; {own['bytes'] / other['bytes']:.2f}× its memory" if other["bytes"] else ""
    tape += " (goal ≤ 2×)" if tape and peer == "jax-tape" else ""
    times = f"{1e3 * own['seconds']:.1f} ms, {peer} {1e3 * other['seconds']:.1f}"
    print(f"{name}, gradient: {times}: {ratio:.2f}× (goal ≤ {goal}×){tape}", flush=True)


def compare_offload(sizes: Sizes, options: list[str]) -> None:
    """Print what twice the steps that fit take with their tape in the memory of the host."""
    steps, kept = sizes.offload[0], None
    while steps <= (MOST_STEPS if not options else sizes.offload[0]):
        found = measured("settled", f"keep:{steps}", *options, share=SHARE)
        if found is None:
            break
        steps, kept = 2 * steps, found
    if kept is None:
        print("offload: not run")
        return
    moved = measured("settled", f"offload:{steps}", *options, share=SHARE)
    ratio = "does not run" if moved is None else f"{moved['seconds'] / (2 * kept['seconds']):.2f}×"
    print(f"offload: {steps} steps, {steps // 2} fit: {ratio} a step (goal ≤ 1.3×)", flush=True)


def main(given: list[str] | None = None) -> int:
    """Print the figures, or those of one program in this process; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--small", action="store_true", help="small programs, on any device")
    parser.add_argument("program", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    sizes, options = (SMALL, ["--small"]) if asked.small else (Sizes(), [])
    if asked.program:
        import jax

        jax.config.update("jax_enable_x64", True)  # or the solves of JAX have numbers of 32 bits
        name, peer = asked.program
        memory, _, steps = peer.partition(":")
        made = settled(memory, int(steps), sizes) if steps else globals()[name](peer, sizes)
        print(json.dumps(figures(*made)))
        return 0
    found = platform()
    if found not in ("gpu", "cuda", "rocm") and not asked.small:
        print(f"NOT RUN: JAX has no GPU here, but {found!r}: nothing was measured")
        return 0
    compare("lstm", "jax", options, 1.1)
    compare("solves", "jax-tape", options, 1.2)
    compare_offload(sizes, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
