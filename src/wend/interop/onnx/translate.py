"""Graphs of ONNX as text of Python, which is then captured as any function is.

Values are `v1`, `v2`, …, subgraphs are functions in functions, and what they call is looked up by
names of our own: no text of the model is in it.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx

import wend.numpy as wnp
from wend.base.errors import LoadError, UnsupportedError, explain
from wend.capture.stage.iterables import unroll
from wend.interop.onnx.operators.operands import dtype_of
from wend.interop.onnx.operators.scanning import scan_over
from wend.interop.onnx.operators.table import CONTROL, OPERATORS, extra_arguments
from wend.interop.onnx.reading import array_of, subgraphs

_A = onnx.AttributeProto


def unknown_operators(graph: onnx.GraphProto) -> set[str]:
    """Return the operators of a graph, and of those in it, that have no translation."""
    names = {
        node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        for node in graph.node
    }
    unknown = names - OPERATORS.keys() - {*CONTROL}
    return unknown.union(*(unknown_operators(inner) for inner in subgraphs(graph)))


class Translation:
    """The text of a model's function, and the objects that it names.

    Args:
        graph: the main graph.
        opset: the version of the operators.
        constants: the values of inputs that are fixed.
    """

    def __init__(
        self, graph: onnx.GraphProto, opset: int, constants: Mapping[str, np.ndarray]
    ) -> None:
        self.names: dict[str, Any] = {
            "count": _count,
            "flag": _flag,
            "is_more": _is_more,
            "item": _item,
            "scan_over": scan_over,
            "is_empty": _is_empty,
            "stack": wnp.stack,
            "trips": _trips,
            "unroll": unroll,
        }
        self._opset, self._number = opset, 0
        self._constants: dict[str, np.ndarray] = {}
        initializers = {tensor.name for tensor in graph.initializer}
        inputs = [x for x in graph.input if x.name not in initializers]
        scope: dict[str, str] = {}
        lines: list[str] = []
        self.parameters: list[str] = []
        for x in inputs:
            if x.name in constants:
                scope[x.name] = self._constant(_as_constant(x, constants[x.name]))
                continue
            parameter = _parameter(x.name, self.parameters)
            self.parameters.append(parameter)
            scope[x.name] = self._variable()
            convert = self._define("input", partial(_convert, x.name, x.type))
            lines.append(f"{scope[x.name]} = {convert}({parameter})")
        lines += self._graph(graph, scope, set())
        results = [self._value(x.name, scope) for x in graph.output]
        lines.append(f"return {', '.join(results)}")
        self.text = "\n".join(
            [f"def model({', '.join(self.parameters)}):", *(f"    {line}" for line in lines), ""]
        )

    def _variable(self) -> str:
        self._number += 1
        return f"v{self._number}"

    def _constant(self, value: np.ndarray) -> str:
        """Return the text of an array that is known while the function is traced.

        It is the result of a call: an array that the function read would be an operand.
        """
        text = f"{self._define('c', partial(_given_back, value))}()"
        self._constants[text] = value
        return text

    def _define(self, prefix: str, value: Any) -> str:
        """Return a new name of an object."""
        self._number += 1
        name = f"{prefix}{self._number}"
        self.names[name] = value
        return name

    def _value(self, name: str, scope: Mapping[str, str]) -> str:
        if not name:
            return "None"
        if name not in scope:
            raise LoadError(f"the model uses {name!r}, which no node before gives")
        return scope[name]

    def _graph(self, graph: onnx.GraphProto, scope: dict[str, str], own: set[str]) -> Iterator[str]:
        """Yield the lines of the nodes of a graph.

        Args:
            graph: the graph.
            scope: the variables of values; those of the graph are added.
            own: the lists that may be appended to, if nothing reads them later.
        """
        for tensor in graph.initializer:
            scope[tensor.name] = self._constant(array_of(tensor))
        last = _last_uses(graph)
        for position, node in enumerate(graph.node):
            inputs = [self._value(name, scope) for name in node.input]
            outputs = [self._variable() if name else "_" for name in node.output]
            while outputs and outputs[-1] == "_":
                outputs.pop()
            targets = ", ".join(outputs)
            if node.op_type in CONTROL:
                yield from self._control(node, inputs, outputs, scope)
            elif _appends(node) and node.input[0] in own and last[node.input[0]] == position:
                yield f"{inputs[0]}.append({inputs[1]})"
                outputs = [inputs[0]]  # the same list: a loop knows one that grows by its name
                own.add(node.output[0])
            else:
                function = self._operator(node, len(outputs))
                yield f"{targets} = {function}({', '.join(inputs)})"
            if node.op_type != "Constant":
                scope.update(zip(node.output, outputs, strict=False))
                scope.pop("", None)

    def _operator(self, node: onnx.NodeProto, outputs: int) -> str:
        """Return the name of a function of the operands of a node."""
        fun = OPERATORS[node.op_type]
        attributes = {a.name: _attribute(a) for a in node.attribute}
        parameters = inspect.signature(fun).parameters
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for name in attributes.keys() - parameters.keys():
            if not takes_all and name not in _IGNORED:
                what = f"the attribute {name!r} of {node.op_type} is not supported."
                raise UnsupportedError(explain(what))
        attributes = {k: v for k, v in attributes.items() if takes_all or k in parameters}
        extra = extra_arguments(node.op_type)
        attributes |= {"opset": self._opset} if "opset" in extra else {}
        attributes |= {"outputs": outputs} if "outputs" in extra else {}
        return self._define(node.op_type, _taking(partial(fun, **attributes), outputs))

    def _control(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[str],
        outputs: Sequence[str],
        scope: dict[str, str],
    ) -> Iterator[str]:
        attributes = {a.name: a for a in node.attribute}
        targets = ", ".join(outputs) if outputs else "_"
        match node.op_type:
            case "Constant":
                scope[node.output[0]] = self._constant(_constant(node))
            case "If":
                branches = []
                for name in ("then_branch", "else_branch"):
                    lines, function = self._function(attributes[name].g, scope, set())
                    yield from lines
                    branches.append(function)
                yield f"if flag({inputs[0]}):"
                yield f"    {targets} = {branches[0]}()"
                yield "else:"
                yield f"    {targets} = {branches[1]}()"
            case "Loop":
                yield from self._loop(attributes["body"].g, inputs, outputs, scope)
            case "Scan":
                body = attributes["body"].g
                lines, function = self._function(body, scope, set())
                yield from lines
                how = {k: _attribute(a) for k, a in attributes.items() if k != "body"}
                scanner = self._define("Scan", partial(scan_over, **how))
                if self._opset < 9:
                    raise UnsupportedError("Scan of opset 8 is not supported")
                yield f"{targets}, = {scanner}({function}, {', '.join(inputs)})"
            case _:
                lines, function = self._function(attributes["body"].g, scope, set())
                yield from lines
                yield from (f"{output} = []" for output in outputs)
                index, elements = self._variable(), [self._variable() for _ in outputs]
                others = "".join(f", item({x}, {index})" for x in inputs[1:])
                yield f"for {index} in range(len({inputs[0]})):"
                yield f"    {', '.join(elements)} = {function}({inputs[0]}[{index}]{others})"
                for output, element in zip(outputs, elements, strict=True):
                    yield f"    {output}.append({element})"

    def _function(
        self, graph: onnx.GraphProto, scope: Mapping[str, str], own: set[str]
    ) -> tuple[list[str], str]:
        """Return the lines of a function of a subgraph's inputs, and its name."""
        inner = dict(scope)
        params = [self._variable() for _ in graph.input]
        inner.update(zip((x.name for x in graph.input), params, strict=True))
        self._number += 1
        name = f"graph{self._number}"
        lines = [*self._graph(graph, inner, own)]
        results = ", ".join(self._value(x.name, inner) for x in graph.output) or "None"
        return [
            f"def {name}({', '.join(params)}):",
            *(f"    {line}" for line in (*lines, f"return {results}")),
        ], name

    def _loop(
        self,
        body: onnx.GraphProto,
        inputs: Sequence[str],
        outputs: Sequence[str],
        scope: dict[str, str],
    ) -> Iterator[str]:
        limit, condition, *initial = [*inputs, *["None"] * (2 - len(inputs))]
        is_list = [x.type.HasField("sequence_type") for x in body.input[2:]]
        lists = {x.name for x, is_one in zip(body.input[2:], is_list, strict=True) if is_one}
        carries, scans = [self._variable() for _ in initial], []
        for carry, value, is_one in zip(carries, initial, is_list, strict=True):
            yield f"{carry} = {f'list({value})' if is_one else value}"
        elements = [self._variable() for _ in body.output[1 + len(initial) :]]
        for _ in elements:
            scans.append(self._variable())
            yield f"{scans[-1]} = []"
        go, index = self._variable(), self._variable()
        is_true = condition == "None" or bool(np.all(self._constants.get(condition, np.zeros(1))))
        is_counted = is_true and limit != "None" and _keeps_condition(body)
        if is_counted:
            # The elements of a list may differ in shape where the trips are known.
            unrolls = limit in self._constants and any(map(_is_sequence, body.input[2:]))
            trips = f"range(trips({limit}))"
            yield f"for {index} in {f'unroll({trips})' if unrolls else trips}:"
        else:
            yield f"{go} = {'True' if condition == 'None' else f'flag({condition})'}"
            yield f"{index} = 0"
            test = "" if limit == "None" else f" and is_more({index}, {limit})"
            yield f"while {go}{test}:"
        number = self._variable()
        inner = dict(scope)
        params = [number, "True" if is_counted else go, *carries]
        inner.update(zip((x.name for x in body.input), params, strict=False))
        lines = [f"{number} = count({index})", *self._graph(body, inner, lists)]
        results = [self._value(x.name, inner) for x in body.output]
        pairs = [*zip([go, *carries, *elements], results, strict=True)][is_counted:]
        changed = [(target, x) for target, x in pairs if target != x]  # a list may be itself
        if changed:
            targets, values = zip(*changed, strict=True)
            lines.append(f"{', '.join(targets)} = {', '.join(values)}")
        for value, x in zip([*carries, *elements], body.output[1:], strict=True):
            shape = _declared_shape(x.type)
            if shape is not None:
                fit = self._define("fit", partial(_fitted, shape=shape))
                lines.append(f"{value} = {fit}({value})")
        lines += [f"{s}.append({e})" for s, e in zip(scans, elements, strict=True)]
        if not is_counted:
            lines += [f"{go} = flag({go})", f"{index} = {index} + 1"]
        yield from (f"    {line}" for line in lines)
        for output, value in zip(outputs, carries, strict=False):
            yield f"{output} = {value}"
        declared = body.output[1 + len(initial) :]
        for output, scan, x in zip(outputs[len(carries) :], scans, declared, strict=False):
            if output != "_":
                shape = tuple(d.dim_value for d in x.type.tensor_type.shape.dim)
                dtype = dtype_of(x.type.tensor_type.elem_type or onnx.TensorProto.FLOAT)
                empty = self._constant(np.zeros((0, *shape), dtype))
                yield f"if is_empty({scan}):"
                yield f"    {output} = {empty}"
                yield "else:"
                yield f"    {output} = stack({scan})"


def _is_sequence(x: onnx.ValueInfoProto) -> bool:
    """Return whether a value is a sequence, or an optional one."""
    type = x.type.optional_type.elem_type if x.type.HasField("optional_type") else x.type
    return bool(type.HasField("sequence_type"))


def _declared_shape(type: onnx.TypeProto) -> tuple[int, ...] | None:
    """Return the shape of a declared array, if all of its sizes are numbers."""
    if not type.HasField("tensor_type") or not type.tensor_type.HasField("shape"):
        return None
    dims = type.tensor_type.shape.dim
    return tuple(d.dim_value for d in dims) if all(d.HasField("dim_value") for d in dims) else None


def _last_uses(graph: onnx.GraphProto) -> dict[str, int]:
    """Return the position of the last node that reads each value; results are read at the end."""
    last: dict[str, int] = {}
    for position, node in enumerate(graph.node):
        last.update(dict.fromkeys(node.input, position))
        for attribute in node.attribute:
            if attribute.type == _A.GRAPH:
                last.update(dict.fromkeys(_names_in(attribute.g), position))
    last.update((x.name, len(graph.node)) for x in graph.output)
    return last


def _names_in(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
    for inner in subgraphs(graph):
        yield from _names_in(inner)
    yield from (x.name for x in graph.output)


def _appends(node: onnx.NodeProto) -> bool:
    return node.op_type == "SequenceInsert" and len([x for x in node.input if x]) == 2


def _keeps_condition(body: onnx.GraphProto) -> bool:
    """Return whether a loop's body passes its condition through, or returns a true constant."""
    sources = {name: node for node in body.node for name in node.output}
    name = body.output[0].name
    while name in sources and sources[name].op_type == "Identity":
        name = sources[name].input[0]
    if name in sources and sources[name].op_type == "Constant":
        return bool(np.all(_constant(sources[name])))
    constants = {t.name: t for t in body.initializer}
    if name in constants:
        return bool(np.all(array_of(constants[name])))
    return len(body.input) > 1 and name == body.input[1].name


_IGNORED = frozenset({"consumed_inputs", "storage_order", "saturate"})


def _taking(fun: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """Return a function that gives so many results of several."""

    def take(*operands: Any) -> Any:
        result = fun(*operands)
        if not isinstance(result, tuple):
            return result
        return result[0] if outputs == 1 else result[:outputs]

    return take


def _attribute(a: onnx.AttributeProto) -> Any:
    """Return the value of an attribute."""
    match a.type:
        case _A.FLOAT:
            return float(a.f)
        case _A.INT:
            return int(a.i)
        case _A.STRING:
            return a.s.decode("utf-8", "replace")
        case _A.TENSOR:
            return array_of(a.t)
        case _A.FLOATS:
            return [float(x) for x in a.floats]
        case _A.INTS:
            return [int(x) for x in a.ints]
        case _A.STRINGS:
            return [x.decode("utf-8", "replace") for x in a.strings]
        case _A.TYPE_PROTO:
            return a.tp
    raise UnsupportedError(f"the attribute {a.name!r} is of a type that is not supported")


def _constant(node: onnx.NodeProto) -> np.ndarray:
    """Return the value of a node `Constant`."""
    for a in node.attribute:
        if a.name == "value":
            return array_of(a.t)
        if a.name in ("value_float", "value_floats"):
            return np.asarray(_attribute(a), np.float32)
        if a.name in ("value_int", "value_ints"):
            return np.asarray(_attribute(a), np.int64)
    raise UnsupportedError("a constant is a string or a sparse tensor, which are not supported")


def _parameter(name: str, used: Sequence[str]) -> str:
    """Return the name of an input as a name in Python that is not in use."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name) or "x"
    word = (
        f"x_{word}"
        if word[0].isdigit() or keyword.iskeyword(word) or _WORDS.fullmatch(word)
        else word
    )
    number, unique = 2, word
    while unique in used:
        unique, number = f"{word}_{number}", number + 1
    return unique


_WORDS = re.compile(
    r"(v|c|fit|input|graph)\d+|count|flag|is_empty|is_more|item|scan_over|stack|trips|unroll|list|len|range"
)


def _as_constant(x: onnx.ValueInfoProto, value: Any) -> np.ndarray:
    array = np.array(value, dtype_of(x.type.tensor_type.elem_type))
    array.setflags(write=False)
    return array


def _convert(name: str, type: onnx.TypeProto, x: Any) -> Any:
    """Return an argument as an array of the declared dtype, a list of such, or None.

    Raises:
        TypeError: it has another dtype.
    """
    if type.HasField("optional_type"):
        return None if x is None else _convert(name, type.optional_type.elem_type, x)
    if type.HasField("sequence_type"):
        return [_convert(name, type.sequence_type.elem_type, element) for element in x]
    dtype = dtype_of(type.tensor_type.elem_type)
    if isinstance(x, bool | int | float | list | tuple):
        return wnp.asarray(x, dtype)
    array = wnp.asarray(x)
    if array.dtype != dtype:
        what = f"the input {name!r} of the model is of {dtype}, not {array.dtype}."
        raise TypeError(explain(what, cure=f"pass x.astype({dtype.name!r})."))
    if type.tensor_type.HasField("shape") and array.ndim != len(type.tensor_type.shape.dim):
        rank = len(type.tensor_type.shape.dim)
        raise ValueError(f"the input {name!r} of the model has {rank} axes, not {array.ndim}")
    return array


def _flag(x: Any) -> Any:
    """Return a condition, which may be an array of one element, as a bool."""
    if isinstance(x, bool):
        return x
    if isinstance(x, np.ndarray | np.generic):
        return bool(np.asarray(x).reshape(()))
    return x.reshape(())


def _trips(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        return int(np.asarray(x).reshape(()))
    return x.reshape(())


def _is_more(k: Any, limit: Any) -> Any:
    return k < _trips(limit)


def _given_back(x: Any) -> Any:
    return x


def _is_empty(elements: Any) -> bool:
    """Return whether a list is surely empty."""
    return isinstance(elements, list) and not elements


def _fitted(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array in the shape that the model declares, where only the run knows its own."""
    return x if all(type(size) is int for size in x.shape) else x.reshape(shape)


def _count(k: Any) -> Any:
    return wnp.asarray(k, np.int64)


def _item(x: Any, k: Any) -> Any:
    """Return an element of a sequence; what is no sequence, for each element."""
    return x if isinstance(x, np.ndarray | np.generic) or hasattr(x, "dtype") else x[k]
