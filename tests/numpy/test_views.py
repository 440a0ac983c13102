"""Arrays that NumPy does not write to, such as `np.broadcast_to(x, shape)` and views of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import AliasError

POINT = np.array([0.5])

# Arrays made of `x`, which has one element; NumPy decides which of them are read-only
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "broadcast": lambda x: np.broadcast_to(x, (3,)),
    "broadcast to its shape": lambda x: np.broadcast_to(x, x.shape),
    "broadcast matrix": lambda x: np.broadcast_to(x, (2, 3)),
    "broadcast number": lambda x: np.broadcast_to(x[0], ()),
    "broadcast Python number": lambda x: np.broadcast_to(x.item(), ()),
    "constant": lambda x: np.broadcast_to(np.ones(1), (3,)),
    "transposed constant": lambda x: np.broadcast_to(np.ones(1), (2, 3)).T,
    "transposed": lambda x: np.broadcast_to(x, (2, 3)).T,
    "row": lambda x: np.broadcast_to(x, (2, 3))[1],
    "columns": lambda x: np.broadcast_to(x, (2, 3))[:, 1:],
    "part of a part": lambda x: np.broadcast_to(x, (2, 3))[:, 1:][0],
    "new axis": lambda x: np.broadcast_to(x, (3,))[:, None],
    "all": lambda x: np.broadcast_to(x, (3,))[...],
    "reshaped": lambda x: np.broadcast_to(x, (3,)).reshape(3, 1),
    "flattened by reshape": lambda x: np.broadcast_to(x, (2, 3)).reshape(6),
    "expanded": lambda x: np.expand_dims(np.broadcast_to(x, (3,)), 0),
    "squeezed": lambda x: np.squeeze(np.broadcast_to(x, (1, 3))),
    "swapped": lambda x: np.swapaxes(np.broadcast_to(x, (2, 3)), 0, 1),
    "moved": lambda x: np.moveaxis(np.broadcast_to(x, (2, 3)), 0, 1),
    "flipped": lambda x: np.flip(np.broadcast_to(x, (3,))),
    "rotated": lambda x: np.rot90(np.broadcast_to(x, (2, 3))),
    "split": lambda x: np.split(np.broadcast_to(x, (2, 3)), 2)[1],
    "iterated": lambda x: next(iter(np.broadcast_to(x, (2, 3)))),
    "real": lambda x: np.broadcast_to(x, (3,)).real,
    "real of complex": lambda x: np.broadcast_to(x * 1j, (3,)).real,
    "imaginary of real": lambda x: (np.ones(3) * x).imag,
    "part of an imaginary part": lambda x: (np.ones(3) * x).imag[1:],
    "asarray": lambda x: np.asarray(np.broadcast_to(x, (3,))),
    "astype without copy": lambda x: np.broadcast_to(x, (3,)).astype(float, copy=False),
    "at least two axes": lambda x: np.atleast_2d(np.broadcast_to(x, (3,))),
    "diag": lambda x: np.diag(np.ones((3, 3)) * x),
    "diagonal": lambda x: np.diagonal(np.ones((3, 3)) * x),
    "method diagonal": lambda x: (np.ones((3, 3)) * x).diagonal()[1:],
    "linalg.diagonal": lambda x: np.linalg.diagonal(np.ones((3, 3)) * x),
    "diagonal of a constant": lambda x: np.diagonal(np.ones((3, 3))),
    "either of two": lambda x: np.broadcast_to(x if x[0] > 0 else x + 1, (3,)),
    "copy": lambda x: np.broadcast_to(x, (3,)).copy(),
    "array": lambda x: np.array(np.broadcast_to(x, (3,))),
    "ravelled": lambda x: np.broadcast_to(x, (3,)).ravel(),
    "flattened": lambda x: np.broadcast_to(x, (3,)).flatten(),
    "cast": lambda x: np.broadcast_to(x, (3,)).astype(float),
    "positive": lambda x: +np.broadcast_to(x, (3,)),
    "by positions": lambda x: np.broadcast_to(x, (3,))[[0, 1, 2]],
    "diagonal matrix": lambda x: np.diag(x),
    "meshgrid": lambda x: np.meshgrid(x, np.ones(3))[0],
    "power 0 of a matrix": lambda x: np.linalg.matrix_power(np.ones((3, 3)) * x, 0),
    "sums of weights": lambda x: np.average(np.ones((3, 3)) * x, 0, np.ones(3), returned=True)[1],
    "full": lambda x: np.full(3, x[0]),
}


def _iadd(v: Any, y: Any) -> None:
    v += y[0]


def _iadd_of_another_shape(v: Any, y: Any) -> None:
    v += np.ones(17) * y


def _ishift(v: Any, y: Any) -> None:
    v <<= 2


# Writes; the last ones fail for other reasons as well
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "v[...] =": lambda v, y: v.__setitem__(..., y[0]),
    "v[0] =": lambda v, y: v.__setitem__(0, y[0]),
    "v[mask] =": lambda v, y: v.__setitem__(v > -9, y[0]),
    "v[:0] =": lambda v, y: v.__setitem__(slice(0, 0), y[0]),
    "v[:1][...] =": lambda v, y: v[:1].__setitem__(..., y[0]),
    "v.flat[0] =": lambda v, y: v.flat.__setitem__(0, y[0]),
    "v.flat =": lambda v, y: setattr(v, "flat", y[0]),
    "v +=": _iadd,
    "out=": lambda v, y: np.add(v, y[0], out=v),
    "out= of sum": lambda v, y: np.sum(np.ones((2, *v.shape)) * y[0], 0, out=v),
    "fill": lambda v, y: v.fill(y[0]),
    "sort": lambda v, y: v.sort(),
    "partition": lambda v, y: v.partition(0),
    "put": lambda v, y: np.put(v, [0], y),
    "copyto": lambda v, y: np.copyto(v, y[0]),
    "place": lambda v, y: np.place(v, np.ones(v.shape, bool), y),
    "putmask": lambda v, y: np.putmask(v, np.ones(v.shape, bool), y),
    "fill_diagonal": lambda v, y: np.fill_diagonal(v, y[0]),
    "put_along_axis": lambda v, y: np.put_along_axis(v, np.zeros((1,) * v.ndim, int), y[0], 0),
    "v[77] =": lambda v, y: v.__setitem__(77, y[0]),
    "v += of another shape": _iadd_of_another_shape,
    "v <<=": _ishift,
    "out= of another dtype": lambda v, y: np.bitwise_and(v, y, out=v),
    "sort of axis 9": lambda v, y: v.sort(9),
    "partition at 77": lambda v, y: v.partition(77),
    "put at 77": lambda v, y: v.put([77], y),
    "copyto of complex": lambda v, y: np.copyto(v, y * 1j),
}
ALWAYS = ("v[...] =", "v +=", "v[77] =", "sort")


def _outcome(fun: Callable[..., Any], *args: Any) -> Any:
    try:
        return np.asarray(fun(*args))
    except Exception as error:
        return error


def _compare(make: Callable[[Any], Any], write: Callable[[Any, Any], Any]) -> None:
    def program(x: Any, y: Any) -> Any:
        v = make(x)
        write(v, y)
        return v * 1

    expected = _outcome(program, POINT, np.array([2.0]))
    actual = _outcome(wend.function(program, backend="numpy"), POINT, np.array([2.0]))
    if isinstance(actual, AliasError) and "read-only" not in str(expected):
        return  # a view that can be written to, or a copy for all that is known
    assert isinstance(actual, Exception) == isinstance(expected, Exception), (actual, expected)
    if isinstance(expected, Exception):
        assert isinstance(actual, type(expected)) or isinstance(expected, type(actual)), actual
        assert ("read-only" in str(expected)) <= ("read-only" in str(actual)), actual
    else:
        assert np.array_equal(actual, expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("array", ARRAYS)
def test_every_array(array: str) -> None:
    for write in ALWAYS:
        _compare(ARRAYS[array], WRITES[write])


@pytest.mark.parametrize("write", WRITES)
def test_every_write(write: str) -> None:
    for array in ("broadcast", "broadcast matrix", "diagonal", "transposed constant", "copy"):
        _compare(ARRAYS[array], WRITES[write])


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("x", [np.array([-1.0]), np.array([1.0])])
def test_writes_that_some_runs_reach(backend: str, x: Any) -> None:
    def guarded(x: Any) -> Any:
        v = np.broadcast_to(x, (3,))
        if x[0] > 0:
            v[1] = 2.0
        return v + 1

    def caught(x: Any) -> Any:
        v = np.broadcast_to(x, (3,))
        try:
            if x[0] > 0:
                v[1] = 2.0
        except ValueError:
            return x
        return x + 1

    for program in (guarded, caught):
        expected = _outcome(program, x)
        actual = _outcome(wend.function(program, backend=backend), x)
        assert type(actual) is type(expected)
        assert isinstance(actual, Exception) or np.array_equal(actual, expected)


def _either(x: Any) -> Any:
    v = np.broadcast_to(x, (3,)) if x[0] > 0 else np.zeros(3)
    v[0] = 1.0
    return v


def _from_second_trip(x: Any) -> Any:
    v, k = np.zeros(3), 0
    while k < x[0]:
        v[0] = k
        v = np.broadcast_to(x, (3,))
        k += 1
    return v * 1


def _either_of_list(x: Any) -> Any:
    items = [np.broadcast_to(x, (3,)), np.zeros(3)]
    v = items[(x[0] > 0).astype(int)]
    v[0] = 1.0
    return v


@pytest.mark.parametrize("program", [_either, _from_second_trip, _either_of_list])
def test_read_only_in_some_runs(program: Callable[[Any], Any]) -> None:
    with pytest.raises(AliasError):
        wend.function(program)(np.array([3.0]))


def test_both_are_read_only() -> None:
    @wend.function
    def program(x: Any) -> Any:
        v = np.broadcast_to(x, (3,)) if x[0] > 0 else np.diagonal(np.outer(np.ones(3), np.ones(3)))
        v[0] = 1.0
        return v

    with pytest.raises(ValueError, match="read-only"):
        program(np.array([3.0]))


def test_tape() -> None:
    x = np.array([1.0])
    with wend.GradientTape() as tape:
        x = tape.watch(x)
        v = np.broadcast_to(x, (3,))
        with pytest.raises(ValueError, match="read-only"):
            v[1:][7] = 2.0


def test_at_of_a_read_only_vector_is_refused() -> None:
    """NumPy 2.4 changes it, and with it the array that it is a view of."""

    @wend.function
    def program(x: Any) -> Any:
        np.add.at(np.broadcast_to(x, (3,)), [0], 1.0)
        return x

    with pytest.raises(AliasError, match="read-only"):
        program(POINT)
