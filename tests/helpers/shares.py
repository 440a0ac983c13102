"""Which of many tests alike a short run takes; `make test-long` takes all."""

from __future__ import annotations

import os
from zlib import crc32

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


SAMPLED_SHARE = 10  # of those that are marked `sampled`, without a share of their own


def sized(short: int, long: int) -> int:
    """How many a test tries: fewer in a short run."""
    return long if IS_LONG else short


def is_chosen(name: str, share: int) -> bool:
    """Whether a test is one of the chosen, one in `share`: the same ones in every short run."""
    return IS_LONG or crc32(name.encode()) % share == 0
