"""Functional control flow: `while_loop`, `fori_loop`, `cond`, `switch`; signatures as in `jax.lax`.

Each records one node. Outside a trace they are traced all the same, then run, so that a mistake
in a carry is told before anything runs (D14).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, StructureError, TypeMismatchError, explain, listed
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast, result_dtype, tensor_type
from wend.ir.builder import new_symbol
from wend.ir.dtypes import BOOL, INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Dim, ListType, Shape, Symbol, TensorType, accepts, symbols
from wend.numpy import elementwise as ew
from wend.trace.arguments import LeafType, is_array_leaf, leaf_type
from wend.trace.immediate import run_now
from wend.trace.recording import Recording, current
from wend.trace.tracer import Tracer

CondFun = Callable[[Any], Any]
BodyFun = Callable[[Any], Any]


def while_loop(
    cond_fun: CondFun,
    body_fun: BodyFun,
    init: Any,
    *,
    maximum_iterations: Any = None,
    parallel_iterations: int | None = None,
    shape_invariants: Any = None,
    memory: str | None = None,
    return_trips: bool = False,
    name: str | None = None,
) -> Any:
    """Repeat `carry = body_fun(carry)` while `cond_fun(carry)` holds; one node in the graph.

    It can be differentiated, to any order, however many times it runs.

    Args:
        cond_fun: carry → a bool scalar.
        body_fun: carry → the next carry, of the same structure, dtypes and shapes. Python
            scalars take the dtype of what they meet (`0` may become an f64 array's sum).
        init: the carry to start from, a pytree of arrays and numbers.
        maximum_iterations: stop after so many trips; an integer, plain or traced.
        parallel_iterations: how many trips may be in flight at once, a hint; never changes the
            result.
        shape_invariants: a pytree like `init` of shapes with None for sizes that change from
            trip to trip, or None for a leaf whose shape does not.
        memory: how the backward pass gets its residuals; `"keep"` (the default).
        return_trips: also return the number of trips.
        name: a name for the loop in graphs and messages.

    Returns:
        The last carry, or `(carry, trips)`.

    Raises:
        TypeMismatchError: the predicate is not a bool scalar.
        CarryError: the next carry has another dtype or shape.
        StructureError: the next carry has another structure.

    Example:
        >>> import wend
        >>> wend.while_loop(lambda v: v < 8.0, lambda v: v * v, 2.0)
        np.float64(16.0)
        >>> wend.grad(lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x))(2.0)
        np.float64(32.0)
    """
    _check_functions(cond_fun=cond_fun, body_fun=body_fun)
    if parallel_iterations is not None and (
        not isinstance(parallel_iterations, int) or parallel_iterations < 1
    ):
        raise TypeError(f"parallel_iterations must be a positive int, not {parallel_iterations!r}")
    if memory not in (None, "keep"):
        raise NotImplementedError(f"while_loop(memory={memory!r}) is not built yet")
    where = f"{name or 'while_loop'}{at(user_source())}"
    if maximum_iterations is not None:
        check_integer(maximum_iterations, f"{where}: maximum_iterations")
    if current() is None:
        return run_now(
            lambda carry, limit: while_loop(
                cond_fun,
                body_fun,
                carry,
                maximum_iterations=limit,
                shape_invariants=shape_invariants,
                return_trips=return_trips,
                name=name,
            ),
            init,
            maximum_iterations,
        )
    types = LoopTypes(where, init, is_resizable=True)
    if shape_invariants is not None:
        types.relax(shape_invariants)
    return _Loop(cond_fun, body_fun, types).record(maximum_iterations, return_trips)


def _check_functions(**functions: Any) -> None:
    for role, function in functions.items():
        if not callable(function):
            raise TypeError(f"{role} must be callable, not {function!r}")


class LoopTypes:
    """The carry of a loop: its structure, and the types its leaves settle on.

    Args:
        where: what loop and where, for messages.
        init: the carry to start from.
        paths: names of its leaves, where a counter goes with it.
        is_resizable: whether `shape_invariants` can let its sizes change.
    """

    def __init__(
        self,
        where: str,
        init: Any,
        paths: Sequence[str] | None = None,
        *,
        is_resizable: bool = False,
    ) -> None:
        self.is_resizable = is_resizable
        self.where, self.init = where, init
        self.leaves, self.treedef = trees.flatten(init)
        self.paths = paths or trees.paths(self.treedef, "carry")
        self.has_counter = paths is not None
        self._check_kinds(self.leaves)
        self.types = [leaf_type(leaf) for leaf in self.leaves]
        self.changing: set[Symbol] = set()  # sizes that shape_invariants lets change

    def relax(self, invariants: Any) -> None:
        """Put symbols where `shape_invariants` lets sizes change."""
        shapes = _invariant_shapes(self.where, self.treedef, invariants)
        for k, (shape, path) in enumerate(zip(shapes, self.paths, strict=True)):
            if shape is None:
                continue
            mine = self.types[k].type
            dims = tuple(new_symbol() if dim is None else dim for dim in shape)
            if not accepts(mine.with_shape(dims), mine):
                raise CarryError(f"{self.where}: {path} enters as {mine}, not as {shape}")
            self.changing.update(symbols(mine.with_shape(dims)))
            self.types[k] = LeafType(mine.with_shape(dims), self.types[k].weak)

    def params(self, region: Recording) -> Any:
        """Params of a region for the carry, in its structure."""
        params = [
            region.param(t.type, weak=t.weak, name=path)
            for t, path in zip(self.types, self.paths, strict=True)
        ]
        return trees.unflatten(self.treedef, params)

    def leaves_of(self, result: Any) -> list[Any]:
        """The leaves of what a body returned, which must have the carry's structure."""
        leaves, treedef = trees.flatten(result)
        if treedef != self.treedef:
            expected, found = self.init, result
            if self.has_counter:
                expected, found = expected[1], found[1]
            raise StructureError(
                explain(
                    f"{self.where}: the body returns a carry of another structure.",
                    trees.first_difference(expected, found, "carry"),
                    f"it enters as {trees.described(expected)}, "
                    f"the body returns {trees.described(found)}",
                    cure="return exactly what the loop was given, leaf for leaf.",
                )
            )
        self._check_kinds(leaves)
        return [as_array(leaf) for leaf in leaves]

    def _check_kinds(self, leaves: Sequence[Any]) -> None:
        check_leaves(self.where, leaves, self.paths)

    def settle(self, results: Sequence[Any]) -> bool:
        """Let weak leaves take the strong dtypes they meet (D5); say whether any type changed.

        Raises:
            CarryError: a leaf comes back with another dtype or shape.
        """
        settled = []
        for mine, result, path in zip(self.types, results, self.paths, strict=True):
            theirs = leaf_type(result)
            dtype = result_dtype(_example(mine), _example(theirs)) if mine.weak else mine.type.dtype
            new = LeafType(mine.type.with_dtype(dtype), mine.weak and theirs.weak)
            self._check_leaf(mine, new, theirs, path)
            settled.append(new)
        changed = settled != self.types
        self.types = settled
        return changed

    def _check_leaf(self, old: LeafType, new: LeafType, theirs: LeafType, path: str) -> None:
        what = f"{self.where}: {path} enters as {old.type}, the body returns {theirs.type}."
        if result_dtype(_example(new), _example(theirs)) != new.type.dtype or (
            not theirs.weak and theirs.type.dtype != new.type.dtype
        ):
            cure = (
                f"start it as {theirs.type.dtype}, or cast it back in the body with "
                f".astype({old.type.dtype.name!r})."
            )
            raise CarryError(explain(what, cure=cure))
        # A size that may not change is the same one afterwards, known before the run or not.
        fixed = {s: s for s in symbols(new.type) if s not in self.changing}
        if not accepts(new.type, theirs.type.with_dtype(new.type.dtype), dict[Symbol, Dim](fixed)):
            cure = "return the shape it enters with"
            if self.is_resizable:
                cure += ", or let sizes change with shape_invariants (None for each that does)"
            cure += "."
            raise CarryError(explain(what, cure=cure))

    def start(self, outer: Recording) -> list[Value]:
        """The values to start from, as the types that the carry has settled on."""
        pairs = zip(self.leaves, self.types, strict=True)
        return [outer.lift(cast(leaf, type.type.dtype)) for leaf, type in pairs]

    def rebuild(self, outer: Recording, values: Sequence[Value]) -> Any:
        """The carry after the loop."""
        pairs = zip(values, self.types, strict=True)
        return trees.unflatten(self.treedef, [outer.wrap(v, weak=t.weak) for v, t in pairs])


def _example(type: LeafType) -> Any:
    """Something that promotes as a leaf of this type does."""
    if type.weak:
        return {"b": False, "i": 0, "f": 0.0, "c": 0j}[type.type.dtype.kind]
    return type.type.dtype.type(0)


class _Loop:
    """A `while_loop` that is being recorded."""

    def __init__(self, cond_fun: CondFun, body_fun: BodyFun, types: LoopTypes) -> None:
        self.cond_fun, self.body_fun, self.types = cond_fun, body_fun, types
        self.boxes: list[Tracer] = []

    def record(self, limit: Any, return_trips: bool) -> Any:
        outer = current()
        assert outer is not None
        self.counts = limit is not None or return_trips
        while True:
            before, predicate = self._trace_cond(outer)
            after, results = self._trace_body(outer)
            if not boxes_to_open(self.boxes, before, after) and not self.types.settle(results):
                break
        count = len(self.types.types)
        forwarded = [before.wrap(param) for param in before.b.params[: count + self.counts]]
        with before.active():
            if limit is not None:
                predicate = ew.logical_and(ew.less(forwarded[-1], limit), predicate)
            test = before.lift(predicate if isinstance(predicate, Staged) else np.bool_(predicate))
        with after.active():
            pairs = zip(results, self.types.types, strict=True)
            following = [after.lift(cast(result, t.type.dtype)) for result, t in pairs]
            if self.counts:
                following.append(after.lift(after.wrap(after.b.params[count]) + 1))
        start = self.types.start(outer)
        if self.counts:
            start.append(outer.b.integer(0))
        kept = [test, *(tracer.value for tracer in forwarded)]
        node = join_loop(outer, start, before, kept, after, following, self.boxes)
        carry = self.types.rebuild(outer, node.results[:count])
        return (carry, outer.wrap(node.results[count])) if return_trips else carry

    def _open(self, name: str, role: str, outer: Recording) -> tuple[Recording, Any]:
        """A region with params for the carry, the count of trips and arrays changed in place."""
        where = f"{role} of {self.types.where}"
        region = Recording(name, outer, is_region=True, role=where)
        carry = self.types.params(region)
        if self.counts:
            region.param(_COUNT)
        region.open_for(self.boxes)
        return region, carry

    def _trace_cond(self, outer: Recording) -> tuple[Recording, Any]:
        before, carry = self._open("before", "cond_fun", outer)
        with before.active():
            predicate = self.cond_fun(carry)
            check_predicate(predicate, self.types.where)
        return before, predicate

    def _trace_body(self, outer: Recording) -> tuple[Recording, list[Any]]:
        after, carry = self._open("after", "the body", outer)
        with after.active():
            result = self.body_fun(carry)
        return after, self.types.leaves_of(result)


_COUNT = TensorType(INT64, ())


def join_loop(
    outer: Recording,
    carry: Sequence[Value],
    before: Recording,
    before_results: Sequence[Value],
    after: Recording,
    after_results: Sequence[Value],
    boxes: Sequence[Tracer] = (),
) -> Node:
    """Close the two regions of a loop over the same invariants, and record its node.

    `boxes` are the outer arrays that the loop changes in place; both regions were opened for
    them, after the params of the carry.
    """
    has_world = before.world_param is not None or after.world_param is not None
    inside = [[region.lift(box) for box in boxes] for region in (before, after)]
    start = [outer.lift(box) for box in boxes]
    invariants = list(dict.fromkeys([*before.captured, *after.captured]))
    world = [outer.world()] if has_world else []
    for region in (before, after):
        if has_world:
            region.world()
    before_results = [*before_results, *inside[0]]
    node = outer.b.while_(
        [*carry, *start, *world],
        invariants,
        before.finish_region(before_results, invariants, has_world=has_world),
        after.finish_region([*after_results, *inside[1]], invariants, has_world=has_world),
    )
    if has_world:
        outer.set_world(node.results[-1])
    first = len(before_results) - 1 - len(boxes)
    for box, value in zip(boxes, node.results[first:], strict=False):
        outer.assign(box, value)
    return node


def boxes_to_open(boxes: list[Tracer], *regions: Recording) -> bool:
    """Add outer arrays that regions change in place to `boxes`; say whether any were new."""
    known = {id(box) for box in boxes}
    new = {id(b): b for region in regions for b in region.changed_boxes() if id(b) not in known}
    boxes += new.values()
    return bool(new)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init: Any) -> Any:
    """Repeat `carry = body_fun(i, carry)` for i from `lower` to `upper` − 1; one node.

    Args:
        lower: the first i, an integer, plain or traced.
        upper: where to stop; no more than `lower`: no trip.
        body_fun: (i, carry) → the next carry.
        init: the carry to start from.

    Returns:
        The last carry.

    Example:
        >>> import wend
        >>> wend.fori_loop(0, 3, lambda i, x: x * (i + 1), 2.0)
        np.float64(12.0)
    """
    _check_functions(body_fun=body_fun)
    where = f"fori_loop{at(user_source())}"
    check_integer(lower, f"{where}: lower")
    check_integer(upper, f"{where}: upper")
    if current() is None:
        return run_now(lambda a, b, c: fori_loop(a, b, body_fun, c), lower, upper, init)
    types = LoopTypes(where, (lower, init), _counted_paths(init))
    loop = _Loop(
        lambda state: state[0] < upper,
        lambda state: (state[0] + 1, body_fun(state[0], state[1])),
        types,
    )
    return loop.record(None, return_trips=False)[1]


def _counted_paths(init: Any) -> list[str]:
    """The paths of a carry that a counter goes with, as its owner knows them."""
    return ["the counter", *trees.paths(trees.flatten(init)[1], "carry")]


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Run `true_fun(*operands)` where `pred` holds, else `false_fun(*operands)`; never both.

    Args:
        pred: a bool scalar. A Python bool just runs its branch.
        true_fun: operands → a pytree of arrays.
        false_fun: operands → a pytree of the same structure, dtypes and shapes.
        *operands: pytrees of arrays; the functions may also use outer values directly.

    Raises:
        TypeMismatchError: the predicate is not a bool scalar.
        CarryError: the branches return different dtypes or shapes.
        StructureError: the branches return different structures.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.cond(wnp.float64(4.0) > 1.0, wnp.sqrt, lambda x: 0.0 * x, 4.0)
        np.float64(2.0)
    """
    _check_functions(true_fun=true_fun, false_fun=false_fun)
    if isinstance(pred, bool):
        return (true_fun if pred else false_fun)(*operands)
    check_predicate(pred, f"cond{at(user_source())}")
    if current() is None:
        return run_now(lambda p, xs: cond(p, true_fun, false_fun, *xs), np.bool_(pred), operands)
    roles = ("false_fun", "true_fun")
    return _branch("cond", pred, (false_fun, true_fun), operands, roles)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run `branches[index](*operands)`, and no other branch.

    Args:
        index: an integer scalar; out of range it is clamped, as in JAX. A Python int just runs
            its branch.
        branches: functions of the operands with results of the same structure and types.
        *operands: pytrees of arrays.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.switch(wnp.int64(1), [wnp.exp, wnp.log], 1.0)
        np.float64(0.0)
    """
    if not branches:
        raise ValueError("switch needs at least one branch")
    _check_functions(**{f"branches[{k}]": branch for k, branch in enumerate(branches)})
    last = len(branches) - 1
    if isinstance(index, int) and not isinstance(index, bool):
        return branches[min(max(index, 0), last)](*operands)
    check_integer(index, f"switch{at(user_source())}: the index")
    if current() is None:
        return run_now(lambda i, xs: switch(i, branches, *xs), np.asarray(index)[()], operands)
    clamped = ew.clip(cast(index, INT64), np.int64(0), np.int64(last))
    roles = [f"branches[{k}]" for k in range(len(branches))]
    return _branch("switch", clamped, branches, operands, roles)


def _branch(
    name: str,
    selector: Any,
    branches: Sequence[Callable[..., Any]],
    operands: Sequence[Any],
    roles: Sequence[str],
) -> Any:
    outer = current()
    assert outer is not None
    where = f"{name}{at(user_source())}"
    recordings, results = [], []
    for number, (branch, role) in enumerate(zip(branches, roles, strict=True)):
        role = f"{role} of {where}"
        region = Recording(f"branch{number}", outer, is_region=True, role=role)
        with region.active():
            results.append(branch(*operands))
        recordings.append(region)
    leaves, treedef = _same_structure(where, results, roles)
    types = agree(where, leaves, trees.paths(treedef, "result"), roles)
    values = []
    for region, own in zip(recordings, leaves, strict=True):
        with region.active():
            pairs = zip(own, types, strict=True)
            values.append([region.lift(cast(leaf, type.type.dtype)) for leaf, type in pairs])
    node = join_branches(outer, outer.lift(selector), recordings, values)
    tracers = [
        outer.wrap(value, weak=type.weak) for value, type in zip(node.results, types, strict=False)
    ]
    return trees.unflatten(treedef, tracers)


def join_branches(
    outer: Recording,
    selector: Value,
    regions: Sequence[Recording],
    results: Sequence[Sequence[Value]],
) -> Node:
    """Close branches over the same operands, and record their node."""
    has_world = any(region.world_param is not None for region in regions)
    boxes: list[Tracer] = []
    boxes_to_open(boxes, *regions)
    changed = [[region.lift(box) for box in boxes] for region in regions]
    operands = list(dict.fromkeys(value for region in regions for value in region.captured))
    graphs: list[Graph] = []
    for region, values, inside in zip(regions, results, changed, strict=True):
        if has_world:
            region.world()
        graphs.append(region.finish_region([*values, *inside], operands, has_world=has_world))
    world = [outer.world()] if has_world else []
    node = outer.b.if_(selector, [*world, *operands], graphs)
    if has_world:
        outer.set_world(node.results[-1])
    for box, value in zip(boxes, node.results[len(results[0]) :], strict=False):
        outer.assign(box, value)
    return node


def _same_structure(
    where: str, results: Sequence[Any], roles: Sequence[str]
) -> tuple[list[list[Any]], trees.TreeDef]:
    leaves, treedef = trees.flatten(results[0])
    found = [leaves]
    for role, result in zip(roles[1:], results[1:], strict=True):
        more, other = trees.flatten(result)
        if other != treedef:
            raise StructureError(
                explain(
                    f"{where}: the branches return different structures.",
                    trees.first_difference(results[0], result, "result"),
                    f"{roles[0]} returns {trees.described(results[0])}, "
                    f"{role} returns {trees.described(result)}",
                    cure="return the same structure from every branch.",
                )
            )
        found.append(more)
    paths = trees.paths(treedef, "result")
    for own in found:
        check_leaves(where, own, paths)
    return [[as_array(leaf) for leaf in own] for own in found], treedef


def agree(
    where: str, leaves: Sequence[Sequence[Any]], paths: Sequence[str], roles: Sequence[str]
) -> list[LeafType]:
    """The common type of each result; weak ones take the strong dtype of the others (D5)."""
    agreed = []
    for path, options in zip(paths, zip(*leaves, strict=True), strict=True):
        types = [leaf_type(option) for option in options]
        dtype = result_dtype(*options)
        weak = all(type.weak for type in types)
        strong = [type for type in types if not type.weak]
        if not _may_be_equal([type.type.shape for type in types]) or any(
            type.type.dtype != dtype for type in strong
        ):
            pairs = zip(roles, types, strict=True)
            found = listed(f"{type.type} from {role}" for role, type in pairs)
            raise CarryError(
                explain(
                    f"{where}: the branches return different types: {path} is {found}.",
                    cure="return the same dtype and shape from every branch.",
                )
            )
        agreed.append(LeafType(types[0].type.with_dtype(dtype), weak))
    return agreed


def _may_be_equal(shapes: Sequence[Shape | None]) -> bool:
    """Whether no two shapes are known to differ: sizes of the run may turn out to be equal."""
    known = [shape for shape in shapes if shape is not None]
    if len({len(shape) for shape in known}) > 1:
        return False
    columns = zip(*known, strict=True)
    return all(len({dim for dim in column if isinstance(dim, int)}) < 2 for column in columns)


def check_leaves(where: str, leaves: Sequence[Any], paths: Sequence[str]) -> None:
    """Every leaf is an array or a number."""
    for leaf, path in zip(leaves, paths, strict=True):
        if isinstance(leaf, Tracer) and isinstance(leaf.value.type, ListType):
            raise TypeMismatchError(
                explain(
                    f"{where}: {path.partition('[<')[0]} is a list that grows in a loop or branch.",
                    cure="hand on an array of its items: wnp.stack(out).",
                )
            )
        if not is_array_leaf(leaf):
            raise TypeMismatchError(
                f"{where}: {path} must be an array or a number, not {type(leaf).__name__}"
            )


def check_integer(x: Any, what: str) -> None:
    """A bound, a limit or an index is an integer scalar."""
    if not is_array_leaf(x):
        raise TypeMismatchError(f"{what} must be an integer scalar, not {x!r:.60}")
    type = tensor_type(x)
    if type.dtype.kind not in "iu" or type.shape != ():
        raise TypeMismatchError(f"{what} must be an integer scalar, not {type}")


def check_predicate(predicate: Any, where: str) -> None:
    """A predicate is a bool scalar."""
    if not is_array_leaf(predicate):
        raise TypeMismatchError(f"{where}: the predicate must be a bool scalar, not {predicate!r}")
    type = tensor_type(predicate)
    if type.dtype != BOOL:
        raise TypeMismatchError(
            explain(
                f"{where}: the predicate must be a bool scalar, not {type}.",
                cure="compare it, for example with != 0.",
            )
        )
    if type.shape != ():
        raise TypeMismatchError(
            explain(
                f"{where}: the predicate must be a bool scalar, not {type}.",
                cure="reduce it with .all() or .any(), or .item() for one element.",
            )
        )


def _invariant_shapes(where: str, treedef: trees.TreeDef, invariants: Any) -> list[Any]:
    try:
        found = trees.flatten_up_to(treedef, invariants)
    except ValueError as error:
        raise StructureError(f"{where}: shape_invariants must be like init: {error}") from error
    return [getattr(shape, "shape", shape) for shape in found]
