"""A small loop that trains a network with a layer on top, for those who need no other."""

from __future__ import annotations

import copy
import logging
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .. import _arrays
from .kernel import KernelLayer
from .layer import Layer
from .mixed import MixedLayer

# Epochs are logged as information: `logging.basicConfig(level=logging.INFO)` shows them.
_log = logging.getLogger(__name__)

# Rows per pass of the network where nothing is trained: bounds memory.
_ROWS = 1024


class Training(NamedTuple):
    """What [`fit`][pal.torch.fit] did.

    `scores` are the mean log-densities of the rows set aside after every epoch (of the training rows, where none are),
    `best_epoch` is the epoch whose weights were kept, counted from 1, and `stopped` tells whether training ended
    because the scores had not become larger for long enough, rather than at the largest number of epochs.

    >>> import pal, torch
    >>> x = pal.real("x")
    >>> layer = pal.torch.SplineLayer(x.between(0, 1), knots=6, components=2)
    >>> network = torch.nn.Linear(1, layer.num_params)
    >>> training = pal.torch.fit(network, layer, torch.zeros(50, 1), torch.full((50, 1), 0.25), epochs=3, seed=1)
    >>> len(training.scores), training.best_epoch, training.stopped
    (3, 3, False)
    """

    scores: list[float]
    best_epoch: int
    stopped: bool


def fit(
    network: nn.Module,
    layer: Layer | KernelLayer | MixedLayer,
    inputs: Any,
    targets: Any,
    *,
    held_out: float | Any = 0.15,
    epochs: int = 200,
    patience: int = 10,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: int | None = None,
) -> Training:
    """Trains `layer(network(inputs))` by maximum likelihood: Adam on the mean of -log p(target | input), until the mean
    log-density of rows that are set aside has not become larger for some epochs. The network is left with the weights
    of the best epoch.

    Nothing is scaled: give inputs with mean 0 and standard deviation 1. `logging.basicConfig(level=logging.INFO)` shows
    the epochs. For other optimisers, schedules or losses, write the loop yourself; it is
    `-layer(network(x)).log_prob(y).mean()`, `backward` and `step`.

    Args:
        network: any module from inputs to `layer.num_params` outputs.
        layer: the last layer.
        inputs: one row for each observation: a tensor or an array, in the precision of the network.
        targets: as many points, which must all satisfy the constraint; in float64, or by name in a table of pandas.
            [`Region.project`][pal.Region.project] moves points that do not to the nearest place inside.
        held_out: the fraction of the rows to set aside, or for every row whether it is; with 0 all epochs are run on
            all rows.
        epochs: the largest number of passes through the data.
        patience: the number of epochs without a larger score after which training stops.
        batch_size: the number of rows per step.
        learning_rate: the learning rate of Adam.
        seed: of the rows set aside and of the order of rows; by default the generator of PyTorch decides.

    Returns:
        the scores, the best epoch, and why training ended.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> region = pal.Region((x >= 0) & (y >= 0) & (x + y <= 1))
    >>> layer = pal.torch.SplineLayer(region, knots=8, components=2)
    >>> _ = torch.manual_seed(1)
    >>> inputs, targets = torch.randn(200, 3), region.sample(200, seed=1)
    >>> network = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, layer.num_params))
    >>> training = pal.torch.fit(network, layer, inputs, targets, epochs=5, seed=1)
    >>> len(training.scores), training.scores[training.best_epoch - 1] == max(training.scores)
    (5, True)
    """
    if not isinstance(layer, (Layer, KernelLayer, MixedLayer)):
        raise TypeError(
            f"the second argument is a layer of pal.torch, such as SplineLayer(region), not {type(layer).__name__}; "
            "the first is the network below it"
        )
    epochs = _arrays.count(epochs, "epochs", 1)
    patience = _arrays.count(patience, "patience", 1)
    size = _arrays.count(batch_size, "batch_size", 1)
    weights = [*network.parameters(), *layer.parameters()]
    if not weights:
        raise ValueError("the network has no weights, so there is nothing to train")
    rows = _inputs(inputs, weights[0])
    points = _targets(layer, targets, weights[0].device)
    if len(rows) != len(points):
        raise ValueError(f"there are {len(rows)} rows of inputs, but {len(points)} targets")
    if seed is None:
        return _run(network, layer, weights, rows, points, held_out, epochs, patience, size, learning_rate)
    # The generator of the caller is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_arrays.seed(seed) % 2**63)
        return _run(network, layer, weights, rows, points, held_out, epochs, patience, size, learning_rate)


def _inputs(inputs: Any, weight: Tensor) -> Tensor:
    if not isinstance(inputs, Tensor):
        inputs = torch.from_numpy(_arrays.float64(inputs, "inputs"))
    if inputs.dim() == 0:
        raise ValueError("inputs need one row for each observation; they are a single number")
    if inputs.is_floating_point():
        broken = torch.nonzero(~inputs.isfinite().flatten(1).all(1) if inputs.dim() > 1 else ~inputs.isfinite())
        if len(broken):
            raise ValueError(
                f"inputs have NaN or infinities in {len(broken)} of {len(inputs)} rows, the first in row "
                f"{int(broken[0])}; leave these rows out, or fill them in"
            )
    return inputs.to(weight.device, weight.dtype) if inputs.is_floating_point() else inputs.to(weight.device)


def _targets(layer: Layer | KernelLayer | MixedLayer, targets: Any, device: torch.device) -> Tensor:
    """The targets in float64, all of which satisfy the constraint: rounded to float32, a point at a wall could be on
    the other side of it."""
    if isinstance(targets, Tensor):
        targets = targets.detach().cpu().double().numpy()
    if isinstance(layer, MixedLayer):
        return torch.from_numpy(_mixed_targets(layer, targets))
    flat, shape = _arrays.points(targets, layer.constraint.variables, "targets")
    points = flat.reshape(*shape, len(layer.constraint.variables))
    if points.ndim != 2 or not len(points):
        raise ValueError(f"targets are one point per row, at least one; their shape is {points.shape}")
    if isinstance(layer, Layer) and layer.flat is not None:
        # Dependent coordinates satisfy equalities up to rounding.
        inside = layer.whole._core.contains(flat)
    else:
        inside = layer.constraint.contains(points)
    outside = np.flatnonzero(~inside)
    if len(outside):
        row = outside[0]
        raise ValueError(
            f"{len(outside)} of {len(points)} targets are outside the constraint, the first in row {row}: "
            f"{points[row].tolist()}; their log-density is minus infinity. Leave them out, or move them to the nearest "
            f"place inside with region.project(targets). The columns are, in this order: {', '.join(layer.constraint.variables)}"
        )
    return torch.from_numpy(points).to(device)


def _mixed_targets(layer: MixedLayer, targets: Any) -> Any:
    family = layer.family
    points = family.points(targets)
    if points.ndim != 2 or not len(points):
        raise ValueError(f"targets are one point per row, at least one; their shape is {points.shape}")
    # The density of zeros is positive wherever the constraint holds.
    outside = np.flatnonzero(np.isneginf(family.log_prob(np.zeros(family.num_params), points)))
    if len(outside):
        row = outside[0]
        raise ValueError(
            f"{len(outside)} of {len(points)} targets are outside the constraint, the first in row {row}: "
            f"{points[row].tolist()}; their log-density is minus infinity. Leave them out. The columns are, in this order: "
            f"{', '.join(family.columns)}"
        )
    return points


def _held_out(held_out: Any, count: int) -> Tensor:
    """For every row whether it is set aside."""
    if isinstance(held_out, (float, int)) and not isinstance(held_out, bool):
        if not 0 <= held_out < 1:
            raise ValueError(f"held_out is a fraction from 0 to below 1, or a truth value per row; not {held_out!r}")
        aside = torch.zeros(count, dtype=torch.bool)
        aside[torch.randperm(count)[: int(held_out * count)]] = True
        return aside
    aside = torch.as_tensor(np.asarray(held_out, dtype=bool))
    if aside.shape != (count,) or bool(aside.all()):
        raise ValueError(f"held_out needs one truth value for each of the {count} rows, and rows that are left")
    return aside


def _run(
    network: nn.Module,
    layer: Layer | KernelLayer | MixedLayer,
    weights: list[nn.Parameter],
    inputs: Tensor,
    targets: Tensor,
    held_out: Any,
    epochs: int,
    patience: int,
    size: int,
    learning_rate: float,
) -> Training:
    aside = _held_out(held_out, len(targets))
    rows = torch.nonzero(~aside).flatten()
    judged = torch.nonzero(aside).flatten() if bool(aside.any()) else rows
    optimiser = torch.optim.Adam(weights, lr=learning_rate)
    best, kept, best_epoch, scores, stopped = -np.inf, copy.deepcopy(network.state_dict()), 0, [], False
    mode = network.training
    for epoch in range(1, epochs + 1):
        network.train()
        for batch in rows[torch.randperm(len(rows))].split(size):
            loss = -layer(network(inputs[batch])).log_prob(targets[batch]).mean()
            if not bool(loss.isfinite()):
                network.load_state_dict(kept)
                raise RuntimeError(f"the loss is {float(loss)} in epoch {epoch}; a smaller learning rate may help")
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        network.eval()
        with torch.no_grad():
            parts = [layer(network(inputs[i])).log_prob(targets[i]) for i in judged.split(_ROWS)]
        scores.append(float(torch.cat(parts).double().mean()))
        _log.info("epoch %d of at most %d: mean log-density %.4f", epoch, epochs, scores[-1])
        if scores[-1] > best:
            best, kept, best_epoch = scores[-1], copy.deepcopy(network.state_dict()), epoch
        elif bool(aside.any()) and epoch - best_epoch >= patience:
            stopped = True
            break
    network.load_state_dict(kept)
    network.train(mode)
    return Training(scores, best_epoch, stopped)
