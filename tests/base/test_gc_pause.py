"""The garbage collector is held off while graphs are made, and as it was afterwards."""

import gc
import subprocess
import sys
import textwrap

import pytest

import wend
from tests.helpers.threads import in_threads
from tests.helpers.traces import at_trace
from wend.base.gc_pause import gc_paused


def test_it_is_as_it_was():
    assert gc.isenabled()
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), gc_paused():
        1 / 0
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off():
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_threads():
    def work(_):
        for _ in range(200):
            with gc_paused():
                assert not gc.isenabled()

    in_threads(4, work)
    assert gc.isenabled()


def test_it_is_off_in_a_trace_and_on_in_a_call():
    seen = []

    def look(x):
        seen.append(gc.isenabled())
        return x

    note = at_trace(seen)

    @wend.function
    def fun(x):
        note(gc.isenabled())
        return wend.py_function(look, wend.TensorSpec([], float), x)

    assert fun(1.0) == 1.0
    assert seen == [False, True]
    assert gc.isenabled()


@pytest.mark.parametrize("freezes", [False, True])
def test_no_collection_scans_what_an_import_has_made(freezes: bool) -> None:
    text = f"""
        import gc
        import numpy
        gc.freeze() if {freezes} else None
        import wend
        young = len(gc.get_objects(generation=0))
        assert gc.isenabled()
        assert {freezes} == (gc.get_freeze_count() > 0)
        assert young < 2_000 or {freezes}, young
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(text)], check=True, timeout=120)
