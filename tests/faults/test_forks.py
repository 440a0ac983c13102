"""A fork at any moment: whatever other threads do, its child computes.

Each case is a program in a process of its own, as in `test_faults.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.test_faults import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")

FORKS = '''
def fork(work, seconds=30):
    """What becomes of a child that does some work: "right", "wrong", or "hangs"."""
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return "right" if status == 0 else "wrong"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"

called = wend.function(lambda x: wnp.sin(x).sum())
assert np.isclose(called(np.ones(5)), 5 * np.sin(1.0))

def compute():
    new = wend.function(lambda x: wnp.cos(x).sum() + 1.0)
    return (
        np.isclose(called(np.ones(5)), 5 * np.sin(1.0))
        and np.isclose(called(np.ones(7)), 7 * np.sin(1.0))
        and np.isclose(new(np.ones(5)), 5 * np.cos(1.0) + 1.0)
        and np.allclose(wend.grad(new)(np.ones(5)), -np.sin(1.0))
        and gc.isenabled()
    )

numbers = iter(range(10**9))

def compile_another():
    k = float(next(numbers))
    wend.grad(wend.function(lambda x: wnp.tanh(x * k).sum()))(np.ones(3))
'''


def test_while_threads_compile(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        f"""{FORKS}
start_daemons(compile_another)
for k in range(6):
    time.sleep(0.013 * k)
    print(fork(compute))
sys.stdout.flush()
os._exit(0)
""",
    )
    assert printed == "right\n" * 6


def test_from_a_host_call_and_from_a_trace_while_threads_compile(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        f"""{FORKS}
start_daemons(compile_another)

@wend.do_not_capture
def note(where, ready):  # in a trace the collector is off
    print(where, fork(lambda: ready() or compute()))

def host(x):
    note("host", lambda: False)
    return x

def fun(x):
    note("trace", lambda: gc.enable())
    return wend.py_function(host, wend.TensorSpec((), float), x) + 1.0

print(wend.function(fun)(1.0))
sys.stdout.flush()
os._exit(0)
""",
    )
    assert printed == "trace right\nhost right\n2.0\n"


@pytest.mark.parametrize("backend", ["native", "dataflow"])
def test_while_a_loop_runs_on_a_thread(tmp_path: Path, backend: str) -> None:
    printed = run(
        tmp_path,
        f"""{FORKS}
iterate = wend.function(
    lambda x: wend.fori_loop(0, 6, lambda i, y: np.tanh(np.sin(y)), x), backend="{backend}"
)
x = np.ones((300, 300))
iterate(x)
start_daemons(lambda: iterate(x))
for k in range(4):
    time.sleep(0.013 * k)
    print(fork(lambda: compute() and np.isfinite(iterate(x)).all()))
sys.stdout.flush()
os._exit(0)
""",
    )
    assert printed == "right\n" * 4


def test_no_lock_of_the_process_is_left_taken(tmp_path: Path) -> None:
    """Every lock that a module, object or property of wend or llvmlite has."""
    printed = run(
        tmp_path,
        f"""{FORKS}
wend.function(lambda x: wnp.exp(x @ x) + x)(np.ones((300, 300)))  # with helper threads
KINDS = type(threading.Lock()), type(threading.RLock())

def is_ours(owner):
    kind = owner.get("__name__") if isinstance(owner, dict) else type(owner).__module__
    function = getattr(owner, "func", None)  # a property's that remembers
    name = str(getattr(function, "__module__", None) or kind)
    return name.partition(".")[0] in ("wend", "llvmlite")

def holders():
    for owner in gc.get_objects():
        for part in gc.get_referents(owner):
            fields = gc.get_referents(part) if type(part) is dict else ()
            for lock in (part, *fields):
                if isinstance(lock, KINDS) and is_ours(owner):
                    yield lock

locks = list({{id(lock): lock for lock in holders()}}.values())
assert len(locks) >= 8, locks

def take(lock):
    with lock:
        time.sleep(0.002)

for lock in locks:
    taken = threading.Event()
    def hold():
        for _ in range(20):
            with lock:
                taken.set()
                time.sleep(0.02)
    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    outcome = fork(lambda: lock.acquire(timeout=2.0) and compute(), 20)
    thread.join()
    if outcome != "right":
        print(lock, outcome)
print("all of them")
""",
    )
    assert printed == "all of them\n"


def test_a_trace_that_waits_for_the_fork_does_not_stop_it(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        f"""{FORKS}
from wend.base import locks
locks._MAX_WAIT_FOR_TRACE = 0.2
traces, forked = threading.Event(), threading.Event()

@wend.do_not_capture
def wait():
    traces.set()
    assert forked.wait(30.0)

@wend.function
def fun(x):
    wait()
    return x + 1.0

thread = threading.Thread(target=lambda: print(fun(1.0)))
thread.start()
traces.wait()
print(fork(compute))
forked.set()
thread.join()
print(compute())
""",
    )
    assert printed == "right\n2.0\nTrue\n"
