"""The primitives `wend_call` and `wend_linear`, with their rules of differentiation and batching.

`wend_call[f]` computes f. `wend_linear[f, wrt]` computes the tangents of f's results, from f's
operands and the tangents of some; it is linear in these, and its transpose is a `wend_call` of f's
vector-Jacobian product. So every order and nesting of JAX's transforms ends in calls of wend. A
derivative call is self-contained: its residuals are the operands (D42).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import config  # to no longer check what varies, as `shard_map(check_vma=False)`
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from wend.interop.flat_function import FlatFunction
from wend.interop.jax.calling import call_from_host, call_in_place, call_on_device

wend_call = Primitive("wend_call")
wend_linear = Primitive("wend_linear")
wend_call.multiple_results = wend_linear.multiple_results = True


# Binding. Inside `shard_map` a value varies over some axes of the mesh: operands vary alike, and
# results as they do.
def bind(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """Bind a primitive to operands that vary over the same axes of a mesh."""
    varying = [_varying(jax.typeof(x)) for x in operands]
    axes = frozenset[Any]().union(*varying)
    alike = [
        jax.lax.pcast(x, tuple(axes - own), to="varying") if axes - own else x
        for x, own in zip(operands, varying, strict=True)
    ]
    return primitive.bind(*alike, **params)


def _varying(aval: Any) -> frozenset[Any]:
    axes: frozenset[Any] = aval.manual_axis_type.varying
    return axes


def _shaped(types: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    model = next((x for x in operands if _varying(x)), None)
    if model is None:
        return [jax.core.ShapedArray(type.shape, type.dtype) for type in types]
    mesh = model.sharding.mesh
    return [
        model.update(
            shape=type.shape,
            dtype=type.dtype,
            weak_type=False,
            sharding=NamedSharding(mesh, PartitionSpec(*(None for _ in type.shape))),
        )
        for type in types
    ]


# Types, execution, lowering
def _type_of_call(*operands: Any, callee: FlatFunction) -> Any:
    return _shaped(callee.result_types, operands)


def _type_of_linear(*operands: Any, callee: FlatFunction, wrt: tuple[int, ...]) -> Any:
    results = callee.result_types
    return _shaped([results[k] for k in callee.differentiable_results], operands)


wend_call.def_abstract_eval(_type_of_call)
wend_linear.def_abstract_eval(_type_of_linear)


def _compute_call(call: Any, *operands: Any, callee: FlatFunction) -> Any:
    return call(callee, operands)


def _compute_linear(call: Any, *operands: Any, callee: FlatFunction, wrt: tuple[int, ...]) -> Any:
    return call(callee.tangents(wrt), operands)


_COMPUTE: dict[Primitive, Callable[..., Any]] = {
    wend_call: _compute_call,
    wend_linear: _compute_linear,
}


def _lower(primitive: Primitive, compute: Callable[..., Any], platform: str | None) -> None:
    """Register the lowering of a primitive, for a platform, or for all others."""
    call = call_from_host if platform is None else call_in_place
    call_rule = mlir.lower_fun(functools.partial(compute, call), multiple_results=True)
    inline_rule = mlir.lower_fun(functools.partial(compute, call_on_device), multiple_results=True)

    def lower(ctx: Any, *operands: Any, callee: FlatFunction, **params: Any) -> Any:
        if callee.backend != "jax":
            return call_rule(ctx, *operands, callee=callee, **params)
        # Loops start from constants, which vary over no axis of a mesh: so nothing does in there
        avals = [jax.core.ShapedArray(x.shape, x.dtype) for x in ctx.avals_in]
        # … and with 64 bits: lowered, too, or functions of JAX in it would have other dtypes
        with config._check_vma(False), jax.enable_x64(True):
            return inline_rule(ctx.replace(avals_in=avals), *operands, callee=callee, **params)

    mlir.register_lowering(primitive, lower, platform=platform)


for _primitive, _compute in _COMPUTE.items():
    for _platform in (None, "cpu"):
        _lower(_primitive, _compute, _platform)


@functools.lru_cache(maxsize=256)
def _jitted(primitive: Any, params: tuple[tuple[str, Any], ...]) -> Any:
    return jax.jit(lambda *operands: primitive.bind(*operands, **dict(params)))


def _run_alone(primitive: Any, *operands: Any, **params: Any) -> Any:
    """Run a primitive outside of `jax.jit`."""
    compute = _COMPUTE[primitive]
    if params["callee"].backend == "jax" and not any(_varying(jax.typeof(x)) for x in operands):
        # The host sees how the run ends, so tapes may grow
        return compute(lambda function, arrays: function.run_on("jax", arrays), *operands, **params)
    return _jitted(primitive, tuple(params.items()))(*operands)


wend_call.def_impl(functools.partial(_run_alone, wend_call))
wend_linear.def_impl(functools.partial(_run_alone, wend_linear))


# Forward mode
def _push_forward(
    function: FlatFunction, primals: Sequence[Any], tangents: Sequence[Any], outputs: Sequence[Any]
) -> list[Any]:
    """Return the tangents of a function's results."""
    wrt = tuple(k for k, t in enumerate(tangents) if not isinstance(t, ad.Zero))
    pushed: list[Any] = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in outputs]
    positions = function.differentiable_results
    if wrt and positions:
        active = [tangents[k] for k in wrt]
        some = bind(wend_linear, *primals, *active, callee=function, wrt=wrt)
        for k, tangent in zip(positions, some, strict=True):
            pushed[k] = tangent
    return pushed


def _jvp_of_call(primals: Any, tangents: Any, *, callee: FlatFunction) -> Any:
    outputs = bind(wend_call, *primals, callee=callee)
    return outputs, _push_forward(callee, primals, tangents, outputs)


def _jvp_of_linear(
    primals: Any, tangents: Any, *, callee: FlatFunction, wrt: tuple[int, ...]
) -> Any:
    outputs = bind(wend_linear, *primals, callee=callee, wrt=wrt)
    return outputs, _push_forward(callee.tangents(wrt), primals, tangents, outputs)


ad.primitive_jvps[wend_call] = _jvp_of_call
ad.primitive_jvps[wend_linear] = _jvp_of_linear


# Reverse mode
def _transpose_linear(
    cts: Sequence[Any], *operands: Any, callee: FlatFunction, wrt: tuple[int, ...]
) -> list[Any]:
    count = len(callee.types)
    seeded = tuple(k for k, ct in enumerate(cts) if not isinstance(ct, ad.Zero))
    if not seeded:
        return [ad.Zero(x.aval) if ad.is_undefined_primal(x) else None for x in operands]
    pulled = bind(
        wend_call,
        *operands[:count],
        *(cts[k] for k in seeded),
        callee=callee.cotangents(wrt, seeded),
    )
    is_linear = [ad.is_undefined_primal(x) for x in operands[count:]]
    return [
        *(None for _ in range(count)),
        *(ct if flag else None for ct, flag in zip(pulled, is_linear, strict=True)),
    ]


ad.primitive_transposes[wend_linear] = _transpose_linear


# Batching
def _size(operands: Sequence[Any], axes: Sequence[Any]) -> int:
    sizes = (jnp.shape(x)[k] for x, k in zip(operands, axes, strict=True) if k is not None)
    return int(next(sizes))


def _batch_call(operands: Any, axes: Any, *, callee: FlatFunction) -> Any:
    size = _size(operands, axes)
    outputs = bind(wend_call, *operands, callee=callee.mapped(tuple(axes), size))
    return outputs, [0] * len(outputs)


def _batch_linear(operands: Any, axes: Any, *, callee: FlatFunction, wrt: tuple[int, ...]) -> Any:
    size, count = _size(operands, axes), len(callee.types)
    operands, axes = list(operands), list(axes)
    for k, tangent in zip(wrt, range(count, len(operands)), strict=True):
        # The tangent of a mapped operand is mapped, over the same axis.
        if axes[k] is None and axes[tangent] is None:
            continue
        for position in (k, tangent):
            operands[position] = _in_front(operands[position], axes[position], size)
            axes[position] = 0
    mapped = callee.mapped(tuple(axes[:count]), size)
    outputs = bind(wend_linear, *operands, callee=mapped, wrt=wrt)
    return outputs, [0] * len(outputs)


def _in_front(x: Any, axis: int | None, size: int) -> Any:
    if axis is None:
        return jnp.broadcast_to(x, (size, *jnp.shape(x)))
    return jnp.moveaxis(x, axis, 0)


batching.primitive_batchers[wend_call] = _batch_call
batching.primitive_batchers[wend_linear] = _batch_linear
