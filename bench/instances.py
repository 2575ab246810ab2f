"""Random instances from a seed, with exact integer data, and the text formats of the programs that read them.

A polytope is a list of integer rows ``[b, a1, .., an]``, each of which means ``b + a1 x1 + .. + an xn >= 0``; these are
the rows of LattE's H-representation ``b -A``. A polynomial is a list of
``(integer coefficient, exponent tuple)``. All coordinates lie in [0, 1].
"""

import json
import random
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd, lcm

# A dense polynomial with more terms than this would measure parsers rather than integrators.
TERM_LIMIT = 20_000
# Linux refuses a single argument of 128 KiB; longer polynomials are passed in a file.
ARGUMENT_LIMIT = 120_000


@dataclass
class Instance:
    name: str
    shape: str  # "simplex" or "polytope"
    n: int
    degree: int
    rows: list
    terms: list

    def smtlib(self):
        return smtlib_file(self.variables(), smtlib_rows(self.rows, self.variables()))

    def variables(self):
        return [f"x{i + 1}" for i in range(self.n)]

    def infix(self):
        """The polynomial as text such as `3*x1^2*x2-5*x3`."""
        out = []
        for c, exponents in self.terms:
            factors = [f"{x}^{e}" if e > 1 else x for x, e in zip(self.variables(), exponents) if e]
            out.append("*".join([f"{c:+d}", *factors]))
        return "".join(out).removeprefix("+")

    def wmi_problem(self):
        """The same integral as one line of the WMI format, whose domain is the unit cube around the polytope."""
        names = self.variables()
        weight = []
        for c, exponents in self.terms:
            powers = [f"(pow {x} {e})" for x, e in zip(names, exponents) if e]
            weight.append(f"(* {' '.join([smtlib_number(c), *powers])})" if powers else smtlib_number(c))
        problem = {
            "name": self.name,
            "domain": {"reals": {x: ["0", "1"] for x in names}, "booleans": []},
            "support": smtlib_rows(self.rows, names),
            "weight": f"(+ {' '.join(weight)})" if len(weight) > 1 else weight[0],
            "queries": [],
        }
        return json.dumps(problem)

    def latte_polytope(self):
        lines = [f"{len(self.rows)} {self.n + 1}"]
        lines += [" ".join(map(str, row)) for row in self.rows]
        return "\n".join(lines) + "\n"

    def latte_monomials(self):
        return latte_monomials(self.terms)


def latte_monomials(terms):
    inner = ",".join(f"[{c},[{','.join(map(str, e))}]]" for c, e in terms)
    return f"[{inner}]\n"


def smtlib_number(value):
    value = Fraction(value)
    text = str(abs(value.numerator))
    if value.denominator != 1:
        text = f"(/ {text} {value.denominator})"
    return text if value >= 0 else f"(- {text})"


def smtlib_rows(rows, names):
    """The conjunction of all rows `b + a x >= 0`, written as `-a x <= b`."""
    atoms = []
    for b, *a in rows:
        parts = [f"(* {smtlib_number(-c)} {x})" for c, x in zip(a, names) if c]
        left = parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"
        atoms.append(f"(<= {left} {smtlib_number(b)})")
    return f"(and {' '.join(atoms)})"


def smtlib_file(names, formula):
    lines = ["(set-logic QF_LRA)"]
    lines += [f"(declare-const {x} Real)" for x in names]
    return "\n".join([*lines, f"(assert {formula})", "(check-sat)"]) + "\n"


def exponents(n, degree):
    """Yields all tuples of exponents with a sum of at most `degree`."""
    if n == 0:
        yield ()
        return
    for first in range(degree + 1):
        for rest in exponents(n - 1, degree - first):
            yield (first, *rest)


def dense_polynomial(n, degree, rng):
    return [(rng.choice((-1, 1)) * rng.randint(1, 9), e) for e in exponents(n, degree)]


def primitive(row):
    """The integer row with coprime entries that spans the same half-space as a rational one."""
    scale = lcm(*(Fraction(x).denominator for x in row))
    integers = [int(x * scale) for x in row]
    divisor = gcd(*integers)
    return [x // divisor for x in integers]


def invert(matrix):
    """The inverse of a square rational matrix, or None if it is singular."""
    n = len(matrix)
    work = [[Fraction(x) for x in row] + [Fraction(i == j) for j in range(n)] for i, row in enumerate(matrix)]
    for col in range(n):
        pivot = next((r for r in range(col, n) if work[r][col]), None)
        if pivot is None:
            return None
        work[col], work[pivot] = work[pivot], work[col]
        head = work[col][col]
        work[col] = [x / head for x in work[col]]
        for r in range(n):
            if r != col and work[r][col]:
                factor = work[r][col]
                work[r] = [x - factor * y for x, y in zip(work[r], work[col])]
    return [row[n:] for row in work]


def random_simplex(n, rng):
    """A simplex with vertices on the grid (1/16) Z^n in the unit cube; its rows say that the barycentric coordinates of
    a point are not negative."""
    while True:
        vertices = [[1] + [Fraction(rng.randint(0, 16), 16) for _ in range(n)] for _ in range(n + 1)]
        inverse = invert(vertices)
        if inverse is not None:
            return [primitive(column) for column in zip(*inverse)]


def random_polytope(n, cuts, rng):
    """The unit cube cut by half-spaces that keep its centre and remove at least one corner."""
    rows = [[0] + [int(i == j) for j in range(n)] for i in range(n)]
    rows += [[1] + [-int(i == j) for j in range(n)] for i in range(n)]
    for _ in range(cuts):
        a = [rng.choice((-1, 1)) * rng.randint(1, 9) for _ in range(n)]
        reach = Fraction(sum(map(abs, a)), 2)  # in the cube, a.x lies within `reach` of its value at the centre
        # At a corner a.x is a multiple of 1/2; the prime 101 in the denominator keeps every cut off the corners.
        b = Fraction(sum(a), 2) + reach * Fraction(rng.randint(10, 60), 101)
        rows.append(primitive([b, *(-x for x in a)]))
    return rows


def suite(seed, repeats, dimensions, degrees, cuts=3):
    """Returns instances in order of growing cost, and (n, degree, terms) of those that were left out as too large."""
    found, skipped = [], []
    for n in dimensions:
        for degree in degrees:
            terms = comb(n + degree, n)
            if terms > TERM_LIMIT:
                skipped.append((n, degree, terms))
                continue
            for shape in ("simplex", "polytope"):
                for k in range(repeats):
                    # One generator per instance, so that a subset of the suite has the same instances.
                    rng = random.Random(f"{seed}/{shape}/{n}/{degree}/{k}")
                    rows = random_simplex(n, rng) if shape == "simplex" else random_polytope(n, cuts, rng)
                    name = f"{shape}_n{n}_d{degree}_{k}"
                    found.append(Instance(name, shape, n, degree, rows, dense_polynomial(n, degree, rng)))
    return found, skipped
