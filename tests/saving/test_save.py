"""What a file cannot hold is refused by name, with a cure."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.saved import again, is_same, saved
from wend.base.errors import SaveError


def refused(*value: Any, **functions: Any) -> str:
    with pytest.raises(SaveError) as error:
        saved(*value, **functions)
    return str(error.value)


def test_host_calls_are_refused_by_name_and_line(golden):
    def halved(x):
        return np.float64(x / 2.0)

    fun = wend.function(lambda x: wend.py_function(halved, np.float64(0.0), x), name="fun")
    fun.get_concrete_function(1.0)
    golden.check("saving/host_call.txt", refused(fun=fun))


def test_what_has_no_trace(golden):
    fun = wend.function(lambda x: x, name="fun")
    golden.check("saving/no_trace.txt", refused(fun=fun))


def test_values_that_a_file_cannot_hold(golden):
    fun = wend.function(lambda x, f: f(x), name="fun")
    fun(1.0, np.tanh)
    golden.check("saving/static_argument.txt", refused(fun=fun))
    golden.check("saving/value.txt", refused(np.tanh))
    golden.check("saving/nothing.txt", refused())


def spilled(x, n):
    for _ in wend.loop(range(n), memory="spill"):
        x = np.sin(x) + 0.1 * x
    return x.sum()


def test_tapes_that_spill_are_not_saved_but_their_functions_are():
    args = np.ones(3), np.int64(4)
    fun, slope = wend.function(spilled), wend.grad(spilled)
    fun(*args), slope(*args)
    refusal = refused(slope=slope)
    assert (
        "grad_spilled cannot be saved, for a loop of it spills its tape at test_save.py:" in refusal
    )
    assert "take its derivatives where it is loaded" in refusal
    np.testing.assert_array_equal(wend.grad(again(fun=fun).fun)(*args), slope(*args))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", ["recompute", "thin", wend.Every(3), wend.Checkpoints(2)])
def test_gradients_by_every_other_policy_are_saved(policy):
    def fun(x, n):
        for _ in wend.loop(range(n), memory=policy):
            x = np.sin(x) + 0.1 * x
        return x

    slope, second = wend.grad(fun), wend.grad(wend.grad(fun))
    expected = slope(0.5, 20), second(0.5, 20)
    loaded = again(slope=slope, second=second)
    assert (loaded.slope(0.5, 20), loaded.second(0.5, 20)) == expected


@pytest.mark.parametrize("name", ["two words", "class", "__call__"])
def test_names_that_are_no_attributes_are_refused(name):
    fun = wend.function(lambda x: x, name="fun")
    fun(1.0)
    assert "is no name of an attribute" in refused(**{name: fun})
    assert again({name: fun})[name](1.0) == 1.0


def test_a_folder_that_is_not_there_is_told(tmp_path):
    path = tmp_path / "absent" / "x.wend"
    with pytest.raises(FileNotFoundError) as error:
        wend.save(path, {"x": 1})
    assert error.value.filename == str(path)


def test_a_class_of_the_user_is_saved_as_a_runtime_error(tmp_path):
    class TooLargeError(Exception):
        pass

    @wend.function
    def checked(x):
        if x > 3.0:
            raise TooLargeError(f"{x} is too large")
        return x

    checked(1.0)
    with pytest.warns(UserWarning, match="TooLargeError, raised at test_save.py:") as warned:
        wend.save(tmp_path / "checked.wend", checked=checked)
    assert [warning.filename for warning in warned] == [__file__]  # not a line of wend's
    loaded = wend.load(tmp_path / "checked.wend").checked
    assert loaded(2.0) == 2.0
    with pytest.raises(RuntimeError, match=r"TooLargeError: 4\.0 is too large"):
        loaded(4.0)


def test_traces_that_are_out_of_date_are_left_out():
    class Settings:
        scale = 2

    settings = Settings()
    fun = wend.function(lambda x: x * settings.scale, name="fun")
    fun(1.0)
    settings.scale = 3
    assert "has no trace" in refused(fun=fun)
    fun(1.0)
    assert again(fun=fun).fun(2.0) == 6.0


def test_captured_arrays_are_copied():
    base = np.arange(4.0)
    first, second = base[:3], base[1:]
    fun = wend.function(lambda x: x + first * second, name="fun")
    value = fun(1.0)
    data = saved(fun=fun)
    base[:] = 0.0
    assert is_same(wend.load(io.BytesIO(data)).fun(1.0), value)


def test_a_variable_without_a_value_is_refused():
    holder: dict[str, Any] = {}

    @wend.function
    def fun(x):
        if "v" not in holder:
            holder["v"] = wend.Variable(x * 2.0)
        return holder["v"] + x

    fun.get_concrete_function(1.0)
    assert "call it once before you save it" in refused(fun=fun)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    fun = wend.function(lambda x: x + 1.0, name="fun")
    fun(1.0)
    path = tmp_path / "m.wend"
    wend.save(path, fun=fun)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        fun(np.ones(3))
        with pytest.raises(OSError, match="the disk is full"):
            wend.save(path, fun=fun)
    assert [file.name for file in tmp_path.iterdir()] == ["m.wend"]
    assert path.read_bytes() == before
    assert wend.load(str(path)).fun(2.0) == 3.0


def test_derivative_functions_are_saved_as_others():
    def loss(w, x):
        return wnp.sum(wnp.tanh(w @ x) ** 2)

    step = wend.function(lambda w, x: w - 0.1 * wend.grad(loss)(w, x), name="step")
    hessian = wend.hessian(loss)
    args = np.arange(6.0).reshape(2, 3), np.ones(3)
    step(*args)
    hessian(*args)
    m = again(step=step, hessian=hessian)
    assert is_same(m.step(*args), step(*args))
    assert is_same(m.hessian(*args), hessian(*args))
    assert is_same(wend.jacfwd(m.step)(*args), wend.jacfwd(step)(*args))


SETTINGS = {"order": 3, "names": ["x", "y"], "pair": (1.5, None)}
TABLE = {"rows": np.ones(2)}


class Point:
    def __init__(self, x):
        self.x = x


def test_results_that_hold_what_is_of_outside():
    traced = wend.function(lambda x: (SETTINGS, x * 2.0))
    assert traced(1.5)[0] is SETTINGS
    assert again(f=traced).f(1.5) == (SETTINGS, 3.0)
    copied = wend.function(lambda x: ({**TABLE}, x))
    copied(1.0)
    assert is_same(again(f=copied).f(1.0), ({"rows": np.ones(2)}, np.float64(1.0)))
    shown = wend.function(lambda x: (TABLE, x))
    shown(1.0)
    with pytest.raises(SaveError, match="a dict of outside, which a file cannot"):
        again(f=shown)


def test_results_that_are_objects_of_ordinary_classes():
    traced = wend.function(lambda x: Point(x * 2.0))
    assert traced(1.5).x == 3.0
    assert again(f=traced).f(1.5).x == 3.0
    loaded = again(types=[Point], f=traced).f(1.5)
    assert type(loaded) is Point
    assert loaded.x == 3.0


def test_a_result_that_holds_itself_is_refused():
    def make(x):
        point = Point(x)
        point.own = point
        return point

    traced = wend.function(make)
    assert traced(1.5).own.x == 1.5
    with pytest.raises(SaveError, match="holds an object that holds itself"):
        again(f=traced)
