"""Random bits are the words of NumPy: by a loop of XLA on CPUs, by straight code elsewhere."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wend.backends.jax.emit.random import _counters, _philox


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_words_are_those_of_numpy(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    key = np.array([2**63 + 5, 7], np.uint64)
    counter = np.array([2**64 - 2, 2**64 - 1, 3, 0], np.uint64)  # carries into the third word
    state = {"bit_generator": "Philox", "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
    generator = np.random.Philox(0)
    words = {"counter": counter, "key": key}
    generator.state = {**state, "state": words, "buffer": np.zeros(4, np.uint64)}
    expected = generator.random_raw(12)

    @jax.jit
    def bits(key: Any, counter: Any) -> Any:
        return jnp.stack(_philox(key, _counters(counter, 3)), axis=-1).reshape(-1)

    np.testing.assert_array_equal(bits(key, counter), expected)
    is_loop = "while" in bits.lower(key, counter).as_text()
    assert is_loop == (platform == "cpu")
