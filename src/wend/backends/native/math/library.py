"""Elementary functions as LLVM IR, to be pasted in front of a module and inlined.

    text = definitions(["sin", "exp.v8"]) + module_text
    # ... %y = call double @wend.sin(double %x)
    # ... %v = call <8 x double> @wend.exp.v8(<8 x double> %u)

Public names: sin, cos, sincos, exp, expm1, log, log1p, tanh; `name` is scalar f64, `name.v2`,
`name.v4` and `name.v8` are over vectors. sincos returns a struct { sin, cos }. Those in `LOOPS`,
many more, are for loops over arrays: `name.loop` is scalar f64 and `name.loop.f32` scalar f32,
written for throughput and without branches, so that LLVM's vectorizer makes vectors of them. A
scalar `sin` or `exp` has tables and branches, for the one who waits for it.

No function calls libm. All are within 4 ulp everywhere, and correct for signed zeros, subnormals,
infinities and NaN: the files beside it say how. llvm.fma is assumed to be an
instruction; without one LLVM calls the C library's fma: slow, and still correct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from llvmlite import binding

from wend.backends.native.math import (
    area,
    avx512,
    cbrt,
    erf,
    exp,
    far,
    hyperbolic,
    inverse,
    log,
    pow,
    trig,
)
from wend.backends.native.math.body import COLD, INLINE, PURE, Body, Term
from wend.backends.native.math.format import F32, F64, Format

SCALARS = ("sin", "cos", "sincos", "exp", "expm1", "log", "log1p", "tanh")
LANES = (2, 4, 8)
WAVES = ("sin", "cos", "tan")
# Functions that look at whole vectors
WHOLE = (*WAVES, "pow")
TWO = ("atan2", "pow")
# Those of one body, whatever is given
_BODIES: dict[str, Callable[[Body], Term]] = {
    **{name: getattr(exp, name) for name in ("exp", "exp2", "expm1", "tanh", "expit")},
    **{name: getattr(log, name) for name in ("log", "log2", "log10", "log1p")},
    **{name: getattr(hyperbolic, name) for name in ("sinh", "cosh")},
    **{name: getattr(inverse, name) for name in ("asin", "acos", "atan", "atan2")},
    **{name: getattr(area, name) for name in ("asinh", "acosh", "atanh")},
    "cbrt": cbrt.cbrt,
    **{name: getattr(erf, name) for name in ("erf", "erfc")},
}
_FORMATS = {".loop": F64, ".loop.f32": F32}


def _widths(name: str, format: Format) -> tuple[int, ...]:
    """How many numbers loops on this machine take at once.

    Of f32 beside f64 half as many as else; and what is left over in the end, of short functions.
    """
    features = binding.get_host_cpu_features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    most = bits // format.width
    return (most,) if format == F64 and name in WHOLE else (most, most // 2)


# Functions that loops call, and LLVM the vector forms in their place. Those in `WHOLE` want a
# branch for a rare argument, which LLVM makes no vectors of; the others have forms of their own
# where AVX-512 has instructions for them.
_HAVE_FORMS = (*WHOLE, *(_BODIES if avx512.is_there() else ()))
VECTOR_FORMS = {
    f"{name}{suffix}": tuple(f"{name}{suffix}.v{n}" for n in _widths(name, format))
    for name in _HAVE_FORMS
    for suffix, format in _FORMATS.items()
}
# Those become a part of the loops that call them, once LLVM has made vectors of these
INLINED_FORMS = frozenset(
    form
    for name, forms in VECTOR_FORMS.items()
    for form in forms
    if name.partition(".")[0] not in WAVES and avx512.is_there()
)
COLD_NAMES = (
    *("exp.edge", "log.edge", "sincos.far"),
    *(f"{name}.far" for name in WAVES),
    *(form.replace(".loop", ".far") for form in INLINED_FORMS if form.startswith("pow.")),
    *(f"sincos.far.v{n}" for n in LANES),
    *(
        form
        for name, forms in VECTOR_FORMS.items()
        for form in (name, *forms)
        if form not in INLINED_FORMS
    ),
)

# Attributes of those: parts of them may be wider than their arguments
_OF_FORM = f'{INLINE} "min-legal-vector-width"="512" {avx512.ATTRIBUTE}'

_SYMBOL = re.compile(r"@wend\.([\w.]+)")


def definitions(names: Iterable[str], *, with_cold: bool = True) -> str:
    """Return the IR of the named functions and of all that they need, each once.

    Args:
        names: keys of `FUNCTIONS`.
        with_cold: False leaves what is not inlined (paths for huge arguments and subnormals, waves
            in loops) as declarations, to be linked with objects compiled from
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
        name: partial(trig.scalar_wave, name) for name in ("sin", "cos", "sincos")
    }
    writers |= {
        "sin.table": trig.table,
        "sincos.far": far.scalar,
        **{f"{name}.far": partial(trig.far_wave, name) for name in WAVES},
        "sincos.far.table": far.table,
        **{f"exp.steps.{f.name}": partial(exp.step_table, f) for f in _FORMATS.values()},
        "exp": exp.exp_common,
        "exp.edge": partial(_define, "exp", Body(), "exp.edge", COLD),
        "log.table": log.table,
        "log": log.log_common,
        "log.edge": partial(_define, "log", Body(), "log.edge", COLD),
    }
    for name in ("expm1", "log1p", "tanh"):
        writers[name] = partial(_define, name, Body(), name)
    for n in LANES:
        writers |= {
            f"sin.v{n}": partial(trig.vector_wave, "sin", n),
            f"cos.v{n}": partial(trig.vector_wave, "cos", n),
            f"sincos.v{n}": partial(trig.vector_sincos, n),
            f"sincos.far.v{n}": partial(far.vector, n),
        }
        for name in ("exp", "expm1", "log", "log1p", "tanh"):
            writers[f"{name}.v{n}"] = partial(_define, name, Body(n), f"{name}.v{n}")
    for suffix, format in _FORMATS.items():
        writers |= _loops(format, suffix)
    return writers


def _loops(format: Format, suffix: str) -> dict[str, Callable[[], str]]:
    """List who writes the functions for loops, of one format."""
    writers: dict[str, Callable[[], str]] = {}
    for name in WAVES:
        writers[name + suffix] = partial(_loop_wave, name, format, name + suffix)
        for form in VECTOR_FORMS[name + suffix]:
            writers[form] = partial(_wide_wave, name, format, form)
    writers |= _powers(format, suffix)
    for name in _BODIES:
        symbol = name + suffix
        attributes = _of_one(name, symbol) if symbol in VECTOR_FORMS else INLINE
        body = Body(1, format, is_loop=True)
        writers[symbol] = partial(_define, name, body, symbol, attributes)
        for form in VECTOR_FORMS.get(symbol, ()):
            writers[form] = partial(_inlined_form, name, format, form)
    return writers


def _define(name: str, b: Body, symbol: str, attributes: str = INLINE) -> str:
    """Write a function of a body that is empty so far, or was written by an earlier call."""
    b = replace(b, lines=[])
    b.ret(_BODIES[name](b))
    return b.definition(symbol, attributes=attributes, arguments="xy"[: 1 + (name in TWO)])


def _inlined_form(name: str, format: Format, symbol: str) -> str:
    """Write the form of a function that LLVM makes a part of loops, by AVX-512.

    Nothing calls it before the vectorizer has run, so it is visible outside: else it were dropped.
    """
    lanes = symbol.rpartition(".v")[2]
    body = Body(int(lanes), format, is_loop=True, wide=True)
    return _visible(_define(name, body, symbol, _OF_FORM))


def _visible(definition: str) -> str:
    return definition.replace("define internal", "define", 1)


def _loop_wave(name: str, format: Format, symbol: str) -> str:
    return trig.loop_wave(name, format, symbol, _of_one(name, symbol))


def _wide_wave(name: str, format: Format, symbol: str) -> str:
    alone, _, lanes = symbol.rpartition(".v")
    return trig.wide_wave(name, format, int(lanes), symbol, alone, _of_many(format, lanes))


def _of_one(name: str, symbol: str) -> str:
    """The attributes of a function of one number, which say what computes several."""
    forms = ((form, form.rpartition(".v")[2]) for form in VECTOR_FORMS[symbol])
    kinds = "v" * (1 + (name in TWO))
    variants = ",".join(f"_ZGV_LLVM_N{n}{kinds}_wend.{symbol}(wend.{form})" for form, n in forms)
    return f'noinline {PURE} "vector-function-abi-variant"="{variants}"'


def _of_many(format: Format, lanes: str) -> str:
    bits = int(lanes) * format.width
    return f'{PURE} "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


def _powers(format: Format, suffix: str) -> dict[str, Callable[[], str]]:
    """List who writes the powers of one format, of one pair and of several."""
    writers: dict[str, Callable[[], str]] = {}
    for symbol in (f"pow{suffix}", *VECTOR_FORMS[f"pow{suffix}"]):
        lanes = symbol.rpartition(".v")[2] if ".v" in symbol else ""
        far = symbol.replace(".loop", ".far")
        cold = f"cold noinline {_of_many(format, lanes) if lanes else PURE}"
        writers[symbol] = partial(_power, format, symbol, far)
        writers[far] = partial(pow.far_pow, int(lanes or 1), format, far, cold)
    return writers


def _power(format: Format, symbol: str, far: str) -> str:
    lanes = symbol.rpartition(".v")[2] if ".v" in symbol else ""
    wide = symbol in INLINED_FORMS
    b = Body(int(lanes or 1), format, is_loop=True, wide=wide)
    pow.pow(b, far)
    if wide:
        return _visible(b.definition(symbol, arguments="xy", attributes=_OF_FORM))
    attributes = _of_many(format, lanes) if lanes else _of_one("pow", symbol)
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
