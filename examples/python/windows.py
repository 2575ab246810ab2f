"""A region for each example: windows of one map, a density on each of them, and none outside."""

import numpy as np

import pal

# A hall with a pillar and a slanted wall.
x, y = pal.reals("x", "y")
hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~(x.between(2, 4) & y.between(2, 3)) & (2 * x + y <= 20))

# Three places, each looking along its heading: boxes of half width 1.5 in local coordinates.
places = np.array([[1.5, 2.5], [6.0, 5.0], [4.5, 2.5]])
headings = np.array([[1.0, 0.25], [0.0, -1.0], [-3.0, 4.0]])
windows = hall.windows(places, 1.5, headings)
print("areas ", windows.volume)
print("status", windows.status)

# Where is 0.7 ahead and a little to the left? In the pillar, for the first one.
ahead = np.array([[0.7, 0.1]] * 3)
print("inside", windows.contains(ahead))
assert windows.contains(ahead).tolist() == [False, True, True]

# The constraint of a row is a region like any other, with exact volume and densities of its own.
first = windows[0]
family = pal.SplineMixture(first, knots=8, components=2)
samples = family.density(family.random_params(seed=1)).sample(10_000, seed=2)
assert first.contains(samples).all()

# Points of the first window as points of the hall.
along = headings[0] / np.hypot(*headings[0])
left = np.array([-along[1], along[0]])
world = places[0] + samples[:, :1] * along + samples[:, 1:] * left
print("mean of samples in the hall", world.mean(0))
