"""One process of several that run a script together: `wend launch` starts it (`docs/scaling.md`).

`python -m wend.backends.jax.process HEARTBEAT COORDINATOR PROCESSES NUMBER SCRIPT ARGUMENTS…`
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from wend.backends.jax.requirements import check_version

check_version("wend launch")  # before JAX is imported, whose error would not say what to install

import jax  # noqa: E402


def run_script(
    script: str,
    arguments: Sequence[str],
    heartbeat: int,
    coordinator: str | None = None,
    processes: int | None = None,
    number: int | None = None,
) -> None:
    """Join the other processes, and run a script as the main program.

    Args:
        script: the file of the script.
        arguments: its own arguments.
        heartbeat: after how many seconds without a sign of life a process counts as dead.
        coordinator: address and port of the first process; None: the environment tells, as that of
            Slurm, Kubernetes and Open MPI does.
        processes: how many processes there are.
        number: the number of this one.
    """
    jax.distributed.initialize(coordinator, processes, number, heartbeat_timeout_seconds=heartbeat)
    sys.argv[:] = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    heartbeat, coordinator, processes, number, script, *arguments = sys.argv[1:]
    run_script(script, arguments, int(heartbeat), coordinator, int(processes), int(number))
