"""Integrals of textbooks, as fractions."""

from fractions import Fraction
from math import factorial

import pal

x, y, z = pal.reals("x", "y", "z")

# The area under the diagonal, and its centre.
triangle = pal.Region((y >= 0) & (y <= x) & (x <= 1))
area = pal.integrate(triangle, 1)
centre = [pal.integrate(triangle, axis) / area for axis in (x, y)]
print("area", area, "centre", centre)
assert (area, centre) == (Fraction(1, 2), [Fraction(2, 3), Fraction(1, 3)])

# Dirichlet's integral over a simplex: p! q! r! / (p + q + r + 3)!
simplex = pal.Region((x >= 0) & (y >= 0) & (z >= 0) & (x + y + z <= 1))
value = pal.integrate(simplex, x**4 * y**3 * z**2)
print("Dirichlet", value)
assert value == Fraction(factorial(4) * factorial(3) * factorial(2), factorial(12))

# The moment of inertia of a square tube about its axis: (a^4 - b^4) / 6.
tube = x.between(-3, 3) & y.between(-3, 3) & ~((x > -2) & (x < 2) & (y > -2) & (y < 2))
inertia = pal.integrate(tube, x**2 + y**2)
print("moment of inertia", inertia)
assert inertia == Fraction(6**4 - 4**4, 6)

# The probability that two who come within an hour and wait for a quarter of it meet: 7/16.
meet = x.between(0, 1) & y.between(0, 1) & (x - y <= "1/4") & (y - x <= "1/4")
print("they meet", pal.integrate(meet, 1))
assert pal.integrate(meet, 1) == Fraction(7, 16)

# A weight with cases: the expectation of max(x, y) on the unit square is 2/3.
largest = pal.wmi(x.between(0, 1) & y.between(0, 1), pal.ite(x >= y, x, y)).total
print("E max(x, y)", largest)
assert largest == Fraction(2, 3)
