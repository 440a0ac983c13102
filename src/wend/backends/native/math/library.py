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
from functools import cache, partial

from llvmlite import binding

from wend.backends.native.math import area, cbrt, erf, exp, far, hyperbolic, inverse, log, pow, trig
from wend.backends.native.math.body import PURE
from wend.backends.native.math.format import F32, F64, Format

SCALARS = ("sin", "cos", "sincos", "exp", "expm1", "log", "log1p", "tanh")
LANES = (2, 4, 8)
WAVES = ("sin", "cos", "tan")
# Functions that look at whole vectors, and what LLVM is told of their arguments
WHOLE = {**dict.fromkeys(WAVES, "v"), "pow": "vv"}
_FORMATS = {".loop": F64, ".loop.f32": F32}


def _widths(format: Format) -> tuple[int, ...]:
    """How many numbers loops on this machine take at once; of f32, also beside f64."""
    features = binding.get_host_cpu_features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    return (bits // 64,) if format == F64 else (bits // 32, bits // 64)


# A rare argument wants a branch, which LLVM makes no vectors of: loops call these, and LLVM the
# vector forms in their place.
VECTOR_FORMS = {
    f"{name}{suffix}": tuple(f"{name}{suffix}.v{n}" for n in _widths(format))
    for name in WHOLE
    for suffix, format in _FORMATS.items()
}
COLD_NAMES = (
    *("exp.edge", "log.edge", "sincos.far"),
    *(f"{name}.far" for name in WAVES),
    *(f"sincos.far.v{n}" for n in LANES),
    *(form for name, forms in VECTOR_FORMS.items() for form in (name, *forms)),
)

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
    kept = [f"ptr @wend.{form}" for name in texts for form in VECTOR_FORMS.get(name, ())]
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
        "exp": exp.exp_common,
        "exp.edge": partial(exp.exp_everywhere, 1, "exp.edge", cold=True),
        "log.table": log.table,
        "log": log.log_common,
        "log.edge": partial(log.log_everywhere, 1, "log.edge", cold=True),
        "expm1": partial(exp.expm1, 1, "expm1"),
        "log1p": partial(log.log1p, 1, "log1p"),
        "tanh": partial(exp.tanh, 1, "tanh"),
    }
    for n in LANES:
        writers |= {
            f"sin.v{n}": partial(trig.vector_wave, "sin", n),
            f"cos.v{n}": partial(trig.vector_wave, "cos", n),
            f"sincos.v{n}": partial(trig.vector_sincos, n),
            f"sincos.far.v{n}": partial(far.vector, n),
            f"exp.v{n}": partial(exp.exp_everywhere, n, f"exp.v{n}"),
            f"expm1.v{n}": partial(exp.expm1, n, f"expm1.v{n}"),
            f"log.v{n}": partial(log.log_everywhere, n, f"log.v{n}"),
            f"log1p.v{n}": partial(log.log1p, n, f"log1p.v{n}"),
            f"tanh.v{n}": partial(exp.tanh, n, f"tanh.v{n}"),
        }
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
    for name, write in (
        ("exp", exp.exp_everywhere),
        ("expm1", exp.expm1),
        ("tanh", exp.tanh),
        ("log", log.log_everywhere),
        ("log1p", log.log1p),
    ):
        writers[name + suffix] = partial(write, 1, name + suffix, format)
    for base in (2, 10):
        symbol = f"log{base}{suffix}"
        writers[symbol] = partial(log.log_of_base, base, format, symbol)
    for module, names in (
        (exp, ("exp2", "expit")),
        (hyperbolic, ("sinh", "cosh")),
        (inverse, ("asin", "acos", "atan", "atan2")),
        (area, ("asinh", "acosh", "atanh")),
        (cbrt, ("cbrt",)),
        (erf, ("erf", "erfc")),
    ):
        for name in names:
            writers[name + suffix] = partial(getattr(module, name), format, name + suffix)
    return writers


def _loop_wave(name: str, format: Format, symbol: str) -> str:
    return trig.loop_wave(name, format, symbol, _of_one(name, symbol))


def _wide_wave(name: str, format: Format, symbol: str) -> str:
    alone, _, lanes = symbol.rpartition(".v")
    return trig.wide_wave(name, format, int(lanes), symbol, alone, _of_many(format, lanes))


def _of_one(name: str, symbol: str) -> str:
    """The attributes of a function of one number, which say what computes several."""
    forms = ((form, form.rpartition(".v")[2]) for form in VECTOR_FORMS[symbol])
    kinds = WHOLE[name]
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
        attributes = _of_many(format, lanes) if lanes else _of_one("pow", symbol)
        far = symbol.replace(".loop", ".far")
        cold = f"cold noinline {_of_many(format, lanes) if lanes else PURE}"
        writers[symbol] = partial(pow.pow, int(lanes or 1), format, symbol, far, attributes)
        writers[far] = partial(pow.far_pow, int(lanes or 1), format, far, cold)
    return writers


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
