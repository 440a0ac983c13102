"""Values of variables in the layout of safetensors."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wend
from wend.base.errors import LoadError, SaveError, TypeMismatchError

DTYPES = [*"?bBhHiIlLefdFD"]


def saved(variables) -> bytes:
    file = io.BytesIO()
    wend.save_variables(file, variables)
    return file.getvalue()


def loaded(data: bytes, *args):
    return wend.load_variables(io.BytesIO(data), *args)


@given(
    st.dictionaries(
        st.text("abé.", min_size=1, max_size=3),
        st.sampled_from(DTYPES).flatmap(
            lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, min_side=0))
        ),
        min_size=1,
        max_size=4,
    )
)
def test_arrays_of_every_dtype(arrays):
    again = loaded(saved(arrays))
    assert [*again] == [*arrays]
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype
        assert again[name].shape == array.shape
        assert again[name].tobytes() == array.tobytes()


def test_the_layout():
    data = saved({"w": wend.Variable(np.array([[1.0, 2.0]], np.float32)), "z": np.array(1 + 2j)})
    (size,) = struct.unpack("<Q", data[:8])
    assert size % 8 == 0
    assert json.loads(data[8 : 8 + size]) == {
        "__metadata__": {"complex": '["z"]'},
        "w": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
        "z": {"dtype": "F64", "shape": [2], "data_offsets": [8, 24]},
    }
    assert data[8 + size :] == np.array([1.0, 2.0], "f4").tobytes() + np.array([1.0, 2.0]).tobytes()


class Model:
    def __init__(self, scale):
        self.layers = [{"w": wend.Variable(scale * np.ones(2)), "b": wend.Variable(scale)}]
        self.rng = wend.random.Generator(int(scale))
        self.first = self.layers[0]["w"]
        self.name = "model"


def test_variables_of_objects_by_name():
    one, two = Model(1.0), Model(2.0)
    data = saved(one)
    assert [*loaded(data)] == ["layers.0.w", "layers.0.b", "rng.state"]
    loaded(data, two)
    assert two.first.value.tolist() == [1.0, 1.0]
    assert two.layers[0]["b"].value == 1.0
    assert two.rng.normal() == one.rng.normal()


def test_all_or_none_are_assigned():
    v, w = wend.Variable(1.0), wend.Variable(np.ones(2))
    data = saved({"v": wend.Variable(5.0), "w": wend.Variable(np.ones(3))})
    with pytest.raises(TypeMismatchError, match=r"w holds f64\[2\], the file has float64\[3\]"):
        loaded(data, {"v": v, "w": w})
    assert v.value == 1.0
    with pytest.raises(LoadError, match="it lacks x\n  it has w besides"):
        loaded(data, {"v": v, "x": w})
    with pytest.raises(TypeMismatchError, match="w is no variable"):
        loaded(data, {"v": v, "w": np.ones(3)})
    assert v.value == 1.0


def test_what_has_no_variables_or_two_of_one_name():
    with pytest.raises(SaveError, match="there is no variable in 'text'"):
        saved("text")
    with pytest.raises(SaveError, match=r"two variables are called 'a\.b'"):
        saved({"a.b": np.ones(2), "a": {"b": np.ones(2)}})


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["w"].update(shape=[10**12]),
        lambda h: h["w"].update(data_offsets=[0, 10**12]),
        lambda h: h["w"].update(data_offsets=[8, 0]),
        lambda h: h["w"].update(dtype="F8_E4M3"),
        lambda h: h["w"].update(shape=[-1, -2]),
        lambda h: h.update(w=3),
        lambda h: h.update(__metadata__={"complex": '["w"'}),
        lambda h: h.update(__metadata__={"complex": '["w"]'}),
    ],
)
def test_headers_are_not_trusted(change):
    header = {"w": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}
    change(header)
    text = json.dumps(header).encode()
    with pytest.raises(LoadError):
        loaded(struct.pack("<Q", len(text)) + text + bytes(24))


@pytest.mark.parametrize(
    "data", [b"", b"1234567", bytes([255] * 8), struct.pack("<Q", 4) + b"null"]
)
def test_what_is_no_file_of_variables(data):
    with pytest.raises(LoadError):
        loaded(data)


def test_every_cut_and_many_changes_of_a_file_are_refused_or_give_arrays():
    data = saved({"w": np.ones(3), "z": np.ones(2) * 1j, "n": np.arange(4, dtype="i2")})
    rng = np.random.default_rng(0)
    for k in range(600):
        damaged = bytearray(data[: k % len(data)] if k % 3 == 0 else data)
        if damaged:
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        try:
            arrays = loaded(bytes(damaged))
        except LoadError:
            continue
        assert all(isinstance(array, np.ndarray) for array in arrays.values())
