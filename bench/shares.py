#!/usr/bin/env python3
"""Shares of a budget: a layer on the constraint against a Dirichlet head and a Gaussian of log-ratios.

    python bench/shares.py --parts 3 --seeds 3
    python bench/shares.py --parts 4 --seeds 3

Shares add up to 1, each has bounds, and the first two may not both be large. Data: two inputs decide about a mixture of
two Dirichlet densities, and shares that violate a bound or the exclusion are drawn again. All three networks have the same
hidden layers, data, steps and optimiser; the densities of the baselines are converted to surface measure. Prints the mean
log-likelihood of test rows, and the fraction of samples that violate the constraint.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import numpy as np
import pal
import torch
from pal.torch import SplineLayer
from torch import nn
from torch.distributions import Dirichlet, MultivariateNormal


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


class DirichletHead:
    def __init__(self, parts):
        self.num_outputs, self.surface = parts, 0.5 * math.log(parts)

    def density(self, outputs):
        return Dirichlet(nn.functional.softplus(outputs.double() + 1) + 1e-3, validate_args=False)

    def log_prob(self, outputs, shares):
        return self.density(outputs).log_prob(shares) - self.surface

    def sample(self, outputs):
        return self.density(outputs).sample().numpy()


class LogRatioGaussian:
    """A Gaussian with full covariance of log(y_j / y_n)."""

    def __init__(self, parts):
        self.n, self.surface = parts - 1, 0.5 * math.log(parts)
        self.num_outputs = self.n + self.n * (self.n + 1) // 2

    def density(self, outputs):
        mean, rest = outputs.double().split([self.n, self.num_outputs - self.n], -1)
        i, j = torch.tril_indices(self.n, self.n)
        values = torch.where(i == j, nn.functional.softplus(rest) + 1e-3, rest)
        scale = torch.zeros(*outputs.shape[:-1], self.n, self.n, dtype=torch.float64)
        scale[..., i, j] = values
        return MultivariateNormal(mean, scale_tril=scale, validate_args=False)

    def log_prob(self, outputs, shares):
        ratios = (shares[..., :-1] / shares[..., -1:]).log()
        return self.density(outputs).log_prob(ratios) - shares.log().sum(-1) - self.surface

    def sample(self, outputs):
        ratios = self.density(outputs).sample()
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, choices=[3, 4], default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--components", type=int, default=8)
    args = parser.parse_args()
    torch.set_num_threads(2)
    region, holds = budget(args.parts)
    print(f"{args.parts} parts: dimension {region.dimension}, surface {region.surface_measure.value:.4f}")
    heads = {
        "layer": lambda: Layer(region, args.components),
        "Dirichlet": lambda: DirichletHead(args.parts),
        "log-ratio Gaussian": lambda: LogRatioGaussian(args.parts),
    }
    results = {name: [] for name in heads}
    for seed in range(args.seeds):
        inputs, shares = data(args.parts, args.rows, holds, seed)
        # Dependent coordinates exactly as the flat has them.
        shares = torch.tensor(region.fill(shares[:, : args.parts - 1]))
        half = args.rows // 2
        for name, make in heads.items():
            head, start = make(), time.perf_counter()
            net = train(head, inputs[:half], shares[:half], args.steps, seed)
            seconds = time.perf_counter() - start
            with torch.no_grad():
                outputs = net(inputs[half:])
                test = float(head.log_prob(outputs, shares[half:]).mean())
                violations = 1 - float(np.mean(holds(head.sample(outputs))))
            results[name].append((test, violations, seconds))
    for name, rows in results.items():
        test, violations, seconds = ([row[k] for row in rows] for k in range(3))
        spread = statistics.stdev(test) if len(test) > 1 else 0.0
        print(
            f"{name:20} log-likelihood {statistics.mean(test):7.3f} +- {spread:.3f}, "
            f"outside {100 * statistics.mean(violations):5.2f} %, {statistics.mean(seconds):5.1f} s"
        )


if __name__ == "__main__":
    main()
