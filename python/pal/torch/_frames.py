"""Local frames along paths: where a walker is, where it is heading, and how far it goes in one step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Frames(NamedTuple):
    """A frame for each position but the first one, in float64: the origin is the position, the first axis points along
    the last movement, and the unit is the length of that movement, but at least a floor."""

    origin: Tensor
    heading: Tensor
    scale: Tensor

    @classmethod
    def along(cls, positions: Tensor, floor: float) -> Frames:
        """The frames of paths, ... x positions x 2. Where a walker stood still, its heading is that of the movement
        before; without any, the first axis of the map."""
        step = positions[..., 1:, :] - positions[..., :-1, :]
        length = torch.linalg.vector_norm(step, dim=-1)
        moved = torch.isfinite(length) & (length > 0)
        number = torch.arange(step.shape[-2], device=step.device).expand(moved.shape)
        last = torch.where(moved, number, -1).cummax(-1).values
        heading = step.gather(-2, last.clamp_min(0).unsqueeze(-1).expand(step.shape))
        right = torch.tensor([1.0, 0.0], dtype=step.dtype, device=step.device)
        heading = torch.where((last >= 0).unsqueeze(-1), heading, right)
        return cls(positions[..., 1:, :], heading, length.nan_to_num(floor, floor, floor).clamp_min(floor))

    def step(self, positions: Tensor, floor: float) -> Frames:
        """The frames at the positions after these."""
        step = positions - self.origin
        length = torch.linalg.vector_norm(step, dim=-1)
        heading = torch.where((length > 0).unsqueeze(-1), step, self.heading)
        return Frames(positions, heading, length.clamp_min(floor))

    def local(self, points: Tensor) -> Tensor:
        """Points in the coordinates of their frames."""
        ahead = self.heading / torch.linalg.vector_norm(self.heading, dim=-1, keepdim=True)
        x, y = (points - self.origin).unbind(-1)
        a, b = ahead.unbind(-1)
        return torch.stack([a * x + b * y, a * y - b * x], -1) / self.scale.unsqueeze(-1)

    def at(self, index: int | slice) -> Frames:
        """Some of the frames along paths."""
        if isinstance(index, slice):
            return Frames(self.origin[..., index, :], self.heading[..., index, :], self.scale[..., index])
        return Frames(self.origin[..., index, :], self.heading[..., index, :], self.scale[..., index])

    def rows(self) -> Frames:
        """The frames in one row."""
        return Frames(self.origin.reshape(-1, 2), self.heading.reshape(-1, 2), self.scale.reshape(-1))
