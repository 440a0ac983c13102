"""A property computed once, without a lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from wend.base.lazy.cached_property import cached_property


@dataclass(frozen=True)
class Half:
    whole: int

    @cached_property
    def value(self) -> list[int]:
        """The half."""
        return [self.whole // 2]


def test_it_is_computed_once_for_each_object() -> None:
    four, six = Half(4), Half(6)
    assert four.value == [2]
    assert four.value is four.value
    assert six.value == [3]
    assert isinstance(Half.value, cached_property)
    assert Half.value.__doc__ == "The half."


def test_objects_do_not_wait_for_each_other() -> None:
    class Slow:
        @cached_property
        def value(self) -> int:
            begun.set()
            assert released.wait(30.0)
            return 1

    begun, released = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    begun.wait()
    released.set()
    assert Slow().value == 1
    thread.join()
