"""Clocks, warnings, logs and assertions of NumPy: the run calls them."""

from __future__ import annotations

import logging
import time
import warnings

import numpy as np
import pytest
from tests.helpers.shown import LOGGER, check_refused, check_same

import wend


def warned(x):
    warnings.warn("always", stacklevel=1)
    if x > 1:
        warnings.warn(f"large {x}", RuntimeWarning, stacklevel=1)
        print("warned")
    warnings.warn(DeprecationWarning(f"old {x}"), stacklevel=1)
    return x


def logged(x):
    LOGGER.info("%s and %.2f %d", x, x, 3)
    LOGGER.warning(f"w {x}")
    LOGGER.info("constant")
    LOGGER.debug("not shown")
    for i in range(2):
        LOGGER.error("i=%d x=%5.2f|%-8s|%r", i, x, x, [x])
    if x > 1:
        LOGGER.critical("large")
    LOGGER.log(logging.WARNING, "level %(x)s", {"x": x})
    logging.LoggerAdapter(LOGGER, {}).info("adapter %s", x)
    return x


def timed(x):
    start = time.perf_counter()
    y = x * 2
    passed = time.perf_counter() - start
    time.sleep(0.0)
    time.sleep(x * 0)
    print(passed >= 0, isinstance(start, float), isinstance(time.time_ns(), int), time.time() > 1e9)
    return y


@pytest.mark.parametrize("program", [warned, logged, timed], ids=lambda program: program.__name__)
def test_every_call_does_what_python_does(program):
    check_same(program)


def test_a_warning_is_about_the_line_above():
    def inner(x):
        warnings.warn(f"in {x}", stacklevel=2)
        return x

    def fun(x):
        return inner(x)

    check_same(fun)


def test_a_warning_may_be_an_error():
    fun = wend.function(lambda x: (warnings.warn("stop", stacklevel=1), x)[1])
    with pytest.warns(UserWarning, match="stop"):
        fun(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="stop"):
            fun(1.0)


def test_clocks_are_read_in_each_run():
    fun = wend.function(lambda x: (time.perf_counter(), time.time_ns()))
    times = [fun(1.0) for _ in range(3)]
    assert sorted(set(times)) == times
    assert fun.trace_count == 1


def test_a_log_of_the_root(caplog):
    @wend.function
    def fun(x):
        logging.warning("root %s", x)  # noqa: LOG015

    for x in (1.0, 2.0):
        fun(x)
    assert [record.getMessage() for record in caplog.records] == ["root 1.0", "root 2.0"]
    assert {record.funcName for record in caplog.records} == {"fun"}


def caught_warnings(x):
    with warnings.catch_warnings():
        warnings.warn("a", stacklevel=1)


def asserted(x):
    values = np.array([x, 2.0])
    print("before")
    np.testing.assert_allclose(values, [1.0, 2.0], rtol=1e-3, err_msg=f"x is {x}")
    for k in range(2):
        np.testing.assert_array_less(values[k], 3.0 - k + x)
    np.testing.assert_equal([values, x], [np.array([x, 2.0]), x])
    print("after")
    return values.sum()


def test_assertions_of_numpy_are_checked_in_the_run():
    check_same(asserted)
    for x in (1.0, 1.5):
        outcomes = []
        for fun in (asserted, wend.function(asserted)):
            try:
                outcomes.append(fun(x))
            except AssertionError as error:
                outcomes.append(str(error).splitlines())
        expected, found = outcomes
        assert (
            found[: len(expected)] == expected if isinstance(expected, list) else found == expected
        )
    assert wend.grad(asserted)(1.0) == 1.0


def test_a_trace_for_one_path_may_read_the_clock_first():
    @wend.function
    def classes_of(y, times):
        start = time.time()
        labels = [int(label) for label in np.unique(y)]
        times.append(time.time() - start >= 0)
        return len(labels), start > 0

    for y in ([1, 2, 2], [3, 3, 3], [1, 2, 3], [5, 7, 5]):
        times = []
        assert classes_of(np.array(y), times) == (len(set(y)), True)
        assert times == [True]


def shown_arrays(x):
    y = np.array([x, 2.0])
    print(np.array2string(y), np.array_str(y * 2), np.array_repr(y), f"{np.array2string(y)}")
    return y


def test_texts_of_arrays():
    check_same(shown_arrays)


REFUSED = {
    "in_catch_warnings": (caught_warnings, "warnings.warn at .* `with catch_warnings"),
    "traceback": (lambda x: LOGGER.info("a", exc_info=True), "writes the traceback"),
    "exception": (lambda x: LOGGER.exception("a"), "writes the traceback"),
    "text_of_time": (lambda x: print(time.ctime()), r"time.ctime\(\) at .* reads the clock"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    check_refused(*REFUSED[name])
