"""Who travels where: a network whose outputs are a position and a means of transport, under rules that tie them."""

import argparse

import numpy as np
import torch
from torch import nn

import pal
from pal.datasets import transport

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--travellers", type=int, default=150)
steps, travellers = vars(parser.parse_args()).values()

# Pedestrians keep off the roads, cars stay on them, and bikes go everywhere but into buildings.
constraint, past, future = transport(travellers, seed=0)
family = pal.SplineMixture(constraint, knots=12, components=6)
layer = pal.torch.MixedLayer(family)
print("columns", family.columns)

torch.manual_seed(0)
x, y = torch.tensor((past - past.mean(0)) / past.std(0)).float(), torch.tensor(future)
order = torch.randperm(len(x))
train, test = order[len(x) // 5 :], order[: len(x) // 5]
network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, layer.num_params))
optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(steps):
    rows = train[torch.randint(len(train), (128,))]
    loss = -layer(network(x[rows])).log_prob(y[rows]).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

with torch.no_grad():
    p = layer(network(x[test]).double())
    print("log-likelihood", round(p.log_prob(y[test]).mean().item(), 3))
    mode = pal.Category("mode", ["walk", "bike", "car"])
    sure = torch.stack([p.probability(mode == value) for value in mode.values], -1)
    right = (sure.argmax(-1) == y[test, 2:].argmax(-1)).double().mean().item()
    print("the most probable means is right for", f"{right:.0%}")
    samples = p.sample((20,), generator=torch.Generator().manual_seed(1)).reshape(-1, 5).numpy()

# No sample breaks a rule: judged in plain arithmetic.
east, north, walk, car = samples[:, 0], samples[:, 1], samples[:, 2] == 1, samples[:, 4] == 1
road = (abs(east - 38) <= 3) | (abs(north - 5) <= 3) | ((east >= 35) & (abs(east / 4 + north - 62) <= 2))
assert not road[walk].any() and road[car].all() and (samples[:, 2:].sum(1) == 1).all()
print(len(samples), "samples, pedestrians on roads", int(road[walk].sum()), "cars off roads", int((~road[car]).sum()))

# One traveller: where the density is known to be on a road, it is no pedestrian.
density = p.densities()[0]
print({label: round(value, 3) for (label,), value in density.table("mode").items()})
print({label: round(value, 3) for (label,), value in density.table("mode", at=np.array([38.0, 30.0])).items()})
