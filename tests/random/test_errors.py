"""What users are told: each message against tests/golden/errors/random_*.txt."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from tests.helpers.golden import Golden
from wend import random
from wend.base.errors import ShapeError, TypeMismatchError, VariableError

KEY = random.key(0)


def key_of_two():
    random.normal(random.split(KEY))


def key_that_is_a_seed():
    random.normal(42, (3,))


def key_of_floats():
    wend.function(lambda key: random.uniform(key))(np.zeros(2))


def key_of_a_float():
    random.key(1.5)


def seed_of_floats():
    random.Generator(np.zeros(2))


def negative_size():
    random.normal(KEY, (3, -1))


def negative_size_at_run_time():
    wend.function(lambda n: random.normal(KEY, n))(-1)


def floats_of_integers():
    random.normal(KEY, (2,), np.int64)


def bits_of_floats():
    random.bits(KEY, (2,), np.float64)


def integers_of_floats():
    random.randint(KEY, (2,), 0, 3, np.float32)


def bound_of_floats():
    random.randint(KEY, (2,), 0.5, 3)


def no_integers():
    random.randint(KEY, (2,), 3, 3)


def too_many_integers():
    random.randint(KEY, (2,), 0, 300, np.int8)


def too_many_choices():
    random.choice(KEY, 3, (4,), replace=False)


def probabilities_of_others():
    random.choice(KEY, 3, p=[0.5, 0.5])


def categories_of_others():
    random.categorical(KEY, np.zeros((2, 3)), shape=(3,))


def generator_in_a_trace():
    wend.function(lambda: random.Generator(0).normal())()


MISTAKES = [
    (key_of_two, TypeMismatchError),
    (key_that_is_a_seed, TypeMismatchError),
    (key_of_floats, TypeMismatchError),
    (key_of_a_float, TypeMismatchError),
    (seed_of_floats, TypeMismatchError),
    (negative_size, ShapeError),
    (negative_size_at_run_time, ShapeError),
    (floats_of_integers, TypeMismatchError),
    (bits_of_floats, TypeMismatchError),
    (integers_of_floats, TypeMismatchError),
    (bound_of_floats, TypeMismatchError),
    (no_integers, ValueError),
    (too_many_integers, ValueError),
    (too_many_choices, ValueError),
    (probabilities_of_others, ShapeError),
    (categories_of_others, ShapeError),
    (generator_in_a_trace, VariableError),
]


@pytest.mark.parametrize(("mistake", "error"), MISTAKES, ids=lambda x: getattr(x, "__name__", None))
def test_message(mistake, error, golden: Golden) -> None:
    with pytest.raises(error) as caught:
        mistake()
    where = mistake.__code__.co_firstlineno + 1
    text = str(caught.value).replace(f"test_errors.py:{where}", "test_errors.py:LINE")
    golden.check(f"errors/random_{mistake.__name__}.txt", text)
