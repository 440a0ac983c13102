"""A worker process, as the one who asks it sees it."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench import threads

ROOT = Path(__file__).parents[1]


class RefusedError(Exception):
    """A peer does not do what it was asked for; the message says why."""


class Remote:
    """Starts a worker, and asks it. A context manager.

    Attributes:
        import_seconds: how long the peer took to import.
        given_up: why nothing more is asked of it.
    """

    import_seconds = 0.0
    given_up = ""

    def __init__(
        self,
        interpreter: str,
        workload: str,
        peer: str,
        core: int | None = None,
        patience: float = 60.0,
        clock: str = "wall",
        cache: str = "",
    ) -> None:
        self.patience = patience
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [interpreter, "-m", "bench.worker", workload, peer]
        self.process = subprocess.Popen(
            [*command, "any" if core is None else str(core), clock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=threads.environment(variables) | {"BENCH_CACHE": cache},
            cwd=ROOT,
        )

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Return the worker's reply.

        Raises:
            RefusedError: the peer refuses, takes longer than `patience` seconds, or crashes.
        """
        if self.given_up:
            raise RefusedError(self.given_up)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write((json.dumps({"do": do, **request}) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise RefusedError(self._last_words()) from None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(self.patience):
                self.process.kill()
                self.given_up = f"no answer in {self.patience:.0f} s"
                raise RefusedError(self.given_up)
        line = self.process.stdout.readline()
        if not line:
            raise RefusedError(self._last_words())
        reply: dict[str, Any] = json.loads(line)
        if "refuses" in reply:
            raise RefusedError(reply["refuses"])
        return reply

    def _last_words(self) -> str:
        status = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"ended with status {status}: {lines[-1][:120] if lines else 'without a word'}"

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()
