"""Functions as ONNX models give what they give here."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.programs import PROGRAMS, Program
from tests.programs.npbench.catalogue import KERNELS
from tests.programs.npbench.kernel import Kernel
from wend.base.errors import UnsupportedError
from wend.cli import demo

pytest.importorskip("onnxruntime", reason="NOT RUN: the extra wend[onnx] is not installed")

from tests.helpers.onnx_models import results, run_exported, session
from wend.interop.onnx import export


def close(actual: Any, expected: Any, tol: float = 1e-12) -> None:
    leaves = wend.tree.leaves(expected)
    assert len(actual) == len(leaves)
    for a, b in zip(actual, leaves, strict=True):
        assert (a.dtype, a.shape) == (np.asarray(b).dtype, np.shape(b))
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0))) if a.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * scale)


TOO_DEEP = {"deep mixture"}  # their records are lists of lists of lists


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_values_and_gradients_of_programs(program: Program) -> None:
    fun = wend.function(program.fun)
    close(run_exported(fun, *program.args), fun(*program.args))
    numbers = tuple(k for k, x in enumerate(program.args) if np.asarray(x).dtype.kind == "f")
    if not numbers:
        return
    gradient = wend.value_and_grad(fun, numbers)
    if str(program) in TOO_DEEP:
        with pytest.raises(UnsupportedError, match="lists of lists"):
            export(gradient, None, *program.args)
    else:
        close(run_exported(gradient, *program.args), gradient(*program.args))


# Kernels that are not exported: of these dtypes, or by these operations.
REFUSED = {
    "scattering_self_energies": "complex128 are not exported",
    "stockham_fft": "complex128 are not exported",
    "contour_integral": "complex128 are not exported",
    "mandelbrot1": "complex128 are not exported",
    "mandelbrot2": "complex128 are not exported",
    "cholesky2": "cholesky at .* no counterpart",
    "crc16": "uint8 are not exported",
    "spmv": "uint32 are not exported",
}


@pytest.mark.sampled
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_of_npbench(kernel: Kernel) -> None:
    args = kernel.fresh(kernel.dtypes[0])
    if str(kernel) in REFUSED:
        with pytest.raises(UnsupportedError, match=REFUSED[str(kernel)]):
            export(kernel.compiled(), None, *args)
        return
    compiled = kernel.compiled()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(makes no checks|quadratic)")
        model = export(compiled, None, *args)
    concrete = compiled.get_concrete_function(*args)
    inputs = [leaf for leaf, _ in zip(dynamic(compiled, args), concrete.input_types, strict=True)]
    actual = results(model, inputs)
    fresh = kernel.fresh(kernel.dtypes[0])
    returned = wend.tree.leaves(compiled(*fresh))
    changed = [dynamic(compiled, fresh)[k] for k in concrete.traced.written]
    close(actual, [*returned, *changed], 1e-10 if kernel.dtypes[0] == "f8" else 1e-5)


def dynamic(compiled: Any, args: Any) -> list[Any]:
    """The arguments that are not static: arrays and numbers, in order."""
    names = [*compiled.signature.inspected.parameters]
    pairs = zip(names, args, strict=False)
    return wend.tree.leaves([x for name, x in pairs if name not in compiled.signature.static])


def test_unknown_sizes_are_named():
    model = export(
        lambda x, y: wnp.sum(x @ y, axis=0),
        None,
        wend.TensorSpec([None, 2]),
        wend.TensorSpec([2, None]),
    )
    shapes = [
        [d.dim_param or d.dim_value for d in x.type.tensor_type.shape.dim]
        for x in model.graph.input
    ]
    assert [shapes[0][1], shapes[1][0]] == [2, 2]
    assert shapes[0][0] != shapes[1][1]
    x, y = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(2, 4)
    (z,) = results(model, [x, y])
    np.testing.assert_allclose(z, (x @ y).sum(axis=0))


def test_names_of_inputs_and_outputs():
    total = wend.Variable(1.0, name="total")
    scale = wend.Variable(3.0)

    @wend.function
    def fun(state, x):
        total.assign_add(x.sum())
        x[0] = 7.0
        return {"y": state["h"] * scale, "n": x.sum()}

    state, x = {"h": np.ones(2)}, np.arange(3.0)
    model = export(fun, None, state, x)
    assert [i.name for i in model.graph.input] == ["state_h", "x", "total"]
    assert [o.name for o in model.graph.output] == ["result_y", "result_n", "x_next", "total_next"]
    y, n, x_next, total_next = results(model, [state["h"], x, 1.0])
    assert (y.tolist(), n, x_next.tolist(), total_next) == ([3.0, 3.0], 10.0, [7.0, 1.0, 2.0], 4.0)


def test_a_loop_makes_as_many_trips_and_none():
    @wend.function
    def halved(x):
        n = 0
        while x > 1.0:
            x = 0.5 * x
            n = n + 1
        return x, n

    model = export(halved, None, 2.0)
    run = session(model)
    for x in (0.5, 1.0, 3.0, 1e9):
        value, trips = halved(x)
        assert [float(v) for v in run.run(None, {"x": np.asarray(x)})] == [value, trips]
    assert [node.op_type for node in model.graph.node].count("Loop") == 1


def test_records_of_a_gradient_are_scan_outputs():
    """So that a gradient of many trips takes time in proportion to them."""

    @wend.function
    def power(x, n):
        y = 1.0
        for _ in range(n):
            y = wnp.sin(y * x)
        return y

    slope = wend.grad(power)
    model = export(slope, None, 0.9, 3)
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("Loop") == 2
    assert not {"SequenceInsert", "Concat"} & {*operators}
    (forward, *_) = [node for node in model.graph.node if node.op_type == "Loop"]
    assert len(forward.output) > 2
    for n in (0, 1, 500):
        (actual,) = results(model, [0.9, n])
        assert actual == pytest.approx(float(slope(0.9, n)), rel=1e-12)


def test_gradients_of_loops_over_arrays_of_unknown_size():
    @wend.function
    def norm(x, n):
        for _ in range(n):
            x = wnp.tanh(x) + 0.1 * x[::-1]
        return wnp.sum(x * x)

    slope = wend.grad(norm)
    model = export(slope, None, wend.TensorSpec([None]), 3)
    assert "SequenceInsert" not in {node.op_type for node in model.graph.node}
    for size in (1, 3, 20):
        x = np.linspace(0.0, 1.0, size)
        np.testing.assert_allclose(results(model, [x, 30])[0], slope(x, 30), rtol=1e-12)


def test_records_that_differ_in_shape_are_sequences():
    @wend.function
    def grown(x):
        def step(s):
            return s[0] + 1, wnp.concatenate([s[1], 0.5 * s[1] * s[1]])

        shapes = ((), (None,))
        return wnp.sum(
            wend.while_loop(lambda s: s[0] < 4, step, (0, x), shape_invariants=shapes)[1]
        )

    slope = wend.grad(grown)
    with pytest.warns(UserWarning, match="quadratic"):
        model = export(slope, None, wend.TensorSpec([None]))
    for size in (1, 3, 30):
        x = np.linspace(0.5, 1.0, size)
        np.testing.assert_allclose(results(model, [x])[0], slope(x), rtol=1e-12)


def test_a_list_that_the_loop_reads_warns():
    @wend.function
    def fun(x, n):
        seen = [x]
        for k in range(n):
            seen.append(seen[-1] * 0.5 + seen[k])
        return wnp.stack(seen)

    with pytest.warns(UserWarning, match="quadratic in their length: test_export.py"):
        model = export(fun, None, 1.0, 3)
    np.testing.assert_allclose(results(model, [1.0, 6])[0], fun(1.0, 6))


def test_branches_with_results_of_other_shapes_and_switches():
    @wend.function
    def fun(k, x):
        return wend.switch(k, [lambda v: v, lambda v: v * 2.0, lambda v: -v], x)

    model = export(fun, None, 0, np.ones(2))
    for k in (-1, 0, 1, 2, 5):
        np.testing.assert_array_equal(results(model, [k, np.ones(2)])[0], fun(k, np.ones(2)))


def test_checks_are_left_out_with_a_warning():
    @wend.function
    def fun(x):
        assert x > 0.0, f"{x} is not positive"
        return wnp.sqrt(x)

    with pytest.warns(UserWarning, match="fun: the model makes no checks, as at test_export.py:"):
        model = export(fun, None, 4.0)
    assert results(model, [4.0])[0] == 2.0


@pytest.mark.parametrize(
    ("fun", "args", "message"),
    [
        (lambda x: wnp.linalg.eigh(x)[0], [np.eye(2)], "eigh at test_export.py:.* no counterpart"),
        (lambda x: x * 1j, [1.0], "values of dtype complex128 are not exported"),
        (lambda x: x, [np.ones(2, np.float16)], "cast to one of bool, int32"),
        (lambda x: wend.py_function(abs, 0.0, x), [1.0], "py_function at .* no counterpart"),
    ],
)
def test_what_cannot_be_exported(fun, args, message):
    with pytest.raises(UnsupportedError, match=message):
        export(fun, None, *args)


def test_files(tmp_path):
    import onnx

    export(wend.grad(lambda x: x**3), tmp_path / "slope.onnx", wend.TensorSpec([]))
    model = onnx.load(tmp_path / "slope.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert (model.producer_name, model.opset_import[0].version) == ("wend", 21)
    assert results(model, [2.0])[0] == 12.0


def test_the_demo():
    """The gradient of a fit through an adaptive solver."""
    pelts = demo.read_pelts()
    start = demo.Parameters(*map(np.log, demo.START))
    fit = wend.value_and_grad(lambda p: demo.negative_log_likelihood(p, pelts, 1e-8)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close(run_exported(fit, start), fit(start))


@pytest.mark.parametrize("opset", [18, 19, 21, 24])
def test_versions_of_operators(opset):
    @wend.function
    def fun(x, n):
        total = 0.0
        for _ in range(n):
            x = 0.9 * wnp.tanh(x) + 0.1 * wnp.cumsum(x)[::-1]
            total = total + wnp.sum(x, axis=0).max()
        return total

    slope, x = wend.grad(fun), np.linspace(0.0, 1.0, 5)
    model = export(slope, None, x, 3, opset=opset)
    assert model.opset_import[0].version == opset
    np.testing.assert_allclose(results(model, [x, 4])[0], slope(x, 4), rtol=1e-12)


@pytest.mark.parametrize("opset", [1, 17, 1000])
def test_versions_that_lack_operators(opset):
    with pytest.raises(ValueError, match=f"opset={opset}: models use operators of 18 to "):
        export(lambda x: x, None, 1.0, opset=opset)


def nodes_of(graph: Any) -> list[Any]:
    """The nodes of a graph and of the graphs in it."""
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return [*graph.node, *(node for g in inner for node in nodes_of(g))]


def test_the_gradient_of_a_long_loop_is_linear_in_its_trips() -> None:
    def repeated(x, n):
        s = x
        k = 0
        while k < n:
            s = np.sin(s) * 0.9 + x
            k = k + 1
        return s

    specs = wend.TensorSpec([]), wend.TensorSpec([], "int64")
    model = export(wend.grad(repeated), None, *specs)
    nodes = nodes_of(model.graph)
    # Time grows with the trips only: records are scan outputs, and no trip copies a sequence.
    assert [node.op_type for node in nodes if node.op_type.startswith("Sequence")] == []
    assert len(nodes) < 60
    args = np.asarray(0.3), np.asarray(20_000)
    close(results(model, args), wend.grad(repeated)(*args))


def test_tapes_that_spill_are_refused() -> None:
    def spilled(x, n):
        for _ in wend.loop(range(n), memory="spill"):
            x = wnp.sin(x) + 0.1 * x
        return x.sum()

    with pytest.raises(UnsupportedError, match=r"as a tape does that spills\.\n.*memory="):
        export(wend.grad(spilled), None, np.ones(3), np.int64(4))


def test_calls_that_are_recomputed_are_exported() -> None:
    @wend.checkpoint
    def step(x):
        return wnp.sin(wnp.sin(x))

    def repeated(x, n):
        for _ in range(n):
            x = step(x)
        return wnp.sum(x)

    slope, x = wend.grad(repeated), np.linspace(0.0, 1.0, 3)
    for n in (0, 1, 4):
        close(results(export(slope, None, x, 3), [x, n]), slope(x, n))


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_every_constant_of_a_model_is_read(program: Program) -> None:
    """Of others onnxruntime warns, whoever runs the model."""
    model = export(wend.function(program.fun), None, *program.args)
    read = {name for node in nodes_of(model.graph) for name in node.input}
    assert {tensor.name for tensor in model.graph.initializer} <= read
