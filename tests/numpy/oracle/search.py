"""Search calls for differences, a batch of calls to a compiled function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.numpy.oracle.comparing import Call, compiled, difference, expected
from tests.numpy.oracle.listed import is_listed

BATCH = 40


def differences(calls: Sequence[Call], backend: str) -> Iterator[tuple[Call, str]]:
    """The calls whose outcomes differ, and how; "refused: …" where wend says that it cannot."""
    for start in range(0, len(calls), BATCH):
        batch = [(call, expected(call)) for call in calls[start : start + BATCH]]
        batch.sort(key=lambda pair: isinstance(pair[1], Exception))
        returning = [call for call, outcome in batch if not isinstance(outcome, Exception)]
        groups = [returning, *([call] for call, _ in batch[len(returning) :])]
        results = [outcome for group in groups if group for outcome in compiled(group, backend)]
        for (call, reference), result in zip(batch, results, strict=True):
            words = difference(call, result, reference)
            if words and not is_listed(call, result, reference):
                yield call, words
