"""The figure of the demo's fit, drawn with matplotlib if it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

HARE, LYNX, INK, FAINT = "#c2571a", "#1f5c7a", "#2b2b2b", "#8a8a8a"
HOW_TO_DRAW = "To see the fit drawn, install matplotlib: python -m pip install matplotlib"


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(file: Path, counted: Any, p: Any, path: Any, steps: Any) -> None:
    """Draw counted and fitted populations, and below them the steps that the solver took.

    Args:
        file: the file to write; its suffix determines the format.
        counted: the counted populations, by year.
        p: the fitted parameters.
        path: the fitted populations, at many times.
        steps: the number of steps tried for each year but the first.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "text.color": INK,
        "xtick.color": FAINT,
        "ytick.color": FAINT,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
    }
    with rc_context(style):
        figure = Figure(figsize=(9.6, 5.6), layout="constrained")
        above, below = figure.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": [5, 1], "hspace": 0.06}
        )
        _draw_populations(above, counted, p, path)
        _draw_steps(below, counted.year, steps)
        figure.savefig(file, dpi=160)


def _draw_populations(axes: Any, counted: Any, p: Any, path: Any) -> None:
    for name, color, sigma in (("hare", HARE, p.sigma_hare), ("lynx", LYNX, p.sigma_lynx)):
        fitted = getattr(path, name)
        low, high = fitted * np.exp(-sigma), fitted * np.exp(sigma)
        axes.fill_between(path.year, low, high, color=color, alpha=0.13, linewidth=0)
        axes.plot(path.year, fitted, color=color, linewidth=1.8)
        axes.plot(
            *(counted.year, getattr(counted, name), "o"),
            color=color,
            markersize=5.5,
            markeredgecolor="white",
            markeredgewidth=0.9,
        )
        axes.annotate(
            "hares" if name == "hare" else "lynx",
            (path.year[-1], fitted[-1]),
            xytext=(8, 0),
            textcoords="offset points",
            color=color,
            weight="bold",
            va="center",
        )
    axes.set_ylim(0)
    axes.set_ylabel("pelts, thousands")
    axes.tick_params(bottom=False)
    axes.spines["bottom"].set_visible(False)
    axes.set_title("Lynx and hares of Hudson's Bay", loc="left", weight="bold", pad=22)
    axes.text(
        *(0, 1.03, "points: counted; lines: Lotka–Volterra, fitted; bands: ± one sigma of a count"),
        transform=axes.transAxes,
        color=FAINT,
    )


def _draw_steps(axes: Any, years: Any, steps: Any) -> None:
    gaps = np.diff(years)
    axes.bar(years[:-1] + gaps / 2, steps, width=gaps * 0.86, color=FAINT, alpha=0.5)
    for middle, count in zip(years[:-1] + gaps / 2, steps, strict=True):
        axes.text(middle, count, f"{count}", ha="center", va="bottom", fontsize=7.5, color=FAINT)
    axes.set_ylabel("solver's\nsteps")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlim(years[0] - 0.4, years[-1] + 0.4)
    axes.set_xticks(years[::2], [f"{year:.0f}" for year in years[::2]])
