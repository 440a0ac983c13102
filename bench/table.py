"""The figures of a workload as text."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure, Results
from bench.peers import CATALOGUE
from bench.workload import MEMORY

OWN = "wend"


def lines(results: Results) -> Iterator[str]:
    """Yield a head, a row for each peer, and what there is to say of some."""
    trips = f"{results.trips} trips, " if results.trips else ""
    yield f"{results.workload}: {results.title}"
    yield f"  {trips}medians of {results.runs} runs, with ratios to wend's"
    measures = list(results.figures)
    heads = [f"{name}, {unit(results, name)}" for name in measures]
    yield f"  {'':21s}" + "".join(f"{head:>31s}" for head in heads)
    for peer in results.peers():
        cells = "".join(f"{cell(results, measure, peer):>31s}" for measure in measures)
        yield f"  {CATALOGUE[peer].label:21s}{cells}"
    yield from notes(results)


def unit(results: Results, measure: str) -> str:
    if measure == MEMORY:
        return "bytes a trip"
    if measure in ("value", "gradient"):
        return "ns a trip" if results.trips else "µs a call"
    return "ms"


def scaled(results: Results, measure: str, amount: float) -> float:
    """Return seconds (or bytes) in the unit of the table."""
    factors = {"bytes a trip": 1.0, "ns a trip": 1e9, "µs a call": 1e6, "ms": 1e3}
    name = unit(results, measure)
    return factors[name] * amount / ((results.trips or 1) if name.endswith("trip") else 1)


def cell(results: Results, measure: str, peer: str) -> str:
    asked = results.figures[measure].get(peer)
    if asked is None:
        return "–"
    if asked.refuses or not asked.samples:
        return "refuses"
    text = f"{scaled(results, measure, asked.median):,.4g}"
    if asked.wrong:
        text = f"WRONG {text}"
    if len(asked.samples) < results.runs and measure != MEMORY:
        text = f"({len(asked.samples)} runs) {text}"
    own = results.figure(measure, OWN)
    if own is None or not own.median:
        return f"{text}        "
    return f"{text} {asked.median / own.median:6.2f}×"


def notes(results: Results) -> Iterator[str]:
    """Yield what peers refuse, get wrong or have to say."""
    said: dict[tuple[str, str], list[str]] = {}
    for measure, row in results.figures.items():
        for peer, figure in row.items():
            said.setdefault((peer, remark(results, figure)), []).append(measure)
    for (peer, text), measures in said.items():
        if text:
            yield f"    {CATALOGUE[peer].label}, {' and '.join(measures)}: {text}"


def remark(results: Results, figure: Figure) -> str:
    if figure.refuses:
        return f"refuses: {figure.refuses}"
    if figure.wrong:
        wanted = short(results.answer[: len(figure.wrong)])
        return f"WRONG: it answers {short(figure.wrong)} where {wanted} is right"
    return figure.note


def short(numbers: list[float]) -> str:
    shown = ", ".join(f"{number:.6g}" for number in numbers[:4])
    return f"({shown}{', …' if len(numbers) > 4 else ''})"
