"""What became of random programs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tests.semantics.generator import Generated
from tests.semantics.world import Difference


@dataclass
class Tally:
    """How many programs there were of each kind.

    Attributes:
        kinds: how many were equal, different, refused, or raised a raw error.
        features: in how many equal programs each feature occurs.
        refusals: how many were refused with the same words.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.kinds.total()

    def add(self, program: Generated, difference: Difference | None) -> None:
        self.kinds[difference.kind if difference else "equal"] += 1
        if difference is None:
            self.features.update(program.features)
        elif difference.kind == "refused":
            line = difference.found.partition("\n")[0]
            self.refusals[re.sub(r" at <[^>]*>:\d+|`[^`]*`|<traced[^>]*>|\d+", "_", line)] += 1

    def __str__(self) -> str:
        features = ", ".join(f"{name} {count}" for name, count in self.features.most_common())
        refusals = "\n".join(f"  {n:4} {words[:140]}" for words, n in self.refusals.most_common(25))
        share = 100 * self.kinds["refused"] / max(self.count, 1)
        kinds = f"{dict(self.kinds)}\nin equal programs: {features}"
        return f"{kinds}\nrefused, {share:.1f} %:\n{refusals}"
