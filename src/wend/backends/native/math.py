"""Elementary functions as LLVM IR, to be pasted in front of a module and inlined.

    text = definitions(["sin", "exp.v8"]) + module_text
    # ... %y = call double @wend.sin(double %x)
    # ... %v = call <8 x double> @wend.exp.v8(<8 x double> %u)

Public names: sin, cos, sincos, exp, expm1, log, log1p, tanh; `name` is scalar f64, `name.v2`,
`name.v4` and `name.v8` are over vectors. sincos returns a struct { sin, cos }.

No function calls libm; all are within 4 ulp everywhere (`math_trig` and `math_exp` say how) and
correct for signed zeros, subnormals, infinities and NaN. llvm.fma is assumed to be an instruction;
without one LLVM calls the C library's fma: slow, and still correct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial

from wend.backends.native import math_exp, math_trig

SCALARS = ("sin", "cos", "sincos", "exp", "expm1", "log", "log1p", "tanh")
LANES = (2, 4, 8)

_SYMBOL = re.compile(r"@wend\.([\w.]+)")


def definitions(names: Iterable[str]) -> str:
    """Return the IR of the named functions and of all that they need, each once.

    Args:
        names: keys of `FUNCTIONS`.

    Raises:
        KeyError: a name is not one of them.
    """
    names = list(names)
    for name in names:
        if name not in FUNCTIONS:
            raise KeyError(f"no native math function {name!r}; there are {', '.join(FUNCTIONS)}")
    found: dict[str, str] = {}
    while names:
        name = names.pop()
        if name not in found:
            found[name] = _text(name)
            names += _SYMBOL.findall(found[name])
    return "\n".join(found.values())


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
        "sincos.far": math_trig.far,
        "sincos.far.table": math_trig.far_table,
        "exp": math_exp.exp_common,
        "exp.edge": partial(math_exp.exp_everywhere, 1, "exp.edge"),
        "log": math_exp.log_common,
        "log.edge": partial(math_exp.log_everywhere, 1, "log.edge"),
        "expm1": partial(math_exp.expm1, 1, "expm1"),
        "log1p": partial(math_exp.log1p, 1, "log1p"),
        "tanh": partial(math_exp.tanh, 1, "tanh"),
    }
    for n in LANES:
        writers |= {
            f"sin.v{n}": partial(math_trig.vector_wave, "sin", n),
            f"cos.v{n}": partial(math_trig.vector_wave, "cos", n),
            f"sincos.v{n}": partial(math_trig.vector_sincos, n),
            f"sincos.far.v{n}": partial(math_trig.vector_far, n),
            f"exp.v{n}": partial(math_exp.exp_everywhere, n, f"exp.v{n}"),
            f"expm1.v{n}": partial(math_exp.expm1, n, f"expm1.v{n}"),
            f"log.v{n}": partial(math_exp.log_everywhere, n, f"log.v{n}"),
            f"log1p.v{n}": partial(math_exp.log1p, n, f"log1p.v{n}"),
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
