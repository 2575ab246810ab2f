"""Scripts of benchmarks run; their figures are another matter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def test_a_constraint_per_example(tmp_path):
    pytest.importorskip("torch")
    command = [sys.executable, BENCH / "per_example.py", "--quick", "--log", "figures.jsonl"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in (tmp_path / "figures.jsonl").read_text().splitlines()]
    assert [(row["task"], row["model"]) for row in figures] == [
        (task, model) for task in ("maps", "budget") for model in ("pal", "free", "mdn8")
    ]
    # Nothing is outside where rows have their regions, and a lot without them after two epochs.
    assert all((row["outside"] == 0) == (row["model"] == "pal") for row in figures)
    assert all(abs(row[key]) < 100 for row in figures for key in ("val_ll", "test_ll"))
