"""Functions whose results have another structure on each path."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wend
from wend.base.errors import StructureError
from wend.function import path_traces


def none_or_number(x):
    if x < 0:
        return None
    return x * 2


def dicts_of_other_keys(x):
    if x > 2.0:
        return {"large": x}
    if x == 2.0:
        return {}
    return {"small": x, "rest": 2.0 - x}


def number_or_error(x):
    return x * 2.0 if x > 0 else ValueError("negative")


def list_of_some(x):
    out = []
    for k in range(3):
        if x > k:
            out.append(None)
        else:
            out.append(x)
    return out


def after_a_loop(x):
    count = 0
    while x > 1.0:
        x = x / 2.0
        count += 1
    if count == 0:
        return None
    return count, x


def leaving_a_loop(x):
    total = 0.0
    while total < x:
        total += 1.0
        if total > 2.5:
            return None
    return total


def text_or_error(x):
    if x > 1.0:
        return "large"
    if x < -10.0:
        raise ValueError(f"low: {x}")
    return x


def gamma(x):
    if x == 0.5:
        return math.sqrt(math.pi)
    if x == 1.0:
        return 1.0
    return (x - 1.0) * gamma(x - 1.0)


PROGRAMS = [
    (none_or_number, [-1.0, 2.0, -3.0, 4.0]),
    (dicts_of_other_keys, [1.0, 2.0, 3.0, 0.5, 2.0, 5.0]),
    (number_or_error, [1.0, -1.0, 2.0]),
    (list_of_some, [0.5, 1.5, 5.0, -1.0, 0.7]),
    (after_a_loop, [0.5, 8.0, 0.1, 3.0]),
    (leaving_a_loop, [1.0, 5.0, 2.0]),
    (text_or_error, [0.0, 2.0, -11.0, 0.5]),
    (gamma, [0.5, 2.5, 3.0]),
]


def _outcome(fun, x):
    try:
        return repr(wend.tree.map(float, fun(x)) if not isinstance(fun(x), str) else fun(x))
    except ValueError as error:
        return f"{type(error)}: {str(error).splitlines()[0]}"
    except TypeError:
        return repr(fun(x))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("fun", "values"), PROGRAMS)
def test_each_path_gives_what_python_gives(fun, values, backend):
    traced = wend.function(fun, backend=backend)
    for x in [*values, *reversed(values)]:
        assert _outcome(traced, x) == _outcome(fun, x)
    count = traced.trace_count
    for x in values:
        traced(x) if x != -11.0 else None
    assert traced.trace_count == count


def test_explain_tells_the_paths():
    traced = wend.function(none_or_number)
    traced(1.0), traced(-1.0)
    text = traced.explain()
    assert "another path through the function" in text
    assert "for one path: the test at test_path_traces.py:16 fails" in text


def test_gradients_go_through_the_path_that_is_taken():
    def loss(x):
        value = none_or_number(x)
        return 0.0 if value is None else value**2

    slope = wend.grad(loss)
    assert (slope(2.0), slope(-2.0), slope(3.0)) == (16.0, 0.0, 24.0)
    assert wend.grad(slope)(2.0) == 8.0


def test_other_shapes_take_their_paths():
    def halves(v):
        if v.sum() > 1.0:
            return None
        return v / 2

    traced = wend.function(halves)
    for v in ([2.0], [0.5], [0.1, 0.2], [3.0, 4.0], [0.1, 0.2, 0.3]):
        expected, result = halves(np.array(v)), traced(np.array(v))
        assert (result is None) == (expected is None)
        assert expected is None or np.array_equal(result, expected)


def none_or_list(x):
    if x > 0:
        return [x]
    return None


def _prints(x):
    print("once")
    return none_or_list(x)


def _writes(x, a):
    a[0] = x
    return none_or_list(x)


def _is_caught(x):
    try:
        return none_or_list(x)
    except BaseException:
        return 1.0


@pytest.mark.parametrize("fun", [_prints, _writes, _is_caught])
def test_what_a_second_run_would_repeat_is_refused(fun, capsys):
    array = np.zeros(1)
    args = (array,) if fun is _writes else ()
    with pytest.raises(StructureError):
        wend.function(fun)(1.0, *args)
    assert array[0] in (0.0, 1.0)


def test_maps_and_functions_called_by_others_take_one_structure():
    inner = wend.function(none_or_list)

    def outer(x):
        value = inner(x)
        return 1.0 if value is None else value[0]

    with pytest.raises(StructureError):
        wend.function(outer)(2.0)
    with pytest.raises(StructureError):
        wend.vmap(lambda x: 1.0 if none_or_list(x) is None else x)(np.array([1.0, -1.0]))


def test_maps_and_functions_called_by_others_may_ask_for_none():
    inner = wend.function(none_or_number)

    def outer(x):
        value = inner(x)
        return 1.0 if value is None else value

    traced = wend.function(outer)
    assert [traced(2.0), traced(-2.0), wend.grad(outer)(2.0)] == [4.0, 1.0, 2.0]
    values = wend.vmap(lambda x: 1.0 if none_or_number(x) is None else x)(np.array([3.0, -1.0]))
    assert values.tolist() == [3.0, 1.0]


def test_too_many_tests_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(path_traces, "_MAX_TESTS", 5)
    assert wend.function(gamma)(2.5) == gamma(2.5)
    with pytest.raises(wend.WendError):
        wend.function(gamma)(20.0)


def test_objects_that_one_path_initializes_are_refused():
    class Model:
        state = None

    model = Model()

    @wend.function
    def step(x):
        if x > 0.0:
            model.state = np.zeros(2)
            return None
        return x

    with pytest.raises(wend.WendError):
        step(-1.0)
    assert model.state is None
