#!/usr/bin/env python3
"""Trains networks on tasks in which every example has a constraint of its own.

    PAL_DATA=FOLDER python bench/per_example.py                     all tasks and models, three seeds
    python bench/per_example.py --tasks maps,budget --models pal,mdn20
    python bench/per_example.py --quick                             what a test runs: small, without data or a flow

Tasks:

    windows12, windows2    drone scenes 12 and 2: the position two seconds ahead of a walker, in a window around it that is
                           turned to its heading, from five positions and a raster of the window; other tracks are tested
    cross12, cross2        the same, trained on scene 12 (2) and tested on the other scene
    maps                   200 simulated maps, 160 of them for training, 40 for the test: windows around walkers
    budget                 what a customer buys of two goods: prices, budget and taste are the inputs

Models: `pal`, kernels on the region of each row; `free`, the same layer without regions; mixtures of Gaussians (`mdn20`) and
a neural spline flow of zuko. All have the same inputs, hidden layers of 128 and 128 units, Adam with a learning rate of 0.001,
batches of 256 and as many epochs; figures are those of the epoch with the best validation. `outside` is the fraction of samples
that violate the constraint of their own row.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from heads import FRAMES, PAST, Flow, Gaussians, read_tracks, split
from torch import nn

import pal
from pal.datasets import campus
from pal.torch import KernelLayer

# Two seconds at three positions a second.
AHEAD = 6
RASTER = 16


class Task(NamedTuple):
    """Rows with inputs, targets and regions, and the rows for training, validation and test."""

    inputs: np.ndarray
    targets: np.ndarray
    regions: pal.RegionBatch
    parts: list[torch.Tensor]
    box: np.ndarray


def windows(region, now, heading, later, half_width):
    """Windows around positions, turned to their headings: the turn of each row, later positions in its frame, a raster of
    what is free in the window, the windows, and which rows have their later position inside."""
    along = heading / np.hypot(*heading.T)[:, None]
    turns = np.stack([along, np.stack([-along[:, 1], along[:, 0]], 1)], 1)
    targets = np.einsum("nij,nj->ni", turns, later - now)
    views = region.windows(now, half_width, headings=heading)
    ticks = (np.arange(RASTER) + 0.5) / RASTER * 2 * half_width - half_width
    grid = np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 1, 2)
    raster = views.contains(np.broadcast_to(grid, (len(grid), len(now), 2))).T
    # Some leave the window, and a target on a wall may be outside after the turn, by rounding.
    return turns, targets, raster, views, views.contains(targets)


def scene(number, half_width=1.2):
    """Windows of a drone scene, with the number of the track of each row."""
    folder = Path(os.environ["PAL_DATA"], "sdd")
    region = pal.Region(pal.read_geojson(folder / f"scene{number}_window_constraints.geojson"))
    past, now, heading, later, groups = [], [], [], [], []
    for group, (frames, places) in enumerate(read_tracks(folder, number)):
        for at in range(PAST - 1, len(places) - AHEAD):
            # Tracks have gaps where somebody stood still or left the window.
            if frames[at + AHEAD] - frames[at - PAST + 1] == FRAMES * (AHEAD + PAST - 1):
                steps = places[at] - places[at - PAST + 1 : at]
                moved = steps[np.hypot(*steps.T) > 0]
                past.append(-steps)
                now.append(places[at])
                heading.append(moved[-1] if len(moved) else np.array([1.0, 0.0]))
                later.append(places[at + AHEAD])
                groups.append(group)
    turns, targets, raster, views, keep = windows(region, *map(np.array, (now, heading, later)), half_width)
    history = np.einsum("nij,nkj->nki", turns, np.array(past)).reshape(len(targets), -1)
    inputs = np.hstack([history, raster])
    return inputs[keep], targets[keep], np.array(groups)[keep], views[keep]


def square(half_width):
    return np.array([[-half_width, half_width]] * 2)


def scenes(train, test):
    """Windows of a scene, divided by tracks; or trained on one scene and tested on all of another one."""
    inputs, targets, groups, views = scene(train)
    parts = split(groups)
    if test != train:
        other = scene(test)
        parts[2] = torch.arange(len(inputs), len(inputs) + len(other[0]))
        inputs, targets = np.vstack([inputs, other[0]]), np.vstack([targets, other[1]])
        views = views + other[3]
    return Task(inputs, targets, views, parts, square(1.2))


def maps(count, walkers, half_width=24.0):
    """Simulated maps; the last fifth of them is for the test, and a tenth before it for validation."""
    rows = []
    for number in range(count):
        world = campus(walkers=walkers, seed=number, map_seed=number)
        now, before = world.inputs[:, :2], world.inputs[:, 2:]
        region = pal.Region(world.constraint)
        _, targets, raster, views, keep = windows(region, now, now - before, world.targets, half_width)
        # Where a walker is on the map tells where gates may be.
        inputs = np.hstack([now, now - before, raster])
        rows.append((inputs[keep], targets[keep], np.full(keep.sum(), number), views[keep]))
    inputs, targets, groups = (np.concatenate([row[k] for row in rows]) for k in range(3))
    views = rows[0][3]
    for row in rows[1:]:
        views = views + row[3]
    parts = np.digitize(groups, [int(0.7 * count), int(0.8 * count)])
    return Task(
        inputs, targets, views, [torch.from_numpy(np.flatnonzero(parts == k)) for k in range(3)], square(half_width)
    )


def budget(count):
    """Amounts of two goods: never negative, and never more than the budget pays for."""
    random = np.random.default_rng(0)
    prices, money = random.uniform(0.5, 2, (count, 2)), random.uniform(1, 4, count)
    taste = random.uniform(-1, 1, count)
    spent = money * random.beta(20, 1, count)
    share = random.beta(4 * np.exp(taste), 4 * np.exp(-taste))
    targets = np.stack([spent * share, spent * (1 - share)], 1) / prices
    A = np.concatenate([prices[:, None], np.broadcast_to(-np.eye(2), (count, 2, 2))], 1)
    b = np.concatenate([money[:, None], np.zeros((count, 2))], 1)
    regions = pal.RegionBatch.from_halfspaces(A, b, variables=["x", "y"])
    inside = regions.contains(targets)
    inputs = np.hstack([prices, money[:, None], taste[:, None]])[inside]
    ends = np.array([[0.0, 8.0]] * 2)
    return Task(inputs, targets[inside], regions[inside], split(np.arange(inside.sum())), ends)


class Kernels:
    """Kernels on the region of each row or, without regions, in the common box."""

    def __init__(self, task, with_regions):
        (x0, x1), (y0, y1) = task.box.tolist()
        x, y = pal.reals("x", "y")
        self.layer = KernelLayer(pal.Constraint(x.between(x0, x1) & y.between(y0, y1), variables=["x", "y"]))
        self.num_params = self.layer.num_params
        self.regions = self.layer.compile_regions(task.regions) if with_regions else None

    def density(self, outputs, rows):
        return self.layer(outputs, None if self.regions is None else self.regions[rows])

    def log_prob(self, outputs, targets, rows):
        return self.density(outputs, rows).log_prob(targets)

    def sample(self, outputs, count, rows):
        return self.density(outputs.double(), rows).sample((count,))


class Baseline:
    """A model of `heads.py`, which knows nothing of regions."""

    def __init__(self, model):
        self.model = model
        self.num_params = getattr(model, "num_params", 0)

    def log_prob(self, outputs, targets, rows):
        return self.model.log_prob(outputs, targets)

    def sample(self, outputs, count, rows):
        return self.model.sample(outputs, count)


def run(name, seed, task, epochs):
    """Trains one model, and returns its figures."""
    train, validation, test = task.parts
    spread = task.inputs[train].std(0)
    scaled = (task.inputs - task.inputs[train].mean(0)) / np.where(spread > 0, spread, 1)
    x, y = torch.tensor(scaled, dtype=torch.float32), torch.tensor(task.targets)
    torch.manual_seed(seed)
    if name == "flow":
        model = Baseline(Flow(y[train]))
        network = model.model.network(x.shape[1])
    else:
        kernels = name in ("pal", "free")
        model = Kernels(task, name == "pal") if kernels else Baseline(Gaussians(int(name.removeprefix("mdn")), y[train]))
        hidden = [nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
        network = nn.Sequential(*hidden, nn.Linear(128, model.num_params))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    @torch.no_grad()
    def mean(rows):
        parts = [model.log_prob(network(x[part]), y[part], part) for part in rows.split(1024)]
        return float(torch.cat(parts).double().mean())

    start = time.process_time()
    best = -math.inf
    for _ in range(epochs):
        for rows in train[torch.randperm(len(train))].split(256):
            loss = -model.log_prob(network(x[rows]), y[rows], rows).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        value = mean(validation)
        if value > best:
            best, tested = value, mean(test)
            kept = {key: value.clone() for key, value in network.state_dict().items()}
    seconds = time.process_time() - start
    network.load_state_dict(kept)
    with torch.no_grad():
        rows = test[torch.randperm(len(test))[:200]]
        samples = model.sample(network(x[rows]), 50, rows).double().numpy()
    outside = 1 - float(np.mean(task.regions[rows.numpy()].contains(samples)))
    return {"val_ll": best, "test_ll": tested, "outside": outside, "processor_seconds": seconds}


def make(name, quick):
    if name == "maps":
        return maps(10 if quick else 200, 4 if quick else 20)
    if name == "budget":
        return budget(300 if quick else 10_000)
    if "PAL_DATA" not in os.environ:
        sys.exit("PAL_DATA is not set: it is the folder with sdd/scene12_trajectories.csv and so on")
    train = int(name.removeprefix("windows").removeprefix("cross"))
    return scenes(train, train if name.startswith("windows") else {12: 2, 2: 12}[train])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", help="tasks, separated by commas")
    parser.add_argument("--models", help="models, separated by commas")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--log", type=Path, default=Path("target/per_example.jsonl"))
    args = parser.parse_args()
    tasks = args.tasks or ("maps,budget" if args.quick else "windows12,windows2,cross12,cross2,maps,budget")
    models = args.models or ("pal,free,mdn8" if args.quick else "pal,free,mdn20,flow")
    epochs, seeds = args.epochs or (2 if args.quick else 30), args.seeds or (1 if args.quick else 3)
    args.log.parent.mkdir(parents=True, exist_ok=True)
    for name in tasks.split(","):
        task = make(name, args.quick)
        for model in models.split(","):
            found = []
            for seed in range(1, seeds + 1):
                found.append(run(model, seed, task, epochs))
                with args.log.open("a") as log:
                    log.write(json.dumps({"task": name, "model": model, "seed": seed, "epochs": epochs, **found[-1]}) + "\n")

            def spread(field):
                values = [figures[field] for figures in found]
                return f"{statistics.mean(values):8.3f} ± {statistics.stdev(values) if len(values) > 1 else 0:.3f}"

            outside = 100 * statistics.mean(figures["outside"] for figures in found)
            seconds = statistics.mean(figures["processor_seconds"] for figures in found)
            line = f"{name:9} {model:6} {seeds} seeds  val {spread('val_ll')}  test {spread('test_ll')}"
            print(f"{line}  outside {outside:.2f} %  {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
