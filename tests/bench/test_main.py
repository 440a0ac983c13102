"""The whole way, on small arguments and what is always there: wend, Python and C."""

import json

import pytest
from bench.__main__ import main
from bench.peers.c import compiler

PEERS = ["wend", "python"] + ["c"] * (compiler() is not None)


def run(tmp_path, *options):
    file = tmp_path / "figures.json"
    assert main([*options, "--runs", "2", "--small", "--core", "-1", "--json", str(file)]) == 0
    (results,) = json.loads(file.read_text())["workloads"]
    return results


def test_a_workload_is_measured_checked_and_judged(tmp_path, capsys):
    results = run(tmp_path, "scalar_while", "--only", ",".join(PEERS))
    assert set(results["figures"]["value"]) == set(PEERS)
    for row in results["figures"].values():
        for peer, figure in row.items():
            if peer == "python" and figure["refuses"]:
                assert figure["refuses"] == "has no derivatives"
                continue
            assert len(figure["samples"]) == 2
            assert figure["off"] < 1e-12
            assert not figure["wrong"]
    told = capsys.readouterr().out
    assert "96 trips, medians of 2 runs" in told
    assert "goal ≤ 0.6× C, libm" in told


def test_fresh_processes(tmp_path):
    figures = run(tmp_path, "first_call", "--only", "python")["figures"]
    for measure in ("import", "first value"):
        assert len(figures[measure]["python"]["samples"]) == 2


def test_memory(tmp_path):
    figures = run(tmp_path, "million", "--only", "wend")["figures"]
    assert len(figures["memory"]["wend"]["samples"]) == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [(["vec1000"], "no workload 'vec1000'"), (["--only", "stan"], "no peer 'stan'")],
)
def test_unknown_names_are_told(given, complaint, capsys):
    with pytest.raises(SystemExit):
        main(given)
    assert complaint in capsys.readouterr().err
