#!/usr/bin/env python3
"""Times a training step with a layer of kernels against mixtures of as many Gaussians of torch.distributions.

    PAL_DATA=FOLDER python bench/kernels.py --repetitions 25

Batches of 128 rows, a network of 512 and 512 units, 16 components on scene 12, Adam, two threads. Both networks are
trained for some steps first, so that kernels are as narrow as they become. Beside it, the time for the pass of the core
alone, and for one sample, one mode and one entropy of each of 128 densities.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import torch
from heads import Gaussians, scene
from pal.torch import KernelLayer
from torch import nn


def network(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, outputs)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--steps", type=int, default=300, help="steps of training before times are taken")
    args = parser.parse_args()
    if "PAL_DATA" not in os.environ:
        sys.exit("PAL_DATA is not set: it is the folder with sdd/scene12_trajectories.csv and so on")
    torch.set_num_threads(2)
    torch.manual_seed(0)
    constraint, inputs, targets, _ = scene(Path(os.environ["PAL_DATA"], "sdd"), 12)
    inputs = torch.tensor((inputs - inputs.mean(0)) / inputs.std(0), dtype=torch.float32)
    targets = torch.tensor(targets)
    layer, gaussians = KernelLayer(constraint, components=16), Gaussians(16, targets)
    models = {
        "kernels": (network(inputs.shape[1], layer.num_params), lambda outputs, y: layer(outputs).log_prob(y)),
        "Gaussians": (network(inputs.shape[1], gaussians.num_params), gaussians.log_prob),
    }
    optimisers = {name: torch.optim.Adam(net.parameters(), lr=1e-3) for name, (net, _) in models.items()}

    def step(name):
        net, log_prob = models[name]
        rows = torch.randint(len(inputs), (128,))
        loss = -log_prob(net(inputs[rows]), targets[rows]).mean()
        optimisers[name].zero_grad()
        loss.backward()
        optimisers[name].step()

    for name in models:
        for _ in range(args.steps):
            step(name)
    times = {name: [] for name in models}
    for _ in range(args.repetitions):
        for name in models:
            start = time.perf_counter()
            for _ in range(10):
                step(name)
            times[name].append((time.perf_counter() - start) / 10)
    best = {name: 1e3 * min(values) for name, values in times.items()}
    median = {name: 1e3 * statistics.median(values) for name, values in times.items()}
    for name in models:
        print(f"step with 16 {name:9}  best {best[name]:6.2f} ms  median {median[name]:6.2f} ms")
    ratio = median["kernels"] / median["Gaussians"]
    print(f"ratio {best['kernels'] / best['Gaussians']:.2f} of the best, {ratio:.2f} of the medians")
    with torch.no_grad():
        outputs = models["kernels"][0](inputs[:128])
    points = targets[:128]
    questions = {
        "log_prob": lambda p: p.log_prob(points),
        "one sample of each": lambda p: p.sample(),
        "means": lambda p: p.mean,
        "modes": lambda p: p.modes(),
        "entropies to 1e-3": lambda p: p.entropy(1e-3),
    }
    for name, question in questions.items():
        found = []
        for _ in range(max(3, args.repetitions // 5)):
            p = layer(outputs)
            start = time.perf_counter()
            question(p)
            found.append(time.perf_counter() - start)
        print(f"{name:20} of 128 densities  {1e3 * min(found):8.2f} ms")


if __name__ == "__main__":
    main()
