"""TensorFlow: `tf.function`, with XLA and without."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.peers.tensorflow_arrays import functions
from bench.workload import VALUE, Program, Refuses, Workload


class TensorFlow(Peer):
    """Python's own control flow, made a graph by AutoGraph."""

    def __init__(self, compiler: str = "") -> None:
        self.xla = compiler == "xla"

    def load(self) -> str:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.tf = tf
        self.library = SimpleNamespace(
            sin=tf.sin,
            exp=tf.exp,
            sqrt=tf.sqrt,
            tanh=tf.tanh,
            sum=tf.reduce_sum,
            maximum=tf.maximum,
            minimum=tf.minimum,
            stop_gradient=tf.stop_gradient,
            **functions(tf),
        )
        return str(tf.__version__)

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        constant, double = self.tf.constant, self.tf.float64
        return tuple(constant(value, getattr(value, "dtype", double)) for value in values)

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        if workload.plain is None:
            return None
        program, tf = workload.plain(self.library), self.tf
        if measure == VALUE:
            value: Program = tf.function(program, jit_compile=self.xla)
            return value

        def value_and_gradient(*arguments: Any) -> Any:
            leaves = [arguments[index] for index in workload.differentiable]
            with tf.GradientTape() as tape:
                tape.watch(leaves)
                value = program(*arguments)
            slopes = tape.gradient(value, leaves)
            return value, [tf.convert_to_tensor(slope) for slope in slopes]

        gradient: Program = tf.function(value_and_gradient, jit_compile=self.xla)
        if self.xla:
            return Refuses("a gradient through a loop without a bound on its trips", gradient)
        return gradient
