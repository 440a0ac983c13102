"""`ConcreteFunction.prune`: functions between any values of another one's graph."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from wend.base import trees
from wend.base.errors import explain, listed
from wend.base.lazy.dataclass import dataclass
from wend.function.signature.binding import Binding
from wend.function.signature.signature import Arguments, Signature
from wend.function.value_names import PruneError, ValueNames
from wend.ir.graph import Node, Value
from wend.passes.extract_subgraph import Subgraph, extract_subgraph, missing_params
from wend.trace.state.variable import Variable
from wend.trace.traced import Traced

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction


@dataclass(frozen=True, slots=True)
class PrunedPart:
    """A part of a function, with its calling convention."""

    traced: Traced
    arguments: Arguments
    binding: Binding


def prune_graph(concrete: ConcreteFunction, feeds: Any, fetches: Any) -> PrunedPart:
    """Return the part that computes `fetches` from `feeds`; see `ConcreteFunction.prune`."""
    names = ValueNames(concrete)
    feed_arguments = tuple(feeds) if isinstance(feeds, (list, tuple)) else (feeds,)
    leaves, feed_tree = trees.flatten_deep((feed_arguments, {}))
    fed = [names.feed(leaf) for leaf in leaves]
    if len({*fed}) < len(fed):
        what = f"{names.head}: {listed(map(names.described, fed))} are fed: one of them twice."
        raise PruneError(explain(what, cure="feed each value once."))
    fetch_leaves, _ = trees.flatten_deep(fetches)
    fetched = [names.fetch(leaf) for leaf in fetch_leaves]
    values = [x for x in fetched if isinstance(x, Value)]
    assigned = [x for x in fetched if isinstance(x, Variable)]
    stored = [names.stored_value(variable) for variable in assigned]
    subgraph = _extract(names, fed, [*values, *stored], [x for x in fetched if isinstance(x, Node)])
    is_value = iter([isinstance(x, Value) or None for x in fetched])
    traced = Traced(
        subgraph.graph,
        trees.flatten_deep(trees.map_deep(lambda _: next(is_value), fetches))[1],
        tuple(names.type(value) for value in values),
        tuple(concrete.traced.captured[k] for k in subgraph.captures),
        subgraph.has_world,
        stored=tuple(variable.storage for variable in assigned),
    )
    parameters = _parameter_names(feed_arguments, [names.user_names.get(value) for value in fed])
    types = tuple(names.type(value) for value in fed)
    arguments = Arguments(types, feed_tree, tuple(range(len(fed))), types, (), tuple(parameters))
    return PrunedPart(traced, arguments, Binding(subgraph.graph.name, _signature(parameters)))


def _extract(
    names: ValueNames, fed: Sequence[Value], fetched: Sequence[Value], effects: Sequence[Node]
) -> Subgraph:
    """Extract the subgraph; refuse fetched values that need an argument that is not fed."""
    needs = [*fetched, *(operand for node in effects for operand in node.operands)]
    missing = missing_params(names.graph, fed, needs)
    if missing:
        lacking = listed(map(names.described, missing))
        what = f"{names.head}: what is fetched cannot be computed without {lacking}."
        cure = "feed it as well, or a value computed from it."
        raise PruneError(explain(what, cure=cure))
    return extract_subgraph(names.graph, fed, fetched, effects)


def _parameter_names(feed_arguments: Sequence[Any], names: Sequence[str | None]) -> list[str]:
    """Return the names of the parameters: those of the fed values if they are usable."""
    parameters: list[str] = []
    remaining = iter(names)
    for k, feed in enumerate(feed_arguments):
        first, *further_names = [next(remaining) for _ in trees.flatten_deep(feed)[0]] or [None]
        is_name = first is not None and first.isidentifier() and not iskeyword(first)
        is_usable = is_name and not further_names and first not in parameters
        parameters.append(str(first) if is_usable else f"feed{k}")
    return parameters


def _signature(parameters: Sequence[str]) -> Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD

    def placeholder(*args: Any, **kwargs: Any) -> None:
        """Stand in for a function with these parameters."""

    placeholder.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in parameters]
    )
    return Signature(placeholder)
