"""Elementary functions as LLVM IR, to be pasted in front of a module and inlined.

    text = definitions(["sin", "exp.v8"]) + module_text
    # ... %y = call double @wend.sin(double %x)
    # ... %v = call <8 x double> @wend.exp.v8(<8 x double> %u)

Public names: sin, cos, sincos, exp, expm1, log, log1p, tanh; `name` is scalar f64, `name.v2`,
`name.v4` and `name.v8` are over vectors. sincos returns a struct { sin, cos }. Those in `LOOPS`,
many more, are for loops over arrays: `name.loop` is scalar f64 and `name.loop.f32` scalar f32,
written for throughput and without branches, so that LLVM's vectorizer makes vectors of them, or
finds forms that are vectors (`forms.py`). A scalar `sin` or `exp` has tables and branches, for the
one who waits for it.

No function calls libm. All are within 4 ulp everywhere, and correct for signed zeros, subnormals,
infinities and NaN: the files beside it say how. llvm.fma is assumed to be an
instruction; without one LLVM calls the C library's fma: slow, and still correct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from wend.backends.native.math import (
    cbrt,
    erf,
    exp,
    hyperbolic,
    inverse,
    inverse_hyperbolic,
    log,
    pow,
    trig,
)
from wend.backends.native.math import (
    payne_hanek as far,
)
from wend.backends.native.math.format import Format
from wend.backends.native.math.ir_dsl import (
    COLD,
    INLINE,
    PURE,
    FunctionBuilder,
    SsaExpr,
)
from wend.backends.native.math.vector_variants import (
    INLINED_FORMS,
    OF_INLINED,
    SINCOS,
    SUFFIXES,
    TWO,
    VECTOR_FORMS,
    lanes_of,
    of_many,
    of_one,
)

SCALARS = ("sin", "cos", "sincos", "exp", "expm1", "log", "log1p", "tanh")
LANES = (2, 4, 8)
# Those of one body, whatever is given
_BODIES: dict[str, Callable[[FunctionBuilder], SsaExpr]] = {
    **{name: getattr(exp, name) for name in ("exp", "exp2", "expm1", "tanh", "expit")},
    **{name: getattr(log, name) for name in ("log", "log2", "log10", "log1p")},
    **{name: getattr(hyperbolic, name) for name in ("sinh", "cosh")},
    **{name: getattr(inverse, name) for name in ("asin", "acos", "atan", "atan2")},
    **{name: getattr(inverse_hyperbolic, name) for name in ("asinh", "acosh", "atanh")},
    "cbrt": cbrt.cbrt,
    **{name: getattr(erf, name) for name in ("erf", "erfc")},
}


def _far(symbol: str) -> str:
    """The power for all arguments, beside the one for most."""
    return symbol.replace(".loop", ".far")


COLD_NAMES = (
    *("exp.edge", "log.edge", "sincos.far"),
    *(f"{name}.far" for name in SINCOS),
    *(_far(form) for form in INLINED_FORMS if form.startswith("pow.")),
    *(f"sincos.far.v{n}" for n in LANES),
    *(
        form
        for name, forms in VECTOR_FORMS.items()
        for form in (name, *forms)
        if form not in INLINED_FORMS
    ),
)

_SYMBOL = re.compile(r"@wend\.([\w.]+)")


def definitions(names: Iterable[str], *, with_cold: bool = True) -> str:
    """Return the IR of the named functions and of all that they need, each once.

    Args:
        names: keys of `FUNCTIONS`.
        with_cold: False leaves what is not inlined (paths for huge arguments and subnormals, what
            loops call) as declarations, to be linked with objects compiled from
            `cold_definitions()`. Compiling that of sin takes 3 ms otherwise, module by module.

    Raises:
        KeyError: a name is not one of them.
    """
    wanted = list(names)
    for name in wanted:
        if name not in FUNCTIONS:
            raise KeyError(f"no native math function {name!r}; there are {', '.join(FUNCTIONS)}")
    texts = _with_needs(wanted, COLD_NAMES if not with_cold else ())
    # Nothing calls these before the vectorizer has run
    forms = (form for name in texts for form in VECTOR_FORMS.get(name, ()))
    kept = [f"ptr @wend.{form}" for form in forms if form not in INLINED_FORMS]
    if kept:
        listed = f"[{len(kept)} x ptr] [{', '.join(kept)}]"
        texts["kept"] = (
            f'@llvm.compiler.used = appending global {listed}, section "llvm.metadata"\n'
        )
    return "\n".join(texts.values())


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
            missing += [*_SYMBOL.findall(found[name]), *VECTOR_FORMS.get(name, ())]
    return found


def _declaration(definition: str) -> str:
    """Return the declaration of the function that a text defines."""
    head, _, rest = definition.partition(") ")
    attributes = rest.partition(" {")[0].replace("noinline", "").replace("optnone", "")
    types = head.replace("define internal", "declare").replace(" %x", "").replace(" %y", "")
    return f"{types}) {attributes}\n"


@cache
def _text(name: str) -> str:
    return _WRITERS[name]()


def _writers() -> dict[str, Callable[[], str]]:
    """List who writes each symbol, helpers and tables included."""
    writers: dict[str, Callable[[], str]] = {
        name: partial(trig.scalar_sincos, name) for name in ("sin", "cos", "sincos")
    }
    writers |= {
        "sin.table": trig.table,
        "sincos.far": far.scalar,
        **{f"{name}.far": partial(trig.large_sincos, name) for name in SINCOS},
        "sincos.far.table": far.table,
        "exp": exp.exp_common,
        "exp.edge": partial(_define, "exp", FunctionBuilder(), "exp.edge", COLD),
        "log.table": log.table,
        "log": log.log_common,
        "log.edge": partial(_define, "log", FunctionBuilder(), "log.edge", COLD),
    }
    for name in ("expm1", "log1p", "tanh"):
        writers[name] = partial(_define, name, FunctionBuilder(), name)
    for n in LANES:
        writers |= {
            f"sin.v{n}": partial(trig.vector_sin_or_cos, "sin", n),
            f"cos.v{n}": partial(trig.vector_sin_or_cos, "cos", n),
            f"sincos.v{n}": partial(trig.vector_sincos, n),
            f"sincos.far.v{n}": partial(far.vector, n),
        }
        for name in ("exp", "expm1", "log", "log1p", "tanh"):
            writers[f"{name}.v{n}"] = partial(_define, name, FunctionBuilder(n), f"{name}.v{n}")
    for suffix, format in SUFFIXES.items():
        writers |= _loops(format, suffix)
    return writers


def _loops(format: Format, suffix: str) -> dict[str, Callable[[], str]]:
    """List who writes the functions for loops, of one format."""
    writers: dict[str, Callable[[], str]] = {}
    for name in SINCOS:
        writers[name + suffix] = partial(_loop_sincos, name, format, name + suffix)
        for form in VECTOR_FORMS[name + suffix]:
            writers[form] = partial(_wide_sincos, name, format, form)
    writers |= _powers(format, suffix)
    for name in _BODIES:
        symbol = name + suffix
        attributes = of_one(name, symbol) if symbol in VECTOR_FORMS else INLINE
        body = FunctionBuilder(1, format, is_loop=True)
        writers[symbol] = partial(_define, name, body, symbol, attributes)
        for form in VECTOR_FORMS.get(symbol, ()):
            writers[form] = partial(_inlined_form, name, format, form)
    return writers


def _define(name: str, b: FunctionBuilder, symbol: str, attributes: str = INLINE) -> str:
    """Write a function of a body that is empty so far, or was written by an earlier call."""
    b = replace(b, lines=[])
    b.ret(_BODIES[name](b))
    return b.definition(symbol, attributes=attributes, arguments="xy"[: 1 + (name in TWO)])


def _inlined_form(name: str, format: Format, symbol: str) -> str:
    """Write the form of a function that becomes a part of loops, by AVX-512."""
    body = FunctionBuilder(lanes_of(symbol), format, is_loop=True, wide=True)
    return _visible(_define(name, body, symbol, OF_INLINED))


def _visible(definition: str) -> str:
    """Make a form visible outside: nothing calls it before the vectorizer has run."""
    return definition.replace("define internal", "define", 1)


def _loop_sincos(name: str, format: Format, symbol: str) -> str:
    return trig.loop_sincos(name, format, symbol, of_one(name, symbol))


def _wide_sincos(name: str, format: Format, symbol: str) -> str:
    alone, lanes = symbol.rpartition(".v")[0], lanes_of(symbol)
    return trig.wide_sincos(name, format, lanes, symbol, alone, of_many(format, lanes))


def _powers(format: Format, suffix: str) -> dict[str, Callable[[], str]]:
    """List who writes the powers of one format, of one pair and of several."""
    writers: dict[str, Callable[[], str]] = {}
    for symbol in (f"pow{suffix}", *VECTOR_FORMS[f"pow{suffix}"]):
        lanes, far = lanes_of(symbol), _far(symbol)
        cold = f"cold noinline {of_many(format, lanes) if lanes > 1 else PURE}"
        writers[symbol] = partial(_power, format, symbol)
        writers[far] = partial(pow.pow_large, lanes, format, far, cold)
    return writers


def _power(format: Format, symbol: str) -> str:
    lanes, is_inlined = lanes_of(symbol), symbol in INLINED_FORMS
    b = FunctionBuilder(lanes, format, is_loop=True, wide=is_inlined)
    pow.pow(b, _far(symbol))
    if is_inlined:
        return _visible(b.definition(symbol, arguments="xy", attributes=OF_INLINED))
    attributes = of_many(format, lanes) if lanes > 1 else of_one("pow", symbol)
    return b.definition(symbol, arguments="xy", attributes=attributes)


class _Functions(Mapping[str, str]):
    """The public names, each with its complete text, written when first asked for."""

    def __init__(self) -> None:
        self._names = [*SCALARS, *(f"{name}.v{n}" for n in LANES for name in SCALARS), *LOOPS]

    def __getitem__(self, name: str) -> str:
        return definitions([name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_WRITERS = _writers()
LOOPS = tuple(name for name in _WRITERS if ".loop" in name and ".v" not in name)
FUNCTIONS: Mapping[str, str] = _Functions()
