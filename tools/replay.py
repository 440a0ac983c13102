"""Show that a refactor changes no graph and no machine code.

    python tools/replay.py write FOLDER       # at each of the two commits
    python tools/replay.py diff BEFORE AFTER  # exit status 1 and a unified diff where they differ

`write` compiles the value, the gradient and the second derivative of the programs in
`tests/programs` and writes every optimised graph and every LLVM module. `diff` compares the two
folders. `--rename 'OLD => NEW'` (a regular expression and its replacement, as often as needed) is
applied to the first folder, for operations and symbols that were renamed on purpose.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_SOURCE_LINE = re.compile(r" ; .*$", re.MULTILINE)  # the user's file and line, after a node
_KEPT = (".wir", "-module.ll")


def _programs() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield the name, function and fresh arguments of each program and derivative."""
    import numpy as np
    from tests.helpers.plain_programs import PLAIN
    from tests.helpers.programs import PROGRAMS
    from tests.programs.npbench.catalogue import KERNELS

    import wend

    for program in PROGRAMS:
        every = tuple(range(len(program.args)))
        yield f"{program}-value", wend.function(program.fun), program.args
        yield f"{program}-gradient", wend.value_and_grad(program.fun, every), program.args
        slope = wend.grad(program.fun)
        yield f"{program}-second", _summed_gradient(slope), program.args
        if program.name in PLAIN:
            plain = PLAIN[program.name]
            yield f"{program}-plain", wend.value_and_grad(plain, every), program.args
    for kernel in KERNELS:
        args = tuple(kernel.fresh("f8"))
        yield f"npbench-{kernel}-value", kernel.compiled(), args
        floats = [k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind == "f"]
        if kernel.smooth and floats:
            yield f"npbench-{kernel}-gradient", *_gradient(kernel, args, floats)


def _summed_gradient(slope: Callable[..., Any]) -> Callable[..., Any]:
    import numpy as np

    import wend

    return wend.grad(lambda *args: np.sum(np.cos(slope(*args))))


def _gradient(kernel: Any, args: tuple[Any, ...], floats: list[int]) -> Any:
    """Return the gradient of the sum of what a kernel computes in float arguments, and these."""
    import numpy as np
    from tests.programs.npbench.kernel import run

    import wend

    def total(*xs: Any) -> Any:
        operands = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        for k, x in zip(floats, xs, strict=True):
            operands[k] = x.copy() if isinstance(args[k], np.ndarray) else x
        return sum(np.sum(y) for y in run(kernel.fun, operands) if np.asarray(y).dtype.kind == "f")

    return wend.grad(total, tuple(range(len(floats)))), tuple(args[k] for k in floats)


def write(folder: Path) -> None:
    """Compile every program and write its graphs and modules, a folder a program."""
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    import wend

    shutil.rmtree(folder, ignore_errors=True)
    names = []
    for name, fun, args in _programs():
        names.append(name)
        if sys.stderr.isatty():
            print(f"\r{len(names):4} {name:60}", end="", file=sys.stderr)
        here = folder / re.sub(r"\W+", "_", name)
        with wend.config(dump=here, cache_dir=""), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fun(*args)
            except Exception as error:  # noqa: BLE001 - which error is part of the record
                here.mkdir(parents=True, exist_ok=True)
                (here / "error.txt").write_text(f"{type(error).__name__}\n", encoding="utf-8")
    assert len(set(names)) == len(names)
    print(f"{len(names)} programs in {folder}")


def _texts(folder: Path) -> dict[str, str]:
    """Return the texts of a folder by program and position; file names follow the passes."""
    texts = {}
    for program in sorted(folder.iterdir()):
        files = sorted(path for path in program.rglob("*") if path.name.endswith(_KEPT))
        for k, path in enumerate([*files, *program.glob("error.txt")]):
            text = path.read_text(encoding="utf-8")
            texts[f"{program.name}/{k:02}"] = _SOURCE_LINE.sub("", text)
    return texts


def diff(before: Path, after: Path, renames: list[str]) -> int:
    """Print where two folders differ and return how many texts do."""
    old, new = _texts(before), _texts(after)
    for rename in renames:
        pattern, _, replacement = rename.partition(" => ")
        old = {key: re.sub(pattern, replacement, text) for key, text in old.items()}
    differing = 0
    for key in sorted(old.keys() | new.keys()):
        lines = [texts.get(key, "").splitlines() for texts in (old, new)]
        if lines[0] == lines[1]:
            continue
        differing += 1
        if differing <= 20:
            print(
                *difflib.unified_diff(*lines, f"{key} before", f"{key} after", "", "", 2, ""),
                sep="\n",
            )
    print(f"{differing} of {len(old.keys() | new.keys())} texts differ")
    return differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="write the graphs and modules of this commit")
    writing.add_argument("folder", type=Path)
    comparing = commands.add_parser("diff", help="compare two folders")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--rename", action="append", default=[], metavar="OLD => NEW")
    options = parser.parse_args()
    if options.command == "write":
        write(options.folder)
        return 0
    return int(diff(options.before, options.after, options.rename) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
