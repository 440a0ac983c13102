"""Graphs as text members: each callee once, arrays and variables by reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.base.errors import LoadError, ParseError, SaveError, WendError, explain
from wend.base.source import Source, at, warn
from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Value
from wend.ir.parser import parse
from wend.ir.printer import to_text, value_numbers
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.types import Symbol
from wend.ir.verify import verify
from wend.ops import effects
from wend.ops.control import call
from wend.ops.custom import RULED, RecursiveRule
from wend.ops.spilling import SEGMENTS
from wend.runtime.storage import Storage
from wend.saving.archive import ArchiveReader, ArchiveWriter
from wend.saving.checks import check_graph
from wend.saving.fields import Fields, pick, tagged


class GraphWriter:
    """Writes graphs to an archive, those they call before them.

    Args:
        archive: the archive.
        array: writes an array; returns its member.
        variable: returns the number of a variable by its storage.

    Attributes:
        records: what the manifest says about each graph.
        versions: the versions of the operations in them.
    """

    def __init__(
        self,
        archive: ArchiveWriter,
        array: Callable[[np.ndarray], str],
        variable: Callable[[Storage], int],
    ) -> None:
        self._archive, self._array, self._variable = archive, array, variable
        self.records: list[dict[str, Any]] = []
        self.versions: dict[str, int] = {}
        self._table: list[Any] = []
        self._checked = 0  # so many entries of the table are known to be data
        self._names: dict[Graph, str] = {}
        self._portable: dict[Graph, Graph] = {}
        self._rules: set[RecursiveRule] = set()

    def write(self, graph: Graph, user: str) -> int:
        """Write a graph; return its number.

        Args:
            graph: the graph.
            user: the function that has it, for messages.

        Raises:
            SaveError: it calls Python.
        """
        return int(self._write(self._with_portable_errors(graph, user), user)[1:])

    def _write(self, graph: Graph, user: str) -> str:
        if graph in self._names:
            return self._names[graph]
        self._write_callees(graph, user)
        text = to_text(graph, table=self._table, sources=_short, named=self._names)
        for entry in self._table[self._checked :]:
            _check_entry(entry, user)
        self._checked = len(self._table)
        name = f"g{len(self.records)}"
        self._archive.add(f"graphs/{name}.txt", text.encode("utf-8"))
        named = [(k, v.name) for v, k in value_numbers(graph).items() if v.name is not None]
        self.records.append({"values": [*map(list, named)]})
        self._names[graph] = name
        return name

    def _write_callees(self, graph: Graph, user: str) -> None:
        for node in graph.nodes:
            self.versions[node.op.name] = node.op.version
            if node.op in SEGMENTS:
                what = f"{user} cannot be saved, for a loop of it spills its tape{at(node.source)}."
                cure = "save the function, and take its derivatives where it is loaded."
                raise SaveError(explain(what, cure=cure))
            if not node.op.is_portable:
                raise SaveError(
                    explain(
                        f"{user} cannot be saved, for it calls Python: "
                        f"{_called(node)}{at(node.source)}.",
                        cure="let wend's operations compute what Python does there.",
                    )
                )
            for region in node.regions:
                if node.op is call or node.op in RULED:
                    self._write(region, user)
                else:
                    self._write_callees(region, user)
            rule = node.attrs.get("rule")
            if isinstance(rule, RecursiveRule) and rule not in self._rules:
                self._rules.add(rule)
                for region in rule.regions:
                    self._write(self._with_portable_errors(region, user), user)

    def entries(self) -> list[dict[str, Any]]:
        """Return what the texts refer to as `@0`, `@1`, …, as JSON, when all graphs are written."""
        return [self._entry(entry) for entry in self._table]

    def _entry(self, entry: Any) -> dict[str, Any]:
        if isinstance(entry, np.ndarray):
            return {"array": self._array(entry)}
        if isinstance(entry, Storage):
            return {"variable": self._variable(entry)}
        regions = [self._names[self._portable.get(g, g)] for g in entry.regions]
        attrs = {key: _rule_attr(value) for key, value in entry.attrs.items()}
        return {"rule": {"regions": regions, "attrs": attrs}}

    def _with_portable_errors(self, graph: Graph, user: str) -> Graph:
        """Return the graph with classes of exceptions by name; another than Python's warns."""
        if graph in self._portable:
            return self._portable[graph]

        def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
            regions = [self._with_portable_errors(region, user) for region in node.regions]
            copy = with_operands(node, operands, regions)
            if node.op is effects.raise_if and not isinstance(node.attrs["error"], str):
                name, text = _portable_error(node)
                attrs = {**node.attrs, "error": name, "text": text}
                types = [result.type for result in node.results]
                copy = Node(node.op, operands, attrs, (), types, node.source)
            nodes.append(copy)
            return copy.results

        self._portable[graph] = portable = rewrite_nodes(graph, rewrite)
        return portable


def _called(node: Node) -> str:
    """Return the name of what a node calls in Python."""
    callee = node.attrs.get("function") or node.attrs.get("action")
    return node.op.name if callee is None else str(callee.name)


def _check_entry(entry: Any, user: str) -> None:
    if not isinstance(entry, (np.ndarray, Storage, RecursiveRule)):
        raise SaveError(
            explain(
                f"{user} cannot be saved: its graph holds {entry!r:.60}.",
                cure="pass what it needs of that as numbers and arrays.",
            )
        )


def _rule_attr(value: Any) -> Any:
    """Return an attr of a rule as JSON: a number, a name, or positions."""
    return list(map(_rule_attr, value)) if isinstance(value, tuple) else value


def _short(source: Source) -> str:
    return source.short


def _portable_error(node: Node) -> tuple[str, str]:
    """Return the class by name and the text for an exception that only this program has."""
    error = effects.error_class(node.attrs["error"])
    text = node.attrs["text"]
    if text is None:
        text = ", ".join("{}" for _ in node.operands[2:])
    text = f"{error.__name__}: {text}" if text else error.__name__
    known = effects.error_name(error)
    warn(
        f"{error.__name__}, raised{at(node.source)}, is saved as "
        f"{known if isinstance(known, str) else 'RuntimeError'} with the text {text!r:.60}: files "
        "hold no classes.",
    )
    return (known if isinstance(known, str) else "RuntimeError"), text


class GraphReader:
    """Reads graphs from an archive.

    Args:
        archive: the archive.
        array: reads an array by its member.
        storages: the storages of the variables.
    """

    def __init__(
        self,
        archive: ArchiveReader,
        array: Callable[[Any], np.ndarray],
        storages: Sequence[Storage],
    ) -> None:
        self._array, self._storages = array, storages
        records = archive.manifest.objects("graphs")
        entries = archive.manifest.get("entries", list)
        self._rules: list[tuple[RecursiveRule, Fields]] = []
        table = [self._entry(entry, f"entries[{k}]") for k, entry in enumerate(entries)]
        self.graphs: list[Graph] = []
        named: dict[str, Graph] = {}
        verified: set[Graph] = set()
        for k, record in enumerate(records):
            name = f"g{k}"
            graph = _read_graph(archive, name, table, named, verified)
            _name_values(graph, record)
            named[name] = graph
            self.graphs.append(graph)
        for rule, fields in self._rules:
            self._resolve(rule, fields, named)

    def _entry(self, data: Any, where: str) -> Any:
        tag, contents = tagged(data, where)
        if tag == "array":
            return self._array(contents)
        if tag == "variable":
            return pick(self._storages, contents, where)
        if tag == "rule":
            self._rules.append((RecursiveRule(), Fields(contents, where)))
            return self._rules[-1][0]
        raise LoadError(f"{where}: there are no entries of kind {tag!r:.40}")

    def _resolve(self, rule: RecursiveRule, fields: Fields, named: Mapping[str, Graph]) -> None:
        names = fields.texts("regions")
        if any(name not in named for name in names):
            raise LoadError(f"{fields.where}: {names!r:.60} are not all graphs of the file")
        attrs = {key: _tuples(value) for key, value in fields.get("attrs", dict).items()}
        rule.resolve([named[name] for name in names], attrs)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _read_graph(
    archive: ArchiveReader,
    name: str,
    table: Sequence[Any],
    named: Mapping[str, Graph],
    verified: set[Graph],
) -> Graph:
    """Return a graph that is valid: its types are inferred again."""
    where = f"graphs/{name}.txt"
    try:
        text = archive.read(where).decode("utf-8")
        own_symbols: dict[str, Symbol] = defaultdict(new_symbol)
        graph = parse(text, table=table, named=named, symbol=own_symbols.__getitem__)
        check_graph(graph)
        return verify(graph, verified)
    except LoadError:
        raise
    except (ParseError, UnicodeDecodeError) as error:
        raise LoadError(f"{archive.name}: {where}: {error}") from None
    except WendError as error:
        raise LoadError(f"{archive.name}: {where} is no valid graph: {error}") from None
    except Exception as error:  # noqa: BLE001  # shape rules fail in any way on what no program has
        kind = type(error).__name__
        raise LoadError(f"{archive.name}: {where} is no valid graph: {kind}: {error}") from None


def _name_values(graph: Graph, record: Fields) -> None:
    """Give the values of a graph the names that the manifest says."""
    pairs = record.get("values", list)
    names = dict(pair for pair in pairs if _is_named(pair, record))
    for value, number in value_numbers(graph).items():
        value.name = names.get(number)


def _is_named(pair: Any, record: Fields) -> bool:
    if type(pair) is list and [type(part) for part in pair] == [int, str]:
        return True
    raise LoadError(f"{record.where}: {pair!r:.40} is no value with its name")
