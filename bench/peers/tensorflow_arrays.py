"""TensorFlow's functions over arrays, by the names that NumPy has for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bench.peers.arrays import places


def functions(tf: Any) -> dict[str, Any]:
    """Return what programs over arrays are written with."""

    def lower(entries: Any, size: int) -> Any:
        before = tf.zeros((entries.shape[0], 1), entries.dtype)
        return tf.gather(tf.concat([before, entries], 1), places(size), axis=1)

    arrays = SimpleNamespace(
        **{name: getattr(tf, name) for name in ("exp", "sqrt", "sin", "cos", "tanh", "abs")},
        **{name: getattr(tf, name) for name in ("einsum", "zeros_like")},
        log=tf.math.log,
        diag=tf.linalg.diag,
        arange=lambda count: tf.range(count, dtype=tf.int64),
        argmin=tf.argmin,
        sum=tf.reduce_sum,
        mean=tf.reduce_mean,
        max=tf.reduce_max,
    )
    return {
        "np": arrays,
        "helper": lambda function: function,
        "sigmoid": tf.sigmoid,
        "rows": lambda x: x.shape[0],
        "range": tf.range,
        "take": tf.gather,
        "solve": lambda a, b: tf.linalg.solve(a, b[:, None])[:, 0],
        "numbers": lambda x: tf.cast(x, tf.float64),
        "lower": lower,
    }
