"""Native functions for loops over arrays, f64 and f32, against mpmath: at most 4 ulp anywhere."""

from __future__ import annotations

import ctypes
import itertools
import platform
import re
from collections.abc import Callable, Iterator
from functools import cache

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from tests.helpers.shares import sized

from wend.backends.native.backend import BACKEND
from wend.backends.native.jit.llvm import engine
from wend.backends.native.math import avx512
from wend.backends.native.math.library import LOOPS, definitions
from wend.backends.native.math.vector_variants import inlined_variants
from wend.ir.builder import new_symbol
from wend.ir.graph import Graph
from wend.ir.types import TensorType
from wend.ops import elementwise
from wend.ops import special as special_ops
from wend.ops.build import Build

MAX_ULP = 4.0
INF, NAN = float("inf"), float("nan")
TWO = ("atan2", "pow")
SUFFIXES = {np.dtype(np.float64): ".loop", np.dtype(np.float32): ".loop.f32"}
DTYPES = tuple(SUFFIXES)
NAMES = tuple(name.removesuffix(".loop") for name in LOOPS if name.count(".") == 1)
# Those that this processor has forms for; others have none, and nothing to check
INLINED = sorted({form.partition(".")[0] for form in inlined_variants()})
# The functions of NumPy and SciPy, for what is the result where there is no number
REFERENCE = {
    **{name: getattr(special, name) for name in ("erf", "erfc", "expit")},
    **{
        name: getattr(np, f"arc{name[1:]}")
        for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")
    },
    "pow": np.power,
}
Compiled = Callable[..., np.ndarray]


def symbol(name: str, dtype: np.dtype) -> str:
    """Which function computes `name` for arrays of a dtype."""
    return f"{name}{SUFFIXES[dtype]}"


def map_over_arrays(name: str, dtype: np.dtype) -> str:
    """Return a function that stores a function of n numbers, or of n pairs."""
    real = "double" if dtype == np.float64 else "float"
    arguments = [f"{real} %x"] + [f"{real} %y"] * (name in TWO)
    return f"""
        define void @map(ptr noalias %to, ptr noalias %xs, ptr noalias %ys, i64 %n) {{
        entry:
          br label %loop
        loop:
          %i = phi i64 [ 0, %entry ], [ %next, %loop ]
          %x.at = getelementptr {real}, ptr %xs, i64 %i
          %y.at = getelementptr {real}, ptr %ys, i64 %i
          %x = load {real}, ptr %x.at
          %y = load {real}, ptr %y.at
          %result = call {real} @wend.{symbol(name, dtype)}({", ".join(arguments)})
          %target = getelementptr {real}, ptr %to, i64 %i
          store {real} %result, ptr %target
          %next = add i64 %i, 1
          %more = icmp slt i64 %next, %n
          br i1 %more, label %loop, label %exit
        exit:
          ret void
        }}"""


@cache
def compiled(name: str, dtype: np.dtype, level: int = 2, cpu: str | None = None) -> Compiled:
    """Compile a function over arrays; at level 2 LLVM makes vectors of it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )
    text = definitions([symbol(name, dtype)]) + map_over_arrays(name, dtype)
    module = llvm.parse_assembly(text)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(level))
    passes.getModulePassManager().run(module, passes)
    builder = llvm.JITLibraryBuilder().add_ir(str(module)).add_current_process()
    compiler = llvm.create_lljit_compiler(machine)
    library = builder.export_symbol("map").link(compiler, "under-test")
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(library["map"])

    def call(x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        assert x.dtype == dtype
        x = np.ascontiguousarray(x)
        y = x if y is None else np.ascontiguousarray(y)
        result = np.empty_like(x)
        native(result.ctypes.data, x.ctypes.data, y.ctypes.data, len(x))
        return result

    call.keeps = compiler, library  # type: ignore[attr-defined]
    call.text = str(module)  # type: ignore[attr-defined]
    return call


@pytest.fixture(scope="module", autouse=True)
def precision() -> Iterator[None]:
    with mpmath.workprec(200):
        yield


def exact(name: str, *xs: float) -> mpmath.mpf | None:
    """Return the result of a function at finite points, or None where that is no number."""
    x = mpmath.mpf(xs[0])
    match name:
        case "tanh":  # mpmath's own cancels for small arguments
            grown = mpmath.expm1(2 * abs(x))
            return mpmath.sign(x) * grown / (grown + 2)
        case "sinh" | "atanh" | "asinh" | "acosh":
            with mpmath.extraprec(2300 if name == "sinh" else 2400):
                found = getattr(mpmath, name)(x)
        case "erf" | "erfc" if abs(x) > 1e3:  # mpmath's own fail
            found = mpmath.sign(x) if name == "erf" else 1 - mpmath.sign(x)
        case "atan2" if x == 0:  # whose sign mpmath does not know
            found = None
        case "exp2":
            found = mpmath.power(2, x)
        case "log2":
            found = mpmath.log(x) / mpmath.log(2) if x > 0 else None
        case "log" | "log10" | "log1p":
            is_inside = x > (-1 if name == "log1p" else 0)
            found = getattr(mpmath, name)(x) if is_inside else None
        case "cbrt":
            found = mpmath.sign(x) * mpmath.cbrt(abs(x))
        case "expit":
            found = 1 / (1 + mpmath.exp(-x)) if x > 0 else mpmath.exp(x) / (1 + mpmath.exp(x))
        case "pow":
            if x <= 0 and (x == 0 or xs[1] != int(xs[1])):
                return None
            found = mpmath.power(x, int(xs[1]) if x < 0 else mpmath.mpf(xs[1]))
        case _:
            found = getattr(mpmath, name)(*map(mpmath.mpf, xs))
    return found if isinstance(found, mpmath.mpf) and mpmath.isfinite(found) else None


def ulps(found: np.floating, expected: mpmath.mpf) -> float:
    """Return the error in units of the last place of the exact result."""
    info = np.finfo(found.dtype)
    largest = float(info.max)
    if abs(expected) > largest:
        return 0.0 if found == mpmath.sign(expected) * INF or abs(found) == largest else INF
    if not np.isfinite(found):
        return INF
    smallest = info.minexp - info.nmant
    exponent = int(mpmath.frexp(expected)[1]) if expected else smallest
    unit = mpmath.ldexp(1, max(exponent - info.nmant - 1, smallest))
    return float(abs(mpmath.mpf(float(found)) - expected) / unit)


def samples(name: str, dtype: np.dtype) -> list[np.ndarray]:
    """Return arguments all over the domain of a function, and where it changes its ways."""
    rng = np.random.default_rng(3)
    info = np.finfo(dtype)
    low, high = int(info.minexp - info.nmant), int(info.maxexp)

    def spread(low: int, high: int, count: int) -> np.ndarray:
        signs = rng.choice([-1.0, 1.0], count)
        return np.ldexp(rng.uniform(0.5, 1.0, count), rng.integers(low, high, count)) * signs

    borders = np.array([0.5, 0.53, 1.0, 2.0, 0.5**0.5, 2.0**0.5, np.pi / 2, 22.0, 2.0**14, 2.0**28])
    limits = np.array([88.72, 103.9, 708.0, 709.78, 745.1, info.tiny, 2.0**20, 2.0**30])
    points = np.concatenate([borders, limits]).astype(dtype)
    points = np.concatenate(
        [np.nextafter(points, dtype.type(0)), points, np.nextafter(points, 1e4)]
    )
    x = np.concatenate(
        [
            rng.uniform(-1.0, 1.0, 400),
            rng.uniform(-7.0, 7.0, 400),
            rng.uniform(-30.0, 30.0, 300),
            rng.uniform(-750.0, 750.0, 200) if dtype == np.float64 else rng.uniform(-105, 105, 200),
            1.0 + spread(-info.nmant, 0, 200),
            spread(low, high, 300),
            np.arange(-40, 40) * (np.pi / 2),
            2.0 ** np.arange(-20, 20),
            10.0 ** np.arange(-20, 20),
            *(points, -points),
        ]
    ).astype(dtype)
    if name not in TWO:
        return [x]
    with np.errstate(over="ignore"):
        y = rng.permutation(x)
        if name == "pow":
            near_ends = rng.uniform(-1.0, 1.0, len(x)) * info.maxexp / np.log2(abs(x) + 1e-3)
            whole = np.round(rng.uniform(-9.0, 9.0, len(x)))
            y = np.where(rng.uniform(size=len(x)) < 0.5, near_ends, np.where(x < 0, whole, y))
        x, y = np.concatenate([x, abs(x)]), np.concatenate([y, y])
        return [x, y.astype(dtype)]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_error_is_within_four_ulp(name: str, dtype: np.dtype) -> None:
    xs = samples(name, dtype)
    found = compiled(name, dtype)(*xs)
    worst, at = 0.0, ()
    for point in zip(found, *xs, strict=True):
        expected = exact(name, *map(float, point[1:]))
        if expected is not None:
            worst, at = max((worst, at), (ulps(point[0], expected), point[1:]))
    assert worst <= MAX_ULP, f"{name}{at} off by {worst} ulp"


@settings(deadline=None, max_examples=sized(6, 50))
@given(x=st.floats(allow_nan=False), y=st.floats(allow_nan=False))
def test_error_is_within_four_ulp_wherever_hypothesis_looks(x: float, y: float) -> None:
    for name, dtype in itertools.product(NAMES, DTYPES):
        with np.errstate(over="ignore"):
            xs = [np.array([v] * 9, dtype) for v in (x, y)[: 1 + (name in TWO)]]
        found = compiled(name, dtype)(*xs)
        expected = exact(name, *(float(v[0]) for v in xs)) if np.isfinite(xs).all() else None
        if expected is not None:
            assert ulps(found[0], expected) <= MAX_ULP, (name, dtype)
        assert np.array_equal(found, np.full(9, found[0]), equal_nan=True), (name, dtype)


SPECIAL = (0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1e30, -1e30)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_and_signed_zeros_are_numpys(name: str, dtype: np.dtype) -> None:
    tiny = [float(np.finfo(dtype).smallest_subnormal), float(np.finfo(dtype).max)]
    values = np.array([*SPECIAL, *tiny, *(-v for v in tiny)], dtype)
    xs = [v.ravel() for v in np.meshgrid(values, values)] if name in TWO else [values]
    reference = REFERENCE.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        expected = reference(*xs)
    found = compiled(name, dtype)(*xs)
    for result, wanted, *at in zip(found, expected, *xs, strict=True):
        where = (name, at, result, wanted)
        assert np.isnan(result) == np.isnan(wanted), where
        if not np.isnan(wanted):
            assert np.signbit(result) == np.signbit(wanted), where
            if abs(wanted) == tiny[1]:  # a power of the largest number may overflow
                continue
            is_exact = wanted in (0.0, INF, -INF) or abs(wanted) == tiny[0]
            rtol = 0.0 if is_exact else 1e-6
            np.testing.assert_allclose(result, wanted, rtol=rtol, err_msg=str(where))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_logarithms_and_powers_are_exact_where_they_can_be(dtype: np.dtype) -> None:
    whole = np.arange(-20.0, 20.0).astype(dtype)
    np.testing.assert_array_equal(compiled("exp2", dtype)(whole), 2.0**whole)
    np.testing.assert_array_equal(compiled("log2", dtype)(dtype.type(2.0) ** whole), whole)
    tens = np.arange(0.0, 23.0 if dtype == np.float64 else 11.0).astype(dtype)
    np.testing.assert_array_equal(compiled("log10", dtype)(dtype.type(10.0) ** tens), tens)
    cubes = np.arange(-200.0, 200.0).astype(dtype)
    np.testing.assert_array_equal(compiled("cbrt", dtype)(cubes**3), cubes)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_same_without_vectors(name: str, dtype: np.dtype) -> None:
    xs = samples(name, dtype)
    np.testing.assert_array_equal(compiled(name, dtype, level=0)(*xs), compiled(name, dtype)(*xs))


@pytest.mark.sampled(3)
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="processors of other kinds have fma"
)
@pytest.mark.skipif(
    llvm.llvm_version_info < (21,) and avx512.is_available(),
    reason="this LLVM aborts where AVX-512 is compiled for an older processor (wend never does)",
)
@pytest.mark.parametrize("cpu", ["x86-64", "haswell"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_same_on_any_processor(name: str, dtype: np.dtype, cpu: str) -> None:
    xs = samples(name, dtype)
    found = compiled(name, dtype)(*xs)
    np.testing.assert_array_equal(compiled(name, dtype, cpu=cpu)(*xs), found)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_loops_become_vectors(name: str, dtype: np.dtype) -> None:
    real = "double" if dtype == np.float64 else "float"
    text = compiled(name, dtype).text  # type: ignore[attr-defined]
    body = text[text.index("void @map(") :]
    assert re.search(rf"x {real}> @(llvm\.f|wend\.{name}\.loop)", body)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_arrays_call_no_library_and_no_python(name: str, dtype: np.dtype) -> None:
    graph = of_arrays(name, dtype)
    text = BACKEND.text(graph)
    assert not re.search(rf"@{name}\(", text)
    execute = BACKEND.compile(graph)
    assert not execute.host_nodes
    for size in (0, 1, 7, 40):
        given = [np.linspace(0.1, 0.9, size).astype(dtype)] * (1 + (name in TWO))
        (found,) = execute(given)
        assert found.dtype == dtype
        reference = REFERENCE.get(name) or getattr(np, name)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found, reference(*given), rtol=8 * np.finfo(dtype).eps)


def of_arrays(name: str, dtype: np.dtype) -> Graph:
    """A program that calls a function on arrays of any one length."""
    b, vector = Build(name), TensorType(dtype, (new_symbol(),))
    xs = [b.param(vector) for _ in range(1 + (name in TWO))]
    op = getattr(special_ops if name in ("erf", "erfc", "expit") else elementwise, name)
    return b.finish([b.emit(op, *xs)])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_result_does_not_depend_on_its_place(name: str, dtype: np.dtype) -> None:
    # Several vectors at once, one, half of one, and single numbers: each has code of its own
    execute = BACKEND.compile(of_arrays(name, dtype))
    xs = [x[::7] for x in samples(name, dtype)]
    (expected,) = execute(xs)
    for first, size in itertools.product((0, 5, 40), (1, 3, 7, 8, 15, 31, 33, 63, 64, 130)):
        (found,) = execute([x[first : first + size] for x in xs])
        np.testing.assert_array_equal(found, expected[first : first + size])


@pytest.mark.parametrize("name", INLINED)
def test_forms_of_functions_become_a_part_of_loops(name: str) -> None:
    module = engine().optimized(BACKEND.text(of_arrays(name, np.dtype(np.float64))))
    left = [function.name for function in module.functions if ".loop.v" in function.name]
    assert not left
    assert "x double>" in str(module)


def test_a_program_without_functions_asks_for_no_wide_vectors() -> None:
    b = Build("twice")
    x = b.param(TensorType(np.dtype(np.float64), (9,)))
    graph = b.finish([b.add(x, x)])
    assert "prefer-vector-width" not in BACKEND.text(graph)
