"""Calls that read or write the world around the program, in captured code.

A trace makes them once, but Python makes them at every call. Clocks, streams, logs and warnings are
therefore called by the run, in order with what is printed. What gives no number (a file, the
keyboard) or draws one from a hidden state is refused by name.
"""

from __future__ import annotations

import builtins
import ctypes
import datetime as dt
import dis
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.instances import stored_attribute
from wend.base.source import Source, at, line_of, user_source
from wend.capture.builtins import host_calls
from wend.capture.builtins.draws import random_draws
from wend.capture.builtins.refused_calls import (
    CLOCK,
    DRAW,
    FILE,
    FOREIGN,
    PATH_FILES,
    REFUSED_FAMILIES,
    SYSTEM,
    Call,
    name_of,
    reason_to_refuse,
    refusal,
    refusing,
)
from wend.capture.builtins.scipy.functions import of_distribution, of_scipy
from wend.capture.builtins.streams import pprint_in_run, stream_method
from wend.capture.guards.outside import watch_called
from wend.capture.heap.hidden_state import changes
from wend.capture.libraries import is_library
from wend.capture.state.made_objects import is_made_here, note_made
from wend.capture.uncaptured import as_written
from wend.eager.dispatch import Staged
from wend.trace.arrays.shown_text import ShownText
from wend.trace.recording.recording import is_traced_now
from wend.trace.state.templates import Text


# What captured code makes itself
def _allowing(make: Call) -> Call:
    """Wrap a class whose objects the function may use while it is traced."""

    def run(*args: Any, **kwargs: Any) -> Any:
        check_arguments(make, (*args, *kwargs.values()))
        return note_made(make(*args, **kwargs))

    return run


def _made_generator(make: Call) -> Call:
    """Wrap a class or function that makes random generators."""

    def run(*args: Any, **kwargs: Any) -> Any:
        seed = next(iter((*args, *kwargs.values())), None)
        if make.__name__ == "default_rng" and type(seed).__name__ == "Generator":
            return seed
        if make.__name__ in random_draws.MAKERS and (seed is None or isinstance(seed, Staged)):
            return random_draws.make_in_run(make, args, kwargs)
        if seed is None or make.__name__ == "SystemRandom":
            raise refusal(make.__name__ + "()", DRAW)
        check_arguments(make, (*args, *kwargs.values()))
        return random_draws.make_now(make, args, kwargs)

    return run


def _random_kinds() -> tuple[type, ...]:
    """Return the classes of random generators, without importing their modules (7 ms)."""
    kinds: tuple[type, ...] = ()
    if (module := sys.modules.get("random")) is not None:
        kinds += (module.Random,)
    if (module := sys.modules.get("numpy.random")) is not None:
        kinds += (module.Generator, module.RandomState, module.BitGenerator, module.SeedSequence)
    return kinds


def check_arguments(fun: Any, arguments: tuple[Any, ...]) -> None:
    """Check what uncaptured code gets.

    Raises:
        UnsupportedError: a random generator or file of outside, which it may advance.
        ConcreteValueError: a text that names traced values, which it may look at.
    """
    for argument in arguments:
        if isinstance(argument, ShownText):
            if not _takes_texts(fun):
                raise argument.looked_at()
            continue
        kind: Any = type(argument)
        family = _family_of_class(kind)
        if family == "random" and not random_draws.draws_now(argument):
            raise refusal(f"{name_of(fun)} of a {kind.__name__}", DRAW)
        if family == "stream" and not is_made_here(argument):
            raise refusal(f"{name_of(fun)} of a {kind.__name__}", FILE)


def check_uncaptured(fun: Any) -> None:
    """Check code of the user's that runs as plain Python: a generator, or what makes an object.

    Raises:
        UnsupportedError: it names a function that prints, or reads the world.
    """
    methods = [fun]
    if isinstance(fun, type):
        methods = [getattr(fun, name, None) for name in ("__new__", "__init__", "__post_init__")]
    for method in methods:
        if isinstance(method, types.FunctionType) and not is_library(method.__code__.co_filename):
            check_effects(method, "is a generator" if method is fun else "makes an object")


def check_finalizer(cls: type) -> None:
    """Check the `__del__` of a class: it runs when an object that the trace has made is dropped.

    Raises:
        UnsupportedError: it names a function that prints, or reads the world.
    """
    method = getattr(cls, "__del__", None)
    if isinstance(method, types.FunctionType) and not is_library(method.__code__.co_filename):
        check_effects(method, "drops an object")


def check_effects(fun: types.FunctionType, why: str) -> None:
    """Check a function of the user's that runs as plain Python; `why`: what it is.

    Raises:
        UnsupportedError: it names a function that prints, or reads the world.
    """
    if stored_attribute(fun, "__wend_do_not_capture__", False) or not is_traced_now():
        return
    code = as_written(fun.__code__)
    named = [name for name in code.co_names if _effect_named(fun, code, name)]
    loaded = _loaded_names(code) if named else ()
    name = next((_effect_named(fun, code, name) for name in named if name in loaded), None)
    if name:
        what = f"`{fun.__qualname__}`, called{at(user_source())}, {why}: it runs as plain Python"
        raise _trace_time_effect(f"{what} when the function is traced, but calls {name}", name)


def _loaded_names(code: types.CodeType) -> set[str]:
    """Return the names of globals and builtins that code reads."""
    steps = dis.get_instructions(code)
    return {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def check_call(caller: types.FrameType, called: Any) -> None:
    """Check what code of the user's is about to call that runs as plain Python, unseen.

    Raises:
        UnsupportedError: it prints, or reads the world.
    """
    is_of_environment = getattr(called, "__self__", None) is os.environ or called is os.getenv
    if is_traced_now() and (is_of_environment or _is_effect(called)):
        name = "os.environ" if is_of_environment else name_of(called)
        code = caller.f_code
        where = at(Source(code.co_filename, line_of(caller), code.co_name))
        what = f"`{code.co_qualname}`, called by code that is not captured, calls {name}{where}"
        raise _trace_time_effect(f"{what} when the function is traced", name)


def check_callback(value: Any) -> None:
    """Check what code that is not captured may call.

    Raises:
        UnsupportedError: it is a function that prints, or reads the world.
    """
    if is_traced_now() and callable(value) and _is_effect(value):
        name = name_of(value)
        what = f"{name}{at(user_source())} is called by a library when the function is traced"
        raise _trace_time_effect(what, name)


def _trace_time_effect(what: str, name: str) -> UnsupportedError:
    summary = f"{what}, which Python would do at each call."
    return UnsupportedError(explain(summary, cure=f"call {name} in the code around it."))


def _effect_named(fun: types.FunctionType, code: types.CodeType, name: str) -> str | None:
    """Return a name in a function's code if it stands for an effect, or None."""
    value = fun.__globals__.get(name, getattr(builtins, name, None))
    if isinstance(value, types.ModuleType):
        effects = _EFFECTS_OF_MODULES.get(value.__name__, ())
        used = [attribute for attribute in code.co_names if attribute in effects]
        return f"{name}.{used[0]}" if used else None
    return name if value is __import__ or _is_effect(value) else None


def _is_effect(value: Any) -> bool:
    """Return whether a function prints, or reads the world."""
    try:
        return value is print or changes(value) or _is_replaced(value)
    except TypeError:  # not hashable
        return False


def _is_replaced(value: Any) -> bool:
    module = stored_attribute(value, "__module__")
    is_pure = isinstance(module, str) and module.partition(".")[0] in ("json", "scipy")
    return not is_pure and replacement_of_call(value) is not None


_EFFECTS_OF_MODULES: dict[str, tuple[str, ...]] = {
    "logging": ("debug", "info", "warning", "error", "critical", "exception", "log"),
    "sys": ("stdout", "stderr"),
    "random": ("random", "randint", "uniform", "gauss", "choice", "shuffle", "sample"),
    "numpy": ("random",),
    "numpy.random": ("rand", "randn", "normal", "uniform", "randint", "default_rng"),
    "time": ("time", "perf_counter", "monotonic", "sleep"),
    "warnings": ("warn",),
    "uuid": ("uuid1", "uuid4"),
    "os": ("urandom", "getenv", "environ"),
}


_TEXT_METHODS = ("format", "format_map", "join", "__add__", "__str__", "__repr__", "__format__")


def _takes_texts(fun: Any) -> bool:
    """Return whether uncaptured code only passes on the texts that it gets."""
    owner = stored_attribute(fun, "__self__")
    if isinstance(owner, (str, bytes)):
        return fun.__name__ in _TEXT_METHODS
    if owner is not None and not isinstance(owner, types.ModuleType):
        return type(owner).__module__ in ("builtins", "collections")
    if isinstance(fun, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return fun.__objclass__ is not str or fun.__name__ in _TEXT_METHODS
    if fun in (bytes, bytearray):
        return False
    module = getattr(fun, "__module__", None)
    return module in ("builtins", None) or stored_attribute(fun, "__wend_do_not_capture__", False)


# Which call is which
def replacement_of_call(fun: Any) -> Call | None:
    """Return what captured code calls in place of a function; None for the function itself."""
    owner = stored_attribute(fun, "__self__")
    if owner is not None and not isinstance(owner, (types.ModuleType, *_PLAIN_OWNERS)):
        method = _replacement_of_method(owner, stored_attribute(fun, "__name__", ""))
        return method if method is not None and is_traced_now() else None
    module, name = getattr(fun, "__module__", None), stored_attribute(fun, "__name__", "")
    if not isinstance(module, str):
        return None
    family = _FAMILIES.get(module.partition(".")[0])
    if family is None or not is_traced_now():
        return None
    return family(fun, module, name)


_PLAIN_OWNERS = (str, list, dict, tuple, set, np.ndarray, int, float)


def _replacement_of_method(owner: Any, name: str) -> Call | None:
    kind = owner if isinstance(owner, type) else type(owner)
    match _family_of_class(kind):
        case "stream":
            return stream_method(owner, name)
        case "random":
            return random_draws.of_method(owner, name)
        case "date" if name in ("now", "today", "utcnow"):
            return refusing(f"{kind.__name__}.{name}", CLOCK)
        case "path" if name in PATH_FILES:
            return refusing(f"{kind.__name__}.{name}", FILE)
        case "file":
            module = kind.__module__.strip("_")
            return refusing(f"{module}.{kind.__name__}.{name}", FILE)
        case "logging":
            return host_calls.logging_method(owner, name)
        case "scipy":
            return of_distribution(owner, name)
    if owner is os.environ and name not in ("get", "items", "keys", "values", "copy"):
        return refusing(f"os.environ.{name}", SYSTEM)
    is_standard = owner is sys.stdout or owner is sys.stderr
    return stream_method(owner, name) if is_standard else None


_families: WeakKeyDictionary[type, str | None] = WeakKeyDictionary()


def _family_of_class(kind: type) -> str | None:
    """Return the family of calls that the methods of a class belong to, or None."""
    if kind not in _families:
        _families[kind] = _find_family(kind)
    return _families[kind]


_FILE_MODULES = ("_csv", "mmap", "socket", "_socket", "sqlite3")


def _find_family(kind: type) -> str | None:
    if issubclass(kind, io.IOBase):
        return "stream"
    if issubclass(kind, _random_kinds()):
        return "random"
    if issubclass(kind, dt.date):
        return "date"
    modules = {base.__module__.partition(".")[0] for base in kind.__mro__}
    families = {
        "pathlib": "path",
        "logging": "logging",
        "scipy": "scipy",
        **dict.fromkeys(_FILE_MODULES, "file"),
    }
    return next((families[module] for module in modules if module in families), None)


def _of_random(fun: Any, module: str, name: str) -> Call | None:
    if name in random_draws.MAKERS or (isinstance(fun, type) and issubclass(fun, _random_kinds())):
        return _made_generator(fun)
    return random_draws.of_function(name) if module.startswith("numpy.random") else None


def _of_numpy(fun: Any, module: str, name: str) -> Call | None:
    if module.startswith("numpy.random"):
        return _of_random(fun, module, name)
    if module.startswith("numpy.testing"):
        return host_calls.of_testing(fun, name)
    return _of_system(fun, module, name)


def _of_io(fun: Any, module: str, name: str) -> Call | None:
    if name in ("StringIO", "BytesIO"):
        return _allowing(fun)
    return _of_system(fun, module, name)


def _of_system(fun: Any, module: str, name: str) -> Call | None:
    reason = reason_to_refuse(module, name)
    public = "os" if module in ("posix", "nt") else module.strip("_").partition(".")[0]
    prefix = "" if public in ("builtins", "io") else f"{public}."
    return None if reason is None else refusing(f"{prefix}{name}", reason)


def _of_ctypes(fun: Any, module: str, name: str) -> Call | None:
    is_foreign = isinstance(fun, ctypes._CFuncPtr)  # type: ignore[attr-defined]
    return refusing(f"{name} of ctypes", FOREIGN) if is_foreign else None


def _of_json(fun: Any, module: str, name: str) -> Call | None:
    if name not in ("dump", "dumps"):
        return None

    def run(value: Any, *args: Any, **options: Any) -> Any:
        text = Text.of([(value, "r", "")])
        if isinstance(text, ShownText):
            raise text.looked_at()
        check_arguments(fun, args)
        watch_called(*options.values())
        return fun(value, *args, **options)

    return run


def _of_pprint(fun: Any, module: str, name: str) -> Call | None:
    return (
        pprint_in_run if name in ("pprint", "pp") and isinstance(fun, types.FunctionType) else None
    )


_FAMILIES: dict[str, Callable[[Any, str, str], Call | None]] = {
    "time": host_calls.of_time,
    "random": _of_random,
    "numpy": _of_numpy,
    "io": _of_io,
    "_io": _of_io,
    "logging": host_calls.of_logging,
    "warnings": host_calls.of_warnings,
    "_warnings": host_calls.of_warnings,
    "_py_warnings": host_calls.of_warnings,
    "pprint": _of_pprint,
    "ctypes": _of_ctypes,
    "json": _of_json,
    "scipy": of_scipy,
    **dict.fromkeys(REFUSED_FAMILIES, _of_system),
}
