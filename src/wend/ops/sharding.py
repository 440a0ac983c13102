"""`shard`: where the parts of an array lie, on a backend of many devices."""

from __future__ import annotations

from wend.ir.op import Linear, Op

# The array itself. `sharding`: an object of the backend, which divides the array among devices by
# it; None: nothing is asked. `what` names the array in messages.
shard = Op(
    "shard",
    lambda x, *, sharding, what: x,
    lambda x, *, sharding, what: x,
    Linear(lambda b, n, ct, i: b.emit(n.op, ct, **n.attrs)),
    shares=0,
    is_portable=False,
)
