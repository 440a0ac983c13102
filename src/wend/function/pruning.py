"""`ConcreteFunction.prune`: a function between any values of another one's graph."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from wend.base import trees
from wend.base.errors import explain, listed
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
class Part:
    """A part of a function, with what it takes to call it."""

    traced: Traced
    arguments: Arguments
    binding: Binding


def part_between(concrete: ConcreteFunction, feeds: Any, fetches: Any) -> Part:
    """What computes `fetches` from `feeds`; see `ConcreteFunction.prune`."""
    names = ValueNames(concrete)
    each = tuple(feeds) if isinstance(feeds, (list, tuple)) else (feeds,)
    leaves, feed_tree = trees.flatten((each, {}))
    fed = [names.array(leaf) for leaf in leaves]
    if len({*fed}) < len(fed):
        what = f"{names.head}: {listed(map(names.shown, fed))} are fed: one of them twice."
        raise PruneError(explain(what, cure="feed each value once."))
    wanted, _ = trees.flatten(fetches)
    found = [names.target(leaf) for leaf in wanted]
    values = [x for x in found if isinstance(x, Value)]
    assigned = [x for x in found if isinstance(x, Variable)]
    held = [names.assigned_to(variable) for variable in assigned]
    cut = _cut(names, fed, [*values, *held], [x for x in found if isinstance(x, Node)])
    is_value = iter([isinstance(x, Value) or None for x in found])
    traced = Traced(
        cut.graph,
        trees.flatten(trees.tree_map(lambda _: next(is_value), fetches))[1],
        tuple(names.type(value) for value in values),
        tuple(concrete.traced.captured[k] for k in cut.captures),
        cut.has_world,
        stored=tuple(variable.place for variable in assigned),
    )
    parameters = _parameters(each, [names.given.get(value) for value in fed])
    types = tuple(names.type(value) for value in fed)
    places = tuple(range(len(fed)))
    arguments = Arguments(types, feed_tree, places, types, (), tuple(parameters))
    return Part(traced, arguments, Binding(cut.graph.name, _signature(parameters)))


def _cut(
    names: ValueNames, fed: Sequence[Value], wanted: Sequence[Value], effects: Sequence[Node]
) -> Subgraph:
    """The part of the graph.

    Raises:
        PruneError: something that is wanted needs an argument that is not fed.
    """
    needs = [*wanted, *(operand for node in effects for operand in node.operands)]
    missing = missing_params(names.graph, fed, needs)
    if missing:
        lacking = listed(map(names.shown, missing))
        what = f"{names.head}: what is fetched cannot be computed without {lacking}."
        cure = "feed it as well, or a value on the way from it."
        raise PruneError(explain(what, cure=cure))
    return extract_subgraph(names.graph, fed, wanted, effects)


def _parameters(each: Sequence[Any], names: Sequence[str | None]) -> list[str]:
    """Names for the parameters: those of what is fed, where they can be."""
    found: list[str] = []
    rest = iter(names)
    for k, feed in enumerate(each):
        first, *others = [next(rest) for _ in trees.flatten(feed)[0]] or [None]
        is_name = first is not None and first.isidentifier() and not iskeyword(first)
        is_free = is_name and not others and first not in found
        found.append(str(first) if is_free else f"feed{k}")
    return found


def _signature(parameters: Sequence[str]) -> Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD

    def takes(*args: Any, **kwargs: Any) -> None:
        """Stands for a function of these parameters."""

    takes.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in parameters]
    )
    return Signature(takes)
