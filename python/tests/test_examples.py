"""Every example runs; examples of networks take few steps here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "python"
NEEDS = {"drone_scene": "torch", "mixture_head": "torch", "pysmt_interop": "pysmt", "transport": "torch"}
OPTIONS = {
    "drone_scene": ["--steps", "30"],
    "mixture_head": ["--steps", "30", "--walkers", "60"],
    "transport": ["--steps", "30", "--travellers", "60"],
}


def run(command, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_example(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    command = [sys.executable, FOLDER / f"{name}.py", *OPTIONS.get(name, [])]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_drone_scene_reads_files(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    (tmp_path / "map.geojson").write_text(
        '{"type": "FeatureCollection", "bounds": [0, 0, 100, 60], "features": [{"type": "Feature", "geometry":'
        ' {"type": "Polygon", "coordinates": [[[40, 20], [60, 20], [60, 40], [40, 40], [40, 20]]]}}]}'
    )
    rows = [f"{track},{step},{2 + 1.5 * step + track / 100},{5 + track}" for track in range(12) for step in range(60)]
    (tmp_path / "tracks.csv").write_text("\n".join(["trajectory_id,frame,x,y", *rows]))
    options = ["--map", "map.geojson", "--tracks", "tracks.csv", "--steps", "5", "--plot", "out.png"]
    command = [sys.executable, FOLDER / "drone_scene.py", *options]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0 of 696 positions violate" in done.stdout and "none in a wall" in done.stdout
    assert (tmp_path / "out.png").stat().st_size > 1000
