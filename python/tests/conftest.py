"""Tests use tensors so small that threads only get in each other's way."""

try:
    import torch
except ImportError:
    torch = None

if torch is not None:
    torch.set_num_threads(1)
