"""Random bits: Philox4x64-10, the words of NumPy's generator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import random

# Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), table 2 and section 3.3
_MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_WEYL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ROUNDS = 10


def _high_low(a: Any, b: Any) -> tuple[Any, Any]:
    """Return both words of the product of two words."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half), a * b


def _counters(counter: Any, count: int) -> list[Any]:
    """Return the words of the counters after a first one, with carries."""
    steps = jnp.arange(1, count + 1, dtype=jnp.uint64)
    words = [counter[0] + steps]
    carry = words[0] < steps
    for k in range(1, 4):
        word = counter[k] + carry.astype(jnp.uint64)
        carry = carry & (word == 0)
        words.append(jnp.broadcast_to(word, steps.shape))
    return words


def _philox(key: Any, words: list[Any]) -> list[Any]:
    """Return the words of random numbers, from those of their counters."""

    def next_words(number: Any, words: list[Any]) -> list[Any]:
        key0, key1 = (key[k] + number * weyl for k, weyl in enumerate(_WEYL))
        high0, low0 = _high_low(words[0], _MULTIPLIERS[0])
        high1, low1 = _high_low(words[2], _MULTIPLIERS[1])
        return [high1 ^ words[1] ^ key0, low1, high0 ^ words[3] ^ key1, low0]

    # For CPUs XLA fuses all rounds, and computes each again for every word that needs it: 100,000
    # numbers would take fifty times as long, and a loop that draws seconds to compile.
    if jax.default_backend() == "cpu":
        rounds: list[Any] = jax.lax.fori_loop(np.uint64(0), np.uint64(_ROUNDS), next_words, words)
        return rounds
    for number in range(_ROUNDS):
        words = next_words(jnp.uint64(number), words)
    return words


def _random_bits(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    key, counter, *sizes = operands
    shape = ctx.shape_of(node, sizes, node.attrs["shape"])
    count = math.prod(shape)
    key, counter = jnp.asarray(key, jnp.uint64), jnp.asarray(counter, jnp.uint64)
    words = _philox(key, _counters(counter, -(-count // 4)))
    return jnp.stack(words, axis=-1).reshape(-1)[:count].reshape(shape)


EMITTERS: dict[Op, Emitter] = {random.random_bits: _random_bits}
