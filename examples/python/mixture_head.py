"""An existing network with a Gaussian-mixture head gets a head that cannot leave the constraint: two lines change."""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

import pal
from pal.datasets import campus
from pal.torch import SplineLayer

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--walkers", type=int, default=150)
steps, walkers = vars(parser.parse_args()).values()

torch.manual_seed(0)
constraint, inputs, targets = campus(walkers, seed=0)
scale = torch.tensor([100.0, 60.0])
x = torch.tensor(inputs, dtype=torch.float32) / scale.repeat(2) - 0.5
y = torch.tensor(targets, dtype=torch.float32)
cut = len(x) * 4 // 5


class Network(nn.Module):
    """A network whose last layer is as wide as its head asks for."""

    def __init__(self, outputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs))

    def forward(self, x):
        return self.body(x)


def gaussian_mixture(outputs, components=8):
    logits, mean, width = outputs.unflatten(-1, (components, 5)).split([1, 2, 2], -1)
    parts = Independent(Normal((mean + 0.5) * scale, 0.1 + nn.functional.softplus(width) * 20), 1)
    return MixtureSameFamily(Categorical(logits=logits.squeeze(-1)), parts)


# Before: the head is a function of 40 outputs. After: it is a layer, and `num_params` says how many outputs it takes.
layer = SplineLayer(pal.Region(constraint))
heads = {"Gaussian mixture": (gaussian_mixture, 40), "SplineLayer": (layer, layer.num_params)}

for name, (head, outputs) in heads.items():
    network = Network(outputs)
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(steps):
        rows = torch.randint(cut, (128,))
        loss = -head(network(x[rows])).log_prob(y[rows]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        p = head(network(x[cut:]))
        # Rounded to float32, a walker at a wall may be on the other side of it.
        logs = p.log_prob(y[cut:])
        samples = p.sample((20,)).reshape(-1, 2)
        outside = 1 - constraint.contains(samples.double().numpy()).mean()
    print(f"{name:17} log-likelihood {logs[logs.isfinite()].mean():6.3f}, samples in walls {outside:6.2%}")
    if head is layer:
        assert outside == 0
