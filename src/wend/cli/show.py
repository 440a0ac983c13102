"""`wend show`: the stages of a function, from the recorded graph to machine code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import wend
from wend.base.errors import WendError, explain, listed
from wend.base.reporting.dump import Stage, capture_stages
from wend.capture.stage.guard import user_traceback
from wend.cli.saved import is_saved, listing, names_a_function, saved_trace
from wend.cli.target import TargetError, concrete_of
from wend.ir.graph import Graph
from wend.pictures.page import PageSection, to_page
from wend.pictures.svg import to_svg

# Descriptions of the stages that are not passes.
_ABOUT = {
    "graph": "as it was recorded",
    "program": "the graph as Python, which calls NumPy's kernels",
    "module": "the graph as LLVM's text",
    "optimized": "the same text after LLVM's passes",
    "assembly": "this machine's code",
}


def run(target: str, backend: str, stage: str | None, svg: Path | None, html: Path | None) -> int:
    """Show a function; return the exit status.

    Args:
        target: the function and its arguments; see `target.py`.
        backend: the backend that compiles it.
        stage: the stage to print or draw; "all" prints all of them.
        svg: the file to draw a graph to.
        html: the file to write a page with everything to.
    """
    try:
        if is_saved(target) and not names_a_function(target):
            print(listing(target))
            return 0
        with capture_stages() as watch:
            concrete = saved_trace(target) if is_saved(target) else concrete_of(target)
            concrete.compiled.executable(backend)
        stages = watch.stages(concrete.graph)
        chosen = _chosen(stages, stage)
    except (WendError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - raised by the user's program
        traceback.print_exception(type(error), error, user_traceback(error.__traceback__))
        return 1
    if html is not None:
        html.write_text(_page(target, concrete, stages), encoding="utf-8")
    if svg is not None:
        svg.write_text(to_svg(_graph(chosen[-1], concrete.graph)), encoding="utf-8")
    if html is None and svg is None:
        print(_text(concrete, stages) if stage is None else "\n".join(map(_stage_text, chosen)))
    return 0


def _chosen(stages: Sequence[Stage], name: str | None) -> Sequence[Stage]:
    """Return the stages to show; without a name, the graph that is compiled."""
    if name == "all":
        return stages
    if name is None:
        return [last_graph(stages)]
    matches = [stage for stage in stages if stage.step == name]
    if not matches:
        names = listed(dict.fromkeys(stage.step for stage in stages))
        what = f"wend show: there is no stage {name!r}."
        raise TargetError(
            explain(what, cure=f"choose among {names}; a pass that changed nothing has none.")
        )
    return matches[-1:]


def last_graph(stages: Sequence[Stage]) -> Stage:
    """Return the last stage that is a graph, which is the one compiled."""
    return next(stage for stage in reversed(stages) if isinstance(stage.graph, Graph))


def _graph(stage: Stage, otherwise: Graph) -> Graph:
    return stage.graph if isinstance(stage.graph, Graph) else otherwise


def _stage_text(stage: Stage) -> str:
    return f"{_title(stage)}\n\n{stage.text}\n"


def _title(stage: Stage) -> str:
    about = _ABOUT.get(stage.step, "")
    return f"{stage.step}: {about}" if about else stage.step


def _text(concrete: wend.ConcreteFunction, stages: Sequence[Stage]) -> str:
    """Return the recorded graph, the compiled graph, and the names of the other stages."""
    run = last_graph(stages)
    lines = [f"{concrete!r}, as it was recorded", "", str(concrete.graph), ""]
    if isinstance(run.graph, Graph) and str(run.graph) != str(concrete.graph):
        lines += [f"as it runs, after {run.step}", "", str(run.graph), ""]
    lines += concrete.costs()
    names = ", ".join(dict.fromkeys(stage.step for stage in stages))
    lines.append(f"stages: {names}; --stage NAME shows one, --html FILE all, with pictures")
    return "\n".join(lines)


def _page(target: str, concrete: wend.ConcreteFunction, stages: Sequence[Stage]) -> str:
    run = last_graph(stages)
    sections = [PageSection("as recorded", _count(concrete.graph), concrete.graph)]
    if isinstance(run.graph, Graph):
        sections.append(PageSection("as it runs", _count(run.graph), run.graph, is_open=True))
    for stage in stages:
        about = _ABOUT.get(stage.step, "") or "the graph after this pass"
        sections.append(PageSection(stage.step, about, stage.text))
    about = f"wend {wend.__version__}: {concrete!r}"
    return to_page(target, about, concrete.costs(), sections)


def _count(graph: Graph) -> str:
    nodes, loops = graph.count(), graph.count("while")
    return f"{nodes} nodes" + (f", {loops} loop{'s' * (loops > 1)}" if loops else "")
