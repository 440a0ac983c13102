"""Native elementary functions against mpmath: at most 4 ulp anywhere, and IEEE's special cases."""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Callable, Iterator

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.shares import sized

from wend.backends.native.math.library import (
    FUNCTIONS,
    LANES,
    LOOPS,
    SCALARS,
    cold_definitions,
    cold_names,
    definitions,
)

MAX_ULP = 4.0
WORST_FOR_REDUCTION = 6381956970095103.0 * 2.0**797  # the double closest to a multiple of pi/2
INF, NAN = float("inf"), float("nan")
SMALLEST, LARGEST = 5e-324, float(np.finfo(np.float64).max)

ALL = [name for name in FUNCTIONS if name not in LOOPS]  # see test_vector_variants.py
Compiled = Callable[[np.ndarray], np.ndarray]  # (samples,) -> (results, samples)


def map_over_array(name: str) -> str:
    """Return a function that stores `@wend.<name>` of n doubles, n a multiple of 8."""
    base, _, vector = name.partition(".v")
    lanes = int(vector or 1)
    kind = f"<{lanes} x double>" if vector else "double"
    pair = f"{{ {kind}, {kind} }}"
    if base == "sincos":
        compute = f"""
          %both = call {pair} @wend.{name}({kind} %x)
          %first = extractvalue {pair} %both, 0
          %second = extractvalue {pair} %both, 1
          %there = getelementptr double, ptr %to, i64 %n
          %spot = getelementptr double, ptr %there, i64 %i
          store {kind} %second, ptr %spot, align 8"""
    else:
        compute = f"%first = call {kind} @wend.{name}({kind} %x)"
    return f"""
        define void @"map.{name}"(ptr noalias %to, ptr noalias %from, i64 %n) {{
        entry:
          br label %loop
        loop:
          %i = phi i64 [ 0, %entry ], [ %next, %loop ]
          %source = getelementptr double, ptr %from, i64 %i
          %x = load {kind}, ptr %source, align 8
          {compute}
          %target = getelementptr double, ptr %to, i64 %i
          store {kind} %first, ptr %target, align 8
          %next = add i64 %i, {lanes}
          %more = icmp slt i64 %next, %n
          br i1 %more, label %loop, label %exit
        exit:
          ret void
        }}"""


def target_machine(cpu: str | None = None) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )


def optimized(text: str, machine: llvm.TargetMachine, level: int) -> str:
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return str(module)


def compiled(
    names: list[str], cpu: str | None = None, level: int = 2, cold: llvm.ResourceTracker = None
) -> dict[str, Compiled]:
    """Compile functions over arrays, their cold paths linked from `cold` where it is given."""
    machine = target_machine(cpu)
    text = definitions(names, with_cold=cold is None) + "".join(map(map_over_array, names))
    compiler = llvm.create_lljit_compiler(machine)
    builder = llvm.JITLibraryBuilder().add_ir(optimized(text, machine, level)).add_current_process()
    for name in names:
        builder.export_symbol(f"map.{name}")
    for name in cold_names() if cold is not None else ():
        builder.import_symbol(f"wend.{name}", cold[f"wend.{name}"])
    library = builder.link(compiler, "under-test")
    address = ctypes.c_void_p
    prototype = ctypes.CFUNCTYPE(None, address, address, ctypes.c_int64)

    def wrap(name: str) -> Compiled:
        native = prototype(library[f"map.{name}"])

        def call(samples: np.ndarray) -> np.ndarray:
            padded = np.ones(-(-len(samples) // 8) * 8)
            padded[: len(samples)] = samples
            results = np.empty((2 if name.startswith("sincos") else 1, len(padded)))
            native(results.ctypes.data, padded.ctypes.data, len(padded))
            return results[:, : len(samples)]

        call.keeps = compiler, library  # type: ignore[attr-defined]
        return call

    return {name: wrap(name) for name in names}


@pytest.fixture(scope="module")
def native() -> dict[str, Compiled]:
    return compiled(ALL)


@pytest.fixture(scope="module", autouse=True)
def precision() -> Iterator[None]:
    with mpmath.workprec(200):  # sin of a multiple of pi/2 loses 62 bits
        yield


def exact(name: str, x: float) -> list[mpmath.mpf]:
    """Return the results of a function at a finite point inside its domain."""
    if name == "sincos":
        return [mpmath.sin(x), mpmath.cos(x)]
    if name == "tanh":  # mpmath's own cancels for small arguments
        grown = mpmath.expm1(2 * abs(mpmath.mpf(x)))
        return [mpmath.sign(x) * grown / (grown + 2)]
    return [getattr(mpmath, name)(mpmath.mpf(x))]


def ulps(found: float, expected: mpmath.mpf) -> float:
    """Return the error in units of the last place of the exact result."""
    if abs(expected) > LARGEST:
        return 0.0 if found == mpmath.sign(expected) * INF or abs(found) == LARGEST else INF
    if not np.isfinite(found):
        return INF
    exponent = mpmath.frexp(expected)[1] if expected else -1074
    return float(abs(mpmath.mpf(found) - expected) / mpmath.ldexp(1, max(exponent - 53, -1074)))


def in_domain(name: str, x: float) -> bool:
    return {"log": x > 0.0, "log1p": x > -1.0}.get(name, True) and abs(x) < INF


def spread(low: float, high: float, count: int = 400) -> np.ndarray:
    """Return numbers whose exponents are evenly spread, of both signs."""
    rng = np.random.default_rng(1)
    return np.ldexp(rng.uniform(0.5, 1.0, count), rng.integers(low, high, count)) * rng.choice(
        [-1.0, 1.0], count
    )


def uniform(low: float, high: float, count: int = 700) -> np.ndarray:
    return np.random.default_rng(2).uniform(low, high, count)


def near(centres: np.ndarray) -> np.ndarray:
    return np.concatenate([np.nextafter(centres, 0.0), centres, np.nextafter(centres, LARGEST)])


WAVE_SAMPLES = np.concatenate(
    [
        uniform(-7.0, 7.0),
        uniform(-(2.0**20), 2.0**20),
        uniform(-(2.0**31), 2.0**31, 200),
        spread(-1073, 1024),
        spread(-30, 40),
        near(np.arange(-200.0, 200.0) * (np.pi / 2)),
        near(np.arange(-150.0, 150.0) * (np.pi / 64)),  # the borders of table rows
        near(np.array([2.0**20, 2.0**30, 2.0**-27, WORST_FOR_REDUCTION, LARGEST])),
    ]
)
GROWTH_SAMPLES = np.concatenate(
    [
        uniform(-1.0, 1.0),
        uniform(-45.0, 45.0),
        uniform(-709.0, 709.7),
        uniform(-745.0, -708.0, 200),
        spread(-1073, 10),
        near(np.array([708.0, -708.0, 22.0, -22.0, 709.782712893384, 2.0**-54])),
    ]
)
LOG_SAMPLES = np.concatenate(
    [
        uniform(0.0, 4.0),
        abs(spread(-1073, 1024)),
        1.0 + spread(-52, 0),
        near(np.array([1.0, 0.5**0.5, 2.0**0.5, 0.6875, 1.375, 2.0**-1022, LARGEST / 2])),
    ]
)
SAMPLES = {
    **dict.fromkeys(("sin", "cos", "sincos"), WAVE_SAMPLES),
    **dict.fromkeys(("exp", "expm1", "tanh"), GROWTH_SAMPLES),
    "log": LOG_SAMPLES,
    "log1p": np.concatenate([LOG_SAMPLES - 1.0, LOG_SAMPLES, spread(-60, 0)]),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SCALARS)
def test_error_is_within_four_ulp(native: dict[str, Compiled], name: str) -> None:
    samples = np.array([x for x in SAMPLES[name] if in_domain(name, x)])
    expected = [exact(name, x) for x in samples]
    for variant in (name, *(f"{name}.v{n}" for n in LANES)):
        found = native[variant](samples)
        errors = [
            max(map(ulps, results, truth)) for results, truth in zip(found.T, expected, strict=True)
        ]
        worst = int(np.argmax(errors))
        assert errors[worst] <= MAX_ULP, f"{variant}({samples[worst]!r}) off by {errors[worst]} ulp"


@settings(deadline=None, max_examples=sized(20, 300))
@given(x=st.floats(allow_nan=False, allow_infinity=False))
def test_error_is_within_four_ulp_wherever_hypothesis_looks(
    native: dict[str, Compiled], x: float
) -> None:
    for name in SCALARS:
        if in_domain(name, x):
            truth = exact(name, x)
            for variant in (name, f"{name}.v4"):
                found = native[variant](np.array([x]))[:, 0]
                assert max(map(ulps, found, truth)) <= MAX_ULP, variant


# pairs and not dicts, in which 0.0 and -0.0 are one key
ODD = [(0.0, 0.0), (-0.0, -0.0), (SMALLEST, SMALLEST), (-SMALLEST, -SMALLEST), (NAN, NAN)]
SPECIAL = {
    "sin": [*ODD, (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (SMALLEST, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "exp": [
        *((0.0, 1.0), (-0.0, 1.0), (SMALLEST, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN)),
        *((710.0, INF), (1e300, INF), (-745.0, SMALLEST), (-746.0, 0.0), (-1e300, 0.0)),
    ],
    "expm1": [*ODD, (INF, INF), (-INF, -1.0), (1e300, INF), (-1e300, -1.0)],
    "log": [
        *((0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (NAN, NAN)),
        *((-INF, NAN), (-1.0, NAN), (-SMALLEST, NAN)),
    ],
    "log1p": [*ODD, (-1.0, -INF), (-1.5, NAN), (INF, INF), (-INF, NAN)],
    "tanh": [*ODD, (INF, 1.0), (-INF, -1.0), (25.0, 1.0), (-1e300, -1.0)],
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("suffix", ["", ".v2", ".v4", ".v8"])
def test_special_values_and_signed_zeros(
    native: dict[str, Compiled], name: str, suffix: str
) -> None:
    for x, expected in SPECIAL[name]:
        # alone among ordinary numbers, so that vectors do not leave their common path for it
        found = native[name + suffix](np.array([x, *[0.75] * 7]))[0, 0]
        np.testing.assert_array_equal(found, expected, err_msg=f"{name}{suffix}({x})")
        assert np.signbit(found) == np.signbit(expected) or np.isnan(expected), (name, suffix, x)


@pytest.mark.parametrize("suffix", ["", ".v2", ".v4", ".v8"])
def test_one_huge_lane_does_not_disturb_the_others(
    native: dict[str, Compiled], suffix: str
) -> None:
    samples = np.array([0.5, WORST_FOR_REDUCTION, -0.0, 1e300, -2.0, INF, 3.0, NAN])
    found = native[f"sincos{suffix}"](samples)
    for index in (0, 1, 3, 4, 6):
        truth = exact("sincos", samples[index])
        assert max(map(ulps, found[:, index], truth)) <= MAX_ULP
    assert np.signbit(found[0, 2])
    assert np.isnan(found[:, [5, 7]]).all()


def test_sincos_is_sin_and_cos(native: dict[str, Compiled]) -> None:
    for suffix in ("", ".v8"):
        both = native[f"sincos{suffix}"](WAVE_SAMPLES)
        np.testing.assert_array_equal(both[0], native[f"sin{suffix}"](WAVE_SAMPLES)[0])
        np.testing.assert_array_equal(both[1], native[f"cos{suffix}"](WAVE_SAMPLES)[0])


def test_results_are_the_same_without_optimization(native: dict[str, Compiled]) -> None:
    for name, function in compiled(ALL, level=0).items():
        samples = SAMPLES[name.partition(".")[0]]
        np.testing.assert_array_equal(function(samples), native[name](samples))


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="other processors have fma anyway"
)
def test_results_are_the_same_on_a_processor_without_fma(native: dict[str, Compiled]) -> None:
    for name, function in compiled(list(SCALARS), cpu="x86-64").items():
        np.testing.assert_array_equal(function(SAMPLES[name]), native[name](SAMPLES[name]))


def test_cold_paths_may_live_in_an_object_of_their_own(native: dict[str, Compiled]) -> None:
    machine = target_machine()
    compiler = llvm.create_lljit_compiler(machine)
    builder = llvm.JITLibraryBuilder().add_ir(optimized(cold_definitions(), machine, 1))
    for name in cold_names():
        builder.export_symbol(f"wend.{name}")
    cold = builder.add_current_process().link(compiler, "cold")
    for name, function in compiled(ALL, cold=cold).items():
        samples = SAMPLES[name.partition(".")[0]]
        np.testing.assert_array_equal(function(samples), native[name](samples))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_definitions_parse_verify_and_call_only_intrinsics(name: str) -> None:
    module = llvm.parse_assembly(definitions([name]))
    module.verify()
    assert [f.name for f in module.functions if f.name == f"wend.{name}"]
    outside = [f.name for f in module.functions if f.is_declaration]
    assert all(other.startswith("llvm.") for other in outside), outside
    assert FUNCTIONS[name] == definitions([name])


def test_definitions_holds_each_symbol_once() -> None:
    text = definitions(["sin", "cos", "sincos", "sin", "cos.v4"])
    defined = re.findall(r"^(?:define .*?)?(@wend\.[\w.]+)", text, re.MULTILINE)
    assert len(defined) == len(set(defined))
    llvm.parse_assembly(text).verify()


def test_definitions_of_nothing_is_empty() -> None:
    assert definitions([]) == ""


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"no native math function 'sinh'; there are sin, cos"):
        definitions(["sinh"])
