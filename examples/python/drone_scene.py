"""Where will a walker be? An MLP predicts a density that respects the walls of a drone scene.

Without arguments the data are simulated walks on a small campus. `python -m pal.datasets constrained-sdd` makes both
files of a real scene:

    python drone_scene.py --map scene12_constraints.geojson --tracks scene12_trajectories.csv
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch import nn

import pal
from pal.datasets import campus
from pal.torch import SplineLayer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--map", type=Path, help="obstacles, GeoJSON")
parser.add_argument("--tracks", type=Path, help="positions: a table with columns trajectory_id, frame, x and y")
parser.add_argument("--ahead", type=int, default=1, help="number of steps to look ahead in real tracks")
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--plot", type=Path, help="a picture of one prediction")
args = parser.parse_args()


def windows(tracks: Path, ahead: int):
    """Two past positions as inputs, one `ahead` steps later as target, track by track."""
    by_track = defaultdict(list)
    with tracks.open() as table:
        for row in csv.DictReader(table):
            by_track[row["trajectory_id"]].append((float(row["x"]), float(row["y"])))
    inputs, targets = [], []
    for track in map(np.array, by_track.values()):
        if len(track) > ahead + 1:
            inputs.append(np.hstack([track[1:-ahead], track[: -ahead - 1]]))
            targets.append(track[ahead + 1 :])
    return np.vstack(inputs), np.vstack(targets)


if args.map and args.tracks:
    constraint = pal.read_geojson(args.map)
    inputs, targets = windows(args.tracks, args.ahead)
    inside = constraint.contains(targets)
    print(f"{(~inside).sum()} of {len(inside)} positions violate the map and are left out")
    inputs, targets = inputs[inside], targets[inside]
else:
    constraint, inputs, targets = campus(walkers=150, seed=0)

torch.manual_seed(0)
region = pal.Region(constraint)
layer = SplineLayer(region)
centre, spread = inputs.mean(0), inputs.std(0)
x = torch.tensor((inputs - centre) / spread, dtype=torch.float32)
# In float64: rounded to float32, a position at a wall could be on the other side of it.
y = torch.tensor(targets)
cut = len(x) * 4 // 5

network = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, layer.num_params))
optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
for step in range(args.steps):
    rows = torch.randint(cut, (128,))
    loss = -layer(network(x[rows])).log_prob(y[rows]).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 100 == 0:
        print(f"step {step:4}  loss {loss.item():.3f}")

with torch.no_grad():
    p = layer(network(x[cut:]))
    print(f"held out: log-likelihood {p.log_prob(y[cut:]).mean():.3f}, uniform {-np.log(region.volume):.3f}")
    samples = p.sample((10,))
    assert constraint.contains(samples.double().numpy()).all()
    print(f"{samples.shape[0] * samples.shape[1]} samples, none in a wall")
    north = p.probability(pal.real("y") >= float(y[:, 1].mean()))
    print(f"P(in the upper half) of the first walkers: {[round(v, 3) for v in north[:3].tolist()]}")

if args.plot:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    import pal.plot

    with torch.no_grad():
        density = layer(network(x[cut : cut + 1])).densities()[0]
    pal.plot.density(density, log=True)
    pal.plot.samples(density.sample(300, seed=1), s=3)
    plt.savefig(args.plot, dpi=120)
