#!/usr/bin/env python3
"""Means of transport and positions on a campus with roads: a mixed layer against independent heads.

    python bench/transport.py --seeds 3                     every model, three seeds
    python bench/transport.py --models pal --seeds 1
    python bench/transport.py --quick                       a small run of everything

Pedestrians keep off the roads, cars stay on them, bikes go everywhere but into buildings (`pal.datasets.transport`). From
the last two positions a network says by which means somebody travels and where that is six steps later.

    pal         MixedLayer: one density of position and means, with the constraint
    one         a categorical head, and a mixture of Gaussians for the position
    per-mode    a categorical head, and a mixture of Gaussians for each means

All networks have hidden layers of 128 and 128 units with ReLU, standardised inputs, Adam with a learning rate of 0.003,
batches of 256, and as many epochs; the Gaussians have full covariances and work on standardised positions. Rows are
divided 70 : 15 : 15 in groups of 40 that belong together. Figures are mean log-densities of test rows, per square metre and
means, after the epoch with the best validation; `outside` is the fraction of samples that violate the constraint. One
JSON line per run goes to the file --log.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path

import numpy as np
import torch
from heads import Gaussians, split
from torch import nn

import pal
from pal.datasets import transport
from pal.torch import MixedLayer


class Pal:
    """One density of position and means, on the constraint."""

    def __init__(self, constraint, args):
        self.layer = MixedLayer(pal.SplineMixture(constraint, knots=args.knots, components=args.components))
        self.num_params = self.layer.num_params

    def log_prob(self, outputs, targets):
        return self.layer(outputs.double()).log_prob(targets)

    def sample(self, outputs, count):
        return self.layer(outputs.double()).sample((count,), generator=torch.Generator().manual_seed(1))


class Heads:
    """A categorical head for the means, and one mixture of Gaussians, or one for each means."""

    def __init__(self, targets, components, each):
        self.means = targets.shape[1] - 2
        self.gaussians = Gaussians(components, targets[:, :2])
        self.mixtures = self.means if each else 1
        self.num_params = self.means + self.mixtures * self.gaussians.num_params

    def parts(self, outputs):
        logits, rest = outputs.split([self.means, self.num_params - self.means], -1)
        return logits.log_softmax(-1), rest.unflatten(-1, (self.mixtures, -1))

    def log_prob(self, outputs, targets):
        logs, params = self.parts(outputs)
        places, means = targets[:, :2], targets[:, 2:].argmax(-1)
        rows = torch.arange(len(targets))
        chosen = params[rows, means if self.mixtures > 1 else 0]
        return logs[rows, means] + self.gaussians.log_prob(chosen, places)

    def sample(self, outputs, count):
        logs, params = self.parts(outputs)
        means = torch.distributions.Categorical(logits=logs).sample((count,))
        chosen = params[torch.arange(len(outputs)), means if self.mixtures > 1 else torch.zeros_like(means)]
        places = self.gaussians.sample(chosen, 1)[0]
        return torch.cat([places, nn.functional.one_hot(means, self.means)], -1).transpose(0, 1)


def run(name, seed, data, args):
    """Trains one model, and returns its figures."""
    constraint, inputs, targets = data
    train, validation, test = split(np.arange(len(inputs)) // 40)
    scaled = (inputs - inputs[train].mean(0)) / inputs[train].std(0)
    x, y = torch.tensor(scaled, dtype=torch.float32), torch.tensor(targets)
    model = Pal(constraint, args) if name == "pal" else Heads(y[train], args.gaussians, name == "per-mode")
    torch.manual_seed(seed)
    hidden = [nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
    network = nn.Sequential(*hidden, nn.Linear(128, model.num_params))
    optimiser = torch.optim.Adam(network.parameters(), lr=args.learning_rate)

    @torch.no_grad()
    def mean(rows):
        parts = [model.log_prob(network(x[part]), y[part]) for part in rows.split(1024)]
        return float(torch.cat(parts).double().mean())

    best = -math.inf
    for epoch in range(1, args.epochs + 1):
        for rows in train[torch.randperm(len(train))].split(256):
            loss = -model.log_prob(network(x[rows]), y[rows]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        score = mean(validation)
        if score > best:
            best, at, tested = score, epoch, mean(test)
            kept = {key: value.clone() for key, value in network.state_dict().items()}
    network.load_state_dict(kept)
    with torch.no_grad():
        samples = model.sample(network(x[test]), 20).reshape(-1, 5).double().numpy()
    # The density of zeros is positive wherever the constraint holds.
    judge = pal.HistogramMixture(constraint, bins=1, components=1)
    outside = np.isneginf(judge.log_prob(np.zeros(judge.num_params), samples))
    return {
        "model": name, "seed": seed, "train_rows": len(train), "val_ll": best, "test_ll": tested, "best_epoch": at,
        "samples": len(samples), "outside": float(outside.mean()),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="pal,one,per-mode", help="models, separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--travellers", type=int, default=600)
    parser.add_argument("--knots", type=int, default=16)
    parser.add_argument("--components", type=int, default=8, help="of the layer")
    parser.add_argument("--gaussians", type=int, default=8, help="components of each mixture of Gaussians")
    parser.add_argument("--quick", action="store_true", help="few rows, two epochs, one seed")
    parser.add_argument("--log", type=Path, default=Path("target/transport.jsonl"))
    args = parser.parse_args()
    if args.quick:
        args.seeds, args.epochs, args.travellers, args.knots, args.components, args.gaussians = 1, 2, 60, 8, 4, 4
    torch.set_num_threads(1)
    args.log.parent.mkdir(parents=True, exist_ok=True)
    data = transport(args.travellers, seed=0)
    for name in args.models.split(","):
        found = []
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            found.append(run(name, seed, data, args))
            with args.log.open("a") as log:
                log.write(json.dumps({"epochs": args.epochs, **found[-1]}) + "\n")
        test = [figures["test_ll"] for figures in found]
        spread = statistics.stdev(test) if len(test) > 1 else 0.0
        outside = 100 * statistics.mean(figures["outside"] for figures in found)
        best = ", ".join(str(figures["best_epoch"]) for figures in found)
        print(
            f"{name:9} {len(found)} seeds  test {statistics.mean(test):8.3f} ± {spread:.3f}  outside {outside:6.2f} %  "
            f"best epochs {best}",
            flush=True,
        )


if __name__ == "__main__":
    main()
