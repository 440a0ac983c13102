"""Workers that refuse, are slow, or end."""

import subprocess
import sys

import pytest
from bench.remote import ROOT, RefusedError, Remote


def python(patience=60.0, peer="python"):
    return Remote(sys.executable, "scalar_while", peer, None, patience)


def test_a_worker_answers():
    with python() as remote:
        remote.ask("load")
        remote.ask("make", measure="value", small=True)
        (found,) = remote.ask("call", small=True)["answer"]
        assert found == pytest.approx(0.2, rel=0.1)  # the first number that reaches the bound
        with pytest.raises(RefusedError, match="has no derivatives"):
            remote.ask("make", measure="gradient", small=True)


def test_an_error_of_the_peer_is_a_refusal():
    with python() as remote:
        remote.ask("load")
        remote.ask("make", measure="value", small=True)
        with pytest.raises(RefusedError, match="TypeError"):
            remote.ask("time", calls="many", warm=False)


def test_a_slow_worker_is_given_up():
    with python(patience=0.5) as remote, pytest.raises(RefusedError, match="no answer in"):
        remote.ask("load")
        remote.ask("make", measure="value", small=True)
        remote.ask("call", small=True)
        remote.ask("time", calls=10**9, warm=False)


def test_a_worker_that_ends_says_its_last_words():
    with python(peer="nobody") as remote, pytest.raises(RefusedError, match="KeyError: 'nobody'"):
        remote.ask("load")
        remote.ask("load")


def test_nothing_that_a_peer_imports_is_there_before_its_import_is_timed():
    code = "import sys, bench.worker; assert not {'numpy', 'wend'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
