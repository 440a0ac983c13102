"""`wend build`: a function of a Python file as an object file and a C header."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from wend.base.errors import WendError, explain
from wend.build import build
from wend.capture.stage.guard import user_traceback
from wend.cli.target import TargetError, concrete_of, function_of


def run(
    target: str,
    signature: str | None,
    gradient: bool,
    out: Path,
    name: str | None,
    wheel: bool,
    cpu: str | None,
    triple: str | None,
    no_blas: bool,
    libraries: str,
) -> int:
    """Write an object file and its header; return the exit status.

    Args:
        target: the function; a call, if there is no signature.
        signature: the types of its arguments, such as `f64[n], f64`.
        gradient: whether to build its gradient, too.
        out: the folder.
        name: the name in C.
        wheel: whether to write a wheel, too.
        cpu: LLVM's name of the processor.
        triple: LLVM's name of the machine.
        no_blas: whether to refuse what calls BLAS or LAPACK.
        libraries: further options of the linker.
    """
    try:
        if signature is None and gradient:
            what = "wend build --gradient needs a signature."
            raise TargetError(explain(what, cure='add --signature "f64[n], f64", for example.'))
        built = build(
            concrete_of(target) if signature is None else function_of(target),
            signature,
            out=out,
            name=name,
            gradient=gradient,
            cpu=cpu,
            target=triple,
            blas=not no_blas,
            wheel=wheel,
            libraries=libraries,
        )
    except (WendError, OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - raised by the user's program
        traceback.print_exception(type(error), error, user_traceback(error.__traceback__))
        return 1
    files = [built.object, built.header, *([built.wheel] if built.wheel else [])]
    print(*files, sep="\n")
    if built.blas:
        print(f"note: link it with BLAS and LAPACK: {', '.join(built.blas)}", file=sys.stderr)
    return 0
