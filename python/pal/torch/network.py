"""Networks that the program trained (`pal train`), as modules of PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import _arrays, _core
from .._arrays import Points
from ..errors import FileError
from ..families import Family
from ..formula import parse_smtlib
from .distribution import ConstrainedDistribution
from .kernel import KernelDistribution, KernelLayer
from .layer import Layer
from .student_t import StudentTHead


class TrainedNetwork(nn.Module):
    """A network of the program `pal` with the layer on top: inputs in the units of the data in, densities out,

        p(y | x) = layer(network((x - mean) / deviation)).

    [`load_network`][pal.torch.load_network] makes it. It is an ordinary module: it can be trained further, moved to a
    device and saved with `state_dict`.

    Attributes:
        inputs: the names of the columns that it takes, in their order.
        outputs: the names of the columns that it predicts, in the order of the variables of the constraint.
        network: the fully connected network, for scaled inputs.
        layer: the [`Layer`][pal.torch.Layer] or [`KernelLayer`][pal.torch.KernelLayer] that makes densities of its outputs.

    Args:
        network: the network, for scaled inputs.
        layer: the layer on top of it.
        plan: the names of `inputs` and `outputs`, and the `input_scaler` with `mean` and `deviation` of each input.

    >>> import pal, torch
    >>> layer = pal.torch.SplineLayer(pal.real("x").between(0, 1), knots=6, components=2)
    >>> plan = {"inputs": ["speed"], "outputs": ["x"], "input_scaler": {"mean": [1.5], "deviation": [0.5]}}
    >>> network = pal.torch.TrainedNetwork(torch.nn.Linear(1, layer.num_params), layer, plan)
    >>> network({"speed": [1.0, 2.0]}).batch_shape
    torch.Size([2])
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, network: nn.Module, layer: Layer | KernelLayer, plan: Mapping[str, Any]) -> None:
        super().__init__()
        self.inputs: tuple[str, ...] = tuple(plan["inputs"])
        self.outputs: tuple[str, ...] = tuple(plan["outputs"])
        self.network = network
        self.layer = layer
        for name in ("mean", "deviation"):
            self.register_buffer(name, torch.tensor(plan["input_scaler"][name], dtype=torch.float64))

    def forward(self, inputs: Tensor | Points) -> ConstrainedDistribution | KernelDistribution:
        """The densities of the outputs given inputs, which are along the last axis in the order of `inputs`, or by name
        in a dict of columns or a table of pandas."""
        weight = next(self.network.parameters())
        if isinstance(inputs, Tensor):
            _arrays.check_width(inputs.shape, self.inputs, "inputs")
        else:
            flat, shape = _arrays.points(inputs, self.inputs, "inputs")
            inputs = torch.from_numpy(flat).reshape(*shape, len(self.inputs))
        # Scaled in float64, as the program does, and rounded once.
        scaled = (inputs.to(self.mean) - self.mean) / self.deviation
        return self.layer(self.network(scaled.to(weight)))

    def _apply(self, fn: Any, recurse: bool = True) -> TrainedNetwork:
        mean, deviation = self.mean, self.deviation
        super()._apply(fn, recurse)
        # `float()` and `half()` must not round constants.
        self.mean, self.deviation = mean.to(self.mean.device), deviation.to(self.deviation.device)
        return self


def load_network(path: str | os.PathLike[str]) -> TrainedNetwork:
    """Reads a network that the program trained with `pal train`.

    Its log-densities are those of `pal eval`, up to the rounding of the precision in which it was trained.

        network = pal.torch.load_network("walkers.safetensors")
        p = network({"speed": [1.2], "angle": [0.3]})            # columns by name, or a tensor in this order
        p.sample((10,)), p.probability(x <= 1)

    Args:
        path: the file.

    Returns:
        the network with its layer, for inputs in the units of the data.

    Raises:
        FileError: the file is damaged, holds something else, or holds a baseline, which has no layer of this package.

    >>> import os, pal, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "family.safetensors")
    ...     pal.SplineMixture(pal.real("x").between(0, 1), knots=4).save(file)  # no network
    ...     try:
    ...         pal.torch.load_network(file)
    ...     except pal.FileError as error:
    ...         print("not a trained network" in str(error))
    True
    """
    try:
        text, script, core, weights = _core.read_network(Path(path).read_bytes())
        plan = json.loads(text)
        kind = plan["kind"]
        if plan.get("regions") is not None:
            raise FileError("its rows have regions of their own, which only the program reads: `pal predict`, `pal eval`")
        if kind["predictor"] == "kernel":
            layer: Layer | KernelLayer = KernelLayer(parse_smtlib(script), components=kind["components"])
        elif kind["predictor"] != "pal" or core is None:
            raise FileError(f"a baseline ({kind['predictor']}), which only the program reads: `pal eval`, `pal sample`")
        else:
            family = Family._of(core)
            layer = Layer.of(family)
            if kind["student_t"]:
                layer.head = StudentTHead(family)  # type: ignore[arg-type]
        variables = layer.constraint.variables
        if parse_smtlib(script).variables != variables or len(plan["outputs"]) != len(variables):
            raise FileError("the constraint and the family of the file have different variables")
        network = _network(len(plan["inputs"]), kind["hidden"], layer.num_params, weights)
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path}: the description of the network cannot be read: {error!r}") from None
    return TrainedNetwork(network, layer, plan)


def _network(inputs: int, hidden: list[int], outputs: int, weights: list[np.ndarray]) -> nn.Module:
    """The fully connected network with its weights, which the file has layer by layer: matrix, then biases."""
    sizes = [inputs, *hidden, outputs]
    if inputs == 0 or len(weights) != 2 * (len(sizes) - 1):
        raise FileError(f"{len(weights)} arrays of weights do not make a network with {len(hidden)} hidden layers")
    layers: list[nn.Module] = []
    for k, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        matrix, biases = weights[2 * k], weights[2 * k + 1]
        if matrix.size != rows * columns or biases.size != columns:
            found = f"{matrix.size} weights and {biases.size} biases"
            raise FileError(f"layer {k} has {found} instead of {rows * columns} and {columns}")
        linear = nn.Linear(rows, columns, dtype=torch.from_numpy(matrix).dtype)
        with torch.no_grad():
            # The file has one row per input, PyTorch one row per output.
            linear.weight.copy_(torch.from_numpy(matrix.reshape(rows, columns).T.copy()))
            linear.bias.copy_(torch.from_numpy(biases))
        layers += [linear] if k == 0 else [nn.ReLU(), linear]
    return nn.Sequential(*layers)
