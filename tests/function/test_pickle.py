"""Functions can be pickled and copied: by name, or without their traces."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError


@wend.function
def doubled(x):
    return x * 2


def tripled(x, n=1):
    return x * 3 * n


class Model:
    def __init__(self, k):
        self.k = k

    @wend.function
    def scaled(self, x):
        return self.k * x


def again(x):
    return pickle.loads(pickle.dumps(x))


def test_a_decorated_function_is_what_its_name_stands_for():
    assert doubled(1.0) == 2.0
    assert again(doubled) is doubled
    assert copy.deepcopy(doubled) is copy.copy(doubled) is doubled
    assert again(Model.scaled) is Model.scaled


def test_another_function_is_made_anew():
    fun = wend.function(
        tripled, static_argnames="n", reduce_retracing=False, backend="numpy", name="f"
    )
    fun(1.0, 2)
    found = again(fun)
    assert (found.name, found.backend, found.reduce_retracing) == ("f", "numpy", False)
    assert (found(1.0, 2), found(1.0, 3), found.trace_count) == (6.0, 9.0, 2)
    assert fun.trace_count == 1
    specified = again(wend.function(tripled, input_signature=[wend.TensorSpec([None])]))
    assert specified([1.0, 2.0]).tolist() == [3.0, 6.0]


def test_methods():
    model = Model(2.0)
    model.scaled(1.0)
    found = again(model.scaled)
    assert (found(3.0), found.instance.k, found.instance is model) == (6.0, 2.0, False)
    assert copy.deepcopy(model).scaled(np.ones(2)).tolist() == [2.0, 2.0]


def test_what_python_cannot_pickle():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        again(wend.function(lambda x: x))


class Counter:
    def __init__(self):
        self.total = wend.Variable([1.0, 2.0], name="total", trainable=False)
        self.add = wend.function(self.plain)

    def plain(self, x):
        return self.total.assign_add(x).value


@pytest.mark.parametrize("copied", [copy.deepcopy, again])
def test_what_holds_variables_is_another_with_variables_of_its_own(copied):
    first = Counter()
    first.add(1.0)
    second = copied(first)
    assert second.add(10.0).tolist() == [12.0, 13.0]
    assert (first.total.value.tolist(), second.total.value.tolist()) == ([2, 3], [12, 13])
    assert (second.total.name, second.total.trainable) == ("total", False)
    one, same = copied([first.total, first.total])
    assert one is same is not first.total


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, again])
def test_variables_and_generators(copied):
    v = wend.Variable(1.0)
    other = copied(v)
    wend.function(other.assign)(5.0)
    assert (v.value, other.value) == (1.0, 5.0)
    if copied is not copy.copy:  # that of Python shares what the object holds
        rng = wend.random.Generator(0)
        rng.normal()
        assert copied(rng).normal() == rng.normal() != rng.normal()


def test_a_variable_is_not_copied_while_it_is_traced():
    v = wend.Variable(1.0)
    with pytest.raises(ConcreteValueError):
        wend.function(lambda x: copy.copy(v.assign_add(x)))(1.0)


SCRIPT = """\
import cloudpickle, subprocess, sys, wend

@wend.function
def double(x):
    return 2.0 * x

def scaled(k):
    return wend.function(lambda x: k * x + double(x))

work = [double, scaled(3.0), scaled(3.0).get_concrete_function(1.0)]
program = "import sys, pickle; print([f(2.0) for f in pickle.load(sys.stdin.buffer)])"
sent = cloudpickle.dumps(work)
print(subprocess.run([sys.executable, "-c", program], input=sent, stdout=-1).stdout.decode())
"""


def test_functions_of_a_script_are_sent_to_workers_by_cloudpickle(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[0] == "[np.float64(4.0), np.float64(10.0), np.float64(10.0)]"
