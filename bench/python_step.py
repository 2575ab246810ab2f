"""Measures the speed of the Python package:

- a training step of a network with a SplineLayer, and of the same network with Gaussian mixtures of torch;
- log-densities of 10^5 points;
- one sample from each of 10^4 densities;
- entropies of 512 densities to 1e-3, with gradients;
- a family in four variables, and a step with it;
- making a region and a family from the file of a map.

    make bench-python

Each figure is the best of several repetitions, because other processes can only make a run slower. On a busy machine
`--cpu --threads 1` measures processor time instead. With PAL_DATA, the map is that of drone scene 12, and entropies are
on a window of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import torch
from torch import nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, MultivariateNormal, Normal

import pal
from pal.torch import SplineLayer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=10, help="training steps per repetition")
parser.add_argument("--repetitions", type=int, default=40)
parser.add_argument("--threads", type=int, default=torch.get_num_threads())
parser.add_argument("--cpu", action="store_true", help="measure processor time over all threads instead of wall time")
args = parser.parse_args()
clock = time.process_time if args.cpu else time.perf_counter
torch.set_num_threads(args.threads)

BATCH, WIDTH, KNOTS, COMPONENTS = 128, 512, 14, 8


def best(run, repetitions=args.repetitions):
    """Returns the shortest time of several runs and their median, in seconds."""
    times = []
    for _ in range(repetitions):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times), statistics.median(times)


def scene():
    """Returns the file of the map and its name."""
    folder = os.environ.get("PAL_DATA")
    file = Path(folder, "sdd", "scene12_constraints.geojson") if folder else None
    if file is not None and file.exists():
        return file, "scene 12"
    file = Path(__file__).parents[1] / "crates" / "pal-cli" / "assets" / "campus.geojson"
    return file, "the campus of the demo"


def training(head, outputs, inputs, targets):
    """Returns a function that does one repetition, some steps of Adam, after a first one that does not count."""
    torch.manual_seed(0)
    hidden = [nn.Linear(10, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    network = nn.Sequential(*hidden, nn.Linear(WIDTH, outputs))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)

    def steps():
        for _ in range(args.steps):
            loss = -head(network(inputs)).log_prob(targets).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    steps()
    return steps


def diagonal(outputs):
    """A mixture of Gaussians with diagonal covariances."""
    logits, mean, width = outputs.unflatten(-1, (-1, 5)).split([1, 2, 2], -1)
    components = Independent(Normal(mean, nn.functional.softplus(width) + 1e-3), 1)
    return MixtureSameFamily(Categorical(logits=logits.squeeze(-1)), components)


def full(outputs):
    """A mixture of Gaussians with full covariances."""
    logits, mean, width, tilt = outputs.unflatten(-1, (-1, 6)).split([1, 2, 2, 1], -1)
    width = nn.functional.softplus(width) + 1e-3
    zero = torch.zeros_like(tilt)
    factor = torch.cat([width[..., :1], zero, tilt, width[..., 1:]], -1).unflatten(-1, (2, 2))
    return MixtureSameFamily(Categorical(logits=logits.squeeze(-1)), MultivariateNormal(mean, scale_tril=factor))


file, name = scene()
constraint = pal.read_geojson(file)
from_file, _ = best(lambda: pal.SplineMixture(pal.Region(pal.read_geojson(file)), KNOTS, COMPONENTS))
compiled, _ = best(lambda: pal.SplineMixture(pal.Region(constraint), KNOTS, COMPONENTS))
print(f"{name}: Region and compile, {KNOTS} knots            {compiled * 1e3:8.1f} ms", end="")
print(f"   ({from_file * 1e3:.1f} ms including reading the file)")

region = pal.Region(constraint)
layer = SplineLayer(region, KNOTS, COMPONENTS, head="values")
points = torch.from_numpy(region.sample(100_000, seed=1))
torch.manual_seed(1)
one = torch.randn(layer.num_params, dtype=torch.float64)
for dtype in (torch.float64, torch.float32):
    params = one.to(dtype)
    with torch.no_grad():
        took, _ = best(lambda: layer(params).log_prob(points))
    print(f"log_prob of 10^5 points, one parameter vector, {str(dtype)[6:]} {took * 1e3:8.1f} ms")
took, _ = best(lambda: layer.family.log_prob(one.numpy(), points.numpy()))
print(f"the same by the core, in numpy                      {took * 1e3:8.1f} ms")
rows = torch.randn(1000, layer.num_params)
with torch.no_grad():
    took, _ = best(lambda: layer(rows).log_prob(points.reshape(100, 1000, 2)))
print(f"log_prob of 10^5 points, 1000 parameter vectors     {took * 1e3:8.1f} ms")

many = torch.randn(10_000, layer.num_params)
took, _ = best(lambda: layer(many).sample(), 5)
print(f"one sample from each of 10^4 densities              {took * 1e3:8.1f} ms")

window = file.with_name("scene12_window_constraints.geojson")
window = SplineLayer(pal.Region(pal.read_geojson(window)) if window.exists() else region, KNOTS, COMPONENTS)
outputs = torch.randn(512, window.num_params, requires_grad=True)
took, _ = best(lambda: window(outputs).entropy(tolerance=1e-3).mean().backward(), 10)
print(f"entropy to 1e-3 of 512 densities, with gradient     {took * 1e3:8.1f} ms")

names = pal.reals("a", "b", "c", "d")
a, b, c, d = names
budget = (a + b + c + d <= 20) & ~(a.between(2, 4) & b.between(3, 6)) & ~(c.between(5, 7) & d.between(1, 3))
for name in names:
    budget = budget & name.between(0, 10)
took, _ = best(lambda: SplineLayer(budget, KNOTS, COMPONENTS), 3)
print(f"four variables, a budget, {KNOTS} knots: compile          {took * 1e3:8.1f} ms")
four = SplineLayer(budget, KNOTS, COMPONENTS)
outputs = torch.randn(BATCH, four.num_params, requires_grad=True)
inside = torch.from_numpy(pal.Region(budget).sample(BATCH, seed=1))
took, _ = best(lambda: four(outputs).log_prob(inside).mean().backward(), 5)
print(f"log-densities of {BATCH} rows there, with gradients     {took * 1e3:8.1f} ms")

inputs, targets, headed = torch.randn(BATCH, 10), points[:BATCH], SplineLayer(region, KNOTS, COMPONENTS)
fine = SplineLayer(region, 56, COMPONENTS)
runs = {
    "SplineLayer": training(headed, headed.num_params, inputs, targets),
    "SplineLayer, 56 knots": training(fine, fine.num_params, inputs, targets),
    'SplineLayer, head="values"': training(layer, layer.num_params, inputs, targets),
    "Gaussian mixture, diagonal": training(diagonal, 5 * COMPONENTS, inputs, targets.float()),
    "Gaussian mixture, full": training(full, 6 * COMPONENTS, inputs, targets.float()),
    # As many outputs as the values at the knots, so that the networks are the same in every layer.
    "the same, 76 components": training(full, layer.num_params, inputs, targets.float()),
}
# The runs take turns, so that a disturbance affects all of them.
times = {name: [] for name in runs}
for _ in range(args.repetitions):
    for name, run in runs.items():
        start = clock()
        run()
        times[name].append((clock() - start) / args.steps)
print(f"training step, batch {BATCH}, 10 -> {WIDTH} -> {WIDTH} -> outputs, Adam, float32, {args.threads} threads")
base = [min(list_) for name, list_ in times.items() if "Layer" not in name]
for name, list_ in times.items():
    ratios = ", ".join(f"{min(list_) / b:.2f}" for b in base)
    figures = f"best {min(list_) * 1e3:6.2f} ms, median {statistics.median(list_) * 1e3:6.2f} ms"
    print(f"  {name:29} {figures}, ratios to the three Gaussian mixtures {ratios}")
