"""`wend launch`: runs a script in several processes, which are one program of JAX."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# How long the others may go on when one process has failed; JAX ends them after a heartbeat
PATIENCE = 30.0


def run(
    script: Path,
    arguments: Sequence[str],
    processes: int | None,
    devices: int | None,
    heartbeat: int,
) -> int:
    """Run a script in several processes; return the exit status of the first that fails, or 0.

    Args:
        script: the file.
        arguments: the script's own arguments.
        processes: how many processes run on this machine; None: one, and its environment tells
            which of how many it is, as that of Slurm, Kubernetes and Open MPI does.
        devices: how many devices of the CPU each process has; None: as many as JAX finds.
        heartbeat: after how many seconds without a sign of life a process counts as dead.
    """
    if devices is not None:
        os.environ["JAX_NUM_CPU_DEVICES"] = str(devices)
    if processes is None:
        from wend.backends.jax.process import run_script

        run_script(str(script), arguments, heartbeat)
        return 0
    address = f"127.0.0.1:{_free_port()}"
    command = [sys.executable, "-m", "wend.backends.jax.process", str(heartbeat), address]
    running = [
        subprocess.Popen([*command, str(processes), str(k), str(script), *arguments])
        for k in range(processes)
    ]
    try:
        return _status(running, heartbeat + PATIENCE)
    except KeyboardInterrupt:  # the terminal has sent it to all of them
        return 128 + signal.SIGINT
    finally:
        _end(running)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _status(running: Sequence[subprocess.Popen[bytes]], patience: float) -> int:
    """Wait for processes; when one has failed the others have so many seconds left."""
    pending = dict(enumerate(running))
    failed, until = 0, float("inf")
    while pending and time.monotonic() < until:
        for number, process in [*pending.items()]:
            status = process.poll()
            if status is None:
                continue
            del pending[number]
            if status and not failed:
                print(f"wend launch: process {number} {_ended(status)}", file=sys.stderr)
                failed = status if status > 0 else 128 - status
                until = time.monotonic() + patience
        time.sleep(0.05)
    for number in pending:
        print(f"wend launch: process {number} is stopped", file=sys.stderr)
    return failed


def _ended(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes that run, and wait for them."""
    for stop in (subprocess.Popen.terminate, subprocess.Popen.kill):
        for process in running:
            if process.poll() is None:
                stop(process)
        for process in running:
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                continue
