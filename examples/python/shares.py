"""Shares of a whole: a constraint with an equality, and densities on the flat that remains."""

import pal

# Three shares of a budget, each with bounds, and a combination that is excluded.
a, b, c = pal.reals("a", "b", "c")
bounds = a.between(0, "0.7") & b.between(0, "0.8") & c.between("0.1", 1)
shares = pal.Region((a + b + c == 1) & bounds & ~((a > "0.4") & (b > "0.4")))
print("dimension", shares.dimension, "free", shares.free)
print("surface  ", shares.surface_measure)

# Points have all coordinates; the density is per unit of surface measure.
family = pal.SplineMixture(shares, knots=6, components=2)
density = family.density(family.random_params(seed=1))
print("P(c <= a)        ", density.probability(c <= a))
print("mean             ", density.mean())
print("median of c      ", density.marginal("c").quantile(0.5))
print("log p(1/4,1/4,1/4)", density.log_prob([0.25, 0.25, 0.25]))

# Dependent coordinates are filled in: all samples add up to 1, up to the rounding of their sum.
samples = density.sample(100_000, seed=2)
assert shares.contains(samples).all()
assert abs(samples.sum(1) - 1).max() < 5e-16
assert abs((samples[:, 2] <= samples[:, 0]).mean() - density.probability(c <= a)) < 0.01
