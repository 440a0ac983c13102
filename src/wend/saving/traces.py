"""Traces as JSON: the calling convention of a graph."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import LoadError, SaveError, explain
from wend.base.keys import NotKeyedError, key_of
from wend.base.lazy.dataclass import dataclass
from wend.function.concrete import ConcreteFunction
from wend.function.fixed_traces import FixedTrace
from wend.function.signature.signature import Arguments
from wend.ir.graph import Graph
from wend.ir.types import TOKEN, TensorType, Type, accepts
from wend.ops.effects import error_class, error_name
from wend.runtime.storage import Storage
from wend.saving.checks import check_error
from wend.saving.fields import Fields, pick, tagged
from wend.saving.graphs import GraphWriter
from wend.saving.literals import literal_from_json, literal_to_json
from wend.saving.structures import CONSTANT, LEAF, Classes, tree_from_json, tree_to_json
from wend.saving.variables import ArrayTable, ArrayWriter, LoadedVariable, VariableWriter
from wend.trace.control.returned_constants import ReturnedConstant, returned_constant
from wend.trace.recording.arguments import LeafType
from wend.trace.traced import Traced


class TraceWriter:
    """Writes traces to a file."""

    def __init__(self, array: ArrayWriter, variables: VariableWriter, graphs: GraphWriter) -> None:
        self._array, self._variables, self._graphs = array, variables, graphs

    def record(
        self, concrete: ConcreteFunction, *, is_method: bool, accepts_zero_one: bool
    ) -> dict[str, Any]:
        """Return a trace as JSON; that of a method takes no `self`.

        Raises:
            SaveError: it holds what a file cannot.
            VariableError: it uses a variable that is gone or has no value yet.
        """
        traced, inputs, name = concrete.traced, concrete.inputs, concrete.name
        if traced.pending or concrete.first_call is not None:
            what = f"{name} has been traced, but not called: its first call initializes variables."
            raise SaveError(explain(what, cure="call it once before you save it."))
        if not traced.is_closed():
            what = f"{name} uses values of another trace."
            raise SaveError(explain(what, cure="save the function that was traced around it."))
        for storage, k in traced.passed:
            self._variables.number_of_placeholder(storage, inputs.types[k].type)
        tree = tree_to_json(inputs.treedef, f"an argument of {name}")
        static = inputs.static_values()
        if is_method:
            tree["tuple"][0]["tuple"] = tree["tuple"][0]["tuple"][1:]
            static = static[1:]
        return {
            "graph": self._graphs.write(traced.graph, name),
            "arguments": tree,
            "traced": [k - is_method for k in inputs.traced_positions],
            "static": [literal_to_json(x, f"argument {path} of {name}") for path, x in static],
            "leaves": [
                {"weak": type.weak, "variable": type.variable, "zero_dim": type.zero_dim}
                for type in inputs.types
            ],
            "parameters": list(inputs.parameters[is_method:]),
            "result": tree_to_json(traced.result_tree, f"the result of {name}"),
            "weak_results": [k for k, type in enumerate(traced.result_types) if type.weak],
            "captures": [self._capture(x) for x in traced.captured],
            "world": traced.has_world,
            "written": list(traced.written),
            "stored": [self._variables.number(storage) for storage in traced.stored],
            "passed": [[self._variables.number(storage), k] for storage, k in traced.passed],
            "no_alias": [list(pair) for pair in traced.no_alias],
            "raises": [[_error_name(error), what] for error, what in traced.raises],
            "notes": list(traced.notes),
            "zero_one": accepts_zero_one,
        }

    def _capture(self, binding: Any) -> dict[str, Any]:
        if isinstance(binding, Storage):
            return {"variable": self._variables.number(binding)}
        return {"array": self._array(binding)}


def _error_name(error: type[BaseException]) -> str:
    name = error_name(error)
    return name if isinstance(name, str) else builtins.RuntimeError.__name__


@dataclass(frozen=True, slots=True)
class TraceReader:
    """Reads traces of a file.

    Attributes:
        array: reads an array.
        variables: the variables of the file.
        graphs: its graphs.
        classes: the classes that it may name.
    """

    array: ArrayTable
    variables: Sequence[LoadedVariable]
    graphs: Sequence[Graph]
    classes: Classes

    def read(self, record: Fields) -> FixedTrace:
        """Return a trace.

        Raises:
            LoadError: the record does not fit its graph.
        """
        graph = record.entry("graph", self.graphs)
        arguments = self._arguments(record, graph)
        traced = self._traced(record, graph, arguments)
        _check_convention(traced, arguments, record.where)
        return FixedTrace(traced, arguments, record.get("zero_one", bool))

    def _arguments(self, record: Fields, graph: Graph) -> Arguments:
        where = record.where
        tree = tree_from_json(record.data.get("arguments"), where, self.classes)
        if type(tree) is not tuple or [type(part) for part in tree] != [tuple, dict]:
            raise LoadError(f"{where}: arguments are no (args, kwargs)")
        leaves, treedef = trees.flatten_deep(tree)
        if any(leaf is not LEAF for leaf in leaves) or not all(
            type(k) is str and k.isidentifier() for k in tree[1]
        ):
            raise LoadError(f"{where}: arguments are no structure of leaves")
        traced = record.counts("traced", len(leaves))
        records = record.objects("leaves")
        static = [literal_from_json(x, where) for x in record.get("static", list)]
        if (
            list(traced) != sorted({*traced})
            or len(traced) != len(records)
            or len(traced) + len(static) != len(leaves)
            or len(traced) > len(graph.params)
        ):
            raise LoadError(f"{where}: {len(leaves)} leaves, of which {len(traced)} are arrays")
        types = [
            _leaf_type(param.type, fields)
            for param, fields in zip(graph.params, records, strict=False)
        ]
        types_left, static_left = iter(types), iter(static)
        traced_set = {*traced}
        values = [
            next(types_left) if k in traced_set else next(static_left) for k in range(len(leaves))
        ]
        try:
            static_keys = tuple(map(key_of, static))
        except NotKeyedError as error:
            raise LoadError(f"{where}: {error}") from None
        has_nodes = treedef.num_nodes > len(leaves) + 3
        return Arguments(
            tuple(values),
            treedef,
            traced,
            tuple(types),
            static_keys,
            tuple(record.texts("parameters")),
            trees.metadata_key(treedef) if has_nodes else (),
        )

    def _traced(self, record: Fields, graph: Graph, arguments: Arguments) -> Traced:
        where = record.where
        leaves, result_tree = trees.flatten_deep(
            tree_from_json(
                record.data.get("result"), where, self.classes, lambda x: _result(x, where)
            )
        )
        count = len(leaves)
        if any(leaf is not LEAF for leaf in leaves) or count > len(graph.results):
            raise LoadError(f"{where}: the result has {count} leaves")
        weak = {*record.counts("weak_results", count)}
        result_types = tuple(
            LeafType(_tensor(value.type, where), k in weak)
            for k, value in enumerate(graph.results[:count])
        )
        arity = len(arguments.types)
        captured = tuple(self._capture(x, where) for x in record.get("captures", list))
        pairs = [_pair(pair, where) for pair in record.get("passed", list)]
        no_alias = [_pair(pair, where) for pair in record.get("no_alias", list)]
        if any(not 0 <= i < arity + len(captured) for pair in no_alias for i in pair) or any(
            k >= arity for k, _ in no_alias
        ):
            raise LoadError(f"{where}: no_alias are no positions")
        passed = []
        for number, k in pairs:
            variable = pick(self.variables, number, where)
            if not variable.is_placeholder or not 0 <= k < arity:
                raise LoadError(f"{where}: passed are no variables of arguments")
            passed.append((variable.variable.storage, k))
        return Traced(
            graph,
            result_tree,
            result_types,
            captured,
            record.get("world", bool),
            record.counts("written", arity),
            tuple(self._variable(k, where) for k in record.get("stored", list)),
            tuple(record.texts("notes")),
            passed=tuple(passed),
            no_alias=tuple(no_alias),
            raises=tuple(_raised(pair, where) for pair in record.get("raises", list)),
        )

    def _capture(self, data: Any, where: str) -> Any:
        tag, contents = tagged(data, where)
        if tag == "array":
            return self.array(contents)
        if tag == "variable":
            return self._variable(contents, where)
        raise LoadError(f"{where}: there are no captures of kind {tag!r:.40}")

    def _variable(self, number: Any, where: str) -> Storage:
        variable = pick(self.variables, number, where)
        if variable.is_placeholder:
            raise LoadError(f"{where}: variable {number} stands for an argument")
        return variable.variable.storage


def _result(data: Any, where: str) -> Any:
    """Return a leaf of a result, or a constant that every run returns."""
    if type(data) is not dict or [*data] != [CONSTANT]:
        return LEAF
    value = literal_from_json(data[CONSTANT], where)
    if type(value) in (list, dict):
        return ReturnedConstant(value)  # it was of outside
    constant = returned_constant(value)
    if not isinstance(constant, ReturnedConstant):
        raise LoadError(f"{where}: {data!r:.60} is no constant of a result")
    return constant


def _leaf_type(type: Type, fields: Fields) -> LeafType:
    zero_dim = fields.optional("zero_dim", bool)
    variable = fields.optional("variable", int)
    return LeafType(_tensor(type, fields.where), fields.get("weak", bool), variable, zero_dim)


def _tensor(type: Type, where: str) -> TensorType:
    if not isinstance(type, TensorType):
        raise LoadError(f"{where}: {type} is no array")
    return type


def _pair(data: Any, where: str) -> tuple[int, int]:
    if type(data) is list and [type(x) for x in data] == [int, int]:
        return data[0], data[1]
    raise LoadError(f"{where}: {data!r:.40} is no pair of numbers")


def _raised(data: Any, where: str) -> tuple[type[BaseException], str]:
    if type(data) is list and [type(x) for x in data] == [str, str]:
        check_error(data[0])
        return error_class(data[0]), data[1]
    raise LoadError(f"{where}: {data!r:.40} is no exception with its place")


def _check_convention(traced: Traced, arguments: Arguments, where: str) -> None:
    """Check that the params and results of a graph are what the record says."""
    graph = traced.graph
    world = [TOKEN] * traced.has_world
    captures = [_binding_type(binding) for binding in traced.captured]
    expected: list[Type | None] = [*repeat(None, len(arguments.types)), *world, *captures]
    _check_types("params", graph.param_types, expected, where)
    changed = [arguments.types[k].type for k in traced.written]
    stored = [storage.owner.type for storage in traced.stored]
    results: list[Type | None] = [
        *repeat(None, len(traced.result_types)),
        *changed,
        *stored,
        *world,
    ]
    _check_types("results", graph.result_types, results, where)
    if len(graph.captures) != len(captures):
        raise LoadError(f"{where}: {len(captures)} captures of {len(graph.captures)}")
    for k, type in enumerate(arguments.types):
        is_passed = any(position == k for _, position in traced.passed)
        if is_passed != (type.variable is not None):
            raise LoadError(f"{where}: argument {k} is {'' if is_passed else 'no '}variable")


def _binding_type(binding: Any) -> TensorType:
    if isinstance(binding, Storage):
        of_variable: TensorType = binding.owner.type
        return of_variable
    array = np.asarray(binding)
    return TensorType(array.dtype, array.shape)


def _check_types(
    what: str, actual: Sequence[Type], expected: Sequence[Type | None], where: str
) -> None:
    if len(actual) != len(expected):
        raise LoadError(f"{where}: the graph has {len(actual)} {what}, expected {len(expected)}")
    for k, (type, bound) in enumerate(zip(actual, expected, strict=True)):
        fits = isinstance(type, TensorType) if bound is None else accepts(type, bound)
        if not fits:
            raise LoadError(f"{where}: {what}[{k}] is {type}, expected {bound or 'an array'}")
