"""Reductions, extremes, cumulative sums, softmax, norms and losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import wend.numpy as wnp
from wend.interop.onnx.operators.operands import axes_of, known_ints


def reduction(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operator of a reduction `fun(x, axis, keepdims)`."""

    def reduce(
        x: Any,
        operand: Any = None,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Any:
        chosen = axes_of(axes, operand, x.ndim)
        if not chosen and noop_with_empty_axes:
            return fun(x, (), True)
        chosen = chosen or None
        return wnp.asarray(fun(x, chosen, bool(keepdims)), x.dtype)

    return reduce


def _mean(x: Any, axis: Any, keepdims: bool) -> Any:
    return wnp.mean(x, axis=axis, keepdims=keepdims).astype(x.dtype)


def _log_sum_exp(x: Any, axis: Any, keepdims: bool) -> Any:
    return wnp.logsumexp(x, axis=axis, keepdims=keepdims)


def _extreme(fun: Callable[..., Any], smallest: bool) -> Callable[..., Any]:
    """Return a maximum or minimum that is defined of no elements, too."""

    def extreme(x: Any, axis: Any, keepdims: bool) -> Any:
        if 0 not in x.shape:
            return fun(x, axis=axis, keepdims=keepdims)
        kind = x.dtype.kind
        if kind == "f":
            limit: Any = -np.inf if smallest else np.inf
        elif kind == "b":
            limit = not smallest
        else:
            limit = np.iinfo(x.dtype).min if smallest else np.iinfo(x.dtype).max
        zeros: Any = np.zeros(x.shape)  # `sum` has no overload for any bool
        shape = zeros.sum(axis=axis, keepdims=keepdims).shape
        return wnp.full(shape, limit, x.dtype)

    return extreme


def _sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return wnp.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def argument(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operator of the position of an extreme."""

    def position(x: Any, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        if not select_last_index:
            return wnp.astype(fun(x, axis=axis, keepdims=bool(keepdims)), np.int64)
        last = fun(wnp.flip(x, axis), axis=axis, keepdims=bool(keepdims))
        return wnp.astype(x.shape[axis] - 1 - last, np.int64)

    return position


def cumulative(fun: Callable[..., Any], identity: int) -> Callable[..., Any]:
    """Return the operator of a cumulative sum or product."""

    def accumulate(x: Any, axis: Any, exclusive: int = 0, reverse: int = 0) -> Any:
        (along,) = known_ints(axis, "the axis of a cumulative sum")
        x = wnp.flip(x, along) if reverse else x
        if exclusive:
            x = wnp.moveaxis(x, along, 0)
            first = wnp.full((1, *x.shape[1:]), identity, x.dtype)
            x = wnp.moveaxis(wnp.concatenate([first, x[:-1]]), 0, along)
        y = fun(x, axis=along).astype(x.dtype)
        return wnp.flip(y, along) if reverse else y

    return accumulate


def _flattened(fun: Callable[[Any, int], Any]) -> Callable[..., Any]:
    """Return an operator along an axis; before version 13, along it and all axes after it."""

    def along(x: Any, axis: int | None = None, opset: int = 13) -> Any:
        if opset >= 13:
            return fun(x, -1 if axis is None else axis)
        axis = 1 if axis is None else axis % x.ndim
        size = int(np.prod(x.shape[:axis]))
        return fun(x.reshape(size, -1), 1).reshape(x.shape)

    return along


def softmax(x: Any, axis: int) -> Any:
    """Return exponentials divided by their sum."""
    e = wnp.exp(x - wnp.max(x, axis=axis, keepdims=True))
    return e / wnp.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int) -> Any:
    """Return the logarithm of `softmax`."""
    shifted = x - wnp.max(x, axis=axis, keepdims=True)
    return shifted - wnp.log(wnp.sum(wnp.exp(shifted), axis=axis, keepdims=True))


def hardmax(x: Any, axis: int) -> Any:
    """Return one at the first maximum, zero elsewhere."""
    first = wnp.argmax(x, axis=axis, keepdims=True)
    shape = [1] * x.ndim
    shape[axis] = -1
    return (wnp.arange(x.shape[axis]).reshape(shape) == first).astype(x.dtype)


def lp_normalization(x: Any, axis: int = -1, p: int = 2) -> Any:
    """Return an array divided by its norm along an axis; 0 where that is 0."""
    size = wnp.sum(wnp.abs(x) ** p, axis=axis, keepdims=True) ** (1.0 / p)
    return wnp.where(size == 0, wnp.zeros_like(x), x / wnp.where(size == 0, 1, size)).astype(
        x.dtype
    )


def negative_log_likelihood(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Any:
    """Return minus the entries of `x` at the classes of the target, weighted."""
    classes = target if ignore_index is None else wnp.where(target == ignore_index, 0, target)
    chosen = wnp.take_along_axis(x, wnp.expand_dims(classes, 1).astype(np.int64), axis=1)
    loss = -wnp.squeeze(chosen, 1)
    weights = wnp.ones(target.shape, x.dtype) if weight is None else weight[classes]
    if ignore_index is not None:
        weights = wnp.where(target == ignore_index, 0, weights).astype(x.dtype)
    loss = loss * weights
    if reduction == "none":
        return loss
    return wnp.sum(loss) / wnp.sum(weights) if reduction == "mean" else wnp.sum(loss)


def softmax_cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    outputs: int = 1,
) -> Any:
    """Return the loss of `log_softmax`, and that itself if asked."""
    log = log_softmax(x, 1)
    loss = negative_log_likelihood(log, target, weight, ignore_index, reduction)
    return (loss, log) if outputs > 1 else loss


def batch_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
    outputs: int = 1,
) -> Any:
    """Return a normalized array; in training, with statistics of the batch, and new means."""
    shape = (-1, *[1] * (x.ndim - 2))
    used_mean, used_variance = mean, variance
    if training_mode:
        axes = (0, *range(2, x.ndim))
        used_mean, used_variance = wnp.mean(x, axis=axes), wnp.var(x, axis=axes)
    centered = x - used_mean.reshape(shape)
    y = centered / wnp.sqrt(used_variance.reshape(shape) + epsilon)
    y = (y * scale.reshape(shape) + bias.reshape(shape)).astype(x.dtype)
    if not training_mode or outputs == 1:
        return y
    new_mean = mean * momentum + used_mean * (1 - momentum)
    new_variance = variance * momentum + used_variance * (1 - momentum)
    return y, new_mean.astype(mean.dtype), new_variance.astype(variance.dtype)


def instance_normalization(x: Any, scale: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    """Return an array normalized over its spatial axes."""
    axes, shape = tuple(range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    mean, variance = wnp.mean(x, axis=axes, keepdims=True), wnp.var(x, axis=axes, keepdims=True)
    return (x - mean) / wnp.sqrt(variance + epsilon) * scale.reshape(shape) + bias.reshape(shape)


def layer_normalization(
    x: Any,
    scale: Any,
    bias: Any = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> Any:
    """Return an array normalized over its last axes, the mean, and the inverse deviation."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean, variance = wnp.mean(x, axis=axes, keepdims=True), wnp.var(x, axis=axes, keepdims=True)
    inverse = 1 / wnp.sqrt(variance + epsilon)
    y = (x - mean) * inverse * scale
    y = y if bias is None else y + bias
    return (y.astype(x.dtype), mean, inverse)[:outputs] if outputs > 1 else y.astype(x.dtype)


def rms_normalization(
    x: Any, scale: Any, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    """Return an array divided by its root mean square over the last axes."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    square = wnp.mean(x * x, axis=axes, keepdims=True)
    return (x / wnp.sqrt(square + epsilon) * scale).astype(x.dtype)


def group_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    opset: int = 21,
) -> Any:
    """Return an array normalized in groups of channels."""
    grouped = x.reshape(x.shape[0], num_groups, -1)
    mean = wnp.mean(grouped, axis=2, keepdims=True)
    variance = wnp.var(grouped, axis=2, keepdims=True)
    y = (grouped - mean) / wnp.sqrt(variance + epsilon)
    if opset < 21:
        y = y.reshape(x.shape[0], num_groups, -1) * scale.reshape(1, -1, 1)
        return (y + bias.reshape(1, -1, 1)).reshape(x.shape)
    shape = (-1, *[1] * (x.ndim - 2))
    return y.reshape(x.shape) * scale.reshape(shape) + bias.reshape(shape)


def mean_variance_normalization(x: Any, axes: Sequence[int] = (0, 2, 3)) -> Any:
    """Return an array of mean 0 and variance 1 over some axes."""
    axis = tuple(axes)
    mean = wnp.mean(x, axis=axis, keepdims=True)
    return (x - mean) / (wnp.std(x, axis=axis, keepdims=True) + 1e-9)


def local_response_normalization(
    x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Any:
    """Return an array divided by a power of sums over near channels."""
    before = (size - 1) // 2
    width = [(0, 0)] * x.ndim
    width[1] = (before, size - 1 - before)
    squares = wnp.pad(x * x, width)
    total = sum(squares[:, k : k + x.shape[1]] for k in range(size))
    return x / (bias + alpha / size * total) ** beta


def det(x: Any) -> Any:
    """Return determinants."""
    return wnp.linalg.det(x)


def top_k(x: Any, k: Any, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Any, Any]:
    """Return the largest or smallest elements along an axis, in order, and their positions."""
    (count,) = known_ints(k, "k of TopK")
    axis = axis % x.ndim
    if largest:  # of equal elements, those of lower positions come first
        turned = wnp.argsort(wnp.flip(x, axis), axis=axis, stable=True)
        order = wnp.flip(x.shape[axis] - 1 - turned, axis)
    else:
        order = wnp.argsort(x, axis=axis, stable=True)
    chosen = order[(slice(None),) * axis + (slice(0, count),)].astype(np.int64)
    return wnp.take_along_axis(x, chosen, axis=axis), chosen


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ArgMax": argument(wnp.argmax),
    "ArgMin": argument(wnp.argmin),
    "BatchNormalization": batch_normalization,
    "CumProd": cumulative(wnp.cumprod, 1),
    "CumSum": cumulative(wnp.cumsum, 0),
    "Det": det,
    "GroupNormalization": group_normalization,
    "Hardmax": _flattened(hardmax),
    "InstanceNormalization": instance_normalization,
    "LRN": local_response_normalization,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": _flattened(log_softmax),
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance_normalization,
    "NegativeLogLikelihoodLoss": negative_log_likelihood,
    "RMSNormalization": rms_normalization,
    "ReduceL1": reduction(lambda x, axis, keepdims: _sum(wnp.abs(x), axis, keepdims)),
    "ReduceL2": reduction(lambda x, axis, keepdims: wnp.sqrt(_sum(x * x, axis, keepdims))),
    "ReduceLogSum": reduction(lambda x, axis, keepdims: wnp.log(_sum(x, axis, keepdims))),
    "ReduceLogSumExp": reduction(_log_sum_exp),
    "ReduceMax": reduction(_extreme(wnp.max, smallest=True)),
    "ReduceMean": reduction(_mean),
    "ReduceMin": reduction(_extreme(wnp.min, smallest=False)),
    "ReduceProd": reduction(
        lambda x, axis, keepdims: wnp.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    ),
    "ReduceSum": reduction(_sum),
    "ReduceSumSquare": reduction(lambda x, axis, keepdims: _sum(x * x, axis, keepdims)),
    "Softmax": _flattened(softmax),
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy,
    "TopK": top_k,
}
