"""Settings of the whole suite: how long Hypothesis searches, and what holds for every graph."""

import builtins
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import wend
from tests.fuzz.quick import quickly
from tests.helpers.golden import Golden
from tests.helpers.graphs import check_compiled
from tests.helpers.own_process import is_alone
from tests.helpers.roomy_calls import roomy
from tests.helpers.shares import SAMPLED_SHARE, is_chosen
from wend.backends.native.backend import NativeBackend
from wend.backends.native.jit.llvm import engine
from wend.backends.numpy.backend import NumpyBackend
from wend.base.config import settings
from wend.function.closures.shared_traces import forget_shared_traces
from wend.ir.graph import Graph
from wend.trace.recording import arguments

hypothesis.settings.register_profile("ci", max_examples=3, deadline=None, derandomize=True)
hypothesis.settings.register_profile("long", max_examples=300, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# In one of so many tests each graph is verified after each pass, and what is compiled survives
# print -> parse -> print; in the others caches are used that verification turns off. It takes as
# long as the tests themselves: `make test-long` does it in all.
VERIFIED_SHARE = 32

# These ask what a program means, not how fast it is: LLVM's passes run for one in so many of their
# tests, and with `make test-long` for all. What emits code is tested with them, and so is bench/.
QUICK = [
    *("autodiff", "function", "interop", "numpy", "programs", "saving", "semantics", "sequence"),
    *("tape", "trace", "passes", "backends/test_element_errors.py"),
    *("laws/test_derivatives_at_ties.py", "laws/test_exact_derivatives.py"),
    *("laws/test_exact_derivatives_of_arrays.py", "laws/test_updates_in_loops.py"),
    *("backends/native/expand", "backends/native/scalarize", "backends/native/test_cases.py"),
    *("backends/native/emit", "backends/native/rt", "backends/test_strict.py"),
    "backends/native/run/test_list_buffers.py",
]
OPTIMIZED_SHARE = 8

pytest.Function.runtest = roomy(pytest.Function.runtest)

# A test makes many objects in cycles, among a million that stay: fewer collections.
gc.set_threshold(20_000, 20, 20)

# What the suite compiles it compiles itself, and leaves nothing in the user's folders.
wend.config(cache_dir="")
os.environ["WEND_CACHE_DIR"] = ""
_CONFIG = tempfile.TemporaryDirectory(prefix="wend-config-")
os.environ["XDG_CONFIG_HOME"] = _CONFIG.name

# Tests that import these run in processes of their own (helpers/own_process.py).
THREADED = {"jax", "torch"}

# A shell has what it starts in the background ignore Ctrl-C, and Python then never raises it: tests
# that interrupt a run would wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Fast calls begin at the second call then, as where the trampoline is on disk.
assert engine().trampoline

# Tests run on native code, as programs do; but for those of rooms that do not ask what runs a
# graph, and make thousands: they run on the reference, which needs no compiler. With
# `WEND_BACKEND=native` all run on native code, with `numpy` all on the reference.
ON_REFERENCE = {"autodiff", "capture", "numpy", "ops", "passes", "random", "testing"}
TESTS = Path(__file__).parent


@pytest.fixture(autouse=True, scope="module")
def _backend(request: pytest.FixtureRequest) -> Iterator[None]:
    room = request.path.relative_to(TESTS).parts[0]
    if "WEND_BACKEND" in os.environ or room not in ON_REFERENCE:
        yield
        return
    with wend.config(backend="numpy"):
        yield


@cache
def _is_quick(path: Path) -> bool:
    return any(path.is_relative_to(TESTS / part) for part in QUICK)


@pytest.fixture(autouse=True)
def _surroundings(request: pytest.FixtureRequest) -> Iterator[None]:
    """What each test finds, whatever ran before it; one fixture, for many tests take a millisecond.

    Functions of one code share what is traced: that is forgotten. Shells and doctests add to
    Python's builtins, which all globals show: those names are dropped. A generator of an earlier
    test that is collected in an `np.errstate` leaves what that set.
    """
    test = request.node.nodeid
    forget_shared_traces()
    names, modules = {*vars(builtins)}, {*sys.modules}
    is_quick = _is_quick(request.path) and not is_chosen(f"{test} optimized", OPTIMIZED_SHARE)
    with (
        wend.config(verify=is_chosen(test, VERIFIED_SHARE)),
        np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
        quickly() if is_quick else nullcontext(),
    ):
        yield
    for name in vars(builtins).keys() - names:
        del vars(builtins)[name]
    imported = THREADED & (sys.modules.keys() - modules)
    assert is_alone() or not imported, f"{test} imports {imported}: no later test can fork"


@pytest.hookimpl(tryfirst=True)  # before those marked slow are deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled and not is_chosen(item.nodeid, *(sampled.args or [SAMPLED_SHARE])):
            item.add_marker(pytest.mark.slow)


def _check_what_it_compiles(backend: Any) -> None:
    compile = backend.compile

    def checked_compile(self: Any, graph: Graph) -> Any:
        if settings().verify:
            check_compiled(graph)
        return compile(self, graph)

    backend.compile = checked_compile


_check_what_it_compiles(NumpyBackend)
_check_what_it_compiles(NativeBackend)


def _freeze() -> None:
    """Take what is alive out of later garbage collections, which would go through all of it."""
    gc.collect()
    gc.freeze()


def pytest_collectstart() -> None:
    gc.disable()  # what is collected stays until the end


def pytest_collection_finish() -> None:
    _freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def _freeze_after_modules() -> Iterator[None]:
    """Keep collections short: pytest and the caches hold what a module's tests have made."""
    yield
    _freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


@pytest.fixture
def integers_stay_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's integers never join the key of a trace (D37): tests of refusals pass such numbers."""
    monkeypatch.setattr(arguments, "INTEGERS", frozenset({int, bool}))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with a file under tests/golden."""
    return Golden(update=request.config.getoption("--update-golden"))
