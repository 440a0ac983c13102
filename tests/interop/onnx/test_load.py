"""ONNX models as functions: the node tests of ONNX, gradients, and files that mean harm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.programs import PROGRAMS, Program
from wend.base.errors import LoadError, UnsupportedError
from wend.testing import check_grads

pytest.importorskip("onnxruntime", reason="NOT RUN: the extra wend[onnx] is not installed")

import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.helpers import onnx_cases
from tests.helpers.onnx_models import results
from wend.interop.onnx import export, load
from wend.interop.onnx.load import SUPPORTED

FAMILIES = 24
# They draw random numbers.
REFUSED = {f"test_training_dropout{kind}" for kind in ("", "_default", "_mask", "_default_mask")}


@pytest.mark.sampled
@pytest.mark.parametrize("family", range(FAMILIES))
def test_the_node_tests_of_onnx(family: int) -> None:
    failed = {}
    cases = onnx_cases.claimed_cases()
    assert len(cases) > 800
    with wend.config(backend="numpy"):
        for case in cases[family::FAMILIES]:
            try:
                onnx_cases.run(case)
            except Exception as error:
                failed[case.name] = f"{type(error).__name__}: {error}"
    assert {name: why for name, why in failed.items() if name not in REFUSED} == {}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_what_is_exported_loads_with_its_gradients(program: Program) -> None:
    fun = wend.function(program.fun)
    loaded = load(export(fun, None, *program.args))
    args = [np.asarray(x) for x in wend.tree.leaves(program.args)]
    np.testing.assert_allclose(loaded(*args), fun(*program.args), rtol=1e-12, atol=1e-12)
    numbers = tuple(k for k, x in enumerate(program.args) if np.asarray(x).dtype.kind == "f")
    if len(args) != len(program.args) or not numbers:
        return
    for x, y in zip(
        wend.tree.leaves(wend.grad(loaded, numbers)(*args)),
        wend.tree.leaves(wend.grad(fun, numbers)(*program.args)),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


def model_of(nodes: Any, inputs: Any, outputs: Any, **more: Any) -> onnx.ModelProto:
    """A model of these nodes; inputs and outputs are names, of f64 and any shape."""

    def declared(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, None)

    graph = helper.make_graph(
        nodes, "model", [*map(declared, inputs)], [*map(declared, outputs)], **more
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


RECURRENT = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_gradients_of_recurrent_layers(name: str, direction: str) -> None:
    rng = np.random.default_rng(0)
    gates, directions, hidden = RECURRENT[name], 1 + (direction == "bidirectional"), 3
    w = rng.normal(size=(directions, gates * hidden, 2)) / 2
    r = rng.normal(size=(directions, gates * hidden, hidden)) / 2
    node = helper.make_node(name, ["x", "w", "r"], ["y"], hidden_size=hidden, direction=direction)
    loaded = load(model_of([node], ["x", "w", "r"], ["y"]))
    x = rng.normal(size=(5, 2, 2))

    def loss(x: Any, w: Any, r: Any) -> Any:
        return (loaded(x, w, r) ** 2).sum()

    check_grads(loss, (x, w, r), order=1)


def test_a_loop_whose_trips_the_data_decide() -> None:
    def root(a):
        x = a
        while np.abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    model = export(root, None, wend.TensorSpec([]))
    loaded = load(model.SerializeToString())
    assert "while" in wend.source(loaded) or loaded(2.0) == root(2.0)
    for a in (2.0, 1e6):
        np.testing.assert_allclose(loaded(a), root(a), rtol=1e-14)
        np.testing.assert_allclose(wend.grad(loaded)(a), 0.5 / np.sqrt(a), rtol=1e-10)
        np.testing.assert_allclose(wend.grad(wend.grad(loaded))(a), -0.25 * a**-1.5, rtol=1e-8)
    np.testing.assert_allclose(results(export(loaded, None, wend.TensorSpec([])), [2.0])[0], 2**0.5)


def test_inputs_that_decide_on_shapes_are_fixed() -> None:
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    model = model_of([helper.make_node("Reshape", ["x", "shape"], ["y"])], ["x", shape], ["y"])
    with pytest.raises(UnsupportedError, match=r"the shape of Reshape decides .*\n.*constants="):
        load(model)(np.arange(6.0), np.array([2, 3]))
    loaded = load(model, constants={"shape": [2, 3]})
    assert loaded(np.arange(6.0)).shape == (2, 3)
    with pytest.raises(ValueError, match="the model has no input 'form'"):
        load(model, constants={"form": [1]})


def test_inputs_of_other_types_are_refused() -> None:
    loaded = load(model_of([helper.make_node("Exp", ["x"], ["y"])], ["x"], ["y"]))
    assert loaded(0.0) == 1.0
    with pytest.raises(TypeError, match="the input 'x' of the model is of float64, not float32"):
        loaded(np.zeros(2, np.float32))


def test_operators_without_a_translation_are_named_before_anything_runs() -> None:
    nodes = [
        helper.make_node("NonMaxSuppression", ["x", "x"], ["a"]),
        helper.make_node("Magic", ["a"], ["y"], domain="com.example"),
    ]
    with pytest.raises(UnsupportedError, match=r"supported: NonMaxSuppression, com.example.Magic"):
        load(model_of(nodes, ["x"], ["y"]))


def with_data(tmp_path: Path, **entries: str) -> Path:
    """A model whose tensor is in another file."""
    tensor = numpy_helper.from_array(np.arange(3.0), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    path = tmp_path / "folder" / "model.onnx"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model_of([node], ["x"], ["y"], initializer=[tensor]).SerializeToString())
    for place in (tmp_path, path.parent):
        (place / "data.bin").write_bytes(b"12345678" + np.arange(3.0).tobytes())
    (path.parent / "link.bin").unlink(missing_ok=True)
    (path.parent / "link.bin").symlink_to(tmp_path / "data.bin")
    return path


def test_data_in_other_files_are_read_in_the_folder_only(tmp_path: Path) -> None:
    path = with_data(tmp_path, location="data.bin", offset="8", length="24")
    np.testing.assert_array_equal(load(path)(np.ones(3)), [1.0, 2.0, 3.0])
    with pytest.raises(LoadError, match="load it by its path"):
        load(path.read_bytes())
    for entries in (
        {"location": "../data.bin"},
        {"location": str(tmp_path / "data.bin")},
        {"location": "link.bin"},
        {"location": "nothing.bin"},
        {"location": "data.bin", "offset": "16"},
        {"location": "data.bin", "offset": "-8"},
        {"location": "data.bin", "length": "16"},
        {"location": "data.bin", "offset": "many"},
    ):
        with pytest.raises(LoadError, match="data"):
            load(with_data(tmp_path, **entries))


def tensor(**fields: Any) -> onnx.TensorProto:
    return TensorProto(name="w", **{"data_type": TensorProto.DOUBLE, **fields})


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (tensor(dims=[1 << 40], raw_data=b""), "a tensor has 8796093022208 bytes"),
        (tensor(dims=[3], raw_data=b"12345678"), "a tensor of 24 bytes has 8"),
        (tensor(dims=[3], double_data=[1.0]), "a tensor of 3 elements has others"),
        (tensor(dims=[-1], raw_data=b""), "a negative size"),
        (tensor(data_type=TensorProto.STRING, dims=[0]), "the model has strings"),
        (tensor(data_type=TensorProto.BFLOAT16, dims=[0]), "elements of type BFLOAT16"),
    ],
    ids=["huge", "short", "few", "negative", "strings", "bfloat16"],
)
def test_tensors_are_checked_before_memory_is_taken(broken: Any, message: str) -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    with pytest.raises((LoadError, UnsupportedError), match=message):
        load(model_of([node], ["x"], ["y"], initializer=[broken]))


def test_models_that_would_not_end_or_fit_are_refused() -> None:
    calls = [helper.make_node("f", ["a"], ["b"], domain="own")]
    recursive = model_of([helper.make_node("f", ["x"], ["y"], domain="own")], ["x"], ["y"])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    recursive.functions.append(helper.make_function("own", "f", ["a"], ["b"], calls, imports))
    recursive.opset_import.append(imports[1])
    with pytest.raises(LoadError, match="calls itself"):
        load(recursive)

    deep = model_of([helper.make_node("Exp", ["x"], ["y"])], ["x"], ["y"])
    chain = deep.graph
    for _ in range(40):
        node = chain.node.add(op_type="If", input=["x"], output=["z"])
        attribute = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        chain = attribute.g
    with pytest.raises(LoadError, match="levels"):
        load(deep)

    shape = numpy_helper.from_array(np.array([1 << 20, 1 << 20]), "shape")
    bomb = model_of(
        [
            helper.make_node("ConstantOfShape", ["shape"], ["a"]),
            helper.make_node("Add", ["x", "a"], ["y"]),
        ],
        ["x"],
        ["y"],
        initializer=[shape],
    )
    with pytest.raises(UnsupportedError, match="ConstantOfShape makes an array of"):
        load(bomb)(1.0)
    with pytest.raises(LoadError, match="no ONNX model"):
        load(b"\xff" * 100)


def test_names_in_a_model_are_no_code() -> None:
    evil = 'x"); import os; os.abort() #\n'
    node = helper.make_node("Exp", [evil], ["class"])
    loaded = load(model_of([node], [evil], ["class"]))
    assert loaded(0.0) == 1.0
    assert "abort" not in wend.source(loaded).replace("os_abort", "")


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(12))
def test_damaged_files_are_errors_or_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = PROGRAMS[seed % len(PROGRAMS)]
    data = export(wend.function(program.fun), None, *program.args).SerializeToString()
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        if rng.random() < 0.3:
            del damaged[rng.integers(len(damaged)) :]
        try:
            load(bytes(damaged))
        except (LoadError, UnsupportedError):
            pass


PAGE = Path(__file__).parents[3] / "docs" / "onnx.md"
OPERATORS = re.compile(r"(?<=<!-- operators -->\n).*?(?=<!-- end -->)", re.DOTALL)


def test_the_page_lists_the_operators(request: pytest.FixtureRequest) -> None:
    names = ", ".join(f"`{name}`" for name in SUPPORTED)
    table = f"| loaded ({len(SUPPORTED)}) |\n|---|\n| {names} |\n"
    page = PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        page = OPERATORS.sub(lambda _: table, page)
        PAGE.write_text(page, encoding="utf-8")
    match = OPERATORS.search(page)
    assert match is not None
    assert match[0] == table
