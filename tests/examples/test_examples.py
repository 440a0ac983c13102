"""The examples are plain NumPy: with one decorator they give what NumPy gives."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend

FOLDER = Path(__file__).parents[2] / "examples"


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / f"{name}.py"))


@pytest.mark.parametrize(
    ("name", "function", "more"),
    [
        ("kmeans", "kmeans", ()),
        ("life", "live", (50,)),
        ("pagerank", "pagerank", ()),
        ("conjugate_gradients", "solve", ()),
    ],
)
def test_the_compiled_program_is_the_plain_one(name: str, function: str, more: tuple) -> None:
    module = load(name)
    data = module["example_data"]()
    args = (*(data if isinstance(data, tuple) else (data,)), *more)
    plain = module[function](*args)
    found = wend.function(module[function])(*args)
    for mine, theirs in zip(found, plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def test_the_kalman_filter_and_its_gradient() -> None:
    module = load("kalman")
    fun, positions = module["negative_log_likelihood"], module["example_data"](30)
    start = np.array([-1.0, 0.2])
    value, gradient = wend.value_and_grad(fun)(start, positions)
    np.testing.assert_allclose(value, fun(start, positions), rtol=1e-12)
    for k in range(2):
        step = np.eye(2)[k] * 1e-6
        slope = (fun(start + step, positions) - fun(start - step, positions)) / 2e-6
        np.testing.assert_allclose(gradient[k], slope, rtol=1e-6)


def test_the_net_learns() -> None:
    module = load("digits")
    rng = np.random.default_rng(0)
    digits = rng.integers(10, size=200)
    images = rng.random((10, 64))[digits] + 0.05 * rng.normal(size=(200, 64))
    weights, value = module["train"](module["start"](), images, digits, 100, 0.5)
    assert value < 0.2
    right = (module["scores"](weights, images).argmax(axis=1) == digits).mean()
    assert right > 0.98


@pytest.mark.parametrize("environment", ["CartPole", "HostCartPole"])
def test_the_agent_with_a_memory_learns(environment: str) -> None:
    module = load("reinforce")
    world = module[environment](1)
    agent = module["Agent"](world)
    lengths = module["train"](agent, 120)
    assert np.mean(lengths[-20:]) > 3 * np.mean(lengths[:20])
    assert agent.learn.trace_count == 1
    assert getattr(world, "steps", sum(lengths)) == sum(lengths)  # each step once


@pytest.mark.parametrize("environment", ["CartPole", "HostCartPole"])
def test_the_agent_learns_what_plain_python_learns(environment: str) -> None:
    module = load("reinforce")
    compiled, plain = (module["Agent"](module[environment](2)) for _ in range(2))
    with wend.config(eager=True):
        expected = module["train"](plain, 3)
    assert module["train"](compiled, 3) == expected
    for name, weights in compiled.weights.items():
        np.testing.assert_allclose(weights.value, plain.weights[name].value, rtol=1e-9, atol=1e-12)


def test_many_fits_are_those_of_each_start() -> None:
    module = load("predator_prey")
    starts, observed = module["example_data"](3)
    logs, values, steps = wend.vmap(module["fit"], (0, None, None))(starts, observed, 20)
    one = wend.function(module["fit"])
    for k, start in enumerate(starts):
        expected = one(start, observed, 20)
        np.testing.assert_allclose(logs[k], expected[0], rtol=1e-9)
        np.testing.assert_allclose(values[k], expected[1], rtol=1e-7)
        assert steps[k] == expected[2]
    picture = ET.fromstring(module["picture"](np.exp(logs[0]), observed, steps))
    circles = [x for x in picture if x.tag.endswith("circle")]
    assert len(circles) == observed.size


def test_greeks_of_an_option() -> None:
    module = load("barrier_option")
    price, keys = wend.function(module["price"]), module["example_data"](50)
    value, greeks = wend.value_and_grad(price, (1, 2))(keys, 90.0, 0.25)
    np.testing.assert_allclose(value, price(keys, 90.0, 0.25), rtol=1e-12)
    for k, step in enumerate(np.eye(2) * 1e-5):
        upper, lower = (price(keys, 90.0 + s * step[0], 0.25 + s * step[1]) for s in (1, -1))
        np.testing.assert_allclose(greeks[k], (upper - lower) / 2e-5, rtol=1e-5)
    lines = ET.fromstring(module["picture"](np.array([80.0, 90.0]), [1.0, 3.0], [0.1, 0.4], [2, 9]))
    assert [x.tag.rpartition("}")[2] for x in lines].count("polyline") == 3
