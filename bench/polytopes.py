"""Exact volumes of polytopes: PAL against Normaliz and LattE.

    cargo build --release -p pal --example polytopes
    python bench/polytopes.py FOLDER/polytopes.jsonl FOLDER/hard.jsonl [--limit 120] [--latte] [--only NAME]

A line of a file is `{"name": .., "rows": [[b, a1, .., an], ..], "volume": ..}`, each row meaning
`b + a1 x1 + .. + an xn >= 0`. `--families` adds polytopes of this file's own. Every polytope has a process of its own in
every program. Seconds are from the rows to the volume, without the start of the process; memory is the most that the
process took. Volumes are compared digit by digit. The exit code is 1 if some differ.
"""

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from environment import Peers, machine

sys.set_int_max_str_digits(0)
HERE = Path(__file__).resolve().parent
OURS = HERE.parent / "target" / "release" / "examples" / "polytopes"

NORMALIZ = """
import json, sys, time
from PyNormaliz import Cone
sys.set_int_max_str_digits(0)
rows = json.load(sys.stdin)
start = time.perf_counter()
size = Cone(inequalities=rows, grading=[[0] * (len(rows[0]) - 1) + [1]]).Multiplicity()
seconds = time.perf_counter() - start
print(seconds, "/".join(map(str, size)) if isinstance(size, (list, tuple)) else size)
"""


def measured(command, text, limit, cwd=None):
    """What a process printed, or a word why not, and the most memory it took, in megabytes."""
    with tempfile.TemporaryFile("w+") as source, tempfile.TemporaryFile("w+") as target:
        source.write(text)
        source.seek(0)
        child = subprocess.Popen(command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, cwd=cwd)
        deadline = time.monotonic() + limit
        while True:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                return None, "timeout", math.nan
            time.sleep(0.002)
        child.returncode = os.waitstatus_to_exitcode(status)
        target.seek(0)
        out = target.read()
    return (out if child.returncode == 0 and out else None), "failed", usage.ru_maxrss / 1024


def fastest(run, *arguments):
    """The fastest of three runs, if the first is so short that others on the machine decide about it."""
    answer = run(*arguments)
    if answer[0] is None or answer[1] > 1:
        return answer
    return min([answer, run(*arguments), run(*arguments)], key=lambda one: math.inf if one[0] is None else one[1])


def integral(row):
    """The row in integers."""
    exact = [Fraction(str(entry)) for entry in row]
    factor = math.lcm(*(entry.denominator for entry in exact))
    return [int(entry * factor) for entry in exact]


def ours(rows, limit):
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    out, why, memory = measured([OURS], text, limit)
    if out is None:
        return None, why, memory
    seconds, volume = out.split()
    return Fraction(volume), float(seconds), memory


def normaliz(python, rows, limit):
    cone = json.dumps([row[1:] + row[:1] for row in rows])
    out, why, memory = measured([python, "-c", NORMALIZ], cone, limit)
    if out is None:
        return None, why, memory
    seconds, size = out.split()
    # The multiplicity is the volume in units of the smallest simplex.
    return Fraction(size) / math.factorial(len(rows[0]) - 1), float(seconds), memory


def latte(binary, rows, limit):
    """By its own clock, which has steps of 0.01 s."""
    with tempfile.TemporaryDirectory() as scratch:
        body = f"{len(rows)} {len(rows[0])}\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows)
        (Path(scratch) / "body.hrep.latte").write_text(body)
        best = (None, "timeout", math.nan)
        for method in ("--triangulate", "--cone-decompose"):
            command = [binary, "--valuation=volume", method, "body.hrep.latte"]
            out, why, memory = measured(command, "", limit, cwd=scratch)
            lines = [] if out is None else out.splitlines()
            answer = [line.split(":")[1].strip() for line in lines if "Answer:" in line]
            took = [line.split(":")[1].strip() for line in lines if "Total time:" in line]
            if not answer or not took:
                best = best if best[0] is not None else (None, why, memory)
                continue
            seconds = float(took[-1].split()[0])
            if best[0] is None or seconds < best[1]:
                best = (Fraction(answer[-1]), seconds, memory)
        return best


def cube(n):
    return [[int(sign < 0)] + [sign * (i == j) for j in range(n)] for sign in (1, -1) for i in range(n)]


def permutohedron(order):
    """In all coordinates but the last."""
    total = order * (order + 1) // 2
    rows = []
    for size in range(1, order):
        for subset in itertools.combinations(range(order), size):
            last = order - 1 in subset
            row = [-(size * (size + 1) // 2) + (total if last else 0)]
            rows.append(row + [int(j in subset) - int(last) for j in range(order - 1)])
    return rows


def cut_polytope(order, hypermetric):
    """The cut polytope of a complete graph; without hypermetric inequalities the metric polytope."""
    edges = list(itertools.combinations(range(order), 2))
    rows = []
    for triangle in itertools.combinations(range(order), 3):
        sides = list(itertools.combinations(triangle, 2))
        rows.append([2] + [-int(edge in sides) for edge in edges])
        for long in sides:
            rows.append([0] + [int(edge in sides) - 2 * int(edge == long) for edge in edges])
    if hypermetric:
        signs = itertools.product((-1, 1), repeat=order - 1)
        for b in ((1, *rest) for rest in signs):
            rows.append([sum(b) ** 2 // 4] + [-b[i] * b[j] for i, j in edges])
    return rows


def birkhoff(order):
    m = order - 1
    rows = [[0] + [int(k == cell) for k in range(m * m)] for cell in range(m * m)]
    for line in range(m):
        rows.append([1] + [-int(k // m == line) for k in range(m * m)])
        rows.append([1] + [-int(k % m == line) for k in range(m * m)])
    return rows + [[1 - m] + [1] * (m * m)]


def families():
    """Polytopes with volumes that are known, or left to the comparison."""
    yield "cube-14", cube(14), 1
    yield "permutohedron-8", permutohedron(8), 8**6
    yield "cut-polytope-5", cut_polytope(5, True), None
    yield "metric-polytope-5", cut_polytope(5, False), None
    yield "birkhoff-4", birkhoff(4), Fraction(352, math.factorial(9))
    yield "cross-9", [[1, *signs] for signs in itertools.product((-1, 1), repeat=9)], Fraction(2**9, math.factorial(9))


def cases(args):
    for path in args.files:
        for line in Path(path).read_text().splitlines():
            case = json.loads(line)
            yield case["name"], case["rows"], case["volume"]
    if args.families:
        yield from families()


def shown(answer):
    value, seconds, memory = answer
    return f"{seconds:>9}" if value is None else f"{seconds:9.4f} s {memory:5.0f} MB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one polytope in one program")
    parser.add_argument("--latte", action="store_true", help="run LattE as well")
    parser.add_argument("--families", action="store_true", help="add polytopes of this file's own")
    parser.add_argument("--only", default="", help="polytopes with this in their names")
    parser.add_argument("--python", help="a Python with PyNormaliz, instead of bench/.venv")
    args = parser.parse_args()
    if not OURS.exists():
        raise SystemExit("first: cargo build --release -p pal --example polytopes")
    peers = Peers(args.python) if args.python else Peers.prepare()
    binary = peers.latte_binary() if args.latte else None
    print(machine())
    worst, wrong, behind = [], [], []
    for name, given, known in cases(args):
        if args.only not in name:
            continue
        rows = [integral(row) for row in given]
        mine, theirs = fastest(ours, rows, args.limit), fastest(normaliz, peers.python, rows, args.limit)
        answers = [mine, theirs] + ([fastest(latte, binary, rows, args.limit)] if binary else [])
        values = {answer[0] for answer in answers if answer[0] is not None}
        if known is not None:
            values.add(Fraction(known))
        if len(values) > 1 or mine[0] is None:
            wrong.append(name)
        ratio = math.nan
        if mine[0] is not None and theirs[0] is not None:
            ratio = mine[1] / theirs[1]
            worst.append((ratio, name))
            if ratio > 1:
                behind.append(name)
        verdict = "equal" if len(values) == 1 and mine[0] is not None else "NOT EQUAL"
        print(f"{name:45} {'  '.join(map(shown, answers))}  ratio {ratio:8.4f}  {verdict}", flush=True)
    if worst:
        ratio, name = max(worst)
        print(
            f"{len(worst)} compared with Normaliz; worst ratio {ratio:.3f} ({name}); behind on {len(behind)}: {behind}"
        )
    print("all volumes equal" if not wrong else f"not equal or not found: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
