"""A recorded jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.function.custom_call import CustomCall
from wend.function.custom_leaves import like_out, like_tangents
from wend.function.rule_body import Body, Frame
from wend.function.rule_recording import Rule
from wend.ir.graph import Graph
from wend.ir.types import is_differentiable
from wend.trace.traced import Traced


class JvpRule(Rule):
    """A recorded jvp."""

    def __init__(self, jvp: Callable[..., Any], call: CustomCall, callee: Traced) -> None:
        self.call, self.callee = call, callee
        self.wrt = tuple(k for k, type in enumerate(call.types) if is_differentiable(type.type))
        self.moved: tuple[int, ...] = ()
        count = len(call.types)
        types = [*call.types, *(call.types[k] for k in self.wrt)]
        names = [f"argument {call.path(k)}" for k in range(count)]
        names += [f"the tangent of {call.path(k)}" for k in self.wrt]
        self.jvp = call.trace("_jvp", jvp, types, self._run_jvp, names)
        self.traces = [self.jvp]

    def _run_jvp(self, jvp: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
        """The leaves of out, then those of its tangent that there are."""
        call, count = self.call, len(self.call.types)
        tangents: list[Any] = [None] * count
        for k, tangent in zip(self.wrt, leaves[count:], strict=True):
            tangents[k] = tangent
        result = jvp(
            *call.kept_as_they_are(),
            call.differentiable(leaves[:count]),
            call.differentiable(tangents, others=False),
        )
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise StructureError(
                explain(
                    f"{call.where}: jvp must return a pair (out, tangent_out), it returns "
                    f"{trees.described(result)}.",
                    cure="return (out, tangent_out); (out, None) where nothing moves.",
                )
            )
        outs = like_out(f"{call.where}: jvp", self.callee, result[0])
        moved = like_tangents(f"{call.where}: jvp", self.callee, result[1])
        self.moved = tuple(moved)
        return [*outs, *moved.values()]

    def regions(self, callee: Traced, frame: Frame) -> tuple[list[Graph], dict[str, Any]]:
        """The tangents come behind all that the callee is given."""
        body = Body(self.jvp, frame)
        body.take(len(self.call.types))
        tangents = body.ahead(len(self.wrt))
        body.world()
        body.captured()
        body.b.params += tangents
        results, world = body.run()
        outs = len(callee.result_types)
        jvp = body.b.finish([*results[:outs], *world, *results[outs:]])
        return [jvp], {"wrt": self.wrt, "moved": self.moved}
