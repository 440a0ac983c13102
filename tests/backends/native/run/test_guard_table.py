"""Tables of checks: native code and the definition of each kind agree."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.fastcall import FALLBACK, MISSING, CallArgument, CallSignature, GuardCheck
from wend.backends.native.run.entry import guard_checker
from wend.backends.native.run.guard_table import checksum

# NumPy deprecates setting them from 2.5 on.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the (shape|dtype)")


def call_with(checks: list[GuardCheck]) -> tuple[Any, Any]:
    """Return a fast call with these checks, and whether they hold."""
    concrete = wend.function(lambda x: x + 1.0).get_concrete_function(np.float64(1.0))
    signature = CallSignature((CallArgument(0),), 1, 1, True)
    fast_call = concrete.compiled.executable("native").fast_call(signature)
    fast_call.set_checks(checks)
    x = np.float64(1.0)

    def holds() -> bool:
        outcome = fast_call.call(x)
        assert outcome is FALLBACK or outcome == 2.0
        assert fast_call.has_stale_checks >= (outcome is FALLBACK)
        return outcome is not FALLBACK

    return fast_call, holds


class Plain:
    rate = 1.0

    def run(self) -> None:
        pass


class Broken:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def cell_of(value: Any) -> types.CellType:
    return types.CellType(value)


BIG, SMALL = np.arange(1000.0), np.arange(10.0)
TEXT = "a string that nobody else holds"


def cases() -> dict[str, tuple[GuardCheck, Any, Any]]:
    """For each kind: a check, a change after which it fails, and what undoes that."""
    names, options, cell = {"a": 1.5}, Plain(), cell_of(2.5)
    items, pair, pairs = [1.5, 2.5], {"k": 1.5, "l": 2.5}, {1, 2}
    big, small, strided = BIG.copy(), SMALL.copy(), BIG.copy()[::2]
    flag = [True]
    options.own = 2.5  # type: ignore[attr-defined]
    shaped = np.zeros((2, 3))

    def plain(x: float = 1.5) -> float:
        return x

    return {
        "dict": (
            GuardCheck("dict", names, "a", names["a"]),
            lambda: names.update(a=2.5),
            None,
        ),
        "dict, gone": (
            GuardCheck("dict", names, "a", names["a"]),
            lambda: names.pop("a"),
            None,
        ),
        "dict, absent": (
            GuardCheck("dict", names, "b", MISSING),
            lambda: names.update(b=1),
            lambda: names.pop("b"),
        ),
        "attribute": (
            GuardCheck("attribute", options, "own", options.own),  # type: ignore[attr-defined]
            lambda: setattr(options, "own", 3.5),
            None,
        ),
        "attribute of the class": (
            GuardCheck("attribute", options, "rate", Plain.rate),
            lambda: setattr(options, "rate", 3.5),
            lambda: delattr(options, "rate"),
        ),
        "attribute, absent": (
            GuardCheck("attribute", options, "other", MISSING),
            lambda: setattr(options, "other", 3.5),
            lambda: delattr(options, "other"),
        ),
        "method": (
            GuardCheck("method", options, "run", Plain.run),
            lambda: setattr(options, "run", Plain.run),
            lambda: delattr(options, "run"),
        ),
        "part of a function": (
            GuardCheck("part", plain, "__defaults__", plain.__defaults__),
            lambda: setattr(plain, "__defaults__", (2.5,)),
            None,
        ),
        "cell": (
            GuardCheck("cell", cell, None, cell.cell_contents),
            lambda: setattr(cell, "cell_contents", 3.5),
            None,
        ),
        "cell, empty": (
            GuardCheck("cell", types.CellType(), None, MISSING),
            None,
            None,
        ),
        "type": (
            GuardCheck("type", options, None, Plain),
            lambda: setattr(options, "__class__", Broken),
            lambda: setattr(options, "__class__", Plain),
        ),
        "item": (
            GuardCheck("item", items, 1, items[1]),
            lambda: items.insert(0, 0.5),
            lambda: items.pop(0),
        ),
        "item from the end": (
            GuardCheck("item", items, -1, items[-1]),
            lambda: items.append(0.5),
            lambda: items.pop(),
        ),
        "item out of reach": (
            GuardCheck("item", items, 1, items[1]),
            lambda: items.__setitem__(slice(None), []),
            None,
        ),
        "item of a tuple": (GuardCheck("item", (TEXT, 1), 0, TEXT), None, None),
        "length of a list": (
            GuardCheck("length", items, None, 2),
            lambda: items.append(3.5),
            lambda: items.pop(),
        ),
        "length of a dict": (
            GuardCheck("length", pair, None, 2),
            lambda: pair.update(m=3.5),
            lambda: pair.pop("m"),
        ),
        "length of a set": (
            GuardCheck("length", pairs, None, 2),
            lambda: pairs.add(3),
            lambda: pairs.remove(3),
        ),
        "items": (
            GuardCheck("items", items, None, tuple(items)),
            lambda: items.reverse(),
            lambda: items.reverse(),
        ),
        "items, more": (
            GuardCheck("items", items, None, tuple(items)),
            lambda: items.append(1.5),
            lambda: items.pop(),
        ),
        "no items": (GuardCheck("items", [], None, ()), None, None),
        "entries": (
            GuardCheck("entries", pair, None, ("k", pair["k"], "l", pair["l"])),
            lambda: pair.update(l=3.5),
            None,
        ),
        "entries, order": (
            GuardCheck("entries", pair, None, ("k", pair["k"], "l", pair["l"])),
            lambda: pair.update(k=pair.pop("k")),
            lambda: pair.update(l=pair.pop("l")),
        ),
        "entries, more": (
            GuardCheck("entries", pair, None, ("k", pair["k"], "l", pair["l"])),
            lambda: pair.update(m=3.5),
            lambda: pair.pop("m"),
        ),
        "bytes": (
            GuardCheck("bytes", small, None, small.tobytes()),
            lambda: small.__setitem__(3, -1.0),
            lambda: small.__setitem__(3, 3.0),
        ),
        "bytes, as they are": (
            GuardCheck("bytes", small, None, None),
            lambda: small.__setitem__(9, -1.0),
            lambda: small.__setitem__(9, 9.0),
        ),
        "checksum": (
            GuardCheck("bytes", big, None, checksum(big)),
            lambda: big.__setitem__(999, -1.0),
            lambda: big.__setitem__(999, 999.0),
        ),
        "checksum, as it is": (
            GuardCheck("bytes", big, None, None),
            lambda: big.__imul__(-1.0),
            lambda: big.__imul__(-1.0),
        ),
        "bytes, strided": (
            GuardCheck("bytes", strided, None, None),
            lambda: strided.__setitem__(5, -1.0),
            lambda: strided.__setitem__(5, 10.0),
        ),
        "bytes, a new dtype": (
            GuardCheck("bytes", small, None, None),
            lambda: setattr(small, "dtype", np.int64),
            lambda: setattr(small, "dtype", np.float64),
        ),
        "layout": (
            GuardCheck("layout", shaped, None, shaped),
            lambda: setattr(shaped, "shape", (3, 2)),
            lambda: setattr(shaped, "shape", (2, 3)),
        ),
        "call": (
            GuardCheck("call", lambda: flag[0], None, True),
            lambda: flag.__setitem__(0, False),
            lambda: flag.__setitem__(0, True),
        ),
        "call that raises": (
            GuardCheck("call", lambda: flag[0], None, True),
            lambda: flag.clear(),
            lambda: flag.append(True),
        ),
    }


@pytest.mark.parametrize("name", cases())
def test_a_check_fails_while_the_change_lasts(name: str) -> None:
    check, change, undo = cases()[name]
    fast_call, holds = call_with([check])
    assert holds()
    assert not fast_call.has_stale_checks
    if change is None:
        return
    change()
    assert not holds()
    assert fast_call.has_stale_checks
    if undo is not None:
        undo()
        assert holds()
    assert fast_call.has_stale_checks  # until the checks are set again
    fast_call.set_checks([])
    assert holds()
    assert not fast_call.has_stale_checks


@pytest.mark.parametrize("name", cases())
def test_python_may_ask_too(name: str) -> None:
    check, change, _ = cases()[name]
    checker = guard_checker([check])
    objects = [checker, check.owner, check.expected]
    before = [sys.getrefcount(y) for y in objects]
    assert all(checker() is True for _ in range(1000))
    if change is not None:
        change()
        assert not any(checker() is True for _ in range(1000))
        change_count = 10  # what the change itself refers to
    else:
        change_count = 0
    after = [sys.getrefcount(y) for y in objects]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= change_count


def test_any_failing_check_fails_the_table() -> None:
    names = {"a": 1.5, "b": 2.5, "c": 3.5}
    _, holds = call_with([GuardCheck("dict", names, name, names[name]) for name in names])
    for name, value in [*names.items()]:
        names[name] = -value
        assert not holds()
        names[name] = value
        assert holds()


def test_errors_of_lookups_are_no_errors_of_the_call() -> None:
    broken = Broken()
    _, holds = call_with([GuardCheck("attribute", broken, "x", 1.0)])
    assert not holds()

    class Key(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("compared")

        def __hash__(self) -> int:
            return hash("a")

    _, holds = call_with([GuardCheck("dict", {Key("a"): 1}, "a", MISSING)])
    assert not holds()


def test_arguments_and_checks_both_decide() -> None:
    names = {"a": 1.5}
    fast_call, holds = call_with([GuardCheck("dict", names, "a", names["a"])])
    assert fast_call.call("no number") is FALLBACK
    assert not fast_call.has_stale_checks
    assert holds()
    fast_call.stop()
    assert fast_call.call(np.float64(1.0)) is FALLBACK
    assert not fast_call.has_stale_checks


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", cases())
def test_references_are_balanced(name: str) -> None:
    check, change, _ = cases()[name]
    fast_call, _ = call_with([check])
    call, x = fast_call.call, np.float64(1.0)
    objects = [check.owner, check.key, check.expected, FALLBACK, None, x]
    for is_changed in (False, True):
        if is_changed and change is not None:
            change()
        before = [sys.getrefcount(y) for y in objects]
        for _ in range(100_000):
            call(x)
        after = [sys.getrefcount(y) for y in objects]
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 100
    for _ in range(1000):
        fast_call.set_checks([check])
    after = [sys.getrefcount(y) for y in objects]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 100


def test_a_table_keeps_no_object_alive_and_fails_once_one_is_gone() -> None:
    def helper() -> None: ...

    options = Plain()
    names: dict[str, Any] = {"options": options, "helper": helper}
    checks = [
        GuardCheck("dict", names, "helper", helper),
        GuardCheck("dict", names, "options", options),
        GuardCheck("attribute", options, "rate", Plain.rate),
    ]
    _, holds = call_with(checks)
    assert holds()
    references = [weakref.ref(options), weakref.ref(helper)]
    del options, helper, checks
    assert holds()
    names.clear()
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    assert not holds()


def test_a_check_may_set_the_checks() -> None:
    fast_call, holds = call_with([])

    def replace() -> bool:
        fast_call.set_checks([GuardCheck("call", lambda: True, None, True)] * 3)
        gc.collect()
        return True

    for _ in range(100):
        fast_call.set_checks([GuardCheck("call", replace, None, True)] * 2)
        assert holds()
        assert holds()


def test_checksums_tell_arrays_apart() -> None:
    generator = np.random.default_rng(0)
    seen = set()
    for count in range(300):
        seen.add(checksum(np.zeros(count, np.uint8)))
        seen.add(checksum(np.full(count + 1, 7, np.uint8)))
    assert len(seen) == 600
    array = generator.normal(size=4096)
    original = checksum(array)
    assert checksum(array.copy()) == original
    for k in range(0, 4096, 17):
        old, array[k] = array[k], np.nextafter(array[k], np.inf)
        assert checksum(array) != original
        array[k] = old
    for k in range(1, 4096, 17):
        array[[0, k]] = array[[k, 0]]
        assert checksum(array) != original
        array[[0, k]] = array[[k, 0]]
        array[[0, k]] *= -1
        assert checksum(array) != original
        array[[0, k]] *= -1
    assert checksum(array) == original
    assert checksum(-array) != original
    assert checksum(np.ascontiguousarray(array[::-1])) != original
    misaligned = np.zeros(8 * 4096 + 1, np.uint8)[1:]
    misaligned[:] = array.view(np.uint8)
    assert checksum(misaligned) == original
