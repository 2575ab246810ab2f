"""Paths that never touch an obstacle: a network learns to walk, and cannot learn to walk through walls."""

import numpy as np
import torch

import pal
from pal.torch import TrajectoryLayer

# A hall with two walls, each with a door at another end.
x, y = pal.reals("x", "y")
walls = (x.between(3, 4) & y.between(0, 4)) | (x.between(6, 7) & y.between(2, 6))
hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~walls)

# From behind the first wall one does not see the second room.
view = hall.windows([[2.0, 2.0]], 9, visible=True)
print(f"seen from (2, 2): {view.volume[0]:.3f} of {hall.volume:.3f}")
assert hall.contains_segments([[2.0, 2.0]], [[5.0, 2.0]]).tolist() == [False]

# Tracks through both doors, with noise: eight positions are known, and eight are to be predicted.
generator = np.random.default_rng(0)
way = np.array([[1.0, 1.0], [3.5, 5.0], [6.5, 1.0], [8.5, 3.0]])
length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1))])
tracks = []
while len(tracks) < 150:
    along = generator.uniform(0, length[-1] - 6) + 0.4 * np.arange(16)
    track = np.stack([np.interp(along, length, way[:, axis]) for axis in (0, 1)], 1)
    track += generator.normal(scale=0.05, size=track.shape)
    if hall.contains_segments(track[:-1], track[1:]).all():
        tracks.append(track)
tracks = torch.tensor(np.array(tracks))
past, future = tracks[:, :8], tracks[:, 8:]

torch.manual_seed(0)
layer = TrajectoryLayer(hall, steps=8, stride=0.4, components=4)
print(layer.coverage(past, future))
windows = layer.compile_paths(past, future)
optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
for epoch in range(8):
    for rows in torch.randperm(len(past)).split(50):
        optimiser.zero_grad()
        loss = -layer(past[rows]).step_log_prob(future[rows], windows[rows]).mean()
        loss.backward()
        optimiser.step()
print(f"log-likelihood per step after training: {-loss.item():.2f}")

p = layer(past[:20])
paths = p.sample((25,))
assert p.support.check(paths).all()
print(f"{paths.shape[0] * paths.shape[1]} sampled paths, none of which touches a wall")
