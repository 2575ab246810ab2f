"""Which devices a layer can be on: its constants are in float64, which some devices do not have."""

from __future__ import annotations

import torch


def lacks_float64(device: torch.device) -> bool:
    """Whether a device has no numbers in float64. Metal Performance Shaders, `mps`, has none."""
    return device.type == "mps"


def require_float64(device: torch.device, what: str) -> None:
    """Refuses a device without float64, and says what would work."""
    if lacks_float64(device):
        raise ValueError(
            f"{what} cannot be on the device {device}, which has no float64: points near a wall would be on its other "
            "side. Keep the layer on the CPU and give it what the network says there: layer(network(x).cpu()), with "
            "the network and x on any device; gradients flow back to it"
        )
