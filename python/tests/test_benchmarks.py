"""Scripts of benchmarks run; their figures are another matter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def quick(script, folder, *options):
    """The figures of a quick run."""
    command = [sys.executable, BENCH / script, "--quick", "--log", "figures.jsonl", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "figures.jsonl").read_text().splitlines()]


def test_a_constraint_per_example(tmp_path):
    pytest.importorskip("torch")
    figures = quick("per_example.py", tmp_path)
    assert [(row["task"], row["model"]) for row in figures] == [
        (task, model) for task in ("maps", "budget") for model in ("pal", "free", "mdn8")
    ]
    # Nothing is outside where rows have their regions, and a lot without them after two epochs.
    assert all((row["outside"] == 0) == (row["model"] == "pal") for row in figures)
    assert all(abs(row[key]) < 100 for row in figures for key in ("val_ll", "test_ll"))


@pytest.mark.parametrize("parts", ["3", "4"])
def test_shares(tmp_path, parts):
    pytest.importorskip("torch")
    figures = quick("shares.py", tmp_path, "--parts", parts)
    assert {row["model"] for row in figures} == {
        "layer", "Dirichlet", "Dirichlet mixture", "log-ratio Gaussian", "log-ratio mixture"
    }  # fmt: skip
    assert all((row["outside"] == 0) == (row["model"] == "layer") and abs(row["test_ll"]) < 100 for row in figures)


def test_transport(tmp_path):
    pytest.importorskip("torch")
    figures = quick("transport.py", tmp_path)
    assert [row["model"] for row in figures] == ["pal", "one", "per-mode"]
    assert all((row["outside"] == 0) == (row["model"] == "pal") and abs(row["test_ll"]) < 100 for row in figures)


def test_orders(tmp_path):
    pytest.importorskip("sklearn")
    figures = quick("orders.py", tmp_path)
    assert [row["model"] for row in figures] == ["pal", "one-hot", "per-value"]
    assert all((row["outside"] == 0) == (row["model"] == "pal") and 0.4 < row["auc"] < 1 for row in figures)
    # A combination of labels that the fitted rows lack has no density there.
    assert abs(figures[0]["test_ll"]) < 100 and figures[1]["test_ll"] is None
