"""`pal wmi` on structured families: time, memory and agreement with closed forms, beside pySDD on the Boolean ones.

    python bench/factors.py --pal target/release/pal

Every problem is solved in a process of its own, so that its memory can be told. pySDD is measured if it is installed
(`pip install pysdd`). The engines of pywmi are not on PyPI, so there is no peer for the families of reals.
"""

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path


@dataclass
class Family:
    name: str
    sizes: list
    problem: object  # of a size: the reals with their bounds, the Booleans, the support and the weight
    answer: object  # of a size: the exact value, or None where no closed form is known
    clauses: object = None  # of a size: the same formula as clauses, for counters of models


def conjunction(parts):
    parts = list(parts)
    return f"(and {' '.join(parts)})" if len(parts) > 1 else "".join(parts) or "true"


def box(n, low, high):
    return {f"x{k}": [low, high] for k in range(n)}


def or_pairs(n):
    names = [f"{side}{k}" for k in range(n) for side in "ab"]
    return {"x": ["0", "1"]}, names, conjunction(f"(or a{k} b{k})" for k in range(n)), "x"


def chain(n):
    return {}, [f"a{k}" for k in range(n)], conjunction(f"(or a{k} a{k + 1})" for k in range(n - 1)), "1"


def fibonacci(n):
    before, count = 1, 2
    for _ in range(n - 1):
        before, count = count, before + count
    return count


def seats(pigeons, holes):
    """Clauses of signed numbers: every pigeon has a hole, and no two have the same."""
    at = lambda pigeon, hole: pigeon * holes + hole + 1  # noqa: E731
    somewhere = [[at(p, h) for h in range(holes)] for p in range(pigeons)]
    return somewhere + [[-at(p, h), -at(q, h)] for p in range(pigeons) for q in range(p) for h in range(holes)]


def seated(pigeons, holes):
    literal = lambda v: f"p{v}" if v > 0 else f"(not p{-v})"  # noqa: E731
    support = conjunction(f"(or {' '.join(literal(v) for v in clause)})" for clause in seats(pigeons, holes))
    return {}, [f"p{v}" for v in range(1, pigeons * holes + 1)], support, "1"


def parity(n):
    support = "(<= x0 0.5)"
    for k in range(1, n):
        support = f"(xor {support} (<= x{k} 0.5))"
    return box(n, "0", "1"), [], support, "1"


def exclusive(n):
    pairs = (f"(not (and (<= x{i} 0.5) (<= x{j} 0.5)))" for i in range(n) for j in range(i))
    return box(n, "0", "1"), [], conjunction(pairs), "1"


def gaps(edges):
    """|x_i - x_j| >= 1 along the edges of a tree, in [-1, 1]: the tree families of the literature on WMI."""

    def problem(n):
        parts = (f"(or (<= (+ x{i} 1) x{j}) (<= x{j} (- x{i} 1)))" for i, j in edges(n))
        return box(n, "-1", "1"), [], conjunction(parts), "1"

    return problem


def dual(n):
    """Independent pairs, each with a case in its weight."""
    pairs = [(f"x{k}", f"x{k + 1}") for k in range(0, n, 2)]
    support = conjunction(f"(or (<= {x} {y}) (<= (+ {x} {y}) 0.5))" for x, y in pairs)
    weight = " ".join(f"(ite (<= {x} {y}) (+ {x} {y}) (* {x} {y}))" for x, y in pairs)
    return box(n, "0", "1"), [], support, f"(* 1 {weight})"


# The integral of one pair: 1/2 of x + y where x <= y, and half of (1/2)^4 / 4! of x y below the diagonal.
PAIR = Fraction(385, 768)


def zigzag(n):
    steps = (f"(<= x{k} x{k + 1})" if k % 2 == 0 else f"(>= x{k} x{k + 1})" for k in range(n - 1))
    return box(n, "0", "1"), [], conjunction(steps), "1"


def euler(n):
    row = [1]
    for _ in range(n):
        following = [0]
        for value in reversed(row):
            following.append(following[-1] + value)
        row = following
    return Fraction(row[-1], math.factorial(n))


def pairs_cnf(n):
    return [[2 * k + 1, 2 * k + 2] for k in range(n)]


FAMILIES = [
    Family("pairs of Booleans, weight x", [22, 200], or_pairs, lambda n: Fraction(3**n, 2), pairs_cnf),
    Family("chain of Booleans", [50, 350], chain, fibonacci, lambda n: [[k, k + 1] for k in range(1, n)]),
    Family("n pigeons, n holes", [6, 8], lambda n: seated(n, n), math.factorial, lambda n: seats(n, n)),
    Family("n + 1 pigeons, n holes", [6, 8], lambda n: seated(n + 1, n), lambda n: 0, lambda n: seats(n + 1, n)),
    Family("parity of intervals", [10, 50], parity, lambda n: Fraction(1, 2)),
    Family("exclusive intervals", [10, 50], exclusive, lambda n: Fraction(n + 1, 2**n)),
    Family("dual", [10, 50], dual, lambda n: PAIR ** (n // 2)),
    Family("path of gaps", [10, 50], gaps(lambda n: [(k, k + 1) for k in range(n - 1)]), lambda n: None),
    Family("star of gaps", [10, 50], gaps(lambda n: [(0, k) for k in range(1, n)]), lambda n: Fraction(2, n)),
    Family("tree of gaps", [10, 50], gaps(lambda n: [((k - 1) // 3, k) for k in range(1, n)]), lambda n: None),
    Family("zigzag order", [10, 50, 200], zigzag, euler),
]

PYSDD = """
import json, sys
from pysdd.sdd import SddManager
clauses = json.load(sys.stdin)
variables = max(abs(v) for clause in clauses for v in clause)
manager = SddManager(var_count=variables, auto_gc_and_minimize=True)
formula = manager.true()
for clause in clauses:
    part = manager.false()
    for v in clause:
        part = part | manager.literal(v)
    formula = formula & part
weights = formula.wmc(log_mode=False)
print(weights.propagate())
"""


def run(command, stdin, limit):
    """The output of a command, its seconds and its memory in megabytes."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=out, stderr=err)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() - start > limit:
                process.kill()
                os.wait4(process.pid, 0)
                return None, limit, 0.0
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        out.seek(0)
        return out.read().decode(), seconds, usage.ru_maxrss / 1024


def shown(seconds, megabytes, limit):
    return f"> {limit:g} s" if seconds >= limit else f"{seconds:.3f} s, {megabytes:.0f} MB"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pal", default="target/release/pal", help="the program to measure")
    options.add_argument("--limit", type=float, default=60.0, help="seconds for one problem")
    options.add_argument("--quick", action="store_true", help="the smallest problem of every family")
    arguments = options.parse_args()
    peer = importlib.util.find_spec("pysdd") is not None
    wrong = 0
    print("| family | n | pal, exact | pal, float64 | pySDD | value |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES:
            for n in family.sizes[: 1 if arguments.quick else None]:
                reals, booleans, support, weight = family.problem(n)
                domain = {"reals": reals, "booleans": booleans}
                problem = {"name": family.name, "domain": domain, "support": support, "weight": weight}
                path = Path(folder) / "problem.jsonl"
                path.write_text(json.dumps(problem) + "\n")
                cells, verdict = [], "no closed form"
                for mode in (["--exact"], []):
                    command = [arguments.pal, "wmi", str(path), "--json", *mode]
                    text, seconds, memory = run(command, "", arguments.limit)
                    cells.append(shown(seconds, memory, arguments.limit))
                    record = json.loads(text.splitlines()[0]) if text else {}
                    wanted = family.answer(n)
                    if mode and record.get("status", "ok") != "ok":
                        verdict = f"refused: {record['status'][:60]}"
                    elif mode and wanted is not None and record.get("exact") is not None:
                        ok = Fraction(record["exact"]) == wanted
                        verdict, wrong = ("as it should be", wrong) if ok else ("WRONG", wrong + 1)
                counted = ""
                if family.clauses and peer:
                    text, seconds, memory = run(
                        [sys.executable, "-c", PYSDD], json.dumps(family.clauses(n)), arguments.limit
                    )
                    counted = shown(seconds, memory, arguments.limit)
                print(f"| {family.name} | {n} | {cells[0]} | {cells[1]} | {counted} | {verdict} |", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
