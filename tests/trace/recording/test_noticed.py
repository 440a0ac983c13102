"""Each node of a recording is looked at once, whatever is removed and how often it is asked."""

from __future__ import annotations

import random
from types import SimpleNamespace

from wend.trace.recording import noticed
from wend.trace.recording.noticed import NoticedNodes


def test_it_agrees_with_a_look_at_all_nodes(monkeypatch) -> None:
    monkeypatch.setattr(noticed, "is_noticed", lambda node: node.is_noticed)
    for seed in range(200):
        rng = random.Random(seed)
        nodes: list[SimpleNamespace] = []
        found = NoticedNodes(nodes)
        for _ in range(40):
            if nodes and rng.random() < 0.2:
                nodes.remove(rng.choice(nodes))
            else:
                nodes.append(SimpleNamespace(is_noticed=rng.random() < 0.05, number=rng.random()))
            if rng.random() < 0.7:
                assert bool(found) == any(node.is_noticed for node in nodes)


def test_each_node_is_looked_at_once(monkeypatch) -> None:
    looks = 0

    def look(node) -> bool:
        nonlocal looks
        looks += 1
        return node.is_noticed

    monkeypatch.setattr(noticed, "is_noticed", look)
    nodes: list[SimpleNamespace] = []
    found = NoticedNodes(nodes)
    for k in range(1000):
        nodes.append(SimpleNamespace(is_noticed=False, number=k))
        assert not found
    assert looks == 1000
