#!/usr/bin/env python3
"""Trains an ordinary network with PAL's layers of splines (`pal`) and of kernels (`kernel`), and with mixtures of
Gaussians on the same rows, and a flow.

    PAL_DATA=FOLDER python bench/heads.py                                  campus, scenes 12 and 2; one seed
    PAL_DATA=FOLDER python bench/heads.py --only scene12 --models pal,mdn20 --seeds 10

Everything is left at its default: PyTorch's initialisation, hidden layers of 128 and 128 units with ReLU, standardised
inputs, Adam with a learning rate of 0.001, batches of 256, 60 epochs. The mixtures have full covariances and work on
standardised outputs; so does the flow, a neural spline flow of zuko (`pip install zuko`) with three transformations,
whose networks have the same hidden layers. Figures are mean log-densities in the units of the data after the epoch with
the best validation; `outside` is the fraction of samples that violate the constraint. One JSON line per run goes to the
file --log.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

import pal
from pal.datasets import campus
from pal.torch import KernelLayer, SplineLayer

# Positions are taken three times a second; targets are three seconds ahead.
PAST, AHEAD, FRAMES = 5, 9, 10


def read_tracks(folder: Path, number: int):
    """Frames and positions of every track of a scene."""
    tracks = defaultdict(list)
    with (folder / f"scene{number}_trajectories.csv").open() as table:
        for row in csv.DictReader(table):
            tracks[row["trajectory_id"]].append([float(row[key]) for key in ("frame", "x", "y")])
    return [(np.array(track)[:, 0], np.array(track)[:, 1:]) for track in tracks.values()]


def scene(folder: Path, number: int):
    """Windows of tracks: five positions, the last first, and the one three seconds later; with the number of the
    track."""
    constraint = pal.read_geojson(folder / f"scene{number}_window_constraints.geojson")
    inputs, targets, groups = [], [], []
    for group, (frames, places) in enumerate(read_tracks(folder, number)):
        for now in range(PAST - 1, len(places) - AHEAD):
            # Tracks have gaps where somebody stood still or left the window.
            if frames[now + AHEAD] - frames[now - PAST + 1] == FRAMES * (AHEAD + PAST - 1):
                inputs.append(places[now - PAST + 1 : now + 1][::-1].ravel())
                targets.append(places[now + AHEAD])
                groups.append(group)
    return constraint, np.array(inputs), np.array(targets), np.array(groups)


def walks():
    """The simulated campus; every 40 rows are a group, because walks are not numbered there."""
    constraint, inputs, targets = campus(walkers=400, seed=0)
    return constraint, inputs, targets, np.arange(len(inputs)) // 40


def split(groups):
    """Divides the rows 70 : 15 : 15 by groups, in the same way for all models and seeds."""
    labels = np.unique(groups)
    order = np.random.default_rng(0).permutation(len(labels))
    cuts = [int(0.7 * len(labels)), int(0.85 * len(labels))]
    return [torch.from_numpy(np.flatnonzero(np.isin(groups, labels[part]))) for part in np.split(order, cuts)]


class Gaussians:
    """A mixture of Gaussians with full covariances in standardised coordinates."""

    def __init__(self, components, targets):
        self.num_params = 6 * components
        self.mean, self.spread = targets.mean(0).float(), targets.std(0).float()
        self.log_volume = float(self.spread.log().sum())

    def mixture(self, outputs):
        logits, mean, widths, tilt = outputs.unflatten(-1, (-1, 6)).split([1, 2, 2, 1], -1)
        widths = nn.functional.softplus(widths) + 1e-3
        factor = torch.cat([widths[..., :1], torch.zeros_like(tilt), tilt, widths[..., 1:]], -1).unflatten(-1, (2, 2))
        parts = MultivariateNormal(mean, scale_tril=factor, validate_args=False)
        return MixtureSameFamily(Categorical(logits=logits.squeeze(-1)), parts, validate_args=False)

    def log_prob(self, outputs, targets):
        scaled = (targets.float() - self.mean) / self.spread
        return self.mixture(outputs).log_prob(scaled) - self.log_volume

    def sample(self, outputs, count):
        return self.mixture(outputs).sample((count,)) * self.spread + self.mean


class Flow:
    """A neural spline flow given inputs, in standardised coordinates. Its network is the flow itself, which makes a
    distribution of inputs."""

    def __init__(self, targets):
        self.mean, self.spread = targets.mean(0).float(), targets.std(0).float()
        self.log_volume = float(self.spread.log().sum())

    @staticmethod
    def network(inputs):
        import zuko

        return zuko.flows.NSF(2, inputs, transforms=3, hidden_features=(128, 128))

    def log_prob(self, flow, targets):
        return flow.log_prob((targets.float() - self.mean) / self.spread) - self.log_volume

    def sample(self, flow, count):
        return flow.sample((count,)) * self.spread + self.mean


class Pal:
    """PAL's layer with default settings, but for those that were given on the command line."""

    def __init__(self, layer, region, **settings):
        self.layer = layer(region, **settings)
        self.num_params = self.layer.num_params

    def log_prob(self, outputs, targets):
        return self.layer(outputs).log_prob(targets)

    def sample(self, outputs, count):
        return self.layer(outputs.double()).sample((count,))


def run(name, seed, data, args):
    """Trains one model, and returns its figures."""
    constraint, inputs, targets, groups = data
    train, validation, test = split(groups)
    scaled = (inputs - inputs[train].mean(0)) / inputs[train].std(0)
    x, y = torch.tensor(scaled, dtype=torch.float32), torch.tensor(targets)
    if name == "pal":
        given = {"knots": args.knots, "components": args.components}
        model = Pal(SplineLayer, pal.Region(constraint), **given)
    elif name == "kernel":
        model = Pal(KernelLayer, pal.Region(constraint), components=args.components)
    elif name == "flow":
        model = Flow(y[train])
    else:
        model = Gaussians(int(name.removeprefix("mdn")), y[train])
    torch.manual_seed(seed)
    if name == "flow":
        network = model.network(x.shape[1])
    else:
        hidden = [nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
        network = nn.Sequential(*hidden, nn.Linear(128, model.num_params))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    @torch.no_grad()
    def mean(rows):
        parts = [model.log_prob(network(x[part]), y[part]) for part in rows.split(1024)]
        return float(torch.cat(parts).double().mean())

    wall, processor = time.perf_counter(), time.process_time()
    curve, best = [mean(validation)], -math.inf
    for epoch in range(1, args.epochs + 1):
        for rows in train[torch.randperm(len(train))].split(256):
            loss = -model.log_prob(network(x[rows]), y[rows]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        curve.append(mean(validation))
        if curve[-1] > best:
            best, at, tested = curve[-1], epoch, mean(test)
            kept = {key: value.clone() for key, value in network.state_dict().items()}
    figures = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    network.load_state_dict(kept)
    with torch.no_grad():
        rows = test[torch.randperm(len(test))[:200]]
        samples = model.sample(network(x[rows]), 50).reshape(-1, 2).double().numpy()
    return {
        "model": name, "seed": seed, "train_rows": len(train), "val_ll": best, "test_ll": tested, "best_epoch": at,
        "last_val_ll": curve[-1], "start_val_ll": curve[0], "val_ll_12": curve[min(12, args.epochs)],
        "outside": 1 - float(np.mean(constraint.contains(samples))), **figures,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="campus,scene12,scene2", help="tasks, separated by commas")
    parser.add_argument("--models", default="pal,kernel,mdn8,mdn20,mdn50,flow", help="models, separated by commas")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--knots", type=int, help="of PAL; by default those of the layer")
    parser.add_argument("--components", type=int, help="of PAL; by default those of the layer")
    parser.add_argument("--log", type=Path, default=Path("target/heads.jsonl"))
    args = parser.parse_args()
    args.log.parent.mkdir(parents=True, exist_ok=True)
    for task in args.only.split(","):
        if task == "campus":
            data = walks()
        elif "PAL_DATA" in os.environ:
            data = scene(Path(os.environ["PAL_DATA"], "sdd"), int(task.removeprefix("scene")))
        else:
            sys.exit("PAL_DATA is not set: it is the folder with sdd/scene12_trajectories.csv and so on")
        for name in args.models.split(","):
            found = []
            for seed in range(args.first_seed, args.first_seed + args.seeds):
                found.append(run(name, seed, data, args))
                with args.log.open("a") as log:
                    log.write(json.dumps({"task": task, "epochs": args.epochs, **found[-1]}) + "\n")

            def spread(field):
                values = [figures[field] for figures in found]
                return f"{statistics.mean(values):8.3f} ± {statistics.stdev(values) if len(values) > 1 else 0:.3f}"

            outside = 100 * statistics.mean(figures["outside"] for figures in found)
            seconds = statistics.mean(figures["seconds"] for figures in found)
            worst = min(figures["val_ll"] for figures in found)
            line = f"{task:8} {name:6} {len(found):2} seeds  val {spread('val_ll')} (worst {worst:.3f})"
            print(f"{line}  test {spread('test_ll')}  outside {outside:.2f} %  {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
