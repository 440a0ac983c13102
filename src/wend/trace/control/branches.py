"""`cond` and `switch`; signatures as in `jax.lax`.

Each records one node. Outside a trace they are traced as well, then run (D14).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, StructureError, explain, listed
from wend.base.source import at, user_source
from wend.eager.promotion import as_array, cast, result_dtype, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.ir.types import Shape
from wend.numpy import elementwise as ew
from wend.trace.aliasing.may_alias import record_merge
from wend.trace.immediate import run_now
from wend.trace.recording.arguments import (
    LeafType,
    common_value,
    is_array_leaf,
    leaf_type_with_flags,
)
from wend.trace.recording.checks import (
    check_functions,
    check_integer,
    check_leaves,
    check_predicate,
)
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import join_branches
from wend.trace.recording.run_errors import refuse_escaping_errors


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Run `true_fun(*operands)` if `pred` holds, otherwise `false_fun(*operands)`; never both.

    Args:
        pred: a scalar; a number other than 0 holds. A Python bool or number calls its branch
            directly.
        true_fun: operands → a pytree of arrays.
        false_fun: operands → a pytree of the same structure, dtypes and shapes.
        *operands: pytrees of arrays; the functions may also use outer values directly.

    Raises:
        TypeMismatchError: the predicate is not a scalar.
        CarryError: the branches return different dtypes or shapes.
        StructureError: the branches return different structures.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.cond(wnp.float64(4.0) > 1.0, wnp.sqrt, lambda x: 0.0 * x, 4.0)
        np.float64(2.0)
    """
    check_functions(true_fun=true_fun, false_fun=false_fun)
    if isinstance(pred, (bool, int, float, complex)) and not isinstance(pred, np.generic):
        return (true_fun if pred else false_fun)(*operands)
    if is_array_leaf(pred) and tensor_type(pred).dtype != BOOL:
        pred = ew.not_equal(pred, 0)
    check_predicate(pred, f"cond{at(user_source())}")
    if current() is None:
        return run_now(lambda p, xs: cond(p, true_fun, false_fun, *xs), np.bool_(pred), operands)
    roles = ("false_fun", "true_fun")
    return _branch("cond", pred, (false_fun, true_fun), operands, roles)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run `branches[index](*operands)`, and no other branch.

    Args:
        index: an integer scalar, clamped to the range of branches as in JAX. A Python int calls its
            branch directly.
        branches: functions of the operands with results of the same structure and types.
        *operands: pytrees of arrays.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.switch(wnp.int64(1), [wnp.exp, wnp.log], 1.0)
        np.float64(0.0)
    """
    if not branches:
        raise ValueError("switch needs at least one branch")
    check_functions(**{f"branches[{k}]": branch for k, branch in enumerate(branches)})
    last = len(branches) - 1
    if isinstance(index, int) and not isinstance(index, bool):
        return branches[min(max(index, 0), last)](*operands)
    check_integer(index, f"switch{at(user_source())}: the index")
    if current() is None:
        return run_now(lambda i, xs: switch(i, branches, *xs), np.asarray(index)[()], operands)
    if tensor_type(index).dtype == np.uint64:  # of which a half is negative in 64 bits
        index = ew.minimum(index, np.uint64(last))
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
        with region.active(), refuse_escaping_errors(where):
            results.append(branch(*operands))
        recordings.append(region)
    leaves, treedef = _same_structure(where, recordings, results, roles)
    types = unify_results(where, leaves, trees.paths(treedef, "result"), roles)
    values = []
    for region, branch_leaves in zip(recordings, leaves, strict=True):
        with region.active():
            pairs = zip(branch_leaves, types, strict=True)
            values.append([region.lift(cast(leaf, type.type.dtype)) for leaf, type in pairs])
    node = join_branches(outer, outer.lift(selector), recordings, values)
    tracers = [outer.wrap_as(value, type) for value, type in zip(node.results, types, strict=False)]
    record_merge(tracers, leaves, outer)
    return trees.unflatten(treedef, tracers)


def _same_structure(
    where: str, regions: Sequence[Recording], results: Sequence[Any], roles: Sequence[str]
) -> tuple[list[list[Any]], trees.TreeDef]:
    leaves, treedef = trees.flatten_deep(results[0])
    leaf_rows = [leaves]
    for role, result in zip(roles[1:], results[1:], strict=True):
        branch_leaves, branch_treedef = trees.flatten_deep(result)
        if not trees.is_same_structure(branch_treedef, treedef):
            raise StructureError(
                explain(
                    f"{where}: the branches return different structures.",
                    trees.first_difference(results[0], result, "result"),
                    f"{roles[0]} returns {trees.described(results[0])}, "
                    f"{role} returns {trees.described(result)}",
                    cure="return the same structure from every branch.",
                )
            )
        leaf_rows.append(branch_leaves)
    paths = trees.paths(treedef, "result")
    for row in leaf_rows:
        check_leaves(where, row, paths)
    arrays = []
    for region, row in zip(regions, leaf_rows, strict=True):
        with region.active():  # reads a variable as of the end of the branch
            arrays.append([as_array(leaf) for leaf in row])
    return arrays, treedef


def unify_results(
    where: str, leaves: Sequence[Sequence[Any]], paths: Sequence[str], roles: Sequence[str]
) -> list[LeafType]:
    """Return the common type of each result; weak ones take the strong dtype of the others (D5)."""
    unified = []
    for path, options in zip(paths, zip(*leaves, strict=True), strict=True):
        types = [leaf_type_with_flags(option) for option in options]
        dtype = result_dtype(*options)
        weak = all(type.weak for type in types)
        strong = [type for type in types if not type.weak]
        if not _may_be_equal([type.type.shape for type in types]) or any(
            type.type.dtype != dtype for type in strong
        ):
            pairs = zip(roles, types, strict=True)
            types_text = listed(f"{type.type} from {role}" for role, type in pairs)
            raise CarryError(
                explain(
                    f"{where}: the branches return different types: {path} is {types_text}.",
                    cure="return the same dtype and shape from every branch.",
                )
            )
        zero_dim = common_value(type.zero_dim for type in types)
        writeable = common_value(type.writeable for type in types)
        type = types[0].type.with_dtype(dtype)
        unified.append(LeafType(type, weak, zero_dim=zero_dim, writeable=writeable))
    return unified


def _may_be_equal(shapes: Sequence[Shape | None]) -> bool:
    """Return whether no two shapes are known to differ; symbolic sizes may be equal at run time."""
    known = [shape for shape in shapes if shape is not None]
    if len({len(shape) for shape in known}) > 1:
        return False
    columns = zip(*known, strict=True)
    return all(len({dim for dim in column if isinstance(dim, int)}) < 2 for column in columns)
