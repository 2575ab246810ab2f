"""Measures layers over Booleans and reals: twenty Boolean variables under ten clauses with half-planes of two reals,
splines of 14 knots, 8 components.

- compiling the family;
- log-densities of a batch with their gradients, with Booleans and without;
- a training step (10 -> 512 -> 512 -> outputs, batch 128, Adam, float32), with Booleans and without, and their ratio.

    make bench-python          or          python bench/mixed.py

The layer without Booleans is one over the same two reals, on the projection of the constraint. Its network has fewer
outputs, since Booleans need logits; so it is also measured with as many, of which some are not used. Runs take turns, so that a
disturbance affects all of them, and ratios are those of medians. `--cpu --threads 1` measures processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import nn

import pal
from pal.torch import MixedLayer, SplineLayer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=10, help="training steps per repetition")
parser.add_argument("--repetitions", type=int, default=30)
parser.add_argument("--threads", type=int, default=torch.get_num_threads())
parser.add_argument("--cpu", action="store_true", help="measure processor time over all threads instead of wall time")
args = parser.parse_args()
clock = time.process_time if args.cpu else time.perf_counter
torch.set_num_threads(args.threads)

BATCH, ROWS, WIDTH, KNOTS, COMPONENTS = 128, 256, 512, 14, 8

x, y = pal.reals("x", "y")
plane = x.between(0, 10) & y.between(0, 10)
truth = [pal.boolean(f"b{k}") for k in range(20)]
rules = plane
for k in range(10):
    # Half-planes in ten directions, each of which a clause of two Booleans makes obligatory.
    side = (k % 4 - 1) * x + (k % 3 + 1) * y <= 4 + 2 * k
    rules = rules & (truth[2 * k] | ~truth[2 * k + 1] | side)


def timed(run):
    start = clock()
    run()
    return clock() - start


def spread(times):
    return f"best {min(times) * 1e3:7.2f} ms, median {statistics.median(times) * 1e3:7.2f} ms"


region = pal.Region(rules)
compiling = [timed(lambda: pal.SplineMixture(pal.Region(rules), KNOTS, COMPONENTS)) for _ in range(args.repetitions)]
family = pal.SplineMixture(region, KNOTS, COMPONENTS)
print(f"20 Booleans, 10 clauses, {family.num_parts} parts, {KNOTS} knots, {COMPONENTS} components")
print(f"compile                                     {spread(compiling)}")

mixed, plain = MixedLayer(family), SplineLayer(pal.Region(plane), KNOTS, COMPONENTS, head="values")
points = torch.from_numpy(family.sample(family.random_params(seed=1), ROWS, seed=1))


def gradients(layer, columns):
    """Returns a function that computes log-densities of a batch and their gradients."""
    params = torch.randn(ROWS, layer.num_params, requires_grad=True)
    return lambda: layer(params).log_prob(points[:, :columns]).mean().backward()


def training(layer, columns, outputs):
    """Returns a function that does one repetition, some steps of Adam, of a network with so many outputs."""
    torch.manual_seed(0)
    hidden = [nn.Linear(10, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    network = nn.Sequential(*hidden, nn.Linear(WIDTH, outputs))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)
    inputs, targets = torch.randn(BATCH, 10), points[:BATCH, :columns]

    def steps():
        for _ in range(args.steps):
            loss = -layer(network(inputs)[:, : layer.num_params]).log_prob(targets).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return steps


def compare(name, runs, each):
    """Times runs in turns, and prints them and the ratios of the first to the others."""
    times = {key: [] for key in runs}
    for run in runs.values():
        run()
    for _ in range(args.repetitions):
        for key, run in runs.items():
            times[key].append(timed(run) / each)
    own = statistics.median(times["with Booleans"])
    for key, list_ in times.items():
        ratio = own / statistics.median(list_)
        print(f"{name}, {key:26} {spread(list_)}, ratio {ratio:.2f}")


columns = len(family.columns)
compare(
    f"log_prob and gradients, {ROWS} rows",
    {"with Booleans": gradients(mixed, columns), "without": gradients(plain, 2)},
    1,
)
compare(
    f"training step, batch {BATCH}      ",
    {
        "with Booleans": training(mixed, columns, mixed.num_params),
        "without": training(plain, 2, plain.num_params),
        "without, as many outputs": training(plain, 2, mixed.num_params),
    },
    args.steps,
)
