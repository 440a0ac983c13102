"""`wend doctor`: reports the environment, and compares results with those of NumPy."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
import scipy

import wend
from wend.backends.native.jit import describe_target
from wend.base.config import Settings, settings
from wend.base.lazy.dataclass import dataclass
from wend.cli.cache import files
from wend.runtime.disk_cache import disk_cache

_DIFFERENCE_STEP = 1e-6  # of central differences


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of the self-test.

    Attributes:
        what: the subject of the comparison.
        difference: the relative tolerance.
        computed: returns wend's result.
        expected: returns NumPy's result.
    """

    what: str
    difference: float
    computed: Callable[[], Any]
    expected: Callable[[], Any]


def run() -> int:
    """Print the environment and run the self-test; return 1 if a check fails, else 0."""
    for name, fact in facts():
        print(f"{name:10} {fact}")
    print("self-test")
    good = [report_check(check) for check in checks()]
    print("all is well" if all(good) else "something is wrong: please report it with these lines")
    return 0 if all(good) else 1


def facts() -> Iterator[tuple[str, str]]:
    """Yield names and descriptions of the environment."""
    yield "wend", wend.__version__
    system = f"{platform.system()} {platform.machine()}"
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()}, {system})"
    yield "arrays", f"NumPy {np.__version__}, SciPy {scipy.__version__}, optree {version('optree')}"
    yield "compiler", describe_target.compiler()
    name, vectors = describe_target.processor()
    yield "processor", f"{name}, {os.cpu_count()} threads; {', '.join(vectors) or 'no vectors'}"
    how = "called directly" if describe_target.calls_blas() else "through NumPy only"
    kernels = describe_target.blas_kernels()
    yield "BLAS", ", ".join(filter(None, (_blas(), how, kernels)))
    yield "cache", _cache()
    values = [
        (field.name, getattr(settings(), field.name), field.default) for field in fields(Settings)
    ]
    changed = [f"{name}={value!r}" for name, value, default in values if value != default]
    yield "settings", ", ".join(changed) or "as they come"


def _cache() -> str:
    """Return a description of the on-disk cache of machine code."""
    if settings().cache_dir == "":
        return "none: WEND_CACHE_DIR, or cache_dir, is empty"
    cache = disk_cache()
    if cache is None:
        return "none: the user has no home folder"
    if problem := cache.trouble():
        return f"none: {problem} ({cache.folder})"
    entries = cache.entries()
    size = sum(entry.bytes for entry in entries) / 2**20
    return f"{cache.folder}: {files(len(entries))}, {size:.1f} of {cache.cap >> 20} MiB"


def _blas() -> str:
    """Return the BLAS of SciPy, whose functions native code calls."""
    config: Any = scipy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def fixed_point(w: Any, b: Any) -> Any:
    """Iterate to a fixed point x, with a branch; return `sum(x * x)`."""
    x, change = b, 1.0
    while change > 1e-13:
        new = np.tanh(w @ x + b)
        if new[0] < 0.0:
            new = 0.5 * (new + x)
        change = np.max(np.abs(new - x))
        x = new
    return np.sum(x * x)


def checks() -> Sequence[Check]:
    """Return checks of values and of first and second derivatives, on both backends."""
    rng = np.random.default_rng(0)
    w, b = 0.3 * rng.normal(size=(5, 5)), rng.normal(size=5)
    slope = wend.grad(fixed_point, argnums=1)

    def along(b: Any) -> Any:
        return np.sum(np.cos(slope(w, b)))

    def on(backend: str, fun: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        def call() -> Any:
            with wend.config(backend=backend):
                return fun(*args)

        return call

    value = wend.function(fixed_point)
    return [
        *(
            Check(f"a loop, {name}", 1e-12, on(name, value, w, b), lambda: fixed_point(w, b))
            for name in ("numpy", "native")
        ),
        *(
            Check(
                f"its gradient, {name}",
                1e-6,
                on(name, slope, w, b),
                lambda: _differences(lambda b: fixed_point(w, b), b),
            )
            for name in ("numpy", "native")
        ),
        Check(
            "a second derivative, native",
            1e-5,
            on("native", wend.grad(along), b),
            lambda: _differences(on("numpy", lambda: along)(), b),
        ),
    ]


def report_check(check: Check) -> bool:
    """Run a check and print its outcome; return whether it passed."""
    began = perf_counter()
    try:
        computed = check.computed()
        milliseconds = 1e3 * (perf_counter() - began)
        np.testing.assert_allclose(computed, check.expected(), rtol=check.difference, atol=1e-8)
    except Exception as error:  # noqa: BLE001 - any error is reported
        print(f"  FAILS {check.what}: {type(error).__name__}: {error}")
        return False
    print(f"  ok    {check.what}, first call {milliseconds:.0f} ms")
    return True


def _differences(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient by central differences."""
    steps = _DIFFERENCE_STEP * np.eye(len(x))
    return np.array([(fun(x + step) - fun(x - step)) / (2 * _DIFFERENCE_STEP) for step in steps])
