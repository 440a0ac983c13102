"""`is` and `==` on traced values."""

from __future__ import annotations

import dataclasses
import operator
from types import SimpleNamespace as Namespace

import numpy as np
import pytest
from tests.helpers.as_python import assert_as_python, raised

from wend.base.errors import AliasError, ConcreteValueError

OUTER = np.ones(2)
SENTINEL = object()
ONE = 1


def is_true(x):
    return 1.0 if x is True else 0.0


def compared_is_true(x):
    return (x > 1) is True, (x > 1) is not False


def is_other(x):
    return x is None, None is x, x is SENTINEL, x is ..., operator.is_(x, None)


def test_bools_are_single_objects():
    assert_as_python(is_true, (True,), (False,), (1.0,), (1,), (np.True_,))
    assert_as_python(compared_is_true, (2.0,), (0.0,), (np.float64(2.0),))
    assert_as_python(lambda x: operator.is_not(x, True), (True,), (False,))


def test_what_cannot_be_the_same_object():
    assert_as_python(is_other, (1.0,), (2,), (np.ones(2),))
    assert_as_python(lambda a, b: a is b, (1.0, 2), (np.float64(1.0), 1.0), (np.ones(2), 1.0))
    assert_as_python(lambda a: (a + 0.5 is a, a + 1 is OUTER), (1.0,), (np.ones(2),))
    assert_as_python(lambda a: next(y is a for y in [a]), (1.0,), (np.ones(2),))


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        (lambda a, b: a is b, (1.0, 2.0)),
        (lambda a, b: a is b, (np.ones(2), np.ones(2))),
        (lambda a: a is OUTER, (np.ones(2),)),
    ],
)
def test_what_only_the_caller_knows(fun, args):
    error = raised(fun, *args)
    assert isinstance(error, AliasError)
    assert "`is` at" in str(error)


@dataclasses.dataclass(order=True)
class Point:
    x: float


@pytest.mark.parametrize(
    ("fun", "cure"),
    [
        (lambda x: Namespace(a=x) == Namespace(a=1.0), "compare the numbers themselves"),
        (lambda x: sorted([Point(x), Point(1.0)]), "compare the fields themselves"),
    ],
)
def test_comparisons_in_code_of_pythons_own(fun, cure):
    error = raised(fun, 2.0)
    assert isinstance(error, ConcreteValueError)
    assert cure in str(error)
