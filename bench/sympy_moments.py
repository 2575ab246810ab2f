"""Worker: all moments of a polygon by SymPy. Reads a JSON object from standard input, writes one to standard output."""

import json
import sys
import time

from sympy import Poly, Polygon, Rational, symbols
from sympy.integrals.intpoly import polytope_integrate

request = json.load(sys.stdin)
x, y = symbols("x y")
polygon = Polygon(*[(Rational(a), Rational(b)) for a, b in request["corners"]])
degree = request["degree"]
start = time.perf_counter()
if degree == 0:
    moments = [((0, 0), polytope_integrate(polygon, 1))]
else:
    # With `max_degree` and no integrand SymPy integrates every monomial up to that degree in one go.
    table = polytope_integrate(polygon, max_degree=degree)
    moments = [(Poly(m, x, y).monoms()[0], v) for m, v in table.items() if m != 0]
seconds = time.perf_counter() - start
json.dump({"seconds": seconds, "moments": [[list(e), str(v)] for e, v in moments]}, sys.stdout)
