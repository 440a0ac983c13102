"""No handler swallows what wend refuses, and none is ignored: `try`, `with`, generators (D45)."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import fractions
import json
import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import LeakedValueError, StagedRaiseError

pytestmark = pytest.mark.usefixtures("integers_stay_traced")

Programs = list[Any]
SWALLOWED: Programs = []
AWAITED: Programs = []
ALLOWED: Programs = []


def case(table: Programs, *args: Any, says: str = "") -> Callable[[Any], Any]:
    def add(fun: Any) -> Any:
        table.append(pytest.param(fun, args, says, id=f"{fun.__name__}-{len(table)}"))
        return fun

    return add


# Programs whose fallback Python does not take
@case(SWALLOWED, 1.0, says="the hash of")
def by_class(x):
    try:
        return hash(x)
    except TypeError:
        return 7.0


@case(SWALLOWED, 1.0, says="the hash of")
def by_a_tuple(x):
    try:
        return hash(x)
    except (KeyError, TypeError):
        return 7.0


@case(SWALLOWED, 1.0, says="the hash of")
def by_exception(x):
    try:
        return hash(x)
    except Exception:
        return 7.0


@case(SWALLOWED, 1.0, says="the hash of")
def by_all(x):
    try:
        return hash(x)
    except:  # noqa: E722
        return 7.0


@case(SWALLOWED, 1.0, says="the hash of")
def by_another_error(x):
    try:
        return hash(x)
    except TypeError as error:
        raise KeyError("no such number") from error


@case(SWALLOWED, 1.0, says="the hash of")
def by_a_star(x):
    y = 7.0
    try:
        y = hash(x)
    except* TypeError:
        pass
    return y


@case(SWALLOWED, np.arange(3.0), says="numpy.spacing is not known")
def of_an_unknown_function(x):
    try:
        return np.abs(np.spacing(x)).sum()
    except TypeError:
        return np.abs(x).sum()


@case(SWALLOWED, np.arange(4.0), says="order='K'")
def of_an_unknown_option(x):
    try:
        return x.ravel(order="K")[1]
    except NotImplementedError:
        return x.sum()


@case(SWALLOWED, np.int64(1), says="the integer of")
def of_an_index(i):
    value = 0.0
    while i < 3:
        try:
            value = [1.0, 2.0, "c"][i]
        except TypeError:
            value = 8.0
        i += 1
    return value


@case(SWALLOWED, np.int64(4), says="a repeat count")
def of_a_repetition(n):
    total = 0
    while n > 0:
        try:
            total += len([0] * n)
        except TypeError:
            total = -1
        n -= 1
    return total


@case(SWALLOWED, 3.0, says="the text '<traced")
def of_a_key(x):
    try:
        return sorted([x, 2.0, 1.0], key=str)[0]
    except Exception:
        return -1.0


@case(SWALLOWED, np.int64(4), says="the text '<traced")
def of_a_parsed_text(n):
    try:
        return int(str(n))
    except ValueError:
        return -1


def numbers(n):
    for i in range(n):
        yield 1 * i


@case(SWALLOWED, np.int64(4), says="the length of a range")
def from_a_generator(n):
    try:
        return sum(numbers(n))
    except Exception:
        return -1


def with_fallback(x):
    try:
        yield hash(x)
    except Exception:
        yield 3.0


@case(SWALLOWED, 1.0, says="the hash of")
def in_a_generator(x):
    return sum(with_fallback(x))


class Adding:
    def __add__(self, other):
        try:
            return hash(other)
        except Exception:
            return 3.0


@case(SWALLOWED, 1.0, says="the hash of")
def in_an_operator(x):
    return Adding() + x


@wend.do_not_capture
def uncaptured(x):
    try:
        return hash(x)
    except Exception:
        return 3.0


@case(SWALLOWED, 1.0, says="the hash of")
def in_a_function_that_is_not_captured(x):
    return uncaptured(x)


@case(SWALLOWED, 1.0, says="the hash of")
def in_a_suppress(x):
    y = 0.0
    with contextlib.suppress(Exception):
        y = hash(x)
    return y


class Swallows:
    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return True


@case(SWALLOWED, 1.0, says="the hash of")
def in_an_exit(x):
    y = 0.0
    with Swallows():
        y = hash(x)
    return y + 1


@case(SWALLOWED, 3.0, says="the hash of")
def in_a_loop_of_unknown_length(x):
    while x > 1:
        try:
            x = hash(x)
        except TypeError:
            x = x - 1
    return x


@case(SWALLOWED, 3.0, says="the hash of")
def in_a_branch(x):
    if x > 1:
        with contextlib.suppress(TypeError):
            x = hash(x)
    return x


@wend.function
def inner(x):
    try:
        return hash(x)
    except TypeError:
        return 7.0


@case(SWALLOWED, 1.0, says="the hash of")
def in_a_function_that_is_called(x):
    try:
        return inner(x)
    except TypeError:
        return 3.0


@case(SWALLOWED, 1.0, says="the hash of")
def in_the_body_of_a_functional_form(x):
    def body(x):
        try:
            return hash(x)
        except TypeError:
            return x + 1

    return wend.while_loop(lambda x: x < 3, body, x)


@case(SWALLOWED, 1.0, says="Decimal")
def of_a_class_in_c(x):
    try:
        return float(decimal.Decimal(x))
    except TypeError:
        return 7.0


@case(SWALLOWED, 1.0, says="timedelta")
def of_another_class_in_c(x):
    try:
        return dt.timedelta(seconds=x).total_seconds()
    except TypeError:
        return 7.0


@case(SWALLOWED, 1.0, says="as_integer_ratio")
def of_a_class_of_a_library(x):
    try:
        return float(fractions.Fraction(x))
    except TypeError:
        return 7.0


@case(SWALLOWED, 1.0, says="as_integer_ratio")
def of_a_library(x):
    try:
        return fractions.Fraction(x).denominator * 1.0
    except TypeError:
        return 7.0


@case(SWALLOWED, 1.0, says="the text")
def of_a_serializer(x):
    try:
        return len(json.dumps([x])) * 1.0
    except TypeError:
        return 7.0


# Programs that catch an error of the run
@case(ALLOWED, 1.0, 0.0)
def division(x, n):
    try:
        return x / n
    except ZeroDivisionError:
        return -1.0


@case(ALLOWED, 1, 0)
def division_in_a_call(x, n):
    def divided(a, b):
        return a // b

    try:
        return divided(x, n)
    except ArithmeticError:
        return -1


@case(ALLOWED, 7.0, 0.0)
def remainder(x, n):
    try:
        return x % n
    except Exception:
        return -1.0


@case(ALLOWED, 7.0, 0.0)
def both(x, n):
    try:
        return divmod(x, n)[0]
    except:  # noqa: E722
        return -1.0


@case(ALLOWED, 3.0)
def division_of_a_constant(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


@case(ALLOWED, 10.5)
def power(x):
    try:
        return x**1000
    except OverflowError:
        return -1.0


@case(AWAITED, 0.0, says=r"`\*\*`.*ZeroDivisionError")
def inverse_by_a_power(x):
    try:
        return x**-1
    except ZeroDivisionError:
        return -1.0


@case(ALLOWED, 3)
def shift(n):
    try:
        return 1 << n
    except ValueError:
        return -1


@case(ALLOWED, -1.0)
def root(x):
    try:
        return math.sqrt(x)
    except ValueError:
        return -1.0


@case(ALLOWED, 1000.0)
def exponential(x):
    try:
        return math.exp(x)
    except OverflowError:
        return -1.0


@case(AWAITED, 1e300, says="the check.*OverflowError")
def floor(x):
    try:
        return math.floor(x)
    except OverflowError:
        return -1


@case(AWAITED, math.nan, says="the check.*OverflowError")
def whole(x):
    try:
        return int(x)
    except (ValueError, OverflowError):
        return -1


@case(ALLOWED, math.nan)
def rounded(x):
    try:
        return round(x)
    except ValueError:
        return -1


@case(ALLOWED, np.zeros((2, 2)))
def singular(a):
    try:
        return np.linalg.inv(a).sum()
    except np.linalg.LinAlgError:
        return -1.0


@case(ALLOWED, -np.eye(2))
def indefinite(a):
    try:
        return np.linalg.cholesky(a).sum()
    except ValueError:  # the class above
        return -1.0


@case(ALLOWED, np.arange(3.0), 5)
def position(x, i):
    try:
        return x[i]
    except IndexError:
        return -1.0


@case(ALLOWED, np.arange(3.0), 5)
def stored_at_a_position(x, i):
    y = x.copy()
    try:
        y[i] = 1.0
    except LookupError:
        return -x
    return y


@case(ALLOWED, 5)
def position_in_a_list(i):
    try:
        return [1.0, 2.0, 3.0][i]
    except IndexError:
        return -1.0


@case(AWAITED, np.int64(-2), says="ValueError")
def size(n):
    try:
        return np.zeros(n).sum()
    except ValueError:
        return -1.0


@case(ALLOWED, -1.0)
def assertion(x):
    try:
        assert x > 0
        return x
    except AssertionError:
        return -1.0


def called(x: Any) -> Any:
    return {1.0: np.float64(2.0)}[float(x)]


@case(AWAITED, 3.0, says="any exception")
def host_call(x):
    try:
        return wend.py_function(called, np.float64(0.0), x)
    except KeyError:
        return -1.0


quotient = wend.function(lambda a, b: a / b)
quotient(1.0, 2.0)  # traced already


@case(AWAITED, 1.0, 0.0, says="`/`.*ZeroDivisionError")
def function_that_is_called(x, n):
    try:
        return quotient(x, n)
    except ZeroDivisionError:
        return -1.0


@case(AWAITED, 1.0, 2.0, says="`/`.*ZeroDivisionError")
def gradient_of_a_function(x, n):
    try:
        return wend.grad(quotient)(x, n)
    except ZeroDivisionError:
        return -1.0


@case(ALLOWED, 8.0, 0.0)
def in_a_loop(x, n):
    while x > 1:
        try:
            x = x / n
        except ZeroDivisionError:
            x = 0.0
    return x


@case(ALLOWED, 8.0, 0.0)
def around_a_loop(x, n):
    try:
        for _ in range(100):
            x = x / n
    except ZeroDivisionError:
        x = 0.0
    return x


@case(ALLOWED, 8.0, 0.0)
def around_a_branch(x, n):
    try:
        if x > 1:
            x = x / n
    except ZeroDivisionError:
        x = 0.0
    return x


@case(AWAITED, 1.0, 0.0, says="`/`.*`with`")
def suppressed(x, n):
    y = 1.0
    ignoring = contextlib.suppress
    with ignoring(ZeroDivisionError):
        y = x / n
    return y * 2


@case(AWAITED, 1.0, 0.0, says="`/`.*`with`")
def left_by_an_exit(x, n):
    with Swallows():
        return x / n
    return 5.0


@case(AWAITED, 1.0, 0.0, says="`/`.*`with`")
def expected_to_raise(x, n):
    with pytest.raises(ZeroDivisionError):
        x = x / n
    return x + 1


def divided_in_a_generator(x, n):
    try:
        yield x / n
    except ZeroDivisionError:
        yield 5.0


@case(AWAITED, 1.0, 0.0, says="`/`")
def handled_in_a_generator(x, n):
    return sum(divided_in_a_generator(x, n))


class Dividing:
    def __init__(self, x):
        self.x = x

    def __truediv__(self, other):
        try:
            return self.x / other
        except ZeroDivisionError:
            return 5.0


@case(ALLOWED, 1.0, 0.0)
def handled_in_an_operator(x, n):
    return Dividing(x) / n


@case(AWAITED, np.array([1000.0]), says="np.errstate")
def error_state(x):
    with np.errstate(all="raise"):
        return np.exp(x)


@case(AWAITED, np.array([-1.0]), says="except FloatingPointError")
def float_error(x):
    try:
        return np.log(x)
    except FloatingPointError:
        return x


@case(AWAITED, np.array([-1.0]), says="except RuntimeWarning")
def warning(x):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.log(x)
    except RuntimeWarning:
        return x


@case(AWAITED, np.array([-1.0]), says="np.seterr")
def global_error_state(x):
    np.seterr(all="raise")
    return np.log(x)


# Programs whose handlers are Python's own
@case(ALLOWED, 2.0)
def missing_module(x):
    try:
        import no_such_module

        return no_such_module.f(x)
    except ImportError:
        return x / 2 + 1 / x


@case(ALLOWED, 2.0)
def missing_key(x):
    try:
        return x * {"a": 1.0}["b"]
    except KeyError:
        return x * 5


@case(ALLOWED, np.arange(3.0))
def missing_attribute(x):
    try:
        return x.no_such_attribute
    except AttributeError:
        return x * 2


@case(ALLOWED, np.arange(3.0))
def shapes(x):
    try:
        return x @ np.ones(7)
    except ValueError:
        return x.sum()


@case(ALLOWED, np.arange(3.0))
def static_position(x):
    try:
        return x[7]
    except IndexError:
        return x[0]


@case(ALLOWED, 2.0)
def raised_by_the_user(x):
    try:
        raise ValueError("always")
    except Exception:
        return 1 / x


@case(ALLOWED, 2.0, 4.0)
def errors_of_another_kind(x, n):
    try:
        return x / n + math.sqrt(x) + x**3
    except (KeyError, AttributeError, ImportError):
        return 0.0


@case(ALLOWED, 2.0, 4.0)
def nothing_that_raises(x, n):
    try:
        total = x / 2 + n // 3.0 + x % 5 + 2 * n**1 + math.atan(x) + float(n)
        for y in np.array([x, n, 1.0]):
            total = total + y
        return total + np.sort(np.array([x, n]))[-1] + np.median(np.array([x, n]))
    except Exception:
        return 0.0


@case(ALLOWED, 2.0, 4.0)
def finally_without_except(x, n):
    try:
        return x / n
    finally:
        n = 3


@case(ALLOWED, 2.0, 4.0)
def reraised(x, n):
    try:
        return x / n
    except ZeroDivisionError:
        raise


@case(ALLOWED, 2.0, 4.0)
def in_the_handler_and_else(x, n):
    try:
        y = {}[1]
    except KeyError:
        y = x / n
    try:
        y = y + 1
    except ZeroDivisionError:
        y = 0.0
    else:
        y = y / n
    return y


@case(ALLOWED, 2.0, 4.0)
def defined_under_a_handler(x, n):
    try:

        def divided():
            return x / n

        also = lambda: n / x  # noqa: E731
    except ZeroDivisionError:
        return 2.0
    return divided() + also()


class Passes:
    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return False


@case(ALLOWED, 2.0, 4.0)
def managers_that_pass(x, n):
    with Passes(), threading.Lock(), np.errstate(all="ignore"):
        return x / n + np.log(x)


@case(ALLOWED, 2.0)
@case(ALLOWED, 0.5)
def all_paths_return(x):
    try:
        if x > 1:
            return 5.0
        return 6.0
    except Exception:
        return 7.0


@case(ALLOWED, 2.5)
@case(ALLOWED, 1.5)
@case(ALLOWED, 0.5)
@case(ALLOWED, -1.0)
def all_paths_of_nested_branches_return(x):
    try:
        if x > 1:
            if x > 2:
                return 4.0
            return 5.0
        if x > 0:
            return 1.0
        return x * 2
    except ValueError:
        return 7.0


@case(ALLOWED, 2.0)
@case(ALLOWED, 0.5)
def returns_after_it(x):
    try:
        if x > 1:
            return 5.0
        return 6.0
    except ValueError:
        pass
    return 8.0


@case(ALLOWED, 2.0)
def a_manager_that_swallows_a_known_error(x):
    with contextlib.suppress(KeyError):
        return {"a": 1.0}["b"] * x
    return -x


def run(fun: Any, args: Any, backend: str) -> Any:
    function = wend.function(fun, backend=backend)
    results = [function(*args) for _ in range(3)]
    assert all(np.array_equal(result, results[0], equal_nan=True) for result in results)
    return results[0]


@pytest.mark.parametrize(("fun", "args", "says"), SWALLOWED)
def test_no_handler_swallows_a_refusal(fun: Any, args: Any, says: str) -> None:
    function = wend.function(fun)
    for _ in range(2):  # nothing of the first trace is left
        with pytest.raises(Exception, match=says):
            function(*args)
    if all(isinstance(arg, float) for arg in args):
        with pytest.raises(Exception, match=says):
            wend.grad(fun)(*args)


@pytest.mark.parametrize(("fun", "args", "says"), AWAITED)
def test_no_handler_is_ignored(fun: Any, args: Any, says: str) -> None:
    function = wend.function(fun)
    for _ in range(2):
        with pytest.raises(StagedRaiseError, match=says) as caught:
            function(*args)
        assert "To fix it: " in str(caught.value)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("fun", "args", "says"), ALLOWED)
def test_handlers_of_python_s_own_errors(fun: Any, args: Any, says: str, backend: str) -> None:
    assert not says
    np.testing.assert_allclose(run(fun, args, backend), fun(*args), rtol=1e-14)


@pytest.mark.filterwarnings("ignore::wend.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_sizes_that_differ_are_handled_by_traces_of_their_own(backend: str) -> None:
    def total(x, y):
        try:
            return (x + y).sum()
        except ValueError:
            return -1.0

    function = wend.function(total, backend=backend)
    for a, b in [(3, 3), (4, 4), (5, 6), (7, 7), (7, 8), (1, 4), (2, 9)]:
        assert function(np.ones(a), np.ones(b)) == total(np.ones(a), np.ones(b))


def test_arrays_give_inf_and_need_no_handler() -> None:
    def divided(x, n):
        try:
            return x / n
        except ZeroDivisionError:
            return x

    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(wend.function(divided)(np.ones(2), np.zeros(2)), np.inf)
        assert wend.function(divided)(np.float64(1.0), np.float64(0.0)) == np.inf


def test_handlers_around_the_call_are_python_s() -> None:
    solve = wend.function(lambda a: np.linalg.inv(a))
    with pytest.raises(np.linalg.LinAlgError):
        solve(np.zeros((2, 2)))
    with contextlib.suppress(TypeError):
        wend.function(by_class)(1.0)
    np.testing.assert_array_equal(solve(np.eye(2)), np.eye(2))


def test_handlers_of_the_run_under_a_tape_are_python_s() -> None:
    x = np.float64(2.0)
    with wend.GradientTape() as tape:
        x = tape.watch(x)
        try:
            y = wend.while_loop(lambda x: x < 10, lambda x: x * (1 / 0.5), x)
        except ZeroDivisionError:
            y = x
    assert tape.gradient(y, x) == 8.0


def test_a_loop_that_python_runs_instead_forgets_its_refusals() -> None:
    def total(x):
        table = {0: 1.0, 1: 2.0}
        for k in range(2):
            x = x + table[k]
        return x

    assert wend.function(total)(1.0) == 4.0


def test_an_error_from_a_branch_that_uncaptured_code_catches() -> None:
    def f(x):
        try:
            yield wend.cond(x > 0, lambda: {}["a"], lambda: x)
        except KeyError:
            yield -1.0

    with pytest.raises(StagedRaiseError, match=r"KeyError: 'a'\n.*while the cond"):
        wend.function(lambda x: sum(f(x)))(1.0)


def test_an_error_from_functional_control_flow() -> None:
    def f(x):
        try:
            return wend.fori_loop(0, x, lambda i, y: y + {}[1], 1.0)
        except KeyError:
            return -1.0

    with pytest.raises(StagedRaiseError, match=r"KeyError: 1\n.*while the fori_loop"):
        wend.function(f)(3)


def test_a_value_used_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def doubled(x):
        out = []
        thread = threading.Thread(target=lambda: out.append(x * 2))
        thread.start()
        thread.join()
        return out[0] if out else x

    with pytest.raises(LeakedValueError):
        wend.function(doubled)(1.0)
