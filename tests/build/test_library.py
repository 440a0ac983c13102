"""Object files: what they call, and that their functions compute what wend computes."""

from __future__ import annotations

import ctypes
import platform
import random
import shutil
import subprocess
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.built import C_LIBRARY, compiler, library_of, undefined_symbols
from tests.helpers.programs import PROGRAMS, Program
from wend.base.errors import UnsupportedError
from wend.build import build
from wend.build.c_types import LIBRARY
from wend.build.caller import StateArrays
from wend.cli.demo import START, Parameters, negative_log_likelihood, read_pelts


def results_of(fun: Any, args: Sequence[Any], tmp_path: Path) -> list[Any]:
    """The results of a function that is built; it calls the C library only."""
    built = build(fun.get_concrete_function(*args), out=tmp_path, name="f")
    assert undefined_symbols(built.object) <= C_LIBRARY | {*built.blas}
    return wend.tree.leaves(library_of(built).call("f", wend.tree.leaves(args)))


@pytest.mark.sampled(30)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_values_and_gradients_of_programs_are_equal_to_the_last_bit(
    program: Program, tmp_path: Path
) -> None:
    floats = [np.issubdtype(np.asarray(x).dtype, np.inexact) for x in program.args]
    numbers = tuple(k for k, is_float in enumerate(floats) if is_float)
    for fun in (wend.function(program.fun), wend.value_and_grad(program.fun, argnums=numbers)):
        expected = wend.tree.leaves(fun(*program.args))
        for x, y in zip(results_of(fun, program.args, tmp_path), expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_the_demo_in_c_gives_the_demo_s_numbers(tmp_path: Path) -> None:
    pelts = read_pelts()

    def loss(alpha, beta, gamma, delta, hare, lynx, sigma_hare, sigma_lynx):
        log = Parameters(alpha, beta, gamma, delta, hare, lynx, sigma_hare, sigma_lynx)
        return negative_log_likelihood(log, pelts, 1e-8)[0]

    build(loss, ", ".join(["f64"] * 8), gradient=True, out=tmp_path)
    start = [np.float64(x) for x in np.log(START)]
    numbers = ", ".join(repr(float(x)) for x in start)
    slopes = ", ".join(f"g + {k}" for k in range(8))
    (tmp_path / "main.c").write_text(
        f"""
        #include <stdio.h>
        #include "loss.h"
        int main(void) {{
          loss_gradient_workspace workspace;
          double value, g[8];
          loss_gradient_workspace_init(&workspace);
          if (loss_gradient(&workspace, {numbers}, &value, {slopes})) return 1;
          printf("%.17g", value);
          for (int k = 0; k < 8; k++) printf(" %.17g", g[k]);
          loss_gradient_workspace_release(&workspace);
          return 0;
        }}
        """
    )
    command = [*compiler(), "main.c", "loss.o", "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    value, gradient = wend.value_and_grad(loss, argnums=tuple(range(8)))(*start)
    assert [float(x) for x in printed.split()] == [value, *gradient]
    check_memory(loss, tmp_path, printed)


def check_memory(loss: Callable[..., Any], folder: Path, printed: str) -> None:
    """The program in C gives the same under gcc's sanitizers; valgrind finds nothing either."""
    options = ["-fsanitize=address,undefined", "-fno-sanitize-recover"]
    command = [*compiler(), *options, "main.c", "loss.o", "-lm", "-o", "sanitized"]
    if subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode == 0:
        done = subprocess.run([folder / "sanitized"], check=True, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (printed, "")
    if shutil.which("valgrind") is None:
        return
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    cpu = "x86-64-v2" if is_x86 else None  # valgrind knows no AVX-512
    build(loss, ", ".join(["f64"] * 8), gradient=True, cpu=cpu, out=folder)
    command = [*compiler(), "main.c", "loss.o", "-lm", "-o", "plain"]
    subprocess.run(command, cwd=folder, check=True)
    checked = ["valgrind", "-q", "--leak-check=full", "--error-exitcode=9", folder / "plain"]
    done = subprocess.run(checked, check=True, capture_output=True, text=True)
    assert done.stderr == ""


def array_functions(x, y):
    s = np.sin(x) + np.exp(y) * np.log1p(np.abs(x)) + np.tanh(x) ** 3.0 + np.arctan2(x, y)
    return s, np.sort(x), np.argsort(y), np.cumsum(x), x.max(), np.argmin(x), (x > y).any()


def test_arrays_of_any_size(tmp_path: Path) -> None:
    built = build(array_functions, "f64[n], f64[n]", out=tmp_path, gradient=False)
    assert undefined_symbols(built.object) <= C_LIBRARY
    library = library_of(built)
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 1000):
        x, y = rng.normal(size=(2, size))
        for a, b in zip(
            library.call("array_functions", [x, y]), array_functions(x, y), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


def test_narrow_and_complex_numbers(tmp_path: Path) -> None:
    def mixed(x, k, z, flag):
        return (2 * x).sum(), k + 1, z * z, np.where(flag, z[0], 1.0)

    library = library_of(build(mixed, "f32[n], i8, c128[2], bool", out=tmp_path))
    x, z = np.arange(3, dtype=np.float32), np.array([1 + 2j, 3j])
    total, k, square, chosen = library.call("mixed", [x, 7, z, True])
    assert (total.dtype, total, k.dtype, k, chosen) == (np.float32, 6.0, np.int8, 8, 1 + 2j)
    np.testing.assert_array_equal(square, z * z)


def test_arguments_changed_in_place_may_swap_their_contents(tmp_path: Path) -> None:
    def swap(x, y):
        old = x.copy()
        x[:] = y
        y[:] = 2 * old
        return old.sum()

    library = library_of(build(swap, "f64[n], f64[n]", out=tmp_path))
    x, y = np.arange(4.0), np.arange(4.0) + 10
    assert library.call("swap", [x, y]) == 6.0
    np.testing.assert_array_equal(x, np.arange(4.0) + 10)
    np.testing.assert_array_equal(y, 2 * np.arange(4.0))


def test_results_whose_size_the_run_decides(tmp_path: Path) -> None:
    def positive(x):
        return x[x > 0], x[::2] * 2

    library = library_of(build(positive, "f64[n]", out=tmp_path))
    for x in (np.array([1.0, -2.0, 3.0, 4.0]), -np.ones(3), np.ones(0), np.ones(10_000)):
        for a, b in zip(library.call("positive", [x]), positive(x), strict=True):
            np.testing.assert_array_equal(a, b)


def test_variables_are_the_state(tmp_path: Path) -> None:
    total, count = wend.Variable(np.zeros((2, 2)), name="total"), wend.Variable(0, name="count")

    @wend.function
    def step(x):
        total.assign_add(x)
        count.assign_add(1)
        if x[0, 0] < 0:
            raise ValueError("negative")
        return total.sum() / count

    step(np.ones((2, 2)))
    built = build(step, "f64[2, 2]", gradient=True, out=tmp_path)
    assert "typedef struct {\n  double total[2][2];\n  int64_t count;\n} step_state;" in (
        built.header.read_text()
    )
    library = library_of(built)
    first = StateArrays(library)
    assert library.call("step", [np.ones((2, 2)) * 3], first) == 8.0
    second = first.copy()
    assert library.call("step", [np.ones((2, 2)) * 5], second) == 12.0
    np.testing.assert_array_equal(first.total, np.full((2, 2), 4.0))
    np.testing.assert_array_equal(second.total, np.full((2, 2), 9.0))
    assert (first.count, second.count) == (2, 3)
    with pytest.raises(RuntimeError, match="ValueError: negative at "):
        library.call("step", [-np.ones((2, 2))], first)
    assert first.count == 2  # a call that fails changes nothing
    value, slope = library.call("step_gradient", [np.ones((2, 2))], first)
    assert value == 20.0 / 3
    np.testing.assert_array_equal(slope, np.full((2, 2), 1 / 3))
    assert first.count == 3


def test_checks_and_prints(tmp_path: Path) -> None:
    def careful(x, k):
        if x < 0:
            raise ValueError(f"negative: {x:.2f} at 100%")
        assert x != 3.0, "three"
        print("x is", x, x > 1, k, f"{k:03d}")
        return np.sqrt(x)

    printed: list[str] = []
    library = library_of(build(careful, "f64, u8", out=tmp_path), printed)
    assert library.call("careful", [4.0, 7]) == 2.0
    assert printed == ["x is 4 True 7 007\n"]
    with pytest.raises(RuntimeError, match=r"^ValueError: negative: -1.00 at 100% at test_lib"):
        library.call("careful", [-1.0, 7])
    with pytest.raises(RuntimeError, match=r"^AssertionError: three at "):
        library.call("careful", [3.0, 7])

    library = library_of(build(lambda x, k: x[k], "f64[n], i64", name="item", out=tmp_path))
    assert library.call("item", [np.arange(4.0), -1]) == 3.0
    with pytest.raises(IndexError, match="IndexError in gather at "):
        library.call("item", [np.arange(4.0), 4])


def product(x, y):
    return x @ y


def test_products_and_factorizations_of_known_small_sizes_need_no_blas(tmp_path: Path) -> None:
    def factors(a, y):
        matrix = a @ a.T + 9 * np.eye(20)
        return np.linalg.cholesky(matrix), np.linalg.solve(a, y), np.linalg.slogdet(a)

    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(20, 20)), rng.normal(size=20)
    built = build(factors, "f64[20, 20], f64[20]", blas=False, out=tmp_path)
    assert undefined_symbols(built.object) <= C_LIBRARY
    library = library_of(built)
    results = wend.tree.leaves(library.call("factors", [a, y]))
    for x, expected in zip(results, wend.tree.leaves(factors(a, y)), strict=True):
        np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(RuntimeError, match="error in solve at "):
        library.call("factors", [0 * a, y])

    built = build(product, "f64[64, 64], f64[64, 64]", blas=False, out=tmp_path)
    assert undefined_symbols(built.object) <= C_LIBRARY
    x, y = rng.normal(size=(2, 64, 64))
    np.testing.assert_allclose(library_of(built).call("product", [x, y]), x @ y, rtol=1e-12)


@pytest.mark.parametrize("sizes", ["70, 70", "n, n"])
def test_other_products_call_blas_or_are_refused(sizes: str, tmp_path: Path) -> None:
    signature = f"f64[{sizes}], f64[{sizes}]"
    built = build(product, signature, out=tmp_path)
    assert undefined_symbols(built.object) <= C_LIBRARY | {"dgemm_", "dgemv_"}
    assert built.blas == ("dgemm_", "dgemv_")
    assert "and BLAS and LAPACK: dgemm_, dgemv_" in built.header.read_text()
    with pytest.raises(UnsupportedError, match=r"`dot_general` at test_library.py:\d+ has no code"):
        build(product, signature, blas=False, out=tmp_path)


def with_blas(tmp_path: Path) -> list[str]:
    """The options that link a BLAS of the test's own, which checks what it is passed."""
    (tmp_path / "blas.c").write_text(
        """
        void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                    const double *alpha, const double *a, const int *lda, const double *b,
                    const int *ldb, const double *beta, double *c, const int *ldc) {
          for (int i = 0; i < *m; i++)
            for (int j = 0; j < *n; j++) {
              double s = 0;
              for (int l = 0; l < *k; l++)
                s += a[*ta == 'N' ? i + l * *lda : l + i * *lda] *
                     b[*tb == 'N' ? l + j * *ldb : j + l * *ldb];
              c[i + j * *ldc] = *alpha * s + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);
            }
        }
        void dgemv_(const char *t, const int *m, const int *n, const double *alpha, const double *a,
                    const int *lda, const double *x, const int *dx, const double *beta, double *y,
                    const int *dy) {
          for (int i = 0; i < (*t == 'N' ? *m : *n); i++) {
            double s = 0;
            for (int j = 0; j < (*t == 'N' ? *n : *m); j++)
              s += a[*t == 'N' ? i + j * *lda : j + i * *lda] * x[j * *dx];
            y[i * *dy] = *alpha * s + (*beta == 0 ? 0 : *beta * y[i * *dy]);
          }
        }
        """
    )
    command = [*compiler(), "-O1", "-fPIC", "-c", "blas.c", "-o", "blas.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return [str(tmp_path / "blas.o")]


def test_blas_is_called_with_what_it_expects(tmp_path: Path) -> None:
    library = library_of(
        build(product, "f64[n, m], f64[m, k]", out=tmp_path), libraries=with_blas(tmp_path)
    )
    rng = np.random.default_rng(0)
    for n, m, k in ((3, 4, 5), (100, 90, 80), (1, 600, 700), (600, 700, 1)):
        x, y = rng.normal(size=(n, m)), rng.normal(size=(m, k))
        np.testing.assert_allclose(library.call("product", [x, y]), x @ y, rtol=1e-10, atol=1e-10)


STATE = np.random.RandomState(0)


def prints_an_array(x):
    print(x)
    return x


@pytest.mark.parametrize(
    ("fun", "signature", "message"),
    [
        (lambda x: np.linalg.svd(x)[1], "f64[4, 4]", "`svd` at .* has no code that runs without"),
        (np.fft.fft, "f64[8]", "`fft`.* has no code that runs without"),
        (
            lambda x: wend.py_function(lambda v: v, x, wend.TensorSpec([])),
            "f64",
            "`py_function` at .* has no code that runs without",
        ),
        (prints_an_array, "f64[3]", "`print` at .* of an array has no code without Python"),
        (lambda x: x.astype(np.float16), "f64", "the result .* is f16"),
        (lambda x: x + STATE.randn(), "f64", "`RandomState.randn` at .* without Python"),
        (lambda x: x + random.random(), "f64", "`Random.random` at .*\n.*draw with wend.random"),
        (lambda x: x * np.random.default_rng(0).normal(x), "f64", "`default_rng` at .* without"),
    ],
    ids=["svd", "fft", "py_function", "print", "float16", "randn", "random", "default_rng"],
)
def test_what_needs_python_is_refused_by_line(
    fun: Callable[..., Any], signature: str, message: str, tmp_path: Path
) -> None:
    with warnings.catch_warnings(), pytest.raises(UnsupportedError, match=message):
        warnings.simplefilter("ignore")
        build(fun, signature, out=tmp_path, name="f")
    assert [*tmp_path.iterdir()] == []


def test_negative_sizes_are_reported(tmp_path: Path) -> None:
    library = library_of(build(lambda x: x.sum(), "f64[n]", name="total", out=tmp_path))
    workspace = ctypes.create_string_buffer(library.layout["functions"][0]["workspace"])
    result = ctypes.c_double()
    assert library.symbols.total(workspace, None, ctypes.c_int64(-1), ctypes.byref(result)) == 4
    assert workspace.value == b"ValueError: a size is negative"


def test_code_for_other_processors_and_machines(tmp_path: Path) -> None:
    def wave(x):
        return np.sin(x) + np.exp(x)

    plain = build(wave, "f64[n]", cpu="x86-64", out=tmp_path)
    x = np.linspace(-3.0, 3.0, 100)
    np.testing.assert_allclose(library_of(plain).call("wave", [x]), wave(x), rtol=1e-15)
    arm = build(wave, "f64[n]", target="aarch64-linux-gnu", gradient=False, out=tmp_path)
    assert arm.object.read_bytes()[18:20] == b"\xb7\x00"  # the machine in an ELF header
    assert undefined_symbols(arm.object) <= C_LIBRARY
    with pytest.raises(UnsupportedError, match="there is no code for wasm32-wasi"):
        build(wave, "f64[n]", target="wasm32-wasi", out=tmp_path)


@pytest.mark.parametrize(
    ("target", "cpu"),
    [(None, "nonsense"), (None, "pentium"), ("aarch64-linux-gnu", "x86-64-v3")],
    ids=["unknown", "of 32 bits", "of another machine"],
)
def test_processors_that_the_machine_has_not_are_refused(
    target: str | None, cpu: str, tmp_path: Path
) -> None:
    target = target or "x86_64-unknown-linux-gnu"
    with pytest.raises(UnsupportedError, match=f"'{cpu}' is no processor of {target}"):
        build(lambda x: x, "f64", cpu=cpu, target=target, name="f", out=tmp_path)


def test_processors_by_their_names(tmp_path: Path) -> None:
    for target, cpu in (("x86_64-linux-gnu", "znver3"), ("aarch64-linux-gnu", "cortex-a72")):
        built = build(lambda x: x, "f64", cpu=cpu, target=target, name="f", out=tmp_path)
        assert built.object.stat().st_size > 0


@pytest.mark.parametrize("name", ["exp", "erff", "malloc", "printf", "main", "double", "a b"])
def test_names_that_programs_in_c_have_already_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"(C library|no name in C)\.\n.*--name"):
        build(lambda x: x[x > 0.0], "f64[n]", name=name, out=tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_all_that_object_files_call_are_names_of_the_c_library() -> None:
    assert C_LIBRARY <= LIBRARY
