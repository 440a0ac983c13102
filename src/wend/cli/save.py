"""`wend save`: functions of Python files, traced for the types of calls, in one file."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import wend
from wend.base.errors import WendError, explain
from wend.capture.stage.guard import user_traceback
from wend.cli.target import TargetError, concrete_of


def run(targets: Sequence[str], out: Path) -> int:
    """Save functions; return the exit status.

    Args:
        targets: the functions with their arguments; see `target.py`. `NAME=` before one names it.
        out: the file.
    """
    functions: dict[str, wend.ConcreteFunction] = {}
    try:
        for target in targets:
            name, _, call = target.rpartition("=") if _is_named(target) else ("", "", target)
            concrete = concrete_of(call)
            name = name or concrete.name
            if name in functions or not name.isidentifier():
                what = f"wend save: {name!r} is no name, or the name of two functions."
                raise TargetError(explain(what, cure=f"name it: wend save 'step={call}'."))
            functions[name] = concrete
        wend.save(out, **functions)
    except WendError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - raised by the user's program
        traceback.print_exception(type(error), error, user_traceback(error.__traceback__))
        return 1
    print(f"{out}: {', '.join(functions)}")
    return 0


def _is_named(target: str) -> bool:
    return (
        target.partition(".py:")[0].partition("=")[0].isidentifier()
        and "=" in (target.partition(".py:")[0])
    )
