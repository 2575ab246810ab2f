"""A density on a triangle: constraint, family, questions."""

import pal

# The constraint, with exact constants.
y1, y2 = pal.reals("y1", "y2")
triangle = pal.Region((y1 >= 0) & (y2 >= 0) & (y1 + y2 <= 1))
print("area", triangle.exact_volume, "cells", len(triangle.cells))

# A family of densities that live on it, and one of them.
family = pal.SplineMixture(triangle, knots=6, components=2)
density = family.density(family.random_params(seed=1))

# Every question has an exact answer.
print("P(y1 <= y2)     ", density.probability(y1 <= y2))
print("mean            ", density.mean())
print("median of y1    ", density.marginal("y1").quantile(0.5))
print("log p(0.9, 0.9) ", density.log_prob([0.9, 0.9]))
mode = density.mode()
print("mode            ", mode.point, "within", mode.gap)

# No sample leaves the constraint.
samples = density.sample(100_000, seed=2)
assert triangle.contains(samples).all()
assert abs((samples[:, 0] <= samples[:, 1]).mean() - density.probability(y1 <= y2)) < 0.01
