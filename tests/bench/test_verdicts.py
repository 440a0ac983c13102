"""Tables and goals, of figures made up."""

import pytest
from bench import goals, summary, table
from bench.figures import Figure, Results
from bench.goals import Goal


def results(**rows):
    return Results("scalar_while", "a loop", 3, 1000, [2.0, 0.5], rows)


def test_a_table_shows_ratios_refusals_and_wrong_answers():
    value = {
        "wend": Figure([1e-5, 3e-5, 2e-5]),
        "jax": Figure([4e-5]),
        "warp": Figure([1e-5] * 3, wrong=[2.0, 0.75]),
        "numba": Figure(refuses="has no derivatives"),
    }
    assert list(table.lines(results(value=value))) == [
        "scalar_while: a loop",
        "  1000 trips, medians of 3 runs, with ratios to wend's",
        "                                      value, ns a trip",
        "  wend                                      20   1.00×",
        "  JAX                              (1 runs) 40   2.00×",
        "  Numba                                        refuses",
        "  Warp                                WRONG 10   0.50×",
        "    Warp, value: WRONG: it answers (2, 0.75) where (2, 0.5) is right",
        "    Numba, value: refuses: has no derivatives",
    ]


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (Goal("w", "value", 0.6, "c"), "goal ≤ 0.6× C, libm, measured 0.50×, met"),
        (Goal("w", "value", 0.4, "c"), "goal ≤ 0.4× C, libm, measured 0.50×, not met"),
        (
            Goal("w", "value", 1.0, goals.REST),
            "goal ≤ 1× every other peer, measured 2.00× (JAX), not met",
        ),
        (
            Goal("w", "gradient", 3.0, "c", "value"),
            "goal ≤ 3× C, libm (value), measured 1.50×, met",
        ),
        (Goal("w", "value", 2e-3), "goal ≤ 2 ms, measured 1 ms, met"),
        (Goal("w", "memory", 16.0), "goal ≤ 16.0 bytes a trip, measured 8.0 bytes a trip, met"),
        (Goal("w", "value", 1.0, "numba"), "goal ≤ 1× Numba, not measured: Numba gives no figure"),
        (Goal("w", "import", 0.1), "goal ≤ 100 ms, not measured"),
    ],
)
def test_goals(goal, verdict):
    found = results(
        value={
            "wend": Figure([1e-3]),
            "c": Figure([2e-3]),
            "jax": Figure([5e-4]),
            "warp": Figure([1e-9], wrong=[1.0]),  # who is wrong is ahead of nobody
        },
        gradient={"wend": Figure([3e-3])},
        memory={"wend": Figure([8000.0])},
    )
    assert goals.verdict(goal, found) == verdict


def test_a_wrong_answer_meets_no_goal():
    found = results(value={"wend": Figure([1e-3], wrong=[1.0]), "c": Figure([2e-3])})
    assert goals.verdict(Goal("w", "value", 0.6, "c"), found).endswith("not measured")


def test_every_goal_is_of_a_measure_that_is_taken():
    from bench import workloads

    for goal in goals.GOALS:
        for name in workloads.named([goal.workload]):
            measures = workloads.load(name).measures
            assert goal.measure in measures
            assert not goal.beside or goal.beside in measures


def test_groups_have_geometric_means(monkeypatch):
    def of(wend, numba, **others):
        return results(value={"wend": Figure([wend]), "numba": Figure([numba], **others)})

    found = {
        "npbench-lu": of(1.0, 2.0),
        "npbench-adi": of(1.0, 8.0),
        "npbench-gemm": of(1.0, 100.0, wrong=[1.0]),
        "npbench-atax": results(value={"wend": Figure([1.0]), "numba": Figure(refuses="no")}),
    }
    (line,) = summary.lines(found)
    assert line == "npbench, value, geometric means: Numba 4.00× (2)"
    monkeypatch.setattr(goals, "GOALS", [Goal("npbench", "value", 1.0, "numba")])
    (line,) = goals.lines(found)
    assert line == "npbench, value: goal ≤ 1× Numba, measured 0.25× in the mean of 2, met"
