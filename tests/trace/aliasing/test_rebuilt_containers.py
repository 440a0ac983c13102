"""Results whose rebuilding changes the containers of a caller."""

from __future__ import annotations

import numpy as np

from wend.base import trees
from wend.trace.aliasing.passed_containers import PassedContainers
from wend.trace.aliasing.rebuilt_containers import (
    PassedContainer,
    PassedLeaf,
    PythonNumber,
    ResultAndContainers,
    rebuilt,
)


def test_the_callers_list_takes_what_the_result_tells():
    items, other = [1.0, 2.0], np.zeros(2)
    caller = PassedContainers((items, other), {}, [1.0, 2.0, other])
    change = PassedContainer(0, True, [PassedLeaf(2), PythonNumber(np.float64(3.0)), 4.0])
    leaves, tree = trees.flatten(ResultAndContainers(change, [change]))
    assert rebuilt(tree, leaves, caller) is items
    assert items[0] is other
    assert type(items[1]) is float
    assert items[1:] == [3.0, 4.0]


def test_without_a_caller_the_result_is_a_new_list():
    change = PassedContainer(0, True, [4.0])
    leaves, tree = trees.flatten(ResultAndContainers(change, [change]))
    assert rebuilt(tree, leaves, None) == [4.0]
