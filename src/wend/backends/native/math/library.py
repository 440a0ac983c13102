"""Elementary functions as LLVM IR, to be pasted in front of a module and inlined.

    text = definitions(["sin", "exp.v8"]) + module_text
    # ... %y = call double @wend.sin(double %x)
    # ... %v = call <8 x double> @wend.exp.v8(<8 x double> %u)

Public names: sin, cos, sincos, exp, expm1, log, log1p, tanh; `name` is scalar f64, `name.v2`,
`name.v4` and `name.v8` are over vectors. sincos returns a struct { sin, cos }. Those in `LOOPS`,
many more, are for loops over arrays: `name.loop` is scalar f64 and `name.loop.f32` scalar f32,
written for throughput and without branches, so that LLVM's vectorizer can widen them, or replace
them by a vector variant (`vector_variants.py`). A scalar `sin` or `exp` has tables and branches:
it is written for latency.

No function calls libm. All are within 4 ulp everywhere, and correct for signed zeros, subnormals,
infinities and NaN; the other modules of this package explain how. llvm.fma is assumed to be an
instruction; without one LLVM calls the C library's fma, which is slow but correct.
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
    payne_hanek,
    pow,
    trig,
)
from wend.backends.native.math.format import F32, F64, Format
from wend.backends.native.math.ir_dsl import COLD, INLINE, PURE, FunctionBuilder, SsaExpr
from wend.backends.native.math.vector_variants import (
    BINARY,
    CALLED_SUFFIX,
    INLINED_ATTRIBUTES,
    SINCOS,
    SUFFIXES,
    called_attributes,
    inlined_variants,
    lanes_of,
    scalar_attributes,
    vector_attributes,
    vector_lanes,
    vector_variants,
)
from wend.backends.native.target.platform import Platform, platform, this_process

SCALARS = ("sin", "cos", "sincos", "exp", "expm1", "log", "log1p", "tanh")
LANES = (2, 4, 8)
# The functions whose one body serves scalars, vectors and both formats
_BODIES: dict[str, Callable[[FunctionBuilder], SsaExpr]] = {
    **{name: getattr(exp, name) for name in ("exp", "exp2", "expm1", "tanh", "expit")},
    **{name: getattr(log, name) for name in ("log", "log2", "log10", "log1p")},
    **{name: getattr(hyperbolic, name) for name in ("sinh", "cosh")},
    **{name: getattr(inverse, name) for name in ("asin", "acos", "atan", "atan2")},
    **{name: getattr(inverse_hyperbolic, name) for name in ("asinh", "acosh", "atanh")},
    "cbrt": cbrt.cbrt,
    **{name: getattr(erf, name) for name in ("erf", "erfc")},
}


def _general_pow(symbol: str) -> str:
    """Return the symbol of the general pow that backs a common-case pow."""
    return symbol.replace(".loop", ".far")


def cold_names() -> tuple[str, ...]:
    """Return the functions that are not inlined, which modules only declare."""
    return _cold_names(platform())


@cache
def _cold_names(target: Platform) -> tuple[str, ...]:
    inlined = inlined_variants()
    return (
        *("exp.edge", "log.edge", "sincos.far"),
        *(f"{name}.far" for name in SINCOS),
        *(_general_pow(form) for form in sorted(inlined) if form.startswith("pow.")),
        *(f"sincos.far.v{n}" for n in LANES),
        *(
            form
            for name, forms in vector_variants().items()
            for form in (name, *forms)
            if form not in inlined
        ),
    )


_SYMBOL = re.compile(r"@wend\.([\w.]+)")


def definitions(names: Iterable[str], *, with_cold: bool = True) -> str:
    """Return the IR of the named functions and of all that they need, each once.

    Args:
        names: keys of `FUNCTIONS`.
        with_cold: False only declares functions that are not inlined (cold paths for huge
            arguments and subnormals, vector variants), to be linked with objects compiled from
            `cold_definitions()`. Compiling them again takes 3 ms in each module that uses sin.

    Raises:
        KeyError: a name is not one of them.
    """
    requested = list(names)
    for name in requested:
        if name not in FUNCTIONS:
            raise KeyError(f"no native math function {name!r}; there are {', '.join(FUNCTIONS)}")
    texts = _with_callees(requested, cold_names() if not with_cold else ())
    # Kept alive until the vectorizer has run: nothing calls them before.
    variants, inlined = vector_variants(), inlined_variants()
    called = (variant for name in texts for variant in variants.get(name, ()))
    pointers = [f"ptr @wend.{variant}" for variant in called if variant not in inlined]
    if pointers:
        initializer = f"[{len(pointers)} x ptr] [{', '.join(pointers)}]"
        texts["kept"] = (
            f'@llvm.compiler.used = appending global {initializer}, section "llvm.metadata"\n'
        )
    return "\n".join(texts.values())


def cold_definitions(names: Iterable[str] | None = None) -> str:
    """Return the IR of some of `cold_names()`, or of all, visible to other modules."""
    names = list(cold_names() if names is None else names)
    texts = _with_callees(names, declared=())
    for name in names:
        texts[name] = texts[name].replace("define internal", "define")
    return "\n".join(texts.values())


def _with_callees(names: Iterable[str], declared: Container[str]) -> dict[str, str]:
    """Return the texts of these symbols and of those they use, some as declarations only."""
    texts: dict[str, str] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in texts:
            text = _text(name, platform())
            texts[name] = _declaration(text) if name in declared else text
            pending += [*_SYMBOL.findall(texts[name]), *vector_variants().get(name, ())]
    return texts


def _declaration(definition: str) -> str:
    """Return the declaration of the function that a text defines."""
    head, _, tail = definition.partition(") ")
    attributes = tail.partition(" {")[0].replace("noinline", "").replace("optnone", "")
    types = head.replace("define internal", "declare").replace(" %x", "").replace(" %y", "")
    return f"{types}) {attributes}\n"


@cache
def _text(name: str, target: Platform) -> str:
    return _writers(target)[name]()


@cache
def _writers(target: Platform) -> dict[str, Callable[[], str]]:
    """Return the function that emits each symbol, including helpers and tables."""
    writers: dict[str, Callable[[], str]] = {
        name: partial(trig.scalar_sincos, name) for name in ("sin", "cos", "sincos")
    }
    writers |= {
        "sin.table": trig.table,
        "sincos.far": payne_hanek.scalar,
        **{f"{name}.far": partial(trig.large_sincos, name) for name in SINCOS},
        "sincos.far.table": payne_hanek.table,
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
            f"sincos.far.v{n}": partial(payne_hanek.vector, n),
        }
        for name in ("exp", "expm1", "log", "log1p", "tanh"):
            writers[f"{name}.v{n}"] = partial(_define, name, FunctionBuilder(n), f"{name}.v{n}")
    for suffix, format in SUFFIXES.items():
        writers |= _loop_writers(format, suffix)
    return writers


def _loop_writers(format: Format, suffix: str) -> dict[str, Callable[[], str]]:
    """Return the functions that emit the symbols for loops, of one format."""
    writers: dict[str, Callable[[], str]] = {}
    for name in SINCOS:
        writers[name + suffix] = partial(_loop_sincos, name, format, name + suffix)
        for variant in vector_variants()[name + suffix]:
            writers[variant] = partial(_vector_sincos, name, format, variant)
    writers |= _pow_writers(format, suffix)
    for name in _BODIES:
        symbol = name + suffix
        attributes = scalar_attributes(name, symbol) if symbol in vector_variants() else INLINE
        body = FunctionBuilder(1, format, is_loop=True)
        writers[symbol] = partial(_define, name, body, symbol, attributes)
        for variant in vector_variants().get(symbol, ()):
            writers[variant] = partial(_inlined_variant, name, format, variant)
    return writers


def _define(name: str, b: FunctionBuilder, symbol: str, attributes: str = INLINE) -> str:
    """Emit a function with the settings of `b`, whose instructions are ignored."""
    b = replace(b, lines=[])
    b.ret(_BODIES[name](b))
    return b.definition(symbol, attributes=attributes, arguments="xy"[: 1 + (name in BINARY)])


def _inlined_variant(name: str, format: Format, symbol: str) -> str:
    """Emit the AVX-512 variant of a function that is inlined into loops."""
    body = FunctionBuilder(lanes_of(symbol), format, is_loop=True, uses_avx512=True)
    return _exported(_define(name, body, symbol, INLINED_ATTRIBUTES))


def called_definition(symbol: str) -> str | None:
    """Return the IR of a function without branches as one that is called, not inlined.

    Loops with the call are vectorized all the same: it has a vector variant of the same arithmetic,
    which is exported, since nothing calls it before the vectorizer has run. None for a function
    that is called already.
    """
    name, _, loop = symbol.partition(".")
    if name not in _BODIES or symbol in vector_variants() or ".v" in symbol:
        return None
    format = SUFFIXES[f".{loop}"] if loop else F64
    body = FunctionBuilder(1, format, is_loop=bool(loop))
    full = vector_lanes(format)
    widths = (full, full // 2) if format == F32 else (full,)  # as of other variants
    variants = {f"{symbol}{CALLED_SUFFIX}{n}": n for n in widths}
    texts = [_define(name, body, symbol, called_attributes(name, symbol, variants))]
    for variant, lanes in variants.items():
        attributes = f"noinline {vector_attributes(format, lanes)}"
        texts.append(_exported(_define(name, replace(body, lanes=lanes), variant, attributes)))
    return "".join(texts)


def _exported(definition: str) -> str:
    """Export a variant, which nothing calls before the vectorizer has run."""
    return definition.replace("define internal", "define", 1)


def _loop_sincos(name: str, format: Format, symbol: str) -> str:
    return trig.loop_sincos(name, format, symbol, scalar_attributes(name, symbol))


def _vector_sincos(name: str, format: Format, symbol: str) -> str:
    alone, lanes = symbol.rpartition(".v")[0], lanes_of(symbol)
    return trig.vector_loop_sincos(
        name, format, lanes, symbol, alone, vector_attributes(format, lanes)
    )


def _pow_writers(format: Format, suffix: str) -> dict[str, Callable[[], str]]:
    """Return the functions that emit the scalar and vector pows of one format."""
    writers: dict[str, Callable[[], str]] = {}
    for symbol in (f"pow{suffix}", *vector_variants()[f"pow{suffix}"]):
        lanes, general = lanes_of(symbol), _general_pow(symbol)
        cold = f"cold noinline {vector_attributes(format, lanes) if lanes > 1 else PURE}"
        writers[symbol] = partial(_pow, format, symbol)
        writers[general] = partial(pow.pow_large, lanes, format, general, cold)
    return writers


def _pow(format: Format, symbol: str) -> str:
    lanes, is_inlined = lanes_of(symbol), symbol in inlined_variants()
    b = FunctionBuilder(lanes, format, is_loop=True, uses_avx512=is_inlined)
    pow.pow(b, _general_pow(symbol))
    if is_inlined:
        return _exported(b.definition(symbol, arguments="xy", attributes=INLINED_ATTRIBUTES))
    attributes = vector_attributes(format, lanes) if lanes > 1 else scalar_attributes("pow", symbol)
    return b.definition(symbol, arguments="xy", attributes=attributes)


class _Functions(Mapping[str, str]):
    """The public names, each with its complete text, emitted on demand."""

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


LOOPS = tuple(name for name in _writers(this_process()) if ".loop" in name and ".v" not in name)
FUNCTIONS: Mapping[str, str] = _Functions()
