"""Pages of `docs/` that are written from running code: what they show is what happens."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import wend
from tests.helpers.own_process import is_alone, run_alone

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    *("python.md", "derivatives.md", "functions.md", "tape.md", "pictures.md"),
    *("debugging.md", "memory.md", "performance.md", "saving.md", "vmap.md", "../README.md"),
    *("loops.md", "lowering.md", "sequence.md"),
    *("build.md", "jax.md", "onnx.md", "scaling.md", "torch.md"),
)
# Those that run in a process of their own
OTHER_SYSTEMS = {"jax.md": "jax", "scaling.md": "jax", "torch.md": "torch"}
# What the reader is told to call the program; where nothing is said, each block is one.
FILES = {"../README.md": "newton.py"}
# Those that show every refusal.
REFUSALS = ("python.md", "tape.md", "functions.md", "memory.md")
# A block of code, and what it prints or raises.
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n(?:```text\n(?P<shown>.*?)```\n)?", re.DOTALL)

# The name of a size that is not known before the run.
SIZE = re.compile(r"\bd\d+\b")


def outcome(code: str, file: Path, names: dict[str, object], before: str = "") -> str:
    """What a block prints, and the error that ends it; `before`: what its file has above it."""
    file.parent.mkdir()
    file.write_text(before + code, encoding="utf-8")
    code = "\n" * before.count("\n") + code
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, str(file), "exec"), names)
        except Exception as error:
            notes = getattr(error, "__notes__", [])
            print("\n".join([f"{type(error).__name__}: {error}", *notes]))
    shown = re.sub(rf"{re.escape(str(file.parent.parent))}/\d+/", "", printed.getvalue())
    # Unknown sizes are counted from the start of the process: here from that of the block.
    sizes = list(dict.fromkeys(SIZE.findall(shown)))
    return SIZE.sub(lambda size: f"d{sizes.index(size[0])}", shown)


@pytest.mark.parametrize("backend", [pytest.param("numpy", marks=pytest.mark.sampled), "native"])
@pytest.mark.parametrize("name", PAGES)
def test_every_block_does_what_the_page_shows(
    name: str,
    backend: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    if name in OTHER_SYSTEMS and not is_alone():
        if importlib.util.find_spec(OTHER_SYSTEMS[name]) is None:
            pytest.skip(f"NOT RUN: {OTHER_SYSTEMS[name]} is not installed")
        run_alone(f"tests/laws/test_pages.py::{request.node.name}")
        return
    if name == "build.md" and shutil.which("cc") is None:
        pytest.skip("NO COMPILER OF C: the page is not run")
    if name == "onnx.md":
        pytest.importorskip("onnxruntime", reason="NOT RUN: the extra wend[onnx] is not installed")
    module = types.ModuleType("example")  # which dataclasses look up
    monkeypatch.setitem(sys.modules, "example", module)
    names = vars(module)
    monkeypatch.chdir(tmp_path)  # where programs write their files
    counted = iter(range(10**6))
    program: list[str] = []

    def as_it_is(block: re.Match[str]) -> str:
        file = tmp_path / str(next(counted)) / FILES.get(name, "example.py")
        found = outcome(block["code"], file, names, "".join(program))
        if name in FILES:
            program.append(block["code"])
        shown = f"```text\n{found}```\n" if found else ""
        return f"```python\n{block['code']}```\n{shown}"

    with wend.config(backend=backend):
        new = EXAMPLE.sub(as_it_is, page)
    if request.config.getoption("--update-golden"):
        (DOCS / name).write_text(new, encoding="utf-8")
    assert new == page


def literals(node: ast.AST) -> list[str]:
    """The text that a string expression surely holds, in pieces."""
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.JoinedStr(values=parts):
            return [piece for part in parts for piece in literals(part)]
        case ast.Dict(values=parts):
            return [piece for part in parts for piece in literals(part)]
    return []


def cures() -> Iterator[tuple[str, str]]:
    """What refusals say to write instead, each with its file."""
    rooms = ROOT / "src" / "wend"
    folders = ("capture", "capture/rewrite", "trace")
    for file in sorted(found for folder in folders for found in rooms.glob(f"{folder}/*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.keyword(arg="cure", value=value):
                    found = literals(value)
                case ast.Assign(targets=[ast.Name(id="cure" | "_CURES")], value=value):
                    found = literals(value)
                case _:
                    continue
            yield from ((file.name, piece) for piece in found if len(piece) > 12)


def test_every_refusal_is_on_the_page() -> None:
    pages = [" ".join((DOCS / name).read_text(encoding="utf-8").split()) for name in REFUSALS]
    unseen = [(file, cure) for file, cure in cures() if not any(cure in page for page in pages)]
    assert unseen == []
