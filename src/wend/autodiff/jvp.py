"""Forward mode on whole graphs: values and tangents in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wend.autodiff.jvp_custom import Moved, push_custom_jvp, push_custom_vjp
from wend.autodiff.jvp_if import push_call, push_graph, push_if
from wend.autodiff.jvp_interpreter import (
    Ahead,
    Pushed,
    Pusher,
    Tangent,
)
from wend.autodiff.jvp_while import push_while
from wend.autodiff.rule_hosting import push_host
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import call, if_, while_
from wend.ops.custom import custom_jvp, custom_vjp, custom_vjp_forward
from wend.ops.hosting import FORWARD
from wend.passes.dedup_callees import share_callees


def _push_custom_jvp(p: Pusher, b: Build, node: Node, tangents: Sequence[Tangent]) -> Pushed:
    return Pushed(*push_custom_jvp(b, node, tangents))


def _push_custom_vjp(p: Pusher, b: Build, node: Node, tangents: Sequence[Tangent]) -> Pushed:
    def push(to: Build, graph: Graph, operands: Sequence[Value], moved: Sequence[Tangent]) -> Moved:
        pushed = push_graph(p, to, graph, operands, moved)
        return pushed.results, pushed.tangents

    return Pushed(*push_custom_vjp(push, b, node, tangents))


def _push_host(p: Pusher, b: Build, node: Node, tangents: Sequence[Tangent]) -> Pushed:
    return Pushed(*push_host(b, node, tangents))


_pusher = Pusher(
    {
        while_: push_while,
        if_: push_if,
        call: push_call,
        custom_jvp: _push_custom_jvp,
        custom_vjp: _push_custom_vjp,
        custom_vjp_forward: _push_custom_vjp,
        **dict.fromkeys(FORWARD, _push_host),
    }
)


class JVP(NamedTuple):
    """A function with its tangents.

    Attributes:
        graph: (params…, tangents of the params that move…) → (results…, tangents of the connected
            results…).
        connected: for each result, whether it has a tangent; the others do not move, whatever the
            tangents given.
    """

    graph: Graph
    connected: tuple[bool, ...]


def jvp(graph: Graph, wrt: Sequence[int]) -> JVP:
    """Differentiate a graph forward.

    Args:
        graph: what to differentiate; it is not changed.
        wrt: positions of the params whose tangents will be given, in rising order.
    """
    ahead = Ahead(Build(f"{graph.name}_jvp"))
    ahead.open(graph.params, [i in set(wrt) for i in range(len(graph.params))])
    _pusher.push(ahead, graph.nodes)
    tangents = [ahead.tangent(result) for result in graph.results]
    found = [tangent for tangent in tangents if not isinstance(tangent, Zero)]
    values = [ahead.values[result] for result in graph.results]
    connected = tuple(tangent is not ZERO for tangent in tangents)
    return JVP(share_callees(ahead.b.finish([*values, *found])), connected)
