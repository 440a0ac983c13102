"""The names by which users refer to values of a concrete function's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wend.base import trees
from wend.base.errors import TypeMismatchError, WendError, explain, listed
from wend.ir.graph import Node, Value
from wend.ir.printer import value_numbers
from wend.ir.types import TOKEN, TensorType
from wend.passes.extract_subgraph import has_effect
from wend.trace.recording.arguments import LeafType
from wend.trace.state.variable import Variable

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction


class PruneError(WendError, ValueError):
    """`prune` was asked for a value that does not exist, or that needs one that is not fed."""


class ValueNames:
    """The values of a concrete function's graph by the names that users may use.

    These are arguments (`"x"`, `"state['h']"`), results (`"result"`, `"result['loss']"`), names
    given by `wend.name`, and the numbers of the printed graph (`"%3"`).

    Attributes:
        user_names: the names of arguments and those given by `wend.name`.
    """

    def __init__(self, concrete: ConcreteFunction) -> None:
        self.concrete, self.graph = concrete, concrete.graph
        self.head = f"prune of {concrete.name}"
        self.numbers = value_numbers(self.graph)
        self.user_names: dict[Value, str] = {}
        self._by_name: dict[str, dict[Value, None]] = {}
        self._weak_values: set[Value] = set()  # Python's numbers
        computed = [value for node in self.graph.nodes for value in node.results]
        self._outer_values = {*self.graph.params, *computed}
        traced = concrete.traced
        arguments = zip(concrete.input_names, concrete.input_types, strict=True)
        results = zip(trees.paths(traced.result_tree, "result"), traced.result_types, strict=True)
        for param, (name, type) in zip(self.graph.params, arguments, strict=False):
            self.user_names[param] = name
            self._add(name, param, type.weak)
        for value in computed:
            if value.name is not None:
                self.user_names[value] = value.name
                self._add(value.name, value)
        for value, (name, type) in zip(self.graph.results, results, strict=False):
            self._add(name, value, type.weak)

    def _add(self, name: str, value: Value, is_weak: bool = False) -> None:
        self._by_name.setdefault(name, {})[value] = None
        if is_weak:
            self._weak_values.add(value)

    def described(self, value: Value) -> str:
        """Return the name of a value in messages."""
        if value in self.graph.params and value in self.user_names:
            return f"argument {self.user_names[value]}"
        return self.user_names.get(value) or f"%{self.numbers[value]}"

    def type(self, value: Value) -> LeafType:
        """Return the type as which a value is fed or fetched.

        Raises:
            TypeMismatchError: it is a list of arrays.
        """
        if not isinstance(value.type, TensorType):
            what = f"{self.head}: {self.described(value)} is {value.type}, not an array."
            cure = "fetch an array made from it."
            raise TypeMismatchError(explain(what, cure=cure))
        return LeafType(value.type, value in self._weak_values)

    def feed(self, name_or_value: Any) -> Value:
        """Return the value to be fed."""
        value = self._resolve(name_or_value)
        if isinstance(value, Variable):
            return self._captured_value(value)
        if isinstance(value, Node) or value.type == TOKEN:
            cure = "feed a value."
            raise PruneError(explain(f"{self.head}: {name_or_value!r} is an effect.", cure=cure))
        return value

    def fetch(self, name_or_value: Any) -> Value | Node | Variable:
        """Return what is to be fetched: a value or an effect."""
        target = self._resolve(name_or_value)
        if isinstance(target, Value) and target.type == TOKEN and target.node is not None:
            return target.node
        return target

    def _resolve(self, name_or_value: Any) -> Value | Node | Variable:
        if isinstance(name_or_value, str):
            return self._named(name_or_value)
        if isinstance(name_or_value, Variable):
            return name_or_value
        if isinstance(name_or_value, Node) and name_or_value in self.graph.nodes:
            if has_effect(name_or_value):
                return name_or_value
            cure = "fetch its result: node.results[0]."
            raise PruneError(explain(f"{self.head}: {name_or_value!r} has no effect.", cure=cure))
        if isinstance(name_or_value, Value) and name_or_value in self._outer_values:
            return name_or_value
        raise PruneError(
            explain(
                f"{self.head}: {name_or_value!r:.60} is not a value of its graph.",
                cure="give a name, or a value of concrete.graph (not of a loop or branch in it).",
            )
        )

    def _named(self, name: str) -> Value:
        if name.startswith("%"):
            by_number = [value for value in self._outer_values if f"%{self.numbers[value]}" == name]
            if by_number:
                return by_number[0]
        named = list(self._by_name.get(name, {}))
        if len(named) == 1:
            return named[0]
        if named:
            numbers = listed(f"%{self.numbers[value]}" for value in named)
            what = f"{self.head}: {len(named)} values are called {name!r}: {numbers}."
            raise PruneError(explain(what, cure="give the number that the printed graph has."))
        raise PruneError(
            explain(
                f"{self.head}: there is no {name!r}; there are {listed(self._by_name)}.",
                cure="name the value by wend.name(x, ...) in the function, or give the number "
                'that print(concrete.graph) shows: "%3".',
            )
        )

    def stored_value(self, variable: Variable) -> Value:
        """Return the value that a variable holds after the function has run."""
        traced = self.concrete.traced
        stored = self.graph.results[len(traced.result_types) + len(traced.written) :]
        for k, assigned in enumerate(traced.assigned):
            if assigned is variable:
                return stored[k]
        cure = "fetch what it holds: variable.value."
        raise PruneError(explain(f"{self.head}: {variable!r} is not assigned to.", cure=cure))

    def _captured_value(self, variable: Variable) -> Value:
        for value, binding in zip(self.graph.captures, self.concrete.traced.bindings, strict=True):
            if binding is variable:
                return value
        cure = "feed variables that are in concrete.variables."
        raise PruneError(explain(f"{self.head}: {variable!r} is not read.", cure=cure))
