"""`wend doctor`: what wend runs on, and whether it computes what NumPy does."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
import scipy

import wend
from wend.backends.native.jit import describe_target
from wend.base.config import Settings, settings
from wend.cli.cache import files
from wend.runtime.disk_cache import disk_cache

_STEP = 1e-6  # of finite differences


@dataclass(frozen=True, slots=True)
class Check:
    """A part of the self-test.

    Attributes:
        what: what is compared.
        difference: how much it may differ, relatively.
        found: what wend computes.
        expected: what NumPy does.
    """

    what: str
    difference: float
    found: Callable[[], Any]
    expected: Callable[[], Any]


def run() -> int:
    """Tell what there is and try it; return 1 if something is wrong, else 0."""
    for name, fact in facts():
        print(f"{name:10} {fact}")
    print("self-test")
    good = [tell(check) for check in checks()]
    print("all is well" if all(good) else "something is wrong: please report it with these lines")
    return 0 if all(good) else 1


def facts() -> Iterator[tuple[str, str]]:
    """What wend runs on, by name."""
    yield "wend", wend.__version__
    system = f"{platform.system()} {platform.machine()}"
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()}, {system})"
    yield "arrays", f"NumPy {np.__version__}, SciPy {scipy.__version__}, optree {version('optree')}"
    yield "compiler", describe_target.compiler()
    name, vectors = describe_target.processor()
    yield "processor", f"{name}, {os.cpu_count()} threads; {', '.join(vectors) or 'no vectors'}"
    how = "called directly" if describe_target.calls_blas() else "through NumPy only"
    yield "BLAS", f"{_blas()}, {how}"
    yield "cache", _cache()
    found = [
        (field.name, getattr(settings(), field.name), field.default) for field in fields(Settings)
    ]
    changed = [f"{name}={value!r}" for name, value, default in found if value != default]
    yield "settings", ", ".join(changed) or "as they come"


def _cache() -> str:
    """Where machine code waits for the next process."""
    if settings().cache_dir == "":
        return "none: WEND_CACHE_DIR, or cache_dir, is empty"
    cache = disk_cache()
    if cache is None:
        return "none: the user has no home folder"
    if trouble := cache.trouble():
        return f"none: {trouble} ({cache.folder})"
    found = cache.entries()
    size = sum(entry.bytes for entry in found) / 2**20
    return f"{cache.folder}: {files(len(found))}, {size:.1f} of {cache.cap >> 20} MiB"


def _blas() -> str:
    """The BLAS of SciPy, whose functions native code calls."""
    config: Any = scipy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def settled(w: Any, b: Any) -> Any:
    """A fixed point by iteration, with a branch; `sum(x * x)` of it."""
    x, moved = b, 1.0
    while moved > 1e-13:
        new = np.tanh(w @ x + b)
        if new[0] < 0.0:
            new = 0.5 * (new + x)
        moved = np.max(np.abs(new - x))
        x = new
    return np.sum(x * x)


def checks() -> Sequence[Check]:
    """What is tried: values, gradients and their gradients, natively and on the reference."""
    rng = np.random.default_rng(0)
    w, b = 0.3 * rng.normal(size=(5, 5)), rng.normal(size=5)
    slope = wend.grad(settled, argnums=1)

    def along(b: Any) -> Any:
        return np.sum(np.cos(slope(w, b)))

    def on(backend: str, fun: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        def call() -> Any:
            with wend.config(backend=backend):
                return fun(*args)

        return call

    value = wend.function(settled)
    return [
        *(
            Check(f"a loop, {name}", 1e-12, on(name, value, w, b), lambda: settled(w, b))
            for name in ("numpy", "native")
        ),
        *(
            Check(
                f"its gradient, {name}",
                1e-6,
                on(name, slope, w, b),
                lambda: _differences(lambda b: settled(w, b), b),
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


def tell(check: Check) -> bool:
    """Try one thing and say how it went; whether it went well."""
    began = perf_counter()
    try:
        found = check.found()
        took = 1e3 * (perf_counter() - began)
        np.testing.assert_allclose(found, check.expected(), rtol=check.difference, atol=1e-8)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        print(f"  FAILS {check.what}: {type(error).__name__}: {error}")
        return False
    print(f"  ok    {check.what}, first call {took:.0f} ms")
    return True


def _differences(fun: Callable[[Any], Any], x: Any) -> Any:
    """The gradient by central differences."""
    steps = _STEP * np.eye(len(x))
    return np.array([(fun(x + step) - fun(x - step)) / (2 * _STEP) for step in steps])
