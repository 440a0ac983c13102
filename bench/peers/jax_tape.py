"""Reverse mode through `jax.lax.while_loop`, as a careful user writes it by hand.

The forward loop stores each trip's carry in arrays made for `limit` trips; the backward loop takes
them from the last to the first and pulls back through the body, which it computes again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def while_loop(cond: Any, body: Any, carry: Any, limit: int) -> Any:
    """`body` while `cond`, at most `limit` times; differentiable in all that `body` reads."""
    converted, read = jax.closure_convert(lambda *c: tuple(body(*c)), *carry)
    return _loop(cond, converted, limit, carry, tuple(read))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _loop(cond: Any, body: Any, limit: int, carry: Any, read: Any) -> Any:
    return lax.while_loop(lambda c: cond(*c), lambda c: body(*c, *read), carry)


def _forward(cond: Any, body: Any, limit: int, carry: Any, read: Any) -> Any:
    tapes = tuple(jnp.zeros((limit, *jnp.shape(c)), jnp.result_type(c)) for c in carry)

    def step(state: Any) -> Any:
        carry, tapes, trips = state
        tapes = tuple(tape.at[trips].set(c) for tape, c in zip(tapes, carry, strict=True))
        return body(*carry, *read), tapes, trips + 1

    end, tapes, trips = lax.while_loop(lambda s: cond(*s[0]), step, (carry, tapes, 0))
    return end, (tapes, trips, read)


def _backward(cond: Any, body: Any, limit: int, residuals: Any, cotangents: Any) -> Any:
    tapes, trips, read = residuals

    def step(state: Any) -> Any:
        trip, cts, read_cts = state
        carry = tuple(tape[trip - 1] for tape in tapes)
        _, pull = jax.vjp(lambda c, r: body(*c, *r), carry, read)
        cts, more = pull(cts)
        return trip - 1, cts, jax.tree.map(jnp.add, read_cts, more)

    zeros = jax.tree.map(jnp.zeros_like, read)
    _, cts, read_cts = lax.while_loop(lambda s: s[0] > 0, step, (trips, cotangents, zeros))
    return cts, read_cts


_loop.defvjp(_forward, _backward)
