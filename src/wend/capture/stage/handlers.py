"""`try` statements of captured code.

Exceptions that Python raises in the trace are handled as in Python. One that only some runs raise
(`raises.py`) leads to a branch, which runs the handler with the names as they are bound at the
`raise`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from wend.base import refusals
from wend.base.handling.handlers import Handler, noted_statement
from wend.base.source import Source, line_of, user_frame
from wend.capture.heap.locations import (
    Attribute,
    AttributeOrder,
    Contents,
    Location,
    WriteLog,
    evaluate,
    log_write,
    write_log,
)
from wend.capture.heap.user_operators import log_write_operands
from wend.capture.stage import raises
from wend.capture.stage.branches import if_
from wend.capture.stage.cleanup import Cleanup
from wend.capture.stage.guard import is_raised
from wend.capture.stage.reachable import HeldValues
from wend.capture.state.state import State, is_same
from wend.eager.dispatch import recorder
from wend.trace.recording.recording import current
from wend.trace.recording.run_errors import escaped

Body = Callable[[], Any]


class Clause(NamedTuple):
    """An `except` clause.

    Attributes:
        classes: returns what it catches; None if it catches everything.
        is_static: whether the classes are names, not computed.
        line: its line.
        passes_on: whether it only raises the exception again.
        returns: whether the function returns after it: nothing else is read then.
        body: the handler, which takes the exception.
    """

    classes: Callable[[], Any] | None
    is_static: bool
    line: int
    passes_on: bool
    returns: bool
    body: Callable[[Any], Any]

    def matches(self, error: BaseException) -> bool:
        """Return whether it catches an error, as Python decides.

        Raises:
            TypeError: what it names is no class of exceptions.
        """
        if self.classes is None:
            return True
        classes = self.classes()
        kinds = classes if isinstance(classes, tuple) else (classes,)
        if not all(isinstance(k, type) and issubclass(k, BaseException) for k in kinds):
            raise TypeError(
                "catching classes that do not inherit from BaseException is not allowed"
            )
        return any(kind in type(error).__mro__ for kind in kinds)


def try_(
    body: Body, clauses: Sequence[tuple[Any, ...]], orelse: Body, live: Sequence[str], state: State
) -> None:
    """Run `try: body  except …: …  else: orelse`; `live`: the variables that are read later."""
    _Handled(state, live, [Clause(*clause) for clause in clauses], orelse).run(body)


def try_finally(body: Body, final: Body, line: int, live: Sequence[str], state: State) -> None:
    """Run `try: body  finally: final`; `live`: the variables that are read later."""
    _Finally(state, live, final, line).run(body)


class _Statement(raises.Extent):
    """A `try` whose block runs.

    Attributes:
        outer: where it is recorded, if anything is.
        log: the writes of its block.
        confirmed: the locations outside of it that the block has written, as far as it is known.
    """

    def __init__(self, state: State, live: Sequence[str]) -> None:
        self.state, self.live = state, live
        self.outer = current()
        frame = user_frame()
        assert frame is not None
        self.code, self.line = frame.f_code, line_of(frame)
        self.log: WriteLog = {}
        self.confirmed: dict[Hashable, Location] = {}
        if self.outer is not None:
            super().__init__(self.outer)

    def handlers(self) -> Iterator[Handler]:
        """Yield its handlers, the first first."""
        raise NotImplementedError

    def handle(self, error: BaseException) -> bool:
        """Run what handles an error, which is active; return whether something does."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Run what follows the block if nothing is raised."""
        raise NotImplementedError

    def returns(self, error: BaseException) -> bool:
        """Return whether the function returns after an error is handled."""
        return False

    def finish(self, alternatives: list[raises.Alternative], always: bool) -> None:
        """Record what follows the block, for each exception and for none."""
        self._go_through(alternatives, always)

    def source(self, line: int) -> Source:
        return Source(self.code.co_filename, line, self.code.co_name)

    def bound_now(self) -> tuple[list[Any], WriteLog]:
        return [evaluate(reader) for reader in self.state.readers], self.log

    def run(self, body: Body) -> None:
        """Run the statement."""
        try:
            self._run(body)
        finally:
            self.log.clear()
            self.confirmed.clear()

    def _run(self, body: Body) -> None:
        if self.outer is None or self.outer.runs_now():
            try:
                body()
            except BaseException as error:  # handlers may catch any
                if not self.handle(error):
                    raise
            else:
                self.go_on()
            return
        (start, _), effects = self.bound_now(), self.outer.effects()
        while True:
            try:
                with write_log(self.log), raises.extent(self):
                    log_write_operands()
                    end = self._record(body)
            except BaseException as error:  # handlers may catch any
                self._hand_on(error)
                if not self.handle(error):
                    raise
                return
            if end is not None:
                break
            # Its objects are known by another trace: those that it makes are others then.
            self.state.setter(start)
            for location, old in reversed(self.log.values()):
                location.undo(old)
            self.log.clear()
            self.outer.restore_effects(effects)
            self.rests.clear()
            recorder.set(self.outer)
        self._hand_on()
        self.finish(*end)

    def _hand_on(self, error: BaseException | None = None) -> None:
        """Leave the rests of outer statements open."""
        rests, self.rests = self.rests, []
        if refusals.is_refusal(error):
            recorder.set(self.outer)
        elif rests:
            raises.take_on(rests)

    def _record(self, body: Body) -> tuple[list[raises.Alternative], bool] | None:
        """Run the block.

        Return what it may raise for this statement or one around it, and whether it always raises
        something; None if it has to be recorded again.
        """
        error: BaseException | None = None
        frame = sys._getframe()
        handled = sys.exc_info()[1]
        with noted_statement(frame, self):
            try:
                body()
            except BaseException as raised:
                if refusals.is_refusal(raised) or self._first_own() is None:
                    raise
                error = raised
            first = self._first_own()
            if first is None:
                return [], False
            if not self.confirmed and self._has_unknown():
                self.confirmed = {location.key: location for location, _ in self.log.values()}
                return None
            self._complete()
            if error is None:
                return self._closed(first), False
            if raises.statement_for(error) is None and not is_raised(error, handled):
                if not isinstance(error, Exception):
                    raise error
                raise escaped(error, f"`try` at {self.source(self.line).short}")
            return raises.end_raising(error, first), True

    def _first_own(self) -> int | None:
        """Return the position of the first rest of which this statement handles an exception."""
        for k, following in enumerate(self.rests):
            if any(raised.statement is self for _, raised in following.alternatives):
                return k
        return None

    def _own(self) -> Iterator[raises.Raised]:
        for following in self.rests:
            yield from (raised for _, raised in following.alternatives if raised.statement is self)

    def _complete(self) -> None:
        """Add what was written after a `raise` only to what is bound there."""
        for raised in self._own():
            for key, (location, old) in self.log.items():
                is_known = isinstance(location, Contents) and (
                    id(location.container) in raised.contents
                )
                if key not in raised.written and not is_known:
                    raised.written[key] = location, old

    def _has_unknown(self) -> bool:
        """Return whether it has written what may be an object of its own, or of outside."""
        for raised in self._own():
            for key, (location, old) in self.log.items():
                owner = _owner_of(location)
                if owner is not None and id(owner) in raised.contents:
                    continue
                _, value = raised.written.get(key, (location, old))
                if not is_same(location.read(), value):
                    return True
        return False

    def _closed(self, first: int) -> list[raises.Alternative]:
        """Close the rests from one on; return what the block may raise."""
        locations = [location for location, _ in self.log.values()]
        normal = raises.Normal(self.bound_now()[0], locations)
        alternatives = raises.close(self, normal, [], first)
        self.state.setter(normal.values)
        return alternatives

    def _go_through(self, alternatives: list[raises.Alternative], always: bool) -> None:
        """Record a branch to the handler for each exception, and what follows if none is raised."""
        if not alternatives:
            self.go_on()
            return
        (flag, raised), *others = alternatives
        if always:
            self._restore(alternatives[-1][1], {})
        if not others and always:
            self._enter(raised)
        elif raised.statement is not self:
            raises.open_rest(flag, [(None, raised)])
            self._go_through(others, always)
        else:
            state = self.state.copy()
            before = self.bound_now()[0]

            def handle() -> None:
                self._restore(raised, _copies(before, self.bound_now()[0]))
                self._enter(raised)

            fills = self.returns(raised.error.original)
            otherwise = lambda: self._go_through(others, always)  # noqa: E731
            if_(flag, handle, otherwise, self.live, state, returns=fills)

    def _restore(self, raised: raises.Raised, copies: dict[int, Any]) -> None:
        """Give everything the values that it had at a `raise`.

        `copies`: what stands for the containers of before in this branch, by their ids.
        """
        self.state.setter([copies.get(id(x), x) for x in raised.variables])
        for key, (location, value) in raised.written.items():
            owner = _owner_of(location)
            is_known = owner is not None and id(owner) in raised.contents
            if not is_known and key in self.confirmed and not is_same(location.read(), value):
                log_write(location)
                location.write(value)
        for location, value in raised.written.values():
            if isinstance(location, AttributeOrder) and id(location.owner) not in raised.contents:
                location.undo(value)
        for contents in raised.contents.values():
            _write_contents(contents, copies)

    def _enter(self, raised: raises.Raised) -> None:
        """Run the handler of an exception."""
        error = raised.exception()
        context = error.__context__
        try:
            raise error
        except BaseException:  # handlers may catch any
            error.__context__ = context or error.__context__  # what was handled where it was raised
            if raised.statement is not self or not self.handle(error):
                raise


def _owner_of(location: Location) -> Any:
    if isinstance(location, (Attribute, AttributeOrder)):
        return location.owner
    return location.container if isinstance(location, Contents) else None


def _copies(before: Sequence[Any], now: Sequence[Any]) -> dict[int, Any]:
    """Return what stands in variables for the containers that were in them, by their ids."""
    copies: dict[int, Any] = {}
    pending = list(zip(before, now, strict=True))
    while pending:
        old, new = pending.pop()
        if old is new or type(old) is not type(new) or id(old) in copies:
            continue
        if isinstance(old, dict):
            copies[id(old)] = new
            pending += [(old[key], new[key]) for key in old.keys() & new.keys()]
        elif isinstance(old, (list, deque, tuple)):
            copies[id(old)] = new
            pending += zip(old, new, strict=False)
        elif isinstance(old, set):
            copies[id(old)] = new
    return copies


def _write_contents(contents: HeldValues, copies: dict[int, Any]) -> None:
    """Give an object, or what stands for it in a branch, the contents that it had."""
    owner = copies.get(id(contents.owner), contents.owner)
    items = [(key, copies.get(id(value), value)) for key, value in contents.items]
    contents, now = HeldValues(owner, items), HeldValues.of(owner)
    if now is None or contents.is_same(now):
        return
    if not contents.is_instance:
        log_write(Contents(f"a {type(owner).__name__}", owner))
    else:
        old, new = dict(now.items), dict(contents.items)
        for name in {**old, **new}:
            if name not in old or name not in new or old[name] is not new[name]:
                log_write(Attribute(f"{type(owner).__name__}.{name}", owner, name))
    contents.write()


class _Handled(_Statement):
    """A `try` with handlers."""

    def __init__(
        self, state: State, live: Sequence[str], clauses: Sequence[Clause], orelse: Body
    ) -> None:
        super().__init__(state, live)
        self.clauses, self.go_on = clauses, orelse  # type: ignore[method-assign]

    def handlers(self) -> Iterator[Handler]:
        for clause in self.clauses:
            classes: tuple[type[BaseException], ...] = (BaseException,)
            if clause.classes is not None and clause.is_static:
                kinds = evaluate(clause.classes)
                named = kinds if isinstance(kinds, tuple) else (kinds,)
                classes = tuple(k for k in named if isinstance(k, type))
            statement = self if clause.is_static else "computed"
            source = self.source(clause.line)
            yield Handler("except", source, classes, statement, clause.passes_on)

    def handle(self, error: BaseException) -> bool:
        for clause in self.clauses:
            if clause.matches(error):
                clause.body(error)
                return True
        return False

    def returns(self, error: BaseException) -> bool:
        clause = next((c for c in self.clauses if c.matches(error)), None)
        return clause is not None and clause.returns


class _Finally(_Statement):
    """A `try` with a `finally`."""

    def __init__(self, state: State, live: Sequence[str], final: Body, line: int) -> None:
        super().__init__(state, live)
        self.final, self.line = final, line
        self.cleanup = Cleanup("finally")
        self.cleanup.source = self.source(line)

    def handlers(self) -> Iterator[Handler]:
        yield Handler("finally", self.source(self.line), (BaseException,), self, passes_on=True)

    def handle(self, error: BaseException) -> bool:
        self.final()
        return False

    def go_on(self) -> None:
        self.final()

    def finish(self, alternatives: list[raises.Alternative], always: bool) -> None:
        self.cleanup.begin()
        super().finish(alternatives, always)
        self.cleanup.check()
