"""`wend run`: calls a function of a file of `wend.save`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import wend
from wend.base import trees
from wend.base.errors import WendError, explain
from wend.cli.saved import saved_function
from wend.cli.target import TargetError


def run(target: str, inputs: Sequence[str], out: Path | None, backend: str) -> int:
    """Call a function, and print or write its result; return the exit status.

    Args:
        target: the file, and which function.
        inputs: the arguments.
        out: the file for the result; None: it is printed.
        backend: the backend that runs it.
    """
    try:
        function = saved_function(target)
        with wend.config(backend=backend):
            result = function(*map(_argument, inputs))
        if out is None:
            print(result)
        else:
            _write(result, out)
    except (WendError, OSError, TypeError, ValueError, ArithmeticError, AssertionError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _argument(text: str) -> Any:
    """Return a number, or the array of a file."""
    if text.endswith(".npy"):
        return np.load(text, allow_pickle=False)
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    what = f"wend run: {text!r} is no number."
    raise TargetError(explain(what, cure="write a number, or the name of a file x.npy."))


def _write(result: Any, out: Path) -> None:
    """Write one array to a file .npy, or several to one .npz, named by their places."""
    leaves, treedef = wend.tree.flatten(result)
    if out.suffix == ".npz":
        places = map(_place, trees.paths(treedef, "result"))
        np.savez(out, **dict(zip(places, leaves, strict=True)))
    elif len(leaves) == 1:
        np.save(out, np.asarray(leaves[0]))
    else:
        what = f"wend run: the result has {len(leaves)} arrays."
        raise TargetError(explain(what, cure="write them to a file .npz."))


def _place(path: str) -> str:
    return re.sub(r"\W+", "_", path).strip("_")
