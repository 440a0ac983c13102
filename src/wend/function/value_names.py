"""What users may call the values of a concrete function's graph."""

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
    """What `prune` is asked for cannot be: no such value, or one that needs what is not fed."""


class ValueNames:
    """The values of a concrete function's graph, by what users may call them.

    These are arguments (`"x"`, `"state['h']"`), results (`"result"`, `"result['loss']"`), what
    `wend.name` named, and the numbers of the printed graph (`"%3"`).
    """

    def __init__(self, concrete: ConcreteFunction) -> None:
        self.concrete, self.graph = concrete, concrete.graph
        self.head = f"prune of {concrete.name}"
        self.numbers = value_numbers(self.graph)
        self.given: dict[Value, str] = {}  # the names that users gave
        self._by_name: dict[str, dict[Value, None]] = {}
        self._weak: set[Value] = set()  # Python's numbers
        computed = [value for node in self.graph.nodes for value in node.results]
        self._known = {*self.graph.params, *computed}
        traced = concrete.traced
        arguments = zip(concrete.input_names, concrete.input_types, strict=True)
        results = zip(trees.paths(traced.result_tree, "result"), traced.result_types, strict=True)
        for param, (name, type) in zip(self.graph.params, arguments, strict=False):
            self.given[param] = name
            self._add(name, param, type.weak)
        for value in computed:
            if value.name is not None:
                self.given[value] = value.name
                self._add(value.name, value)
        for value, (name, type) in zip(self.graph.results, results, strict=False):
            self._add(name, value, type.weak)

    def _add(self, name: str, value: Value, is_weak: bool = False) -> None:
        self._by_name.setdefault(name, {})[value] = None
        if is_weak:
            self._weak.add(value)

    def shown(self, value: Value) -> str:
        """What a value is called in messages."""
        if value in self.graph.params and value in self.given:
            return f"argument {self.given[value]}"
        return self.given.get(value) or f"%{self.numbers[value]}"

    def type(self, value: Value) -> LeafType:
        """How a value is fed or fetched.

        Raises:
            TypeMismatchError: it is a list of arrays.
        """
        if not isinstance(value.type, TensorType):
            what = f"{self.head}: {self.shown(value)} is {value.type}, no array."
            cure = "fetch an array that is made of it."
            raise TypeMismatchError(explain(what, cure=cure))
        return LeafType(value.type, value in self._weak)

    def array(self, what: Any) -> Value:
        """The value that is to be fed."""
        found = self._found(what)
        if isinstance(found, Variable):
            return self._capture(found)
        if isinstance(found, Node) or found.type == TOKEN:
            cure = "feed a value."
            raise PruneError(explain(f"{self.head}: {what!r} is an effect.", cure=cure))
        return found

    def target(self, what: Any) -> Value | Node | Variable:
        """What is to be fetched: a value, or an effect."""
        found = self._found(what)
        if isinstance(found, Value) and found.type == TOKEN and found.node is not None:
            return found.node
        return found

    def _found(self, what: Any) -> Value | Node | Variable:
        if isinstance(what, str):
            return self._called(what)
        if isinstance(what, Variable):
            return what
        if isinstance(what, Node) and what in self.graph.nodes:
            if has_effect(what):
                return what
            cure = "fetch what it gives: node.results[0]."
            raise PruneError(explain(f"{self.head}: {what!r} has no effect.", cure=cure))
        if isinstance(what, Value) and what in self._known:
            return what
        raise PruneError(
            explain(
                f"{self.head}: {what!r:.60} is no value of its graph.",
                cure="give a name, or a value of concrete.graph (not of a loop or branch in it).",
            )
        )

    def _called(self, name: str) -> Value:
        if name.startswith("%"):
            by_number = [value for value in self._known if f"%{self.numbers[value]}" == name]
            if by_number:
                return by_number[0]
        found = list(self._by_name.get(name, {}))
        if len(found) == 1:
            return found[0]
        if found:
            which = listed(f"%{self.numbers[value]}" for value in found)
            what = f"{self.head}: {len(found)} values are called {name!r}: {which}."
            raise PruneError(explain(what, cure="give the number that the printed graph has."))
        raise PruneError(
            explain(
                f"{self.head}: there is no {name!r}; there are {listed(self._by_name)}.",
                cure="name the value by wend.name(x, ...) in the function, or give the number "
                'that print(concrete.graph) shows: "%3".',
            )
        )

    def assigned_to(self, variable: Variable) -> Value:
        """What a variable is to hold when the function has run."""
        traced = self.concrete.traced
        held = self.graph.results[len(traced.result_types) + len(traced.written) :]
        for k, other in enumerate(traced.assigned):
            if other is variable:
                return held[k]
        cure = "fetch what it holds: variable.value."
        raise PruneError(explain(f"{self.head}: {variable!r} is not assigned to.", cure=cure))

    def _capture(self, variable: Variable) -> Value:
        for value, binding in zip(self.graph.captures, self.concrete.traced.bindings, strict=True):
            if binding is variable:
                return value
        cure = "feed variables that are in concrete.variables."
        raise PruneError(explain(f"{self.head}: {variable!r} is not read.", cure=cure))
