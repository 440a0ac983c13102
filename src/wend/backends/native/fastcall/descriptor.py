"""The tables that the code of an entry goes by, and the objects that it reads (`entry_code.py`)."""

from __future__ import annotations

# What there is for each entry. How many calls it may serve; the graph's function; the stack of
# idle workspaces; what to do; arguments, params, results and guards, where and how many; what may
# be asked of Python; when the lock is released; where arenas lie in the block, how many, their
# strides, and how much memory is kept
WORDS = (
    *("left", "run", "idle", "flags", "arguments"),
    *("params", "param_count", "results", "result_count", "guards", "guard_count"),
    *("miss", "otherwise", "more", "fail", "trim", "handler"),
    *("bytes", "limit", "arenas", "arena_count", "strides", "kept"),
)
RELEASES, SINGLE = 1, 2  # flags

# Each param: kind, bytes of all this, object or 0, which argument, offset in the block, type,
# dtype, size of an element, axes; for each axis a size (or one of the second line) and a number
NOTHING, ARRAY, SCALAR, FLOAT, INTEGER, BOOLEAN = range(6)
ANY, PLURAL, SAME = -1, -2, -3

# Each result: kind, bytes of all this, offset in the block, dtype (or object), size of an element,
# axes; for each axis a size, or -1: it is in the block
OBJECT, NUMBER, POINTED, NEW = range(4)
MOST_AXES = 64  # of an array; and sizes that are not known

# Offsets in objects. Of arrays: elements, axes, sizes, dtype, flags, handler of their memory
TYPE_AT = object.__basicsize__ - 8
VALUE_AT = object.__basicsize__  # of numbers
ITEM_AT = tuple.__basicsize__  # the first one
DATA_AT, AXES_AT, SIZES_AT, DTYPE_AT, FLAGS_AT, HANDLER_AT = (
    VALUE_AT + k for k in (0, 8, 16, 40, 48, 72)
)


def load(name: str, base: str, offset: int, type: str = "i64") -> str:
    """The lines that read what is at an offset."""
    return (
        f"  %{name}.at = getelementptr i8, ptr %{base}, i64 {offset}\n"
        f"  %{name} = load {type}, ptr %{name}.at\n"
    )


def word(name: str, type: str = "i64") -> str:
    """The lines that read one of the words."""
    return load(name, "words", 8 * WORDS.index(name), type)
