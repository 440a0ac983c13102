"""The functions of a file of `wend.save`."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.cli.saved import listing, saved_function
from wend.cli.target import TargetError


@pytest.fixture
def path(tmp_path):
    double = wend.function(lambda x: 2.0 * x, name="double")
    half = wend.function(lambda x: 0.5 * x, name="half")
    double(1.0)
    half(np.ones(3))
    wend.save(tmp_path / "m.wend", {"double": double, "list": [half]})
    return tmp_path / "m.wend"


def test_functions_are_named_by_keys_and_attributes(path):
    assert saved_function(f"{path}:double")(2.0) == 4.0
    assert saved_function(f"{path}:list.0")(np.ones(3)).tolist() == [0.5] * 3
    assert listing(str(path)) == (
        "double: 1 trace\n1. x float\n   loaded from m.wend\n"
        "list.0: 1 trace\n1. x f64[3]\n   loaded from m.wend"
    )


def test_a_name_is_needed_if_there_are_several(path):
    with pytest.raises(TargetError, match="has several functions") as error:
        saved_function(str(path))
    assert f"it has double and list.0\n  To fix it: write {path}:NAME." in str(error.value)
    with pytest.raises(TargetError, match="there is no function 'third'"):
        saved_function(f"{path}:third")
