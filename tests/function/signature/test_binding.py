"""What an `input_signature` may be, and what it does to a call's arguments."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend import TensorSpec

SPEC = TensorSpec([])


def refused(fun, signature):
    with pytest.raises(TypeError) as error:
        wend.function(fun, input_signature=signature, name="f")
    return str(error.value)


def test_only_specs():
    cure = "\n  To fix it: give a wend.TensorSpec(shape, dtype); a variable is found without one."
    text = refused(lambda x: x, [wend.Variable(1.0)])
    assert text == f"f: input_signature[0] is <Variable: f64[], 1.0>, not a TensorSpec.{cure}"
    text = refused(lambda x: x, [{"a": [SPEC, 3.0]}])
    assert text == f"f: input_signature[0]['a'][1] is 3.0, not a TensorSpec.{cure}"


def test_what_it_leaves_out_needs_a_default():
    cure = "\n  To fix it: give a wend.TensorSpec for each, or let them have defaults."
    text = refused(lambda x, y, z=1, *, k: x, [SPEC])
    assert text == f"f: its input_signature has nothing for y and k.{cure}"
    for fun in (lambda x, y=2.0: x * y, lambda x, *more, k=2.0, **named: x * k):
        assert wend.function(fun, input_signature=[SPEC])(3.0) == 6.0


def test_it_is_not_longer_than_the_arguments():
    text = refused(lambda x: x, [SPEC, SPEC])
    assert text == (
        "f: its input_signature is for 2 arguments, it takes 1.\n"
        "  To fix it: leave out the last ones."
    )
    assert wend.function(lambda *xs: xs[0] + xs[1], input_signature=[SPEC, SPEC])(1.0, 2.0) == 3.0


def test_self_of_a_method_is_left_out():
    class Model:
        @wend.function(input_signature=[TensorSpec([None])])
        def total(self, x, scale=2.0):
            return x.sum() * scale

    assert (Model().total([1.0, 2.0]), Model().total(np.ones(3))) == (6.0, 6.0)
    with pytest.raises(TypeError, match="takes 2"):

        class Other:
            @wend.function(input_signature=[SPEC, SPEC, SPEC])
            def total(self, x, y):
                return x
