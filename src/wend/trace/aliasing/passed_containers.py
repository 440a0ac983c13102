"""Lists, dicts, deques and instances of the caller, which a function may change in place.

A trace works on containers of its own. What it leaves in them is part of its result
(`trace.control.returned_containers`); when the result is rebuilt, the caller's containers take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wend.base.context_values import scoped
from wend.trace.aliasing.containers import containers_in, items_of, set_items, whole


class CallerContainers:
    """The containers among the arguments of a call.

    Attributes:
        containers: the containers, each once.
        leaves: the leaves of the arguments.
    """

    def __init__(self, containers: Sequence[Any], leaves: Sequence[Any]) -> None:
        self.containers, self.leaves = containers, leaves


def caller_containers(args: Any, kwargs: Any, leaves: Sequence[Any]) -> CallerContainers:
    """Return the containers among the arguments of a call.

    Args:
        args: the positional arguments.
        kwargs: the keyword arguments.
        leaves: the leaves of both.
    """
    containers = containers_in((args, kwargs), whole(leaves))
    return CallerContainers([*{id(x): x for x in containers}.values()], leaves)


class PassedContainers(CallerContainers):
    """The containers among the arguments of a function that is traced, which tell how they change.

    Args:
        args: the positional arguments.
        kwargs: the keyword arguments.
        leaves: the leaves of both.

    Attributes:
        numbers: their positions, by id.
        promoted: the traced lists that lists have become, which a recorded loop lets grow, by id.
        is_compared: whether the trace depends on which of them are one.
    """

    def __init__(self, args: Any, kwargs: Any, leaves: Sequence[Any]) -> None:
        super().__init__(caller_containers(args, kwargs, leaves).containers, leaves)
        self.containers: list[Any] = [*self.containers]
        self.numbers = {id(container): k for k, container in enumerate(self.containers)}
        self._before = [items_of(container) for container in self.containers]
        self.promoted: dict[int, Any] = {}
        self.is_compared = False
        self._refresh: Callable[[], None] = lambda: None

    def stand_in(self, number: int, container: Any, items: Sequence[tuple[Any, Any]]) -> None:
        """Put a container with these items in the place of one that was passed."""
        del self.numbers[id(self.containers[number])]
        set_items(container, items)
        self.containers[number], self.numbers[id(container)] = container, number
        self._before[number] = items_of(container)

    def follow(self, refresh: Callable[[], None]) -> None:
        """Call a function before it is told how the containers have changed."""
        self._refresh = refresh

    def holds(self, container: Any) -> bool:
        """Return whether a container is one of the arguments, or inside one."""
        return id(container) in self.numbers

    def traced_list(self, container: Any) -> Any:
        """Return the traced list that a list has become, unless what made it is not recorded."""
        promoted = self.promoted.get(id(container))
        is_recorded = promoted is not None and all(x.is_reachable() for x in promoted.lists)
        return promoted if is_recorded else None

    def before(self, number: int) -> list[tuple[Any, Any]]:
        """Return the items that a container had when it was passed."""
        return self._before[number]

    def changed(self) -> list[int]:
        """Return the numbers of the containers that have changed."""
        self._refresh()
        return [number for number in range(len(self.containers)) if self._is_changed(number)]

    def _is_changed(self, number: int) -> bool:
        container, before = self.containers[number], self._before[number]
        if self.traced_list(container) is not None:
            return True
        now = items_of(container)
        return len(now) != len(before) or any(
            key != old_key or type(key) is not type(old_key) or item is not old
            for (key, item), (old_key, old) in zip(now, before, strict=True)
        )


_tracing: ContextVar[PassedContainers | None] = ContextVar("wend_passed_containers", default=None)


def passed_containers() -> PassedContainers | None:
    """Return the containers among the arguments of the function that is being traced."""
    return _tracing.get()


def note_comparison(a: Any, b: Any) -> None:
    """Note that `is` has told whether two containers of the caller are one, if it has."""
    passed = _tracing.get()
    if passed is not None and passed.holds(a) and passed.holds(b):
        passed.is_compared = True


def saved_promotions() -> Callable[[], None]:
    """Return what restores the lists that have become traced ones until now."""
    passed = _tracing.get()
    if passed is None:
        return lambda: None
    promoted = {**passed.promoted}

    def restore() -> None:
        passed.promoted = {**promoted}

    return restore


def forget_promotion(container: Any) -> None:
    """Forget that a list has become a traced one: what has let it grow is not recorded."""
    passed = _tracing.get()
    if passed is not None:
        passed.promoted.pop(id(container), None)


@contextmanager
def tracing_containers(passed: PassedContainers) -> Iterator[None]:
    """Tell a trace which containers its function was passed."""
    with scoped(_tracing, passed):
        yield
