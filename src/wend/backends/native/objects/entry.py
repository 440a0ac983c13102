"""The functions that an object file exports, as LLVM IR: they enter the machine code of a graph.

The workspace begins as `messages.py` says; the block that the graph's code shares with its caller
follows, then the pool of its arrays. An array param is passed as Python would pass it, by the
header of an `ndarray`, of which only the address of the elements and of the sizes are set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wend.backends.native.codegen.messages import HEADER_BYTES
from wend.backends.native.codegen.traps import BAD_SHAPE, NO_MEMORY
from wend.backends.native.objects.interface import (
    Fixed,
    Input,
    Interface,
    OutputParameter,
    StateField,
    World,
)
from wend.backends.native.program import Program
from wend.backends.native.rt.blocks import HEAD, NEXT
from wend.backends.native.rt.pool import FIRST, LARGE, POOL_BYTES
from wend.backends.native.target.kinds import REGISTERS, memory_type
from wend.backends.native.target.value_layout import (
    ARENA_BYTES,
    SLOT_BYTES,
    is_object,
    is_scalar,
    param_size,
    registers,
)
from wend.backends.native.target.writer import Writer
from wend.ir.types import Symbol, TensorType

# The header of an array: two words of Python's, the elements, the rank, the sizes
_HEADER, _DATA, _DIMS = "[5 x i64]", 16, 32


def run_symbol(function: Interface) -> str:
    """Return the symbol of the machine code of a function's graph."""
    return f"{function.name}.run"


def workspace_words(program: Program) -> int:
    """Return the words of a workspace after its header."""
    return (program.layout.size + POOL_BYTES + SLOT_BYTES - 1) // SLOT_BYTES


def constant_definition(name: str, array: np.ndarray) -> str:
    """Return the definition of an array's elements."""
    data = np.ascontiguousarray(array).tobytes() or b"\0"
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'@{name} = internal constant [{len(data)} x i8] c"{text}", align 64'


def entry_functions(function: Interface, program: Program) -> str:
    """Return the function itself, and those of its workspace and of its state."""
    call = _Call(Writer(), function, program)
    head = ", ".join(["ptr %workspace", *call.parameters()])
    size = HEADER_BYTES + SLOT_BYTES * workspace_words(program)
    texts = [
        f"define i32 @{function.name}({head}) nounwind {{",
        *call.body(),
        "}",
        f"define void @{function.name}_workspace_init(ptr %workspace) nounwind {{",
        f"  call void @llvm.memset.p0.i64(ptr %workspace, i8 0, i64 {size}, i1 false)",
        "  ret void",
        "}",
        f"define void @{function.name}_workspace_release(ptr %workspace) nounwind {{",
        *_release(program),
        "}",
        f"declare i32 @{run_symbol(function)}(ptr)",
        "declare void @free(ptr)",
        "declare ptr @malloc(i64)",
        "declare i32 @snprintf(ptr, i64, ptr, ...)",
        f'@unfit = internal constant [{len(_UNFIT) + 1} x i8] c"{_UNFIT}\\00"',
        *(
            constant_definition(f"fixed{k}", param.array)
            for k, param in enumerate(function.params)
            if isinstance(param, Fixed)
        ),
    ]
    return "\n".join(texts)


_UNFIT = "ValueError: a size is negative"


def state_functions(function: Interface) -> str:
    """Return the functions that set a state to its initial values, and that copy it."""
    assert function.state is not None
    name, size = function.state.name, function.state.size
    image = np.zeros(size, np.uint8)
    for field in function.state.fields:
        data = np.ascontiguousarray(field.initial).tobytes()
        image[field.offset : field.offset + len(data)] = np.frombuffer(data, np.uint8)
    copy = "  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr {}, i64 {}, i1 false)"
    return "\n".join(
        [
            constant_definition("initial", image),
            f"define void @{name}_init(ptr %state) nounwind {{",
            copy.format("@initial", size),
            "  ret void",
            "}",
            f"define void @{name}_copy(ptr %state, ptr %source) nounwind {{",
            copy.format("%source", size),
            "  ret void",
            "}",
        ]
    )


class _Call:
    """The writer of one function."""

    def __init__(self, w: Writer, function: Interface, program: Program) -> None:
        self.w, self.function, self.program = w, function, program
        self.layout = program.layout

    def parameters(self) -> Iterator[str]:
        """Yield the parameters after the workspace."""
        if self.function.state is not None:
            yield "ptr %state"
        for param, sizes in zip(self.function.inputs, self.function.new_sizes(), strict=True):
            register = REGISTERS[param.type.dtype] if is_scalar(param.type) else "ptr"
            yield f"{memory_type(register)} %in.{param.name}"
            yield from (f"i64 %n.{self.function.sizes[size]}" for size in sizes)
        for output in self.function.outputs:
            yield f"ptr %out.{output.name}"
            if output.is_lent:
                yield f"ptr %dims.{output.name}"

    def body(self) -> Sequence[str]:
        w = self.w
        w.start("entry")
        w.open_entry()
        w.do(f"%block = getelementptr i8, ptr %workspace, i64 {HEADER_BYTES}")
        w.do(f"%pool = getelementptr i8, ptr %block, i64 {self.layout.size}")
        self._put("ptr", "%pool", self.layout.pool)
        self._put("ptr", "%workspace", self.layout.python)
        w.do("store i8 0, ptr %workspace")
        self._check_sizes()
        copies = self._store_params()
        status = w.define(f"call i32 @{run_symbol(self.function)}(ptr %block)")
        failed, done = w.new_label("failed"), w.new_label("done")
        w.branch(w.define(f"icmp eq i32 {status}, 0"), done, failed)
        w.start(done)
        self._load_results()
        for copy in copies:
            w.do(f"call void @free(ptr {copy})")
        w.do("ret i32 0")
        w.start(failed)
        for copy in copies:
            w.do(f"call void @free(ptr {copy})")
        w.do(f"ret i32 {status}")
        return w.lines

    def _check_sizes(self) -> None:
        w = self.w
        for name in self.function.sizes.values():
            bad, good = w.new_label("unfit"), w.new_label("fit")
            w.branch(w.define(f"icmp sge i64 %n.{name}, 0"), good, bad)
            w.start(bad)
            w.do(
                f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr %workspace, "
                f"i64 {len(_UNFIT) + 1}, ptr @unfit)"
            )
            w.do(f"ret i32 {BAD_SHAPE}")
            w.start(good)

    def _put(self, type: str, value: str, offset: int) -> None:
        at = self.w.define(f"getelementptr i8, ptr %block, i64 {offset}")
        self.w.do(f"store {type} {value}, ptr {at}, align 8")

    def _store_params(self) -> list[str]:
        """Emit the storing of all params in the block; return copies, to be freed.

        What is changed is copied first if it is not alone: the new contents of one may be the old
        ones of another.
        """
        changed = [x for x in self.function.inputs if x.is_written] + [*self.function.stored]
        copies: list[str] = []
        offset = 0
        for k, param in enumerate(self.function.params):
            type = self.program.params[k].type
            if isinstance(param, World):
                continue
            data = self._data(param, k)
            if isinstance(param, Input) and is_scalar(param.type):
                self._put(memory_type(REGISTERS[param.type.dtype]), data, offset)
            else:
                if param in changed and len(changed) > 1 and not is_scalar(param.type):
                    data = self._copied(param.type, data, copies)
                assert isinstance(type, TensorType)
                if is_object(type):
                    self._put("ptr", self._header(type, data), offset)
                else:
                    (register,) = registers(type)
                    value = self.w.define(f"load {memory_type(register)}, ptr {data}")
                    self._put(memory_type(register), value, offset)
            offset += param_size(type)
        return copies

    def _data(self, param: Input | StateField | Fixed, number: int) -> str:
        """Return a number of the caller's, or the address of other params."""
        if isinstance(param, Input):
            return f"%in.{param.name}"
        if isinstance(param, Fixed):
            return f"@fixed{number}"
        return self.w.define(f"getelementptr i8, ptr %state, i64 {param.offset}")

    def _copied(self, type: TensorType, data: str, copies: list[str]) -> str:
        w, size = self.w, self._bytes(type)
        room = w.define(f"add i64 {size}, 1")
        copy = w.define(f"call ptr @malloc(i64 {room})")
        none, some = w.new_label("none"), w.new_label("some")
        w.branch(w.define(f"icmp ne ptr {copy}, null"), some, none)
        w.start(none)
        for earlier in copies:
            w.do(f"call void @free(ptr {earlier})")
        w.do(f"ret i32 {NO_MEMORY}")
        w.start(some)
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {copy}, ptr {data}, i64 {size}, i1 false)")
        copies.append(copy)
        return copy

    def _header(self, type: TensorType, data: str) -> str:
        """Return the address of a header on the stack."""
        w, header = self.w, self.w.allocate(_HEADER)
        dims = w.allocate(f"[{max(len(type.dims), 1)} x i64]")
        for axis, dim in enumerate(type.dims):
            at = w.define(f"getelementptr i64, ptr {dims}, i64 {axis}")
            w.do(f"store i64 {self._size(dim)}, ptr {at}")
        for offset, value in ((_DATA, data), (_DIMS, dims)):
            at = w.define(f"getelementptr i8, ptr {header}, i64 {offset}")
            w.do(f"store ptr {value}, ptr {at}")
        return header

    def _size(self, dim: int | Symbol) -> str:
        return f"%n.{self.function.sizes[dim]}" if isinstance(dim, Symbol) else str(dim)

    def _bytes(self, type: TensorType) -> str:
        size = str(type.dtype.itemsize)
        for dim in type.dims:
            size = self.w.define(f"mul i64 {size}, {self._size(dim)}")
        return size

    def _load_results(self) -> None:
        """Emit the storing of results: first those of the caller, then what is changed."""
        changed: list[Input | StateField] = [x for x in self.function.inputs if x.is_written]
        offset = self.layout.results
        targets = [*self.function.outputs, *changed, *self.function.stored]
        for target, field in zip(targets, self.program.results, strict=False):
            assert isinstance(field.type, TensorType)
            self._load_result(target, field.type, offset)
            offset += SLOT_BYTES * len(registers(field.type))

    def _load_result(
        self, target: OutputParameter | Input | StateField, type: TensorType, offset: int
    ) -> None:
        w = self.w
        first, *others = (
            w.define(
                f"load {memory_type(register)}, ptr "
                f"{w.define(f'getelementptr i8, ptr %block, i64 {offset + SLOT_BYTES * k}')}"
            )
            for k, register in enumerate(registers(type))
        )
        sizes = iter(others)
        dims = [next(sizes) if isinstance(dim, Symbol) else str(dim) for dim in type.dims]
        if isinstance(target, OutputParameter) and target.is_lent:
            w.do(f"store ptr {first}, ptr %out.{target.name}")
            for axis, dim in enumerate(dims):
                at = w.define(f"getelementptr i64, ptr %dims.{target.name}, i64 {axis}")
                w.do(f"store i64 {dim}, ptr {at}")
            return
        if isinstance(target, StateField):
            address = w.define(f"getelementptr i8, ptr %state, i64 {target.offset}")
        else:
            address = f"%{'out' if isinstance(target, OutputParameter) else 'in'}.{target.name}"
        if is_scalar(type):
            w.do(f"store {memory_type(REGISTERS[type.dtype])} {first}, ptr {address}")
            return
        size = str(type.dtype.itemsize)
        for dim in dims:
            size = w.define(f"mul i64 {size}, {dim}")
        w.do(f"call void @llvm.memmove.p0.p0.i64(ptr {address}, ptr {first}, i64 {size}, i1 false)")


def _release(program: Program) -> list[str]:
    """Return the lines that free all memory of a workspace and leave it as new."""
    w = Writer()
    w.start("entry")
    w.open_entry()
    w.do(f"%block = getelementptr i8, ptr %workspace, i64 {HEADER_BYTES}")
    for number, stride in enumerate(program.strides):
        if stride:
            offset = program.layout.arenas + ARENA_BYTES * number
            at = w.define(f"getelementptr i8, ptr %block, i64 {offset}")
            w.do(f"call void @free(ptr {w.define(f'load ptr, ptr {at}')})")
            w.do(f"call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {ARENA_BYTES}, i1 false)")
    pool = w.define(f"getelementptr i8, ptr %block, i64 {program.layout.size}")
    for first, link, start in ((FIRST, 0, 0), (LARGE, NEXT, -HEAD)):
        before, head, each, done = w.block, *map(w.new_label, ("head", "each", "done"))
        at = w.define(f"getelementptr i8, ptr {pool}, i64 {first}")
        block = w.define(f"load ptr, ptr {at}")
        w.jump(head)
        w.start(head)
        current, following = (f"%{w.new_label(name)}" for name in ("current", "following"))
        w.do(f"{current} = phi ptr [ {block}, %{before} ], [ {following}, %{each} ]")
        w.branch(w.define(f"icmp eq ptr {current}, null"), done, each)
        w.start(each)
        at = w.define(f"getelementptr i8, ptr {current}, i64 {link}")
        w.do(f"{following} = load ptr, ptr {at}")
        start_at = w.define(f"getelementptr i8, ptr {current}, i64 {start}")
        w.do(f"call void @free(ptr {start_at})")
        w.jump(head)
        w.start(done)
    w.do(f"call void @llvm.memset.p0.i64(ptr {pool}, i8 0, i64 {POOL_BYTES}, i1 false)")
    w.do("ret void")
    return w.lines
