#!/usr/bin/env python3
"""Shares of a budget: a layer on the constraint against Dirichlet heads and Gaussians of log-ratios, one each or mixtures.

    python bench/shares.py --parts 3 --seeds 3
    python bench/shares.py --parts 4 --seeds 3
    python bench/shares.py --quick

Shares add up to 1, each has bounds, and the first two may not both be large. Data: two inputs decide about a mixture of
two Dirichlet densities, and shares that violate a bound or the exclusion are drawn again. All networks have the same
hidden layers, data, steps and optimiser; the densities of the baselines are converted to surface measure. Prints the mean
log-likelihood of test rows, and the fraction of samples, one for each of them, that violate the constraint. One JSON line per
run goes to the file --log.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Dirichlet, MixtureSameFamily, MultivariateNormal

import pal
from pal.torch import SplineLayer


def budget(parts):
    """The constraint, and the same as a test of arrays."""
    names = "abcd"[:parts]
    y = pal.reals(*names)
    low, high, both = 0.05, [0.7, 0.8, 0.9, 0.6][:parts], 0.35
    constraint = sum(y[1:], y[0]) == 1
    for share, most in zip(y, high):
        constraint = constraint & share.between(str(low), str(most))
    constraint = constraint & ~((y[0] > str(both)) & (y[1] > str(both)))

    def holds(rows):
        bounded = ((rows >= low) & (rows <= np.array(high))).all(-1)
        return bounded & ~((rows[..., 0] > both) & (rows[..., 1] > both))

    return pal.Region(constraint), holds


def data(parts, rows, holds, seed):
    """Inputs, and shares from a mixture of two Dirichlet densities that depends on them, given the constraint."""
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(rows, 2))
    base = np.array([[6.0, 2, 3, 2], [2.0, 6, 2, 3]])[:, :parts]
    tilt = np.array([[1.0, -1, 0.5, 0], [-0.5, 1, 0, 0.5]])[:, :parts]
    chance = 1 / (1 + np.exp(-2 * inputs[:, 0]))
    shares, open_rows = np.zeros((rows, parts)), np.arange(rows)
    while len(open_rows):
        which = (random.random(len(open_rows)) < chance[open_rows]).astype(int)
        alpha = base[which] * np.exp(0.4 * inputs[open_rows, 1:] * tilt[which])
        drawn = random.gamma(alpha)
        drawn /= drawn.sum(1, keepdims=True)
        good = holds(drawn)
        shares[open_rows[good]] = drawn[good]
        open_rows = open_rows[~good]
    return torch.tensor(inputs, dtype=torch.float32), shares


class Layer:
    def __init__(self, region, components):
        self.layer = SplineLayer(region, knots=16 if region.dimension == 2 else 10, components=components)
        self.num_outputs = self.layer.num_params

    def log_prob(self, outputs, shares):
        return self.layer(outputs).log_prob(shares)

    def sample(self, outputs):
        return self.layer(outputs).sample().double().numpy()


class Mixture:
    """Baselines: mixtures of one or more densities of shares, each with some outputs of the network."""

    def __init__(self, parts, outputs, components):
        self.components, self.outputs, self.surface = components, outputs, 0.5 * math.log(parts)
        self.num_outputs = components * (1 + outputs)

    def mixture(self, outputs):
        weights, rest = outputs.double().unflatten(-1, (self.components, -1)).split([1, self.outputs], -1)
        return MixtureSameFamily(Categorical(logits=weights.squeeze(-1)), self.density(rest), validate_args=False)


class DirichletHead(Mixture):
    def __init__(self, parts, components):
        super().__init__(parts, parts, components)

    def density(self, outputs):
        return Dirichlet(nn.functional.softplus(outputs + 1) + 1e-3, validate_args=False)

    def log_prob(self, outputs, shares):
        return self.mixture(outputs).log_prob(shares) - self.surface

    def sample(self, outputs):
        return self.mixture(outputs).sample().numpy()


class LogRatioGaussian(Mixture):
    """Gaussians with full covariances of log(y_j / y_n)."""

    def __init__(self, parts, components):
        self.n = parts - 1
        super().__init__(parts, self.n + self.n * (self.n + 1) // 2, components)

    def density(self, outputs):
        mean, rest = outputs.split([self.n, self.outputs - self.n], -1)
        i, j = torch.tril_indices(self.n, self.n)
        values = torch.where(i == j, nn.functional.softplus(rest) + 1e-3, rest)
        scale = torch.zeros(*outputs.shape[:-1], self.n, self.n, dtype=torch.float64)
        scale[..., i, j] = values
        return MultivariateNormal(mean, scale_tril=scale, validate_args=False)

    def log_prob(self, outputs, shares):
        ratios = (shares[..., :-1] / shares[..., -1:]).log()
        return self.mixture(outputs).log_prob(ratios) - shares.log().sum(-1) - self.surface

    def sample(self, outputs):
        ratios = self.mixture(outputs).sample()
        return torch.softmax(torch.cat([ratios, torch.zeros_like(ratios[..., :1])], -1), -1).numpy()


def train(head, inputs, shares, steps, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, head.num_outputs))
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = torch.randint(len(inputs), (256,))
        loss = -head.log_prob(net(inputs[rows]), shares[rows]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return net


def run(name, seed, args):
    """Trains one head, and returns its figures."""
    region, holds = budget(args.parts)
    inputs, shares = data(args.parts, args.rows, holds, seed)
    # Dependent coordinates exactly as the flat has them.
    shares = torch.tensor(region.fill(shares[:, : args.parts - 1]))
    half = args.rows // 2
    head = HEADS[name](region, args)
    net = train(head, inputs[:half], shares[:half], args.steps, seed)
    with torch.no_grad():
        outputs = net(inputs[half:])
        test = float(head.log_prob(outputs, shares[half:]).mean())
        violations = 1 - float(np.mean(holds(head.sample(outputs))))
    return {"parts": args.parts, "model": name, "seed": seed, "train_rows": half, "test_ll": test, "outside": violations}


HEADS = {
    "layer": lambda region, args: Layer(region, args.components),
    "Dirichlet": lambda region, args: DirichletHead(args.parts, 1),
    "Dirichlet mixture": lambda region, args: DirichletHead(args.parts, args.components),
    "log-ratio Gaussian": lambda region, args: LogRatioGaussian(args.parts, 1),
    "log-ratio mixture": lambda region, args: LogRatioGaussian(args.parts, args.components),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, choices=[3, 4], default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="few rows and steps, one seed")
    parser.add_argument("--log", type=Path, default=Path("target/shares.jsonl"))
    args = parser.parse_args()
    if args.quick:
        args.seeds, args.steps, args.rows, args.components = 1, 20, 400, 2
    torch.set_num_threads(1)
    args.log.parent.mkdir(parents=True, exist_ok=True)
    region, _ = budget(args.parts)
    print(f"{args.parts} parts: dimension {region.dimension}, surface {region.surface_measure.value:.4f}")
    for name in HEADS:
        found = []
        for seed in range(args.seeds):
            found.append(run(name, seed, args))
            with args.log.open("a") as log:
                log.write(json.dumps({"steps": args.steps, **found[-1]}) + "\n")
        test = [figures["test_ll"] for figures in found]
        spread = statistics.stdev(test) if len(test) > 1 else 0.0
        outside = 100 * statistics.mean(figures["outside"] for figures in found)
        print(f"{name:20} log-likelihood {statistics.mean(test):7.3f} ± {spread:.3f}, outside {outside:5.2f} %", flush=True)


if __name__ == "__main__":
    main()
