"""The command line, `wend` or `python -m wend`; each command is a module, imported on use."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import wend

FIGURES = (".png", ".pdf", ".svg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of `wend` and return its exit status."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    if argv[:1] == ["bench"]:  # which parses its own options
        return _run("bench", {"arguments": argv[1:]})
    parser = _parser()
    options = vars(parser.parse_args(argv))
    command = options.pop("command")
    if command is None:
        parser.print_help()
        return 0
    if command == "demo":
        figure = options.pop("out")
        options["figure"] = None if options.pop("no_plot") else figure
    return _run(command, options)


def _run(command: str, options: dict[str, Any]) -> int:
    try:
        status: int = import_module(f"wend.cli.{command}").run(**options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wend", description="wend: differentiable programs with real control flow."
    )
    parser.add_argument("--version", action="version", version=f"wend {wend.__version__}")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    _add_demo(commands)
    _add_show(commands)
    _add_save(commands)
    _add_run(commands)
    _add_export(commands)
    _add_build(commands)
    _add_launch(commands)
    _add_cache(commands)
    _add(commands, "bench", "compare the speed of wend with C and other systems, in its repository")
    _add(
        commands,
        "doctor",
        "versions, processor, BLAS, cache, and whether wend computes what NumPy does",
        "The exit status is 1 if something differs.",
    )
    return parser


def _add(commands: Any, name: str, what: str, more: str = "", **options: Any) -> Any:
    """Add a command; its line in the list of commands also begins its own help."""
    described = f"{what[0].upper()}{what[1:]}. {more}"
    return commands.add_parser(name, help=what, description=described, **options)


def _add_demo(commands: Any) -> None:
    demo = _add(
        commands,
        "demo",
        "fit the lynx and hares of Hudson's Bay, with gradients through an adaptive solver",
        "The Lotka–Volterra equations are fitted to counts of pelts from 1900 to 1920.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument(
        "--tol",
        type=_tolerance,
        default=1e-8,
        help="the relative error allowed in a step of the solver, from 1e-13 to 1e-2",
    )
    _add_backend(demo)
    demo.add_argument("--no-plot", action="store_true", help="do not draw the fit")
    demo.add_argument(
        "--out",
        type=_figure,
        default=Path("lotka-volterra.png"),
        metavar="FILE",
        help=f"the file for the picture of the fit; its name ends in {', '.join(FIGURES)}",
    )


def _add_launch(commands: Any) -> None:
    launch = _add(
        commands,
        "launch",
        "run a script in several processes, whose devices JAX has as one",
        "Each process of the script has joined the others when it begins. On a cluster, where one "
        "process on each machine is started by other means, leave --processes out: the environment "
        "of Slurm, Kubernetes or Open MPI tells who is there. It needs wend[jax].",
        epilog="examples: wend launch --processes 2 fit.py; srun -n 8 wend launch fit.py",
    )
    launch.add_argument(
        "--processes", type=_count, metavar="N", help="start so many processes on this machine"
    )
    launch.add_argument(
        "--devices", type=_count, metavar="N", help="devices of the CPU that each process has"
    )
    launch.add_argument(
        "--heartbeat",
        type=_count,
        default=30,
        metavar="SECONDS",
        help="a process that is not heard of for so long counts as dead: the others end, too "
        "(default: 30)",
    )
    launch.add_argument("script", type=_file, metavar="SCRIPT.py", help="the script")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's arguments")


def _add_cache(commands: Any) -> None:
    cache = _add(
        commands,
        "cache",
        "list or clear the machine code kept between processes",
        "It is in the folder that WEND_CACHE_DIR names.",
    )
    cache.add_argument("action", choices=("ls", "clear"), help="list the files, or remove them")


def _add_show(commands: Any) -> None:
    show = _add(
        commands,
        "show",
        "what a function becomes: graphs, passes, LLVM; as text, picture or page",
        "The function's file is imported; the call is traced and not run. Of a file of wend.save "
        "the graphs are shown, and nothing is imported.",
        epilog="examples: wend show 'newton.py:root(2.0)'; "
        "wend show 'newton.py:wend.grad(root)(2.0)' --html root.html; wend show model.wend:step",
    )
    show.add_argument(
        "target",
        metavar="FILE.py:CALL",
        help="a function of a file, called with arguments of the types to trace it for; "
        "without arguments if it has an input_signature, or the file has called it; or "
        "FILE.wend, or FILE.wend:NAME",
    )
    _add_backend(show)
    show.add_argument("--stage", metavar="NAME", help="one stage (or all): a pass, module, …")
    show.add_argument("--svg", type=_file, metavar="FILE", help="draw the graph that runs")
    show.add_argument("--html", type=_file, metavar="FILE", help="write a page with everything")


def _add_save(commands: Any) -> None:
    save = _add(
        commands,
        "save",
        "write functions to a file that wend.load and wend run read",
        "The function's file is imported; the calls are traced and not run.",
        epilog="example: wend save 'newton.py:root(2.0)' --out newton.wend",
    )
    save.add_argument(
        "targets",
        metavar="FILE.py:CALL",
        nargs="+",
        help="a function of a file, called with arguments of the types to trace it for; "
        "NAME=FILE.py:CALL gives it another name",
    )
    save.add_argument("--out", type=_file, required=True, metavar="FILE.wend", help="the file")


def _add_run(commands: Any) -> None:
    run = _add(
        commands,
        "run",
        "call a function of a file of wend.save",
        "The arguments are numbers, or files of numpy.save.",
        epilog="example: wend run model.wend:step --input x.npy --input 0.1 --out y.npy",
    )
    run.add_argument("target", metavar="FILE.wend[:NAME]", help="the file, and which function")
    run.add_argument(
        "--input",
        dest="inputs",
        action="append",
        default=[],
        metavar="VALUE",
        help="an argument: a number, or a file of numpy.save",
    )
    run.add_argument(
        "--out",
        type=_file,
        metavar="FILE",
        help="the file for the result: .npy for one array, .npz for several",
    )
    _add_backend(run)


def _add_export(commands: Any) -> None:
    export = _add(
        commands,
        "export",
        "write a function as an ONNX model, which onnxruntime runs",
        "The function's file is imported; the call is traced and not run. It needs wend[onnx].",
        epilog="example: wend export 'newton.py:wend.grad(root)(2.0)' --out slope.onnx",
    )
    export.add_argument(
        "target",
        metavar="FILE.py:CALL",
        help="a function of a file, called with arguments of the types to trace it for; or "
        "FILE.wend:NAME",
    )
    export.add_argument("--out", type=_file, required=True, metavar="FILE.onnx", help="the file")
    export.add_argument(
        "--opset", type=int, default=21, metavar="N", help="the version of ONNX's operators"
    )


def _add_build(commands: Any) -> None:
    build = _add(
        commands,
        "build",
        "write a function as an object file and a C header, for programs without Python",
        "The function's file is imported; the function is traced and not run.",
        epilog="examples: wend build newton.py:root --signature f64 --gradient; "
        "wend build model.py:step --signature 'f64[n], f64[n, 3], i64' --out lib --wheel",
    )
    build.add_argument(
        "target", metavar="FILE.py:FUNCTION", help="a function; without --signature, a call of it"
    )
    build.add_argument(
        "--signature",
        metavar="TYPES",
        help="the types of its arguments: f64, f32, i64, …, bool, c128, with the sizes of arrays; "
        "equal names are equal sizes",
    )
    build.add_argument(
        "--gradient",
        action="store_true",
        help="add NAME_gradient, which returns the value and the gradients in all floats",
    )
    build.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="the folder")
    build.add_argument("--name", metavar="NAME", help="its name in C; by default its own")
    build.add_argument(
        "--wheel", action="store_true", help="add a wheel that calls it from Python, without wend"
    )
    build.add_argument(
        "--cpu", metavar="CPU", help="LLVM's name of the processor, such as x86-64-v3; or native"
    )
    build.add_argument(
        "--target",
        dest="triple",
        metavar="TRIPLE",
        help="LLVM's name of another machine, such as aarch64-linux-gnu",
    )
    build.add_argument(
        "--no-blas", action="store_true", help="refuse what needs BLAS or LAPACK, by line"
    )
    build.add_argument(
        "--libraries",
        default="",
        metavar="OPTIONS",
        help="of the linker of the wheel, such as -lopenblas",
    )


def _add_backend(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--backend",
        choices=("numpy", "native"),
        default="native",
        help="the backend that runs the graphs",
    )


def _tolerance(text: str) -> float:
    try:
        tol = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 1e-13 <= tol <= 1e-2:
        raise argparse.ArgumentTypeError(f"{text} is not between 1e-13 and 1e-2")
    return tol


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _figure(text: str) -> Path:
    path = _file(text)
    if path.suffix.lower() not in FIGURES:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {', '.join(FIGURES)}")
    return path


def _file(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r}")
    return path
