"""All moments over N-pointed stars: pal with its recurrence, pal with GASP! cubature, and SymPy.

The star joins each of N points on the circle of radius 10 with the two points that are most nearly opposite. Corners
are rounded to 1/1000, so that every program integrates the same rational polygon. pal gets the region as a union of N
kites (centre, inner corner, tip, inner corner).
"""

import json
import math
import random
import struct
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb, factorial
from pathlib import Path

from instances import Instance, dense_polynomial, primitive, smtlib_file, smtlib_rows
from programs import Failed, TimedOut, read_pal, run


def corners(points):
    """The 2N corners, counter-clockwise, with the tips at even positions."""
    k = (points - 1) // 2
    inner = 10 * math.cos(math.pi * k / points) / math.cos(math.pi * (k - 1) / points)
    out = []
    for i in range(2 * points):
        radius = inner if i % 2 else 10
        angle = math.pi / 2 + math.pi * i / points
        out.append(tuple(Fraction(round(1000 * radius * f(angle)), 1000) for f in (math.cos, math.sin)))
    return out


def kites(points):
    """The rows of half-spaces of the N kites, as in `instances`. The interiors of the kites are disjoint."""
    ring = corners(points)
    out = []
    for i in range(0, len(ring), 2):
        kite = [(Fraction(0), Fraction(0)), ring[i - 1], ring[i], ring[i + 1]]
        rows = []
        for (px, py), (qx, qy) in zip(kite, kite[1:] + kite[:1]):
            # Left of the edge p -> q: (q - p) x (r - p) >= 0.
            rows.append(primitive([(qy - py) * px - (qx - px) * py, py - qy, qx - px]))
        out.append(rows)
    return out


def smtlib(points):
    return smtlib_file(("x", "y"), f"(or {' '.join(smtlib_rows(rows, ('x', 'y')) for rows in kites(points))})")


def exact_moment(points, a, b):
    """The integral of x^a y^b. Every corner sees the centre, so it is a sum over triangles (0, p, q). On each of them
    r = s p + t q, and the integral of s^i t^j over the standard triangle is i! j! / (i + j + 2)!."""
    ring = corners(points)
    total = Fraction(0)
    for p, q in zip(ring, ring[1:] + ring[:1]):
        area2 = p[0] * q[1] - p[1] * q[0]
        for i in range(a + 1):
            for j in range(b + 1):
                part = comb(a, i) * comb(b, j) * p[0] ** i * q[0] ** (a - i) * p[1] ** j * q[1] ** (b - j)
                total += area2 * part * Fraction(factorial(i + j) * factorial(a + b - i - j), factorial(a + b + 2))
    return total


def magnitudes(points, degree):
    """The size of the moments of each degree before cancellation. Odd moments of a symmetric star are nearly 0, so for
    them it is the geometric mean of the even neighbours."""
    even = {k: float(max(exact_moment(points, k, 0), exact_moment(points, 0, k))) for k in range(0, degree + 2, 2)}
    return [math.sqrt(even[k - k % 2] * even[k + k % 2]) for k in range(degree + 1)]


def read_safetensors(path):
    """Returns {name: (shape, flat list)} of the tensors with the number types that pal may write."""
    codes = {"F64": "d", "F32": "f"}
    codes |= {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U64": "Q", "U32": "I", "U16": "H", "U8": "B"}
    raw = Path(path).read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    out = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__" or entry["dtype"] not in codes:
            continue
        begin, end = entry["data_offsets"]
        code = codes[entry["dtype"]]
        count = (end - begin) // struct.calcsize(code)
        out[name] = (entry["shape"], list(struct.unpack_from(f"<{count}{code}", raw, 8 + size + begin)))
    return out


def moments_with_exponents(tensors):
    """Returns {(a, b): moment} for the tensors `exponents` [m, 2] and `moments` [m], or None if they are missing."""
    if "exponents" not in tensors or "moments" not in tensors:
        return None
    (shape, flat), (_, values) = tensors["exponents"], tensors["moments"]
    if len(shape) != 2 or shape[1] != 2 or shape[0] != len(values):
        return None
    return {(flat[2 * i], flat[2 * i + 1]): value for i, value in enumerate(values)}


@dataclass
class StarRow:
    points: int
    degree: int
    recurrence: float | None = None
    gasp: float | None = None
    sympy: float | None = None
    notes: list = field(default_factory=list)
    worst_error: float | None = None
    simplices: int | None = None
    latte: list | None = None  # wall seconds per kite


def measure(pal, latte, peers, sizes, degrees, limit, complain):
    """Returns one row per star and degree. `complain` is called with a sentence for each disagreement."""
    rows = []
    sympy_gone = set()  # degrees at which SymPy ran into the limit on a smaller star
    for points in sizes:
        path = pal.file(f"star{points}.smt2", smtlib(points))
        for degree in degrees:
            row = StarRow(points, degree)
            rows.append(row)
            exact = {(a, b): exact_moment(points, a, b) for a in range(degree + 1) for b in range(degree + 1 - a)}
            scale = magnitudes(points, degree)
            for method in ("recurrence", "gasp"):
                all_moments(pal, path, method, row, exact, scale, limit, complain)
            check_dense(pal, latte, path, row, exact, limit, complain)
            add_sympy(peers, row, exact, sympy_gone, limit, complain)
            print(
                f"  star {points:2} degree {degree:2}: pal {row.recurrence}, GASP! {row.gasp}, SymPy {row.sympy} s,"
                f" LattE {sum(row.latte or []):.3f} s wall {'; '.join(row.notes)}",
                file=sys.stderr,
            )
    return rows


def all_moments(pal, path, method, row, exact, scale, limit, complain):
    """Takes the least time of three runs of one method of pal and compares every moment with the exact one."""
    names = f"star {row.points} degree {row.degree} {method}"
    out = pal.scratch / f"{method}.safetensors"
    out.unlink(missing_ok=True)
    arguments = ["integrate", path, "--degree", row.degree, "--method", method, "-o", out]
    try:
        records = [pal.call(*arguments, limit=limit)[0][0] for _ in range(3)]
    except TimedOut:
        row.notes.append(f"{method}: timeout")
        return
    except Failed as bad:
        row.notes.append(f"{method}: failed")
        complain(f"{names}: {bad}")
        return
    setattr(row, method, min(float(r["seconds"]) for r in records))
    row.simplices = records[0].get("simplices") or row.simplices
    found = moments_with_exponents(read_safetensors(out)) if out.exists() else None
    if found is None:
        row.notes.append(f"{method}: moments not checked (no exponents in the file)")
    elif set(found) != set(exact):
        complain(f"{names}: {len(found)} moments, expected {len(exact)}")
    else:
        worst = max(abs(v - float(exact[e])) / scale[sum(e)] for e, v in found.items())
        row.worst_error = max(worst, row.worst_error or 0.0)
        if worst > 1e-9:
            complain(f"{names}: moments off by {worst:.2e}")


def check_dense(pal, latte, path, row, exact, limit, complain):
    """Compares one dense polynomial, by LattE summed over the kites and by pal --exact, with the exact moments."""
    rng = random.Random(f"star/{row.points}/{row.degree}")
    terms = dense_polynomial(2, row.degree, rng)
    truth = sum(c * exact[e] for c, e in terms)
    names = f"star {row.points} degree {row.degree}"
    total, walls = Fraction(0), []
    try:
        for rows in kites(row.points):
            kite = Instance(names, "kite", 2, row.degree, rows, terms)
            piece = latte.integrate(kite.latte_polytope(), kite.latte_monomials(), limit)
            total += piece.value
            walls.append(piece.cost.wall)
        row.latte = walls
        if total != truth:
            complain(f"{names}: LattE sums to {total}, the exact moments to {truth}")
    except TimedOut:
        row.notes.append("LattE: timeout")
    poly = Instance(names, "star", 2, row.degree, [], terms).infix().replace("x1", "x").replace("x2", "y")
    try:
        records, cost = pal.call("integrate", path, f"--poly={poly}", "--exact", limit=limit)
    except (Failed, TimedOut) as bad:
        complain(f"{names}: --exact: {bad}")
        return
    got = read_pal(records[0], cost).exact
    if got != truth:
        complain(f"{names}: the dense polynomial integrates to {truth}, pal --exact says {got}")


def add_sympy(peers, row, exact, gone, limit, complain):
    if row.degree in gone:
        row.notes.append("SymPy: not tried, a smaller star ran into the limit")
        return
    try:
        row.sympy, values = sympy_moments(peers, row.points, row.degree, limit)
    except TimedOut:
        gone.add(row.degree)
        row.notes.append(f"SymPy: more than {limit:g} s")
        return
    wrong = [e for e, v in values.items() if v != exact.get(e)]
    if wrong or len(values) != len(exact):
        complain(f"star {row.points} degree {row.degree}: SymPy differs from the exact moments at {wrong[:3]}")


def sympy_moments(peers, points, degree, limit):
    """Returns the seconds inside SymPy, without import and start, and {(a, b): moment}."""
    # SymPy wants the corners clockwise.
    ring = [[str(x), str(y)] for x, y in reversed(corners(points))]
    worker = Path(__file__).with_name("sympy_moments.py")
    request = json.dumps({"corners": ring, "degree": degree})
    out, _ = run([peers.python, worker], limit, stdin=request)
    answer = json.loads(out)
    return answer["seconds"], {tuple(e): Fraction(v) for e, v in answer["moments"]}
