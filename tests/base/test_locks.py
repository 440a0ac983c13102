"""The locks that forks take: in one order, and given back on both sides."""

from __future__ import annotations

import os
import threading

import pytest

from wend.base import locks
from wend.base.locks import Rank, lock_of


def test_a_rank_has_one_lock() -> None:
    assert lock_of(Rank.TRACING) is lock_of(Rank.TRACING)
    assert lock_of(Rank.TRACING) is not lock_of(Rank.COMPILER)


def test_a_library_s_own_lock_may_have_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_locks", {})
    own = threading.RLock()
    assert lock_of(Rank.LLVMLITE, own) is own
    assert lock_of(Rank.LLVMLITE) is own


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_thread_that_forks_keeps_what_it_holds() -> None:
    lock = lock_of(Rank.TRACING)

    def is_free() -> bool:
        outcome: list[bool] = []
        thread = threading.Thread(target=lambda: outcome.append(lock.acquire(blocking=False)))
        thread.start()
        thread.join()
        return outcome[0]

    with lock:
        child = os.fork()
        if not child:
            os._exit(1 if is_free() else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not is_free()
    assert locks._held == []
