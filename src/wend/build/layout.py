"""The layout of a library's functions as JSON, for callers that read it (`caller.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.messages import HEADER_BYTES
from wend.backends.native.objects.interface import Input, Interface, OutputParameter
from wend.ir.types import Symbol, TensorType


def layout_of(functions: Sequence[Interface], workspaces: Mapping[str, int]) -> dict[str, Any]:
    """Return the layout of functions, whose workspaces have so many words after their header."""
    state = next((f.state for f in functions if f.state is not None), None)
    return {
        "functions": [
            {
                "name": function.name,
                "workspace": HEADER_BYTES + 8 * workspaces[function.name],
                "state": function.state is not None,
                "inputs": [
                    _value(x, function) | {"written": x.is_written} for x in function.inputs
                ],
                "outputs": [_value(x, function) | {"lent": x.is_lent} for x in function.outputs],
            }
            for function in functions
        ],
        "state": state
        and {
            "name": state.name,
            "bytes": state.size,
            "fields": [
                {
                    "name": field.name,
                    "dtype": field.type.dtype.name,
                    "shape": list(field.initial.shape),
                    "offset": field.offset,
                }
                for field in state.fields
            ],
        },
    }


def _value(x: Input | OutputParameter, function: Interface) -> dict[str, Any]:
    type: TensorType = x.type
    dims = [function.sizes.get(dim, "?") if isinstance(dim, Symbol) else dim for dim in type.dims]
    return {"name": x.name, "dtype": type.dtype.name, "dims": dims}
