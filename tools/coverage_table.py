"""Writes docs/coverage.md: every array function, and whether it runs, records and differentiates.

Determined by running each on the arrays of tests/helpers/array_cases.py.
    python tools/coverage_table.py          writes the page, with the times that it shows
    python tools/coverage_table.py --times  measures them anew, which takes minutes
    python tools/coverage_table.py --check  says whether it is up to date but for the times
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import functions  # noqa: E402
from generated_page import write_or_check  # noqa: E402
from tests.helpers import arrays  # noqa: E402
from tests.helpers.array_cases import SAMPLES  # noqa: E402
from tests.helpers.arrays import Sample  # noqa: E402

import wend  # noqa: E402

PAGE = ROOT / "docs" / "coverage.md"
SECTIONS = {
    "linalg": "`wend.numpy.linalg`",
    "special": "`wend.numpy.special`",
    "": "`wend.numpy`",
}
_TITLES = (
    "| function | eager | traced | np | gradient | native | time |\n|---|---|---|---|---|---|--:|"
)
HEAD = """# What works on arrays

Written by `tools/coverage_table.py`, which runs every function; do not edit.

- **eager**: on plain arrays it gives what NumPy or SciPy gives.
- **traced**: recorded, it gives the same, in value, shape and dtype.
- **np**: NumPy's own function, called with a traced array, does so too.
- **gradient**: first and second derivatives agree with finite differences; `1` where only the first
  does, `0` where the function is flat, `–` where there is nothing to differentiate.
- **native**: compiled, all of it is native code; or which of its operations run as NumPy's kernels,
  called from there.
- **time**: of a call with a million numbers, over NumPy's own, where `bench/functions.py` has it,
  for the first dtype there, mostly f64. Measured once, beside other programs.
"""


def passes(check: Callable[[Sample], None], samples: list[Sample]) -> bool:
    """Whether a check holds for all samples of a function."""
    for sample in samples:
        try:
            check(sample)
        except Exception as error:  # noqa: BLE001 - any failure is an answer here
            print(f"{sample.name}: {type(error).__name__}: {error}", file=sys.stderr)
            return False
    return True


def gradient_of(samples: list[Sample]) -> str:
    """The entry of the last column."""
    differentiable = [sample for sample in samples if arrays.is_differentiable(sample)]
    if not differentiable:
        return "–"
    if not passes(arrays.check_gradient, differentiable):
        return "no"
    if not any(arrays.has_gradient(sample) for sample in differentiable):
        return "0"
    return "yes" if any(s.orders > 1 and s.smooth for s in differentiable) else "1"


def native_of(samples: list[Sample]) -> str:
    """Whether all of a function is native code, and what is not."""
    by_python = [kernels_of(sample) for sample in samples]
    slow = sorted(set().union(*by_python))
    if not slow:
        return "yes"
    some = "partly" if set() in by_python else "by Python"
    return f"{some}: {', '.join(slow)}"


def kernels_of(sample: Sample) -> set[str]:
    """The operations that a sample runs as NumPy's kernels."""
    recorded = wend.function(lambda *xs: sample.run(sample.public, *xs), backend="native")
    arrays.quiet(lambda: recorded(*sample.arrays))
    return set(re.findall(r"runs in Python: (\w+) at", str(recorded.explain())))


def times_of(page: str) -> dict[str, str]:
    """The last column of a page, by function."""
    return dict(re.findall(r"^\| `(\w+)` \|.*\| (\d+\.\d+) \|$", page, re.MULTILINE))


def measured() -> dict[str, str]:
    """The times over NumPy's, by function."""
    found = {}
    for name, of in functions.ROWS.items():
        found[name] = f"{functions.ratio(name, of.dtypes[0]):.2f}"
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def row(name: str, samples: list[Sample], times: Mapping[str, str]) -> str:
    """One line of the table."""
    traced = [sample for sample in samples if sample.traced]
    through = [sample for sample in traced if sample.through]
    cells = [
        "yes" if passes(arrays.check_eager, samples) else "no",
        ("yes" if passes(arrays.check_traced, traced) else "no") if traced else "–",
        ("yes" if passes(arrays.check_through, through) else "no") if through else "–",
        gradient_of(traced),
        native_of(traced) if traced else "–",
        times.get(name.removeprefix("special."), "–"),
    ]
    return f"| `{name.rpartition('.')[2]}` | {' | '.join(cells)} |"


def page() -> str:
    """The text of the page."""
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    times = measured() if "--times" in sys.argv[1:] else times_of(written)
    by_name: dict[str, list[Sample]] = {}
    for sample in SAMPLES:
        by_name.setdefault(sample.name, []).append(sample)
    parts = [HEAD]
    for prefix in ("", "linalg", "special"):
        names = sorted(name for name in by_name if name.rpartition(".")[0] == prefix)
        parts.append(f"\n## {SECTIONS[prefix]}: {len(names)} functions\n")
        parts.append(_TITLES)
        parts += [row(name, by_name[name], times) for name in names]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
