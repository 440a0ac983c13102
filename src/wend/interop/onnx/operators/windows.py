"""Convolutions and pooling: sums and extremes over windows.

A window is visited position by position: for each, a strided part of the padded input holds that
element of all windows at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import wend.numpy as wnp
from wend.base.lazy.dataclass import dataclass
from wend.interop.onnx.operators.operands import known_ints
from wend.numpy.updating import add_at, set_at


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of an input along its spatial axes.

    Attributes:
        kernel: the size of a window.
        strides: the distance of windows.
        dilations: the distance of the elements of a window.
        before: the padding before each axis.
        after: the padding behind it.
        counts: the number of windows.
    """

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    counts: Sequence[int]

    def parts(self, x: Any, fill: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield each position in a window, and that element of all windows."""
        padded = self.padded(x, fill)
        for place in itertools.product(*map(range, self.kernel)):
            index = tuple(
                slice(k * dilation, k * dilation + stride * (count - 1) + 1, stride)
                for k, dilation, stride, count in zip(
                    place, self.dilations, self.strides, self.counts, strict=True
                )
            )
            yield place, padded[(..., *index)]

    def padded(self, x: Any, fill: Any) -> Any:
        """Return the input with enough elements around it for all windows."""
        rank = len(self.kernel)
        widths = [(0, 0)] * (x.ndim - rank)
        for k in range(rank):
            needed = (self.counts[k] - 1) * self.strides[k]
            needed += (self.kernel[k] - 1) * self.dilations[k] + 1
            size = x.shape[x.ndim - rank + k] + self.before[k]
            widths.append((self.before[k], max(self.after[k], needed - size)))
        return wnp.pad(x, widths, constant_values=fill) if np.any(widths) else x


def windows(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: int = 0,
) -> Windows:
    """Return the windows that the attributes of an operator describe."""
    rank = len(kernel)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    sizes = x.shape[x.ndim - rank :]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if auto_pad.startswith("SAME"):
        counts = [-(-size // stride) for size, stride in zip(sizes, strides, strict=True)]
        total = [
            max((count - 1) * stride + extent - size, 0)
            for count, stride, extent, size in zip(counts, strides, extents, sizes, strict=True)
        ]
        is_lower = auto_pad == "SAME_LOWER"
        before = [(t + 1) // 2 if is_lower else t // 2 for t in total]
        after = [t - b for t, b in zip(total, before, strict=True)]
        return Windows(kernel, strides, dilations, before, after, counts)
    pads = pads if pads is not None and auto_pad != "VALID" else [0] * (2 * rank)
    before, after = list(pads[:rank]), list(pads[rank:])
    counts = []
    for k in range(rank):
        room = sizes[k] + before[k] + after[k] - extents[k]
        count = (-(-room // strides[k]) if ceil_mode else room // strides[k]) + 1
        if ceil_mode and (count - 1) * strides[k] >= sizes[k] + before[k]:
            count -= 1  # a window must not begin in the padding
        counts.append(count)
    return Windows(kernel, strides, dilations, before, after, counts)


def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return a convolution, in groups of channels."""
    spatial = windows(x, w.shape[2:], strides, dilations, pads, auto_pad)
    batch, outputs = x.shape[0], w.shape[0]
    weights = w.reshape(group, outputs // group, w.shape[1], *w.shape[2:])
    grouped = x.reshape(batch, group, w.shape[1], *x.shape[2:])
    total: Any = 0
    for place, part in spatial.parts(grouped, 0):
        flat = part.reshape(batch, group, w.shape[1], -1)
        total = total + wnp.matmul(weights[(..., *place)], flat)
    y = total.reshape(batch, outputs, *spatial.counts)
    return y if bias is None else y + bias.reshape(-1, *[1] * len(spatial.counts))


def conv_integer(
    x: Any, w: Any, x_zero_point: Any = None, w_zero_point: Any = None, **attributes: Any
) -> Any:
    """Return a convolution of integers minus their zero points."""
    x = wnp.astype(x, np.int32) - _zero(x_zero_point)
    w = wnp.astype(w, np.int32) - _zero(w_zero_point)
    return wnp.astype(conv(x, w, **attributes), np.int32)


def _zero(point: Any) -> Any:
    return np.int32(0) if point is None else wnp.astype(point, np.int32)


def matmul_integer(a: Any, b: Any, a_zero_point: Any = None, b_zero_point: Any = None) -> Any:
    """Return a product of integers minus their zero points."""

    def shifted(x: Any, point: Any, axis: int) -> Any:
        if point is not None and point.ndim == 1 and point.shape[0] > 1:
            point = wnp.expand_dims(point, axis)
        return wnp.astype(x, np.int32) - _zero(point)

    return wnp.matmul(shifted(a, a_zero_point, 1), shifted(b, b_zero_point, 0))


def conv_transpose(
    x: Any,
    w: Any,
    bias: Any = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return the transpose of a convolution: windows of the result are added up."""
    kernel = w.shape[2:]
    rank = len(kernel)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    extra = output_padding or [0] * rank
    sizes = x.shape[2:]
    full = [
        strides[k] * (sizes[k] - 1) + (kernel[k] - 1) * dilations[k] + 1 + extra[k]
        for k in range(rank)
    ]
    if output_shape is not None or auto_pad.startswith("SAME"):
        shape = output_shape or [size * stride for size, stride in zip(sizes, strides, strict=True)]
        shape = list(shape)[-rank:]
        total = [max(f - s, 0) for f, s in zip(full, shape, strict=True)]
        is_lower = auto_pad == "SAME_LOWER"
        before = [t - t // 2 if is_lower else t // 2 for t in total]
    else:
        pads = pads or [0] * (2 * rank)
        before = list(pads[:rank])
        shape = [full[k] - pads[k] - pads[k + rank] for k in range(rank)]
    batch, channels, outputs = x.shape[0], w.shape[0] // group, w.shape[1]
    grouped = x.reshape(batch, group, channels, -1)
    weights = w.reshape(group, channels, outputs, *kernel)
    result = wnp.zeros(
        (
            batch,
            group,
            outputs,
            *[max(f, s + b) for f, s, b in zip(full, shape, before, strict=True)],
        ),
        x.dtype,
    )
    for place in itertools.product(*map(range, kernel)):
        flat = wnp.matmul(wnp.swapaxes(weights[(..., *place)], 1, 2), grouped)
        part = flat.reshape(batch, group, outputs, *sizes)
        index = tuple(
            slice(k * d, k * d + s * (n - 1) + 1, s)
            for k, d, s, n in zip(place, dilations, strides, sizes, strict=True)
        )
        result = add_at(result, (..., *index), part)
    cut = tuple(slice(b, b + s) for b, s in zip(before, shape, strict=True))
    y = result[(..., *cut)].reshape(batch, group * outputs, *shape)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def max_pool(
    x: Any,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    outputs: int = 1,
) -> Any:
    """Return the maximum of each window, and its position in the flat input."""
    spatial = windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    parts = wnp.stack([part for _, part in spatial.parts(x, lowest)])
    y = wnp.max(parts, axis=0)
    if outputs == 1:
        return y
    rank = len(kernel_shape)
    order = range(rank) if not storage_order else range(rank - 1, -1, -1)
    flat = np.zeros(x.shape[2:], np.int64)
    step = 1
    for axis in reversed(order):
        shape = [1] * rank
        shape[axis] = -1
        flat = flat + step * np.arange(x.shape[2 + axis]).reshape(shape)
        step *= x.shape[2 + axis]
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * rank) * step
    places = np.stack([part for _, part in spatial.parts(planes + flat, 0)])
    best = wnp.expand_dims(wnp.argmax(parts, axis=0), 0)
    return y, wnp.take_along_axis(places, best, axis=0)[0]


def average_pool(
    x: Any,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return the mean of each window; of the elements that are in the input, unless asked."""
    spatial = windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    ones = np.ones((1,) * (x.ndim - len(kernel_shape)) + tuple(x.shape[-len(kernel_shape) :]))
    if count_include_pad:
        rank = len(kernel_shape)
        widths = [(0, 0)] * (ones.ndim - rank) + list(
            zip(spatial.before, spatial.after, strict=True)
        )
        ones = np.pad(ones, widths, constant_values=1)
        inside = Windows(
            spatial.kernel,
            spatial.strides,
            spatial.dilations,
            [0] * rank,
            [0] * rank,
            spatial.counts,
        )
    else:
        inside = spatial
    total: Any = 0
    for _, part in spatial.parts(x, 0):
        total = total + part
    count = sum(part for _, part in inside.parts(ones, 0))
    return (total / count.astype(x.dtype)).astype(x.dtype)


def lp_pool(
    x: Any,
    kernel_shape: Sequence[int],
    p: int = 2,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return the norm of each window."""
    spatial = windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    total: Any = 0
    for _, part in spatial.parts(wnp.abs(x) ** p, 0):
        total = total + part
    return (total ** (1.0 / p)).astype(x.dtype)


def _globally(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator over all spatial axes."""
    return lambda x, **attributes: fun(x, axis=tuple(range(2, x.ndim)), keepdims=True, **attributes)


def _global_lp(x: Any, axis: Any, keepdims: bool, p: int = 2) -> Any:
    return wnp.sum(wnp.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1.0 / p)


def max_unpool(
    x: Any,
    indices: Any,
    output_shape: Any = None,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return an array of zeros with the elements at positions of the flat result."""
    rank = len(kernel_shape)
    strides, pads = strides or [1] * rank, pads or [0] * (2 * rank)
    inferred = [
        (x.shape[2 + k] - 1) * strides[k] - pads[k] - pads[k + rank] + kernel_shape[k]
        for k in range(rank)
    ]
    shape = (*x.shape[:2], *inferred)
    result = wnp.zeros(int(np.prod(shape)), x.dtype)
    result = set_at(result, indices.reshape(-1), x.reshape(-1)).reshape(shape)
    if output_shape is None:
        return result
    sizes = known_ints(output_shape, "the shape of MaxUnpool")
    return wnp.pad(result, [(0, a - b) for a, b in zip(sizes, shape, strict=True)])


def column_to_image(
    x: Any,
    image_shape: Any,
    block_shape: Any,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return images, in which each element is the sum of those of the blocks that have it."""
    image = known_ints(image_shape, "the shape of Col2Im")
    block = known_ints(block_shape, "the block of Col2Im")
    rank = len(image)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads = pads or [0] * (2 * rank)
    sizes = [image[k] + pads[k] + pads[k + rank] for k in range(rank)]
    counts = [(sizes[k] - (block[k] - 1) * dilations[k] - 1) // strides[k] + 1 for k in range(rank)]
    batch, channels = x.shape[0], x.shape[1] // int(np.prod(block))
    columns = x.reshape(batch, channels, *block, *counts)
    result = wnp.zeros((batch, channels, *sizes), x.dtype)
    for place in itertools.product(*map(range, block)):
        index = tuple(
            slice(k * d, k * d + s * (n - 1) + 1, s)
            for k, d, s, n in zip(place, dilations, strides, counts, strict=True)
        )
        part = columns[(slice(None), slice(None), *place)]
        result = add_at(result, (..., *index), part)
    cut = tuple(slice(pads[k], pads[k] + image[k]) for k in range(rank))
    return result[(..., *cut)]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AveragePool": average_pool,
    "Col2Im": column_to_image,
    "Conv": conv,
    "ConvInteger": conv_integer,
    "ConvTranspose": conv_transpose,
    "GlobalAveragePool": _globally(wnp.mean),
    "GlobalLpPool": _globally(_global_lp),
    "GlobalMaxPool": _globally(wnp.max),
    "LpPool": lp_pool,
    "MatMulInteger": matmul_integer,
    "MaxPool": max_pool,
    "MaxUnpool": max_unpool,
}
