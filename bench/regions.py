"""Measures layers with a region for each row of a batch:

- compiling windows of a map, and the memory that they take;
- a training step with a window per row, compiled beforehand and compiled in the step, against a fixed layer;
- half-spaces for each row: compiling them, and log-densities.

    python bench/regions.py

Each figure is the best of several repetitions, because other processes can only make a run slower. With PAL_DATA, windows
are those of drone scene 12 around the positions of its tracks; without it, of the campus of the demo.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import pal
from pal.torch import SplineLayer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--windows", type=int, default=10_000)
parser.add_argument("--repetitions", type=int, default=20)
args = parser.parse_args()

BATCH, WIDTH, KNOTS, COMPONENTS, HALF_WIDTH = 128, 512, 14, 8, 1.2


def best(run, repetitions=args.repetitions):
    """Returns the shortest time of several runs, in seconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def scene():
    """Returns a map, places on it with headings, and its name."""
    folder = os.environ.get("PAL_DATA")
    if folder:
        region = pal.Region(pal.read_geojson(Path(folder, "sdd", "scene12_constraints.geojson")))
        table = np.loadtxt(Path(folder, "sdd", "scene12_trajectories.csv"), delimiter=",", skiprows=1)
        steps = np.diff(table[:, 2:], axis=0)
        moving = (np.diff(table[:, 0]) == 0) & steps.any(1)
        return region, table[:-1, 2:][moving], steps[moving], "scene 12"
    file = Path(__file__).parents[1] / "crates" / "pal-cli" / "assets" / "campus.geojson"
    region = pal.Region(pal.read_geojson(file))
    places = region.sample(args.windows, seed=1)
    return region, places, np.random.default_rng(1).normal(size=places.shape), "the campus of the demo"


def step(layer, head, inputs, targets):
    """Returns a function that does one step of Adam."""
    torch.manual_seed(0)
    hidden = [nn.Linear(10, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    network = nn.Sequential(*hidden, nn.Linear(WIDTH, layer.num_params))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)

    def run():
        loss = -head(network(inputs)).log_prob(targets).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    run()
    return run


region, places, headings, name = scene()
chosen = np.random.default_rng(2).choice(len(places), args.windows, replace=len(places) < args.windows)
windows = region.windows(places[chosen], HALF_WIDTH, headings[chosen])
windows = windows[windows.volume > 0]
x, y = pal.reals("x", "y")
box = x.between(-HALF_WIDTH, HALF_WIDTH) & y.between(-HALF_WIDTH, HALF_WIDTH)
layer = SplineLayer(box, KNOTS, COMPONENTS)
for dtype in (torch.float64, torch.float32):
    took = best(lambda: layer.compile_regions(windows, dtype), 5)
    compiled = layer.compile_regions(windows, dtype)
    print(f"{len(windows)} windows of {name}, {KNOTS} knots, {str(dtype)[6:]}: compile {took * 1e3:8.1f} ms,", end="")
    print(f" {len(windows) / took:8.0f} a second, {compiled.nbytes / len(windows):6.0f} bytes each")

inputs, targets = torch.randn(BATCH, 10), torch.zeros(BATCH, 2) + 0.01
rows = windows[:BATCH]
ready = layer.compile_regions(rows, torch.float32)
fixed = SplineLayer(rows[0], KNOTS, COMPONENTS)
runs = {
    "fixed layer": step(fixed, fixed, inputs, targets),
    "a window per row": step(layer, lambda outputs: layer(outputs, ready), inputs, targets),
    "compiled in the step": step(layer, lambda outputs: layer(outputs, rows), inputs, targets),
}
# The runs take turns, so that a disturbance affects all of them.
times = {name: float("inf") for name in runs}
for _ in range(10 * args.repetitions):
    for name, run in runs.items():
        times[name] = min(times[name], best(run, 1))
print(f"training step, batch {BATCH}, 10 -> {WIDTH} -> {WIDTH} -> outputs, Adam, float32")
for name, took in times.items():
    print(f"  {name:22} {took * 1e3:6.2f} ms, {took / times['fixed layer']:.2f} of the fixed layer")

for n, knots in ((2, KNOTS), (3, 5)):
    names = [f"x{j}" for j in range(n)]
    unit = pal.all_of([variable.between(-1, 1) for variable in pal.reals(*names)])
    solid = SplineLayer(unit, knots, COMPONENTS)
    random = np.random.default_rng(3)
    A, b = random.normal(size=(1024, 8, n)), random.uniform(0.5, 1.5, (1024, 8))
    outputs, points = torch.randn(1024, solid.num_params), torch.zeros(1024, n)

    def work(solid=solid, A=A, b=b, outputs=outputs, points=points):
        return solid(outputs, pal.RegionBatch.from_halfspaces(A, b)).log_prob(points)

    took = best(work, 3)
    print(f"half-spaces, {n} variables, {knots} knots, 8 half-spaces, 1024 rows: compile and log_prob {took * 1e3:8.1f} ms")
