"""Values that may be Zero, or absent, at run time (D2): results of an untaken branch."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.base.zero import ZERO
from wend.ir.dtypes import BOOL
from wend.ir.op import Linear, Op, no_gradient
from wend.ir.types import MaybeType, TensorType, Type, without_maybe
from wend.runtime.sequence import add_values

_identity = Linear(lambda b, node, ct, index: ct, operands=(0,))

# Zero, as a maybe of a type
zero = Op("zero", lambda *, type: MaybeType(type), lambda *, type: ZERO, no_gradient())

is_zero = Op(
    "is_zero", lambda x: TensorType(BOOL, ()), lambda x: np.bool_(x is ZERO), no_gradient()
)

# Whether any of some cotangents arrived
any_nonzero = Op(
    "any_nonzero",
    lambda *xs: TensorType(BOOL, ()),
    lambda *xs: np.bool_(any(x is not ZERO for x in xs)),
    no_gradient(),
)


def _infer_autograd_add(x: Type, y: Type) -> Type:
    if without_maybe(x) != without_maybe(y):
        raise TypeMismatchError(f"cannot add cotangents {x} and {y}")
    return x if not isinstance(x, MaybeType) else y


def _kernel_autograd_add(x: Any, y: Any) -> Any:
    if x is ZERO or y is ZERO:
        return y if x is ZERO else x
    return add_values(x, y)


# The sum of two contributions; Zero is its identity
autograd_add = Op(
    "autograd_add",
    _infer_autograd_add,
    _kernel_autograd_add,
    Linear(lambda b, node, ct, index: ct),
    addends=(0, 1),
    forwards_zero=True,
)


def _maybe_of(type: Type) -> MaybeType:
    if not isinstance(type, MaybeType):
        raise TypeMismatchError(f"the operand must be a maybe, not {type}")
    return type


# The cotangent itself, or `zeros` where it is Zero
instantiate = Op(
    "instantiate",
    lambda x, zeros: _maybe_of(x).of,
    lambda x, zeros: zeros if x is ZERO else x,
    _identity,
    shares=0,
    forwards_zero=True,
)


def _kernel_present(x: Any) -> Any:
    if x is ZERO:
        raise ValueError("a value of a branch that did not run was read")
    return x


# The value, where the branch that made it is known to have run
present = Op(
    "present", lambda x: _maybe_of(x).of, _kernel_present, _identity, shares=0, forwards_zero=True
)
