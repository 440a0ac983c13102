"""Random numbers, files and the system: refused by name, but for what a function makes itself."""

# ruff: noqa: NPY002, DTZ005, DTZ011  # what is refused

from __future__ import annotations

import csv
import datetime as dt
import io
import os
import pathlib
import random
import secrets
import uuid

import numpy as np
import pytest
from tests.helpers.shown import STREAM, check_refused, check_same

import wend

RNG = np.random.default_rng(0)
RANDOM = random.Random(0)


def shuffled(x):
    items = bytearray(b"abc")
    random.shuffle(items)
    return x + items[0]


def opened(x):
    with open(__file__) as file:
        return x + len(file.read())


def generator(x):
    print("in a generator", x)
    yield x


def drawing_generator(x):
    yield x + random.random()


class Printing:
    """The `__new__` keeps `__init__` from being captured."""

    def __init__(self, x):
        print("made")
        self.x = x

    def __new__(cls, x):
        return object.__new__(cls)


class Drawing:
    def __init__(self, x):
        self.x = x + np.random.rand()

    def __new__(cls, x):
        return object.__new__(cls)


REFUSED = {
    "shuffle": (shuffled, "Random.shuffle at .* draws"),
    "system_random": (lambda x: x + random.SystemRandom(3).random(), r"SystemRandom\(\) at"),
    "bytes": (lambda x: x + RNG.bytes(1)[0], "Generator.bytes at .* draws"),
    "shared_bits": (
        lambda x: x + np.random.Generator(RNG.bit_generator).normal(),
        "Generator of a PCG64 at .* draws",
    ),
    "urandom": (lambda x: x + os.urandom(1)[0], "os.urandom at .* draws"),
    "secrets": (lambda x: x + secrets.randbelow(9), "randbelow at .* draws"),
    "uuid": (lambda x: print(uuid.uuid4()), "uuid.uuid4 at .* draws"),
    "open": (opened, "^open at .* uses a file"),
    "path": (lambda x: x + len(pathlib.Path(__file__).read_text()), "read_text at .* uses a file"),
    "load": (lambda x: np.loadtxt("data.txt") + x, "numpy.loadtxt at .* uses a file"),
    "csv": (lambda x: csv.writer(STREAM).writerow([x]), "writer of a StringIO at .* uses a file"),
    "read": (lambda x: x + len(STREAM.read()), "StringIO.read at .* uses a file"),
    "exists": (lambda x: x + os.path.exists("data.txt"), "exists at .* uses a file"),
    "getcwd": (lambda x: x + len(os.getcwd()), "os.getcwd at .* asks the operating"),
    "environ": (lambda x: x + len(os.environ.pop("HOME", "")), "os.environ.pop at .* asks"),
    "input": (lambda x: x + len(input()), "^input at .* waits for input"),
    "now": (lambda x: x + dt.datetime.now().year, "datetime.now at .* reads the clock"),
    "today": (lambda x: x + dt.date.today().year, "date.today at .* reads the clock"),
    "in_generator": (lambda x: sum(generator(x)), "`generator`, called at .* calls print"),
    "draw_in_generator": (lambda x: sum(drawing_generator(x)), "calls random.random"),
    "in_init": (lambda x: Printing(x).x, "`Printing.__init__`, called at .* calls print"),
    "draw_in_init": (lambda x: Drawing(x).x, "calls np.random"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    check_refused(*REFUSED[name])


def own_generators(x):
    rng = np.random.default_rng(3)

    def draw(generator):
        return generator.normal()

    y = x + draw(rng) + rng.integers(10) + np.random.Generator(np.random.PCG64(3)).normal()
    other = random.Random(4)
    items = [1, 2, 3]
    other.shuffle(items)
    return y + items[0] * 100 + other.random() + np.random.RandomState(2).rand()


def own_generator_of_arrays(x):
    return x + np.random.default_rng(5).normal(size=3)


@pytest.mark.parametrize("program", [own_generators, own_generator_of_arrays])
def test_what_a_function_seeds_itself_draws_as_in_python(program):
    check_same(program)


def test_an_inner_function_may_not_advance_a_generator():
    inner = wend.function(lambda x, rng: x + rng.normal())

    def outer(x):
        return inner(x, np.random.default_rng(0))

    check_refused(outer, "Generator.normal at .* draws")


def test_plain_python_is_left_alone():
    assert 0 <= random.random() < 1
    with wend.config(eager=True):
        fun = wend.function(lambda x: x + RNG.normal() + len(io.StringIO("abc").read()))
        assert fun(1.0) != fun(1.0)


TABLE = np.zeros(4, [("a", float), ("b", int)])
REFUSED_WITH_CURES = [
    (lambda x: np.lib.stride_tricks.as_strided(x, (3, 2), (8, 8)), "sliding_window_view"),
    (lambda x: np.ma.masked_array(x, mask=x > 2).mean(), "keep the mask as an array of bools"),
    (lambda x: np.ma.masked_where(x > 2, x).sum(), "keep the mask as an array of bools"),
    (lambda x: x.view(np.int64), r"x\.astype\(dtype\)"),
    (lambda x: np.zeros(2, [("a", float)]) * x[0], "an array for each field"),
    (lambda x: x[0] * TABLE, "an array for each field"),
]


@pytest.mark.parametrize(("program", "cure"), REFUSED_WITH_CURES)
def test_functions_of_memory_are_refused_with_a_cure(program, cure):
    with pytest.raises(wend.WendError, match=cure):
        wend.function(program)(np.array([1.0, 2.0, 3.0, 4.0]))


class CodedError(ValueError):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


def set_after(x):
    if x > 0:
        error = ValueError("positive")
        error.code = 3
        raise error
    return x


def set_by_the_class(x):
    if x > 0:
        raise CodedError("positive", 3)
    return x


def test_attributes_of_exceptions():
    with pytest.raises(wend.WendError, match=r"(?s)`error\.code` is set.*let the class") as refused:
        wend.function(set_after)(1.0)
    assert "changed" not in str(refused.value)
    with pytest.raises(CodedError) as raised:
        wend.function(set_by_the_class)(1.0)
    assert raised.value.code == 3
