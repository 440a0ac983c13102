"""Elementary functions as LLVM IR, to be pasted in front of a module and inlined.

    text = definitions(["sin", "exp.v8"]) + module_text
    # ... %y = call double @wend.sin(double %x)
    # ... %v = call <8 x double> @wend.exp.v8(<8 x double> %u)

Public names: sin, cos, sincos, exp, expm1, log, log1p, tanh; `name` is scalar f64, `name.v2`,
`name.v4` and `name.v8` are over vectors. sincos returns a struct { sin, cos }.

No function calls libm. All are within 4 ulp everywhere, and correct for signed zeros, subnormals,
infinities and NaN: `math_trig`, `math_exp` and `math_log` say how. llvm.fma is assumed to be an
instruction; without one LLVM calls the C library's fma: slow, and still correct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache, partial

from wend.backends.native import math_exp, math_far, math_log, math_trig
from wend.backends.native.math_body import PURE

SCALARS = ("sin", "cos", "sincos", "exp", "expm1", "log", "log1p", "tanh")
LANES = (2, 4, 8)
COLD_NAMES = ("exp.edge", "log.edge", "sincos.far", *(f"sincos.far.v{n}" for n in LANES))

_SYMBOL = re.compile(r"@wend\.([\w.]+)")


def definitions(names: Iterable[str], *, with_cold: bool = True) -> str:
    """Return the IR of the named functions and of all that they need, each once.

    Args:
        names: keys of `FUNCTIONS`.
        with_cold: False leaves the out-of-line paths (huge arguments, subnormals) as declarations,
            to be linked with objects compiled from `cold_definitions()`. Compiling that of
            sin takes 3 ms otherwise, module by module.

    Raises:
        KeyError: a name is not one of them.
    """
    wanted = list(names)
    for name in wanted:
        if name not in FUNCTIONS:
            raise KeyError(f"no native math function {name!r}; there are {', '.join(FUNCTIONS)}")
    return "\n".join(_with_needs(wanted, COLD_NAMES if not with_cold else ()).values())


def cold_definitions(names: Iterable[str] = COLD_NAMES) -> str:
    """Return the IR of some of the functions in `COLD_NAMES`, visible to other modules."""
    names = list(names)
    texts = _with_needs(names, declared=())
    for name in names:
        texts[name] = texts[name].replace("define internal", "define")
    return "\n".join(texts.values())


def _with_needs(names: Iterable[str], declared: Container[str]) -> dict[str, str]:
    """Return the texts of these symbols and of those they mention, some as declarations only."""
    found: dict[str, str] = {}
    missing = list(names)
    while missing:
        name = missing.pop()
        if name not in found:
            text = _text(name)
            found[name] = _declaration(text) if name in declared else text
            missing += _SYMBOL.findall(found[name])
    return found


def _declaration(definition: str) -> str:
    """Return the declaration of the function that a text defines."""
    head = definition.partition(" %x)")[0].replace("define internal", "declare")
    return f"{head}) cold {PURE}\n"


@cache
def _text(name: str) -> str:
    return _WRITERS[name]()


def _writers() -> dict[str, Callable[[], str]]:
    """List who writes each symbol, helpers and tables included."""
    writers: dict[str, Callable[[], str]] = {
        name: partial(math_trig.scalar_wave, name) for name in ("sin", "cos", "sincos")
    }
    writers |= {
        "sin.table": math_trig.table,
        "sincos.far": math_far.scalar,
        "sincos.far.table": math_far.table,
        "exp": math_exp.exp_common,
        "exp.edge": partial(math_exp.exp_everywhere, 1, "exp.edge"),
        "log.table": math_log.table,
        "log": math_log.log_common,
        "log.edge": partial(math_log.log_everywhere, 1, "log.edge"),
        "expm1": partial(math_exp.expm1, 1, "expm1"),
        "log1p": partial(math_log.log1p, 1, "log1p"),
        "tanh": partial(math_exp.tanh, 1, "tanh"),
    }
    for n in LANES:
        writers |= {
            f"sin.v{n}": partial(math_trig.vector_wave, "sin", n),
            f"cos.v{n}": partial(math_trig.vector_wave, "cos", n),
            f"sincos.v{n}": partial(math_trig.vector_sincos, n),
            f"sincos.far.v{n}": partial(math_far.vector, n),
            f"exp.v{n}": partial(math_exp.exp_everywhere, n, f"exp.v{n}"),
            f"expm1.v{n}": partial(math_exp.expm1, n, f"expm1.v{n}"),
            f"log.v{n}": partial(math_log.log_everywhere, n, f"log.v{n}"),
            f"log1p.v{n}": partial(math_log.log1p, n, f"log1p.v{n}"),
            f"tanh.v{n}": partial(math_exp.tanh, n, f"tanh.v{n}"),
        }
    return writers


class _Functions(Mapping[str, str]):
    """The public names, each with its complete text, written when first asked for."""

    def __init__(self) -> None:
        self._names = [*SCALARS, *(f"{name}.v{n}" for n in LANES for name in SCALARS)]

    def __getitem__(self, name: str) -> str:
        return definitions([name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_WRITERS = _writers()
FUNCTIONS: Mapping[str, str] = _Functions()
