"""A formula of pysmt becomes a region with an exact volume, and Boolean variables are substituted in it."""

from fractions import Fraction

from pysmt.shortcuts import LE, GE, And, Implies, Not, Or, Plus, Real, Symbol, Times
from pysmt.typing import REAL

import pal

speed, gap = Symbol("speed", REAL), Symbol("gap", REAL)
wet = Symbol("wet")

# Speeds in m/s, gaps in m: twice the speed, and on a wet road three times.
limits = And(GE(speed, Real(5)), LE(speed, Real(15)), GE(gap, Real(0)), LE(gap, Real(60)))
safe = And(GE(gap, Times(Real(2), speed)), Implies(wet, GE(gap, Times(Real(3), speed))))
slow = Or(Not(wet), LE(Plus(speed, Times(Real(Fraction(1, 10)), gap)), Real(18)))

phi = pal.from_pysmt(And(limits, safe, slow))
region = pal.Region(phi)
print("variables", phi.reals, phi.booleans)
print("volume over both roads", region.exact_volume)

# How much of what is safe on a dry road is safe on a wet one, too?
wet_region, dry_region = (pal.Region(pal.substitute(phi, {"wet": value})) for value in (True, False))
assert wet_region.exact_volume + dry_region.exact_volume == region.exact_volume
print("fraction that stays safe", wet_region.exact_volume / dry_region.exact_volume)
assert dry_region.exact_volume == 400
