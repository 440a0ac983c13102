"""Class, attributes and in-place changes of a traced value are those of what it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.as_python import assert_as_python, raised

import wend
from wend.base.errors import AliasError, TypeMismatchError

NUMBERS = 1.0, 3, True, 1j, np.float64(1.0), np.int32(3), np.array(1.0), np.ones(2)
ONE_OF_EACH = [(x,) for x in NUMBERS]
FLOATS = [(x,) for x in (1.0, np.float64(1.0), np.array(1.0), np.ones(2))]


def attributes(x):
    names = (
        "shape dtype ndim astype item copy __len__ __iter__ is_integer bit_length real at".split()
    )
    return [hasattr(x, name) for name in names], getattr(x, "dtype", None) is None


def classes(x):
    return x.__class__ is float, isinstance(x, np.ndarray), isinstance(x, float), np.isscalar(x)


def size_or_one(x):
    try:
        return x.shape[0]
    except AttributeError:
        return 1
    except IndexError:
        return 2


def text_of_a_missing_attribute(x):
    try:
        return x.no_such_name
    except AttributeError as error:
        return str(error) == MISSING[0]


def whole(x):
    try:
        return x.is_integer()
    except AttributeError:
        return 3.0


def changed(x):
    y = x
    y += 1
    return x, y


def changed_in_a_loop(x, n):
    y = x
    for i in range(n):
        y += i
    return x, y


def changed_in_a_branch(x):
    y = x
    if x > 1:
        y += 1
    return x, y


def assigned(x):
    x[()] = 3.0
    return x


def changed_by_a_view(v):
    y = v[0, ...]
    y += 5
    return v, y, isinstance(y, np.ndarray)


def element_of_an_array(x):
    s = x[()]
    s += 1
    return x, s, isinstance(s, np.ndarray)


def length(x):
    return len(x)


def items(x):
    s = 0.0
    for item in x:
        s += item
    return s


def first(x):
    return x[0]


@pytest.mark.parametrize("fun", [attributes, classes, size_or_one, whole])
def test_what_a_program_asks(fun):
    assert_as_python(fun, *ONE_OF_EACH)


MISSING = [""]


@pytest.mark.parametrize(
    ("x", "name"), [(1.0, "float"), (np.float64(1), "numpy.float64"), (np.ones(2), "numpy.ndarray")]
)
def test_a_missing_attribute_has_pythons_text(x, name):
    MISSING[0] = f"{name!r} object has no attribute 'no_such_name'"
    assert_as_python(text_of_a_missing_attribute, (x,))


@pytest.mark.parametrize("fun", [changed, assigned, element_of_an_array, length, items, first])
def test_changes_and_containers(fun):
    if fun is element_of_an_array:
        assert_as_python(fun, *FLOATS[1:3])
    elif fun is first:
        assert_as_python(fun, FLOATS[0], *FLOATS[2:])
    elif fun is items:
        assert_as_python(fun, FLOATS[-1])
        for x, text in ((1.0, "'float' object is not iterable"), (np.array(1.0), "0-d array")):
            assert text in str(raised(fun, x))
    else:
        assert_as_python(fun, *FLOATS)


def test_changes_in_loops_and_branches():
    assert_as_python(changed_in_a_loop, *[(x, n) for (x,) in FLOATS for n in (0, 4)])
    assert_as_python(changed_in_a_branch, *[(x,) for x in (1.0, 2.0, np.array(1.0), np.array(2.0))])
    assert_as_python(changed_by_a_view, (np.ones(3),))


def test_bits_of_integers():
    def bits(n):
        return n.bit_length(), n.bit_count(), n.conjugate(), n.real, n.imag, n.numerator

    def ratio(n):
        return n.denominator, n.as_integer_ratio()

    calls = [(n,) for n in (0, 1, -5, 2**54 - 1, -(2**63), 2**62, True)]
    assert_as_python(bits, *calls)
    assert_as_python(ratio, *calls)


def test_a_0d_array_in_some_runs_only():
    def doubled(x):
        while x < 100:
            x = x * 2
        return x

    def mixed(x):
        while x < 100:
            x += 1
            x = x * 2
        return x

    assert_as_python(doubled, (np.array(2.0),), (2.0,))
    assert_as_python(mixed, (2.0,), (np.float64(2.0),))
    assert isinstance(raised(mixed, np.array(2.0)), AliasError)
    assert isinstance(
        raised(lambda x: isinstance(x if x > 1 else x + 1, np.ndarray), np.array(2.0)), AliasError
    )


def test_what_is_not_traced_is_refused_by_name():
    def bytes_of(x):
        try:
            return x.tobytes()
        except AttributeError:
            return 0.0

    error = raised(bytes_of, np.ones(2))
    assert isinstance(error, TypeMismatchError)
    assert "`.tobytes` of" in str(error)
    assert "unbounded" in str(raised(lambda x: x.as_integer_ratio(), 0.5))


def test_scalars_and_0d_arrays_have_traces_of_their_own():
    @wend.function
    def is_array(x):
        return isinstance(x, np.ndarray)

    for _ in range(3):
        assert is_array(np.array(1.0))
        assert not is_array(np.float64(1.0))
        assert not is_array(1.0)
    assert is_array.trace_count == 3


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays_of_other_classes_are_refused():
    class Own(np.ndarray):
        def __mul__(self, other):
            return 300

    matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    for fun, x in (
        (lambda a: a * 2, matrix),
        (lambda a: a * 2, np.ones(2).view(Own)),
        (lambda a: a * matrix, np.ones((2, 2))),
        (lambda a: np.add(a, matrix), np.ones((2, 2))),
        (lambda a: a * np.ma.masked_array([1.0, 2.0], [0, 1]), np.ones(2)),
    ):
        assert "not traced" in str(raised(fun, x))


class Reflecting(float):
    """A float with an operator of its own."""

    def __rmul__(self, other):
        return 1000 + other


REFLECTING = Reflecting(4.0)


def test_a_subclass_of_float_is_asked_first():
    def product(x):
        return x * REFLECTING, REFLECTING * x

    assert_as_python(product, (4.0,), (np.float64(4.0),), (np.ones(2),))
