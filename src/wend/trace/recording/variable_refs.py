"""The variables of a function under construction, as references that its regions may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wend.ir.graph import Value

if TYPE_CHECKING:
    from wend.trace.arrays.tracer import Tracer
    from wend.trace.recording.recording import Recording


class VariableRefs:
    """The variables that one function uses, each with a reference to its current value."""

    def __init__(self, function: Recording) -> None:
        self._function = function
        self._refs: dict[int, tuple[Any, Tracer]] = {}

    def ref(self, variable: Any) -> Tracer:
        """Return the reference of a variable; it starts with the variable's value at the call."""
        if id(variable) not in self._refs:
            self._refs[id(variable)] = variable, self._function.wrap(self._initial(variable))
        return self._refs[id(variable)][1]

    def known_ref(self, variable: Any) -> Tracer | None:
        """Return the reference of a variable if the function has used it."""
        _, ref = self._refs.get(id(variable), (None, None))
        return ref

    def _initial(self, variable: Any) -> Value:
        function, captures = self._function, self._function.captures
        initial = variable.initial
        if initial is not None and function.can_lift(initial):
            return function.lift(initial)
        if captures.frozen is not None:
            return captures.frozen.variable(variable, self._is_assigned_around)
        return captures.capture(id(variable), variable, variable.type)

    def _is_assigned_around(self, variable: Any) -> bool:
        """Return whether an enclosing function under construction has assigned to a variable."""
        recording = self._function.parent
        while recording is not None and not recording.runs_now():
            function = recording.function()
            ref = function.variables.known_ref(variable)
            if ref is not None and function.captures.frozen is None:
                initial = function.captures.by_key(id(variable))
                if recording.mutations.outer_value(ref) is not None or ref.value is not initial:
                    return True
            recording = recording.parent
        return False

    def check_assignable(self, variable: Any) -> None:
        """Refuse an assignment where the function captures by value."""
        frozen = self._function.captures.frozen
        if frozen is not None:
            raise frozen.assignment_error(variable)

    def bind_argument(self, variable: Any, ref: Tracer) -> None:
        """Bind the placeholder of a variable argument to the argument's value."""
        self._refs[id(variable)] = variable, ref
        self._function.captures.substitute(id(variable), ref.value)

    def assigned(self) -> list[tuple[Any, Value]]:
        """Return the captured variables that the function changes, with their last values."""
        captures = self._function.captures
        if captures.frozen is not None:
            return []
        params = {id(param) for param in self._function.b.params}  # of variables that are passed
        assigned = []
        for variable, ref in self._refs.values():
            initial = captures.by_key(id(variable))
            if ref.value != initial and id(initial) not in params:
                assigned.append((variable, ref.value))
        return assigned

    def clear(self) -> None:
        """Release all variables."""
        self._refs.clear()
