"""The tables that drive the trampoline (`trampoline.py`), and offsets in the objects it reads.

`run/entry.py` fills in the tables.
"""

from __future__ import annotations

from enum import IntEnum

from wend.backends.native.rt.blocks import load

# The words of each fast call: the counter of its calls; the graph's function; the stack of idle
# workspaces; flags; the number of arguments (negative: none is accepted), the tables of params,
# results and guards with their lengths; the tuple of the checks on Python objects or 0, and whether
# one has failed; the fallback object and Python's callbacks; the known bytes of the results and the
# bytes from which the GIL is released; the arenas' offset in the block, their number and strides;
# and the bytes that an idle workspace may keep
WORDS = (
    *("calls", "run", "idle", "flags", "arguments"),
    *("params", "param_count", "results", "result_count", "guards", "guard_count"),
    *("checks", "stale"),
    *("miss", "otherwise", "more", "fail", "trim", "handler"),
    *("bytes", "limit", "arenas", "arena_count", "strides", "kept"),
)
# Flags: the GIL is released; a single result is returned bare; arrays in another layout are copied
RELEASES, SINGLE, COPIES = 1, 2, 4

# Each param: kind, bytes of this record, constant object or 0, index of the argument, offset in
# the block, type, dtype, item size, number of axes; for each axis its size (or one of the codes in
# the last line) and the number of its symbol.
# An argument that is compared, which is not put into the block, has in place of the type, dtype and
# size: what is expected, and the type (for methods: the function, the type, and the object).
NOTHING, ARRAY, SCALAR, FLOAT, INTEGER, BOOLEAN, ZERO_DIM, BOXED = range(8)
IDENTICAL, EQUAL, SAME_BITS, SAME_METHOD = range(8, 12)
ANY, PLURAL, SAME = -1, -2, -3

# Each result: kind, bytes of this record, offset in the block, dtype (or object), item size, number
# of axes; for each axis its size, or -1 if the size is in the block
OBJECT, NUMBER, POINTED, NEW = range(4)
MAX_AXES = 64  # of an array, and symbols of a graph


class RecordKind(IntEnum):
    """The kinds of the records of checks.

    Each record: kind, owner, key, expected object (0: none), and for some kinds an extent and the
    address of the function that makes checksums. Records of the kind NEVER fail.
    """

    NEVER = 0
    DICT, ATTRIBUTE, METHOD, FIELD, ITEM, LENGTH, ITEMS, ENTRIES = range(1, 9)
    LAYOUT, BYTES, CHECKSUM, CALL = range(9, 13)


CHECK_WORDS = 6  # of each record

# Byte offsets in objects. In arrays: data, ndim, shape, strides, dtype, flags, memory handler
TYPE_AT = object.__basicsize__ - 8
VALUE_AT = object.__basicsize__  # of NumPy scalars
ITEM_AT = tuple.__basicsize__  # the first item of a tuple
ITEMS_AT = list.__basicsize__ - 16  # the pointer to the items of a list
DATA_AT, AXES_AT, SIZES_AT, STRIDES_AT, DTYPE_AT, FLAGS_AT, HANDLER_AT = (
    VALUE_AT + k for k in (0, 8, 16, 24, 40, 48, 72)
)
C_CONTIGUOUS_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
HEADER_BYTES = AXES_AT  # of an array without axes: graphs read where its data is


def word(name: str, type: str = "i64", into: str = "") -> str:
    """Return the lines that load one of the words into `%name`, or into another register."""
    return load(into or name, "words", 8 * WORDS.index(name), type)
