"""How the time of pal grows with degree, dimension, simplices and atoms, next to the growth that the method predicts.

Growth is the exponent of a power, which is the slope of a line in log-log coordinates. The expected exponent is that of
the operation count at the same points, since the counts are not pure powers at these sizes.
"""

import json
import math
import random
import subprocess
import sys
from dataclasses import dataclass
from math import comb
from pathlib import Path

import stars
from instances import primitive, random_simplex, smtlib_file, smtlib_rows
from programs import Failed, TimedOut


@dataclass
class Curve:
    key: str
    title: str
    xlabel: str
    points: list  # (x, seconds, predicted operations)

    def exponents(self):
        """Exponents of the time and of the operation count in the upper half of the range, away from fixed costs."""
        upper = self.points[len(self.points) // 2 - 1 :] if len(self.points) >= 4 else self.points
        return exponent([(x, t) for x, t, _ in upper]), exponent([(x, w) for x, _, w in upper])


def exponent(pairs):
    """The exponent of the power of x that fits y best: least squares on the logarithms."""
    pairs = [(math.log(x), math.log(y)) for x, y in pairs if x > 0 and y > 0]
    if len(pairs) < 2:
        return math.nan
    mx = sum(x for x, _ in pairs) / len(pairs)
    my = sum(y for _, y in pairs) / len(pairs)
    spread = sum((x - mx) ** 2 for x, _ in pairs)
    return sum((x - mx) * (y - my) for x, y in pairs) / spread if spread else math.nan


def sweeps(n, degree):
    """Multiplications and additions for all moments of one simplex: n + 1 sweeps with n of them per moment."""
    return (n + 1) * n * comb(n + degree, n)


def union_of_strips(count, rng):
    """The unit square without thin wedges: `count` random lines, each of which cuts cells of the others."""
    box = smtlib_rows([[0, 1, 0], [0, 0, 1], [1, -1, 0], [1, 0, -1]], ("x", "y"))
    clauses = []
    for _ in range(count // 2):
        pair = []
        for _ in range(2):
            a = [rng.choice((-1, 1)) * rng.randint(1, 99) for _ in range(2)]
            through = [rng.randint(20, 80) for _ in range(2)]
            pair.append(primitive([-(a[0] * through[0] + a[1] * through[1]), 100 * a[0], 100 * a[1]]))
        clauses.append("(or " + " ".join(smtlib_rows([row], ("x", "y")) for row in pair) + ")")
    return smtlib_file(("x", "y"), f"(and {box} {' '.join(clauses)})")


def measure(pal, seed, quick, limit):
    def seconds(text, degree):
        path = pal.file("growth.smt2", text)
        best, record = math.inf, None
        for _ in range(3):
            target = pal.scratch / "growth.safetensors"
            records, cost = pal.call("integrate", path, "--degree", degree, "-o", target, limit=limit)
            record = records[0]
            best = min(best, float(record["seconds"]))
            if cost.wall > 2:
                break
        return best, record

    def collect(key, title, xlabel, jobs):
        curve = Curve(key, title, xlabel, [])
        for x, text, degree, work in jobs:
            try:
                t, record = seconds(text, degree)
            except TimedOut:
                print(f"  growth {key}: x = {x} ran into the limit", file=sys.stderr)
                break
            except Failed as bad:
                print(f"  growth {key}: {bad}", file=sys.stderr)
                break
            if key == "simplices":
                x = record.get("simplices") or x
            curve.points.append((x, t, work(x, record)))
        return curve

    def simplex(n):
        names = [f"x{i + 1}" for i in range(n)]
        return smtlib_file(names, smtlib_rows(random_simplex(n, random.Random(f"{seed}/growth/{n}")), names))

    degrees = [2, 4, 8, 16] if quick else [2, 4, 8, 12, 16, 24, 32, 48]
    dimensions = [2, 3, 4] if quick else [2, 3, 4, 5, 6, 7, 8, 9, 10]
    sizes = [5, 9, 17] if quick else [5, 9, 17, 33, 65, 129, 257]
    atoms = [4, 8, 12] if quick else [4, 8, 12, 16, 24, 32, 48]
    return [
        collect("degree", "One simplex, n = 3, all moments", "degree",
                [(d, simplex(3), d, lambda x, _: sweeps(3, x)) for d in degrees]),
        collect("dimension", "One simplex, degree 6, all moments", "dimension",
                [(n, simplex(n), 6, lambda x, _: sweeps(x, 6)) for n in dimensions]),
        collect("simplices", "N-stars, degree 8, all moments", "simplices",
                [(2 * s, stars.smtlib(s), 8, lambda x, _: x) for s in sizes]),
        # k lines cut the plane into at most 1 + k + k(k-1)/2 cells.
        collect("atoms", "Random clauses in the unit square, degree 4", "atoms",
                [(k, union_of_strips(k, random.Random(f"{seed}/atoms/{k}")), 4,
                  lambda x, _: 1 + x + x * (x - 1) // 2) for k in atoms]),
    ]


def draw(peers, curves, target):
    """Draws the SVG file `target` with matplotlib in the virtual environment; returns False if that fails."""
    curves = [c for c in curves if len(c.points) >= 2]
    if not curves:
        return False
    worker = Path(__file__).with_name("draw_curves.py")
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    request = {
        "target": str(target),
        "curves": [
            {"title": c.title, "xlabel": c.xlabel, "points": c.points, "exponents": c.exponents()} for c in curves
        ],
    }
    done = subprocess.run([peers.python, worker], input=json.dumps(request), text=True, capture_output=True)
    if done.returncode:
        print(f"no growth curves: {done.stderr.strip()[-200:]}", file=sys.stderr)
    return done.returncode == 0
