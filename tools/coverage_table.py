"""Writes docs/coverage.md: every array function, and whether it runs, records and differentiates.

Determined by running each on the arrays of tests/helpers/array_cases.py.
    python tools/coverage_table.py          writes the page
    python tools/coverage_table.py --check  says whether it is up to date
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from generated_page import write_or_check  # noqa: E402
from tests.helpers import arrays  # noqa: E402
from tests.helpers.array_cases import SAMPLES  # noqa: E402
from tests.helpers.arrays import Sample  # noqa: E402

PAGE = ROOT / "docs" / "coverage.md"
SECTIONS = {
    "linalg": "`wend.numpy.linalg`",
    "special": "`wend.numpy.special`",
    "": "`wend.numpy`",
}
HEAD = """# What works on arrays

Written by `tools/coverage_table.py`, which runs every function; do not edit.

- **eager**: on plain arrays it gives what NumPy or SciPy gives.
- **traced**: recorded, it gives the same, in value, shape and dtype.
- **np**: NumPy's own function, called with a traced array, does so too.
- **gradient**: first and second derivatives agree with finite differences; `1` where only the first
  does, `0` where the function is flat, `–` where there is nothing to differentiate.
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


def row(name: str, samples: list[Sample]) -> str:
    """One line of the table."""
    traced = [sample for sample in samples if sample.traced]
    through = [sample for sample in traced if sample.through]
    cells = [
        "yes" if passes(arrays.check_eager, samples) else "no",
        ("yes" if passes(arrays.check_traced, traced) else "no") if traced else "–",
        ("yes" if passes(arrays.check_through, through) else "no") if through else "–",
        gradient_of(traced),
    ]
    return f"| `{name.rpartition('.')[2]}` | {' | '.join(cells)} |"


def page() -> str:
    """The text of the page."""
    by_name: dict[str, list[Sample]] = {}
    for sample in SAMPLES:
        by_name.setdefault(sample.name, []).append(sample)
    parts = [HEAD]
    for prefix in ("", "linalg", "special"):
        names = sorted(name for name in by_name if name.rpartition(".")[0] == prefix)
        parts.append(f"\n## {SECTIONS[prefix]}: {len(names)} functions\n")
        parts.append("| function | eager | traced | np | gradient |\n|---|---|---|---|---|")
        parts += [row(name, by_name[name]) for name in names]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
