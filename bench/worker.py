"""The process in which one peer runs one workload: `bench.worker WORKLOAD PEER CORE CLOCK`.

It reads requests as lines of JSON and answers each by one line. It imports what the peer needs and
no more, so it runs in an environment where wend is not installed.

    {"do": "load"}                                    → {"seconds": …, "version": …}
    {"do": "make", "measure": …, "small": …}          → {"seconds": …, "note": …}
    {"do": "call", "small": …}                        → {"seconds": …, "answer": […]}
    {"do": "time", "calls": n, "warm": …}             → {"seconds": …}, of n calls, after one more
    {"do": "memory", "small": …}                      → {"bytes": …}

`small` says which of the workload's arguments are meant.

A request that the peer refuses is answered by {"refuses": why}; one for a program that is none of
its business by {"refuses": ""}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import repeat
from typing import Any, TextIO

from bench import memory, peers, threads, workloads
from bench.peer import make
from bench.workload import Refuses

Answer = dict[str, Any]
MEMORY_LIMIT = 8 << 30
# What passes, or what this process uses of it: the same but on a machine that others use as well.
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


class Worker:
    """Answers requests; the last program that was made is the one that is called."""

    def __init__(self, workload: str, peer: str, clock: str = "wall") -> None:
        self.now = CLOCKS[clock]
        self.names = workload, peer
        self.program: Any = None
        self.arguments: tuple[Any, ...] = ()
        self.why = ""  # an error of the next call is what was expected
        self.programs: dict[str, tuple[Any, str]] = {}

    def load(self) -> Answer:
        workload, peer = self.names
        start = self.now()
        self.peer = peers.load(peer)
        version = self.peer.load()
        seconds = self.now() - start
        self.workload = workloads.load(workload)  # which imports NumPy, if it is not there yet
        return {"seconds": seconds, "version": version}

    def make(self, measure: str, small: bool) -> Answer:
        self._take(small)
        start, why = self.now(), ""
        if measure not in self.programs:
            made = make(self.peer, self.names[1], self.workload, measure, self.arguments)
            if made is None:
                return {"refuses": ""}
            if isinstance(made, Refuses) and made.program is None:
                return {"refuses": made.why}
            if isinstance(made, Refuses):
                why = made.why
                made = made.program
            self.programs[measure] = made, why
        self.program, self.why = self.programs[measure]
        return {"seconds": self.now() - start, "note": self.peer.note}

    def call(self, small: bool) -> Answer:
        self._take(small)
        start = self.now()
        result = self.program(*self.arguments)
        self.peer.finish(result)
        seconds = self.now() - start
        return {"seconds": seconds, "answer": self.peer.numbers(result)}

    def time(self, calls: int, warm: bool) -> Answer:
        program, arguments = self.program, self.arguments
        if warm:  # fills caches, after the others had their turn
            self.peer.finish(program(*arguments))
        start = self.now()
        for _ in repeat(None, calls):
            result = program(*arguments)
        self.peer.finish(result)
        return {"seconds": self.now() - start}

    def memory(self, small: bool) -> Answer:
        self._take(small)
        return {
            "bytes": memory.growth(lambda: self.peer.finish(self.program(*self.arguments))),
        }

    def answer(self, do: str, request: dict[str, Any]) -> Answer:
        try:
            reply: Answer = getattr(self, do)(**request)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a library raises
            return {"refuses": self.why or short(error)}
        return reply

    def _take(self, small: bool) -> None:
        given = self.workload.small if small else self.workload.arguments
        self.arguments = self.peer.arguments(given)


def short(error: BaseException) -> str:
    """Return an error as a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:160]


def serve(worker: Worker, requests: TextIO, replies: TextIO) -> None:
    for line in requests:
        request = json.loads(line)
        print(json.dumps(worker.answer(request.pop("do"), request)), file=replies, flush=True)


def main() -> None:
    workload, peer, core, clock = sys.argv[1:]
    threads.pin(int(core) if core != "any" else None)
    memory.limit(MEMORY_LIMIT)
    # Libraries print what they like; replies go out by a descriptor of their own.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(Worker(workload, peer, clock), sys.stdin, replies)


if __name__ == "__main__":
    main()
