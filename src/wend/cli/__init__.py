"""`python -m wend`: the commands, each in a file of its own that is read when it is called."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import wend

FIGURES = (".png", ".pdf", ".svg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of `python -m wend`; return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0

    if options.command == "cache":
        from wend.cli import cache

        return cache.run(options.action)

    from wend.cli import demo

    return demo.run(
        tol=options.tol,
        backend=options.backend,
        figure=None if options.no_plot else options.out,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m wend",
        description="wend: differentiable programs with real control flow.",
    )
    parser.add_argument("--version", action="version", version=f"wend {wend.__version__}")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="fit the lynx and the hares of Hudson's Bay, by gradients through an adaptive solver",
        description="Fit the equations of Lotka and Volterra to a hundred years old counts of "
        "pelts, by gradients through an adaptive solver of differential equations.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument(
        "--tol",
        type=_tolerance,
        default=1e-8,
        help="the relative error that a step of the solver may make, from 1e-13 to 1e-2",
    )
    demo.add_argument(
        "--backend", choices=("numpy", "native"), default="native", help="what runs the graphs"
    )
    demo.add_argument("--no-plot", action="store_true", help="draw nothing")
    demo.add_argument(
        "--out",
        type=_figure,
        default=Path("lotka-volterra.png"),
        metavar="FILE",
        help=f"where to draw the fit: a name that ends in {', '.join(FIGURES)}",
    )
    cache = commands.add_parser(
        "cache",
        help="machine code that is kept between processes: list it, or clear it",
        description="Machine code that wend keeps for the next process, in the folder that "
        "WEND_CACHE_DIR names.",
    )
    cache.add_argument("action", choices=("ls", "clear"), help="list the files, or remove them")
    return parser


def _tolerance(text: str) -> float:
    try:
        tol = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 1e-13 <= tol <= 1e-2:
        raise argparse.ArgumentTypeError(f"{text} is not between 1e-13 and 1e-2")
    return tol


def _figure(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in FIGURES:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {', '.join(FIGURES)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r}")
    return path
