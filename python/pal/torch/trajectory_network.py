"""The network of a trajectory layer where none is given: a recurrent one on local displacements."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ._frames import Frames


class StepNetwork(nn.Module):
    """A recurrent network with gated units that reads the steps of a walker and says, after each of them, what the next
    one may be.

    Args:
        num_features: how many numbers describe a step: those of
            [`TrajectoryLayer.num_features`][pal.torch.TrajectoryLayer].
        num_params: how many outputs the layer needs.
        hidden: the number of hidden units.

    >>> import torch
    >>> from pal.torch import StepNetwork
    >>> network = StepNetwork(7, 20)
    >>> outputs, state = network(torch.zeros(3, 5, 7), None)
    >>> outputs.shape
    torch.Size([3, 5, 20])
    """

    #: Tells the layer that there is a state to hand on from step to step.
    recurrent = True

    def __init__(self, num_features: int, num_params: int, hidden: int = 64) -> None:
        super().__init__()
        self.memory = nn.GRU(num_features, hidden, batch_first=True)
        self.outputs = nn.Linear(hidden, num_params)

    def forward(self, features: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs after each step, rows by steps by outputs, and the state after the last one."""
        hidden, state = self.memory(features, state)
        return self.outputs(hidden), state


def step_features(before: Frames, now: Frames, stride: float, reach: float, box: Tensor) -> Tensor:
    """What a network is told about a step: the movement in the frame before it, the logarithm of its length, the heading,
    and the place in the box of the map, from -1 to 1."""
    turned = before.local(now.origin).clamp(-reach, reach)
    length = (now.scale / stride).log().unsqueeze(-1)
    heading = now.heading / torch.linalg.vector_norm(now.heading, dim=-1, keepdim=True)
    place = (2 * now.origin - box[0] - box[1]) / (box[1] - box[0])
    return torch.cat([turned, length, heading, place], -1).nan_to_num(0.0, 0.0, 0.0)


#: How many numbers `step_features` returns.
STEP_FEATURES = 7
