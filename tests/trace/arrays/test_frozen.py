"""Arrays are read-only while they are held, and afterwards what they were before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wend.trace.arrays import frozen


@given(st.lists(st.integers(0, 3), max_size=6), st.randoms(use_true_random=False))
def test_in_whatever_order_views_are_released(places, random):
    base = np.zeros(6)
    held = base[1:]
    arrays = [base, held, held[:2], np.broadcast_to(base, (2, 6))]
    before = [x.flags.writeable for x in arrays]
    for place in places:
        frozen.hold(arrays[place])
    random.shuffle(places)
    while places:
        assert not any(arrays[place].flags.writeable for place in places)
        frozen.release(arrays[places.pop()])
    assert [x.flags.writeable for x in arrays] == before
