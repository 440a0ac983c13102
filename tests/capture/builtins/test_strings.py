"""Texts of traced values: as Python writes them, wherever Python makes them."""

# ruff: noqa: UP031, UP032, RUF010  # every way to format is tested

from __future__ import annotations

import collections
import dataclasses
import decimal
import enum
import json
import textwrap
from typing import Any

import numpy as np
import pytest
from tests.helpers.shown import STREAM, check_refused, check_same

import wend


@dataclasses.dataclass
class Point:
    x: Any


class Named:
    def __init__(self, x):
        self.x = x
        self.name = f"N{x}"

    def __str__(self):
        return f"Named({self.x:.2f}, {self.name})"


class Shown:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return "Shown(" + repr(self.x) + ")"

    def __format__(self, spec):
        return f"[{format(self.x, spec)}]"


class Cut:
    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"Cut({self.x})".ljust(20)


class Branching:
    def __init__(self, x):
        self.x = x

    def __str__(self):
        return "large" if self.x > 2 else "small"


class Color(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "a b")
OUTSIDE = np.array([1.0, 2.0])


def objects(x):
    print(Point(x), [Point(x)], {"a": Shown(x)}, Point(Point([x, 2])))
    print(Named(x), str(Named(x)), f"{Named(x)}|{Point(x)!r}|{Shown(x)!r}")
    print(Shown(x), repr(Shown(x)), f"{Shown(x):.2f} {Shown(x)}", "{:.3f}".format(Shown(x)))
    print(Color.RED, f"{Color.RED}", Pair(x, [x]), collections.OrderedDict(a=x))
    return x


def conversions(x):
    print("%s %r %.1f %5.2f|%-8.2f|%08.3f|%+.1f %%" % (x, x, x, x, x, x, x))
    print("%(a)s %(b)d %(a)10s|%(a)-10r|" % {"a": x, "b": 3}, "%s" % Point(x), "%s" % (Point(x),))
    print("{} {!r} {:.2f} {a}".format(x, x, x, a=Point(x)), "{a}".format_map({"a": x}))
    print(format(x, ">10"), f"{x!s:>10}|{x!r:<10}|{x:>10.3f}|{x=}", str.format("{}", x))
    print(", ".join([str(x), f"{x:.1f}", "k"]), ",".join(map(str, [x, 2])))
    return x


def integers(x):
    n = int(x) + 200
    print("%d|%5d|%-6d|%06d|%x|%X|%o|%+d|%i" % (n, n, n, n, n, n, n, n, n), "%d" % (x > 1))
    print(f"{n:3d} {n:x} {n:b} {n:,} {n:05.1f}")
    return n


def texts_in_containers(x):
    print([f"{x}", "it's", f'"{x}"'], {"k": f"{x}"}, (f"a{x}'",), [f"{x}'\""])
    s = ""
    s += f"{x}"
    print("p " + (s + " k"), "yes" if s else "no")
    return x


def arrays(x):
    a = np.arange(4.0).reshape(2, 2) * x
    print(a, a[0], a[0, 0], [a[0], a[0, 0]], f"{a}", repr(a), "%s" % a)
    print(OUTSIDE, [OUTSIDE], (OUTSIDE, x), f"{OUTSIDE}", a > 1, (a > 1)[0, 0], [a.sum()])
    print(np.arange(2000) * x)
    return a


def taken_when_made(x):
    a, b, c = np.ones(2) * x, np.zeros(2), [x, 2.0]
    texts = str(a), f"{a}", repr(b), str(c), f"{c[0]}"
    a[0], b[0], c[0] = 100.0, 1.0, 7.0
    print(*texts, a, b, c)
    shown = str(b)
    b[1] = x
    print(shown, b)
    return a


def argument_taken_when_made(a):
    shown = str(a)
    a[0] = 100.0
    print(shown, a)
    return a


@pytest.mark.parametrize(
    "program",
    [objects, conversions, integers, texts_in_containers, arrays, taken_when_made],
    ids=lambda program: program.__name__,
)
def test_texts_are_pythons(program):
    check_same(program)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_text_of_an_argument_is_taken_when_it_is_made(backend, capsys):
    fun = wend.function(argument_taken_when_made, backend=backend)
    for _ in range(2):
        fun(np.array([1.0, 2.0]))
        assert capsys.readouterr().out == "[1. 2.] [100.   2.]\n"


def test_a_text_of_a_variable_is_taken_when_it_is_made(capsys):
    count = wend.Variable(1.0, name="count")

    @wend.function
    def fun(x):
        texts = str(count), repr(count)
        count.assign(count + x)
        print(*texts, [count])

    for old in (1.0, 3.0):
        fun(2.0)
        expected = (
            f"{old} <Variable 'count': f64[], {old}> [<Variable 'count': f64[], {old + 2}>]\n"
        )
        assert capsys.readouterr().out == expected


SCALARS = [
    *(np.dtype(name).type(3) for name in ("int8", "uint8", "int32", "int64", "uint64")),
    *(np.float16(0.1), np.float32(0.1), np.float64(0.1), np.float32(1e10), np.float32(np.nan)),
    *(np.complex64(0.1 + 2j), np.complex128(0.1 - 1j), np.bool_(True), 3, 0.1, 1e22, True, 2.5j),
]


def shown(x):
    print(x, [x], (x, {"k": x}))
    print(f"{x} {x!r} {x!s}", str(x), repr(x), "%s %r" % (x, x), "{} {!r}".format(x, x))
    print(format(x), f"{Point(x)}")
    return x


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("x", SCALARS, ids=lambda x: f"{type(x).__name__}-{x}")
def test_numbers_are_written_as_numpy_does(x, backend, capsys):
    shown(x)
    expected = capsys.readouterr().out
    fun = wend.function(shown, backend=backend)
    for _ in range(2):
        fun(x)
        assert capsys.readouterr().out == expected


def local(y):
    return f"{y}"


REFUSED = {
    "compared": lambda x: 1.0 if str(Point(x)) == "Point(x=1.0)" else 0.0,
    "compared_repr": lambda x: 1.0 if repr(Point(x)) == "Point(x=1.0)" else 0.0,
    "compared_method": lambda x: 1.0 if x.__str__() == "1.0" else 0.0,
    "compared_list": lambda x: 1.0 if [x].__repr__() == "[1.0]" else 0.0,
    "compared_percent": lambda x: 1.0 if "%s" % Point(x) == "Point(x=1.0)" else 0.0,
    "in_tuple": lambda x: 1.0 if f"{x}" in ("1.0",) else 0.0,
    "searched": lambda x: 1.0 if "1" in f"{x}" else 0.0,
    "key": lambda x: {f"{x}": 1.0}["1.0"],
    "length": lambda x: len(f"{x}"),
    "number": lambda x: float(f"{x}"),
    "upper": lambda x: print(f"{x}".upper()),
    "repeated": lambda x: print(f"{x}" * 2),
    "padded": lambda x: print(f"{str(x):>10}"),
    "cut_in_str": lambda x: print(Cut(x)),
    "wrapped": lambda x: print(textwrap.fill(f"{x} hello", 5)),
    "json": lambda x: print(json.dumps([x])),
    "json_of_text": lambda x: print(json.dumps(f"{x}")),
    "bytes": lambda x: bytes(f"{x}", "utf8")[0] + x,
    "decimal": lambda x: float(decimal.Decimal(str(x))),
    "find": lambda x: "abc".find(local(x)),
    "host_call": lambda x: wend.py_function(print, None, f"{x}"),
    "truncated": lambda x: print("%d" % x),
    "precision": lambda x: print("%.3s" % x),
    "width_of_object": lambda x: print("%20s" % Point(x)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_text_that_is_looked_at_is_refused(name):
    check_refused(REFUSED[name], r"the text |`%` at")


def test_a_str_that_decides_is_captured():
    def program(x):
        print(Branching(x))

    check_same(program)


def test_a_returned_text_is_refused():
    check_refused(
        lambda x: f"{x}", r"returns str at result: '<traced f64\[\] \(weak\), argument x>'"
    )


def test_no_traced_text_is_left_in_a_stream():
    def program(x):
        STREAM.write(f"{x}|")
        print(Point(x), [x], file=STREAM)
        return x

    check_same(program)
