"""Runs programs with a time limit: LattE and pal, which every table compares."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from instances import ARGUMENT_LIMIT, smtlib_file, smtlib_rows

# Exact answers can have more digits than Python converts by default.
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


class TimedOut(Exception):
    """The program was stopped at its time limit."""


class Failed(Exception):
    """The program ended with an error or with output that cannot be read."""


@dataclass
class Cost:
    """Wall and processor seconds of one process with its children. Other load hardly affects the latter."""

    wall: float
    cpu: float


def run(command, limit, cwd=None, stdin=None, any_code=False):
    """Runs a program to its end and returns (stdout, Cost). A non-zero exit code is a failure unless `any_code` is set.

    The program gets its own process group, because LattE runs other programs through a shell that would outlive it.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(c) for c in command],
        cwd=cwd,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, timeout=limit)
    except BaseException as stop:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(stop, subprocess.TimeoutExpired):
            raise TimedOut(f"{Path(command[0]).name}: more than {limit:g} s") from None
        raise
    wall = time.perf_counter() - start
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = Cost(wall, now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime)
    if process.returncode != 0 and not (any_code and out):
        raise Failed(f"{Path(command[0]).name} ended with code {process.returncode}: {(err or out).strip()[-400:]}")
    return out, cost


def fastest(once, budget=1.0, most=5):
    """The fastest of several runs, which are repeated while that is cheap: the minimum is the one that other load on
    the machine has disturbed least. `once` returns an object with a `cost`."""
    results = [once()]
    while len(results) < most and results[0].cost.wall * len(results) < budget:
        results.append(once())
    best = min(results, key=lambda r: r.cost.wall)
    best.cost = Cost(best.cost.wall, min(r.cost.cpu for r in results))
    return best


@dataclass
class LatteRun:
    value: Fraction
    method: str
    cost: Cost
    own: float  # LattE's "Total time", printed in steps of 0.01 s


class Latte:
    """LattE integrale's `integrate`, in a scratch directory (it leaves `Check_emp.*` files behind)."""

    METHODS = ("triangulate", "cone-decompose")

    def __init__(self, binary, scratch):
        self.binary = Path(binary).resolve()
        self.scratch = Path(scratch)
        self.startup = None

    def version(self):
        # `--help` prints its banner on stderr.
        shown = subprocess.run([self.binary, "--help"], capture_output=True, text=True, cwd=self.scratch, timeout=20)
        found = re.search(r"LattE integrale (\S+)", shown.stdout + shown.stderr)
        return found.group(1) if found else "unknown"

    def command(self, method):
        return [self.binary, "--valuation=integrate", f"--{method}", "--monomials=poly.txt", "body.hrep.latte"]

    def once(self, method, limit):
        out, cost = run(self.command(method), limit, cwd=self.scratch)
        answer = re.findall(r"Answer:\s*(-?\d+(?:/\d+)?)", out)
        if not answer:
            raise Failed(f"LattE printed no answer: {out.strip()[-300:]}")
        own = re.findall(r"Total time:\s*([\d.]+)", out)
        return LatteRun(Fraction(answer[-1]), method, cost, float(own[-1]) if own else float("nan"))

    def integrate(self, polytope, monomials, limit):
        """The better one of both methods, each the fastest of up to five runs.

        The second method is stopped when it takes much longer than the first did, since only the faster one counts.
        """
        (self.scratch / "body.hrep.latte").write_text(polytope)
        (self.scratch / "poly.txt").write_text(monomials)
        best, stopped = None, None
        # On polytopes other than simplices the tangent-cone method is nearly always faster.
        for method in reversed(self.METHODS):
            allowed = limit if best is None else min(limit, 2 * best.cost.wall + 0.5)
            try:
                result = fastest(lambda: self.once(method, allowed))
            except TimedOut as late:
                stopped = late
                continue
            if best is not None and result.value != best.value:
                raise Failed(f"LattE's two methods disagree: {best.value} and {result.value}")
            if best is None or result.cost.wall < best.cost.wall:
                best = result
        if best is None:
            raise stopped
        return best

    def measure_startup(self, repeats=25):
        """Measures the least wall time for the area of a triangle: starting the process, parsing, the emptiness check.

        It may be called again later; the least time of all calls counts.
        """
        (self.scratch / "body.hrep.latte").write_text("3 3\n0 1 0\n0 0 1\n1 -1 -1\n")
        (self.scratch / "poly.txt").write_text("[[1,[0,0]]]\n")
        runs = [self.once(self.METHODS[0], 20) for _ in range(repeats)]
        self.startup = min([r.cost.wall for r in runs] + ([self.startup] if self.startup else []))

    def self_check(self):
        """Checks that both methods give 1/6 for the integral of x^2 y over the unit cube."""
        rows = [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, -1, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1]]
        text = "6 4\n" + "".join(" ".join(map(str, r)) + "\n" for r in rows)
        (self.scratch / "body.hrep.latte").write_text(text)
        (self.scratch / "poly.txt").write_text("[[1,[2,1,0]]]\n")
        for method in self.METHODS:
            value = self.once(method, 20).value
            if value != Fraction(1, 6):
                raise Failed(f"LattE --{method} gives {value} for x^2 y over the unit cube, not 1/6")


@dataclass
class PalRun:
    value: float
    exact: Fraction | None
    error_bound: float | None
    seconds: float
    cost: Cost
    cells: int | None = None
    simplices: int | None = None
    through: str = "integrate"
    raw: dict = field(default_factory=dict, repr=False)


def read_pal(record, cost, through="integrate"):
    exact = record.get("exact")
    bound = record.get("error_bound")
    return PalRun(
        value=float(record["value"]) if record.get("value") is not None else float("nan"),
        exact=Fraction(exact) if exact is not None else None,
        error_bound=float(bound) if bound is not None else None,
        seconds=float(record.get("seconds", "nan")),
        cost=cost,
        cells=record.get("cells"),
        simplices=record.get("simplices"),
        through=through,
        raw=record,
    )


class Pal:
    """The program `pal`."""

    def __init__(self, binary, scratch):
        self.binary = Path(binary).resolve()
        self.scratch = Path(scratch)
        self.startup = None

    def version(self):
        try:
            return run([self.binary, "--version"], 20)[0].strip()
        except Failed:
            return "unknown"

    def file(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        return path

    def call(self, *arguments, limit):
        # `pal wmi` answers the other problems of a file even if one of them has no answer.
        out, cost = run([self.binary, *arguments, "--json"], limit, cwd=self.scratch, any_code=arguments[0] == "wmi")
        try:
            records = [json.loads(line) for line in out.splitlines() if line.strip()]
        except json.JSONDecodeError as bad:
            raise Failed(f"pal {arguments[0]} --json printed no JSON lines: {bad}: {out[:200]!r}") from None
        return records, cost

    def integrate(self, instance, exact, limit):
        """The fastest of up to five runs. Polynomials that are too long for the command line go through `pal wmi`."""
        poly = instance.infix()
        if len(poly) < ARGUMENT_LIMIT:
            through = "integrate"
            path = self.file("body.smt2", instance.smtlib())
            arguments = ["integrate", path, f"--poly={poly}"]
        else:
            through = "wmi"
            path = self.file("body.jsonl", instance.wmi_problem() + "\n")
            arguments = ["wmi", path]
        if exact:
            arguments.append("--exact")

        def once():
            records, cost = self.call(*arguments, limit=limit)
            if not records or records[0].get("value") is None and records[0].get("exact") is None:
                raise Failed(f"pal {through} gave no value for {instance.name}: {records}")
            return read_pal(records[0], cost, through)

        return fastest(once)

    def measure_startup(self, repeats=25):
        names = ("x1", "x2")
        path = self.file("triangle.smt2", smtlib_file(names, smtlib_rows([[0, 1, 0], [0, 0, 1], [1, -1, -1]], names)))
        walls = [self.call("integrate", path, "--poly=1", limit=20)[1].wall for _ in range(repeats)]
        self.startup = min(walls + ([self.startup] if self.startup else []))
