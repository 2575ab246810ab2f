"""Dense polynomials over random simplices and polytopes: pal against LattE. The exact answers must be equal."""

import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from instances import Instance
from programs import Failed, LatteRun, PalRun, TimedOut

TOLERANCE = 1e-9
# Wall time minus start-up is a difference of two noisy numbers; below this it means nothing.
NOISE = 1e-4


@dataclass
class Outcome:
    instance: Instance
    latte: LatteRun | None
    latte_note: str  # "", "timeout", "failed", "not tried: ..."
    f64: PalRun | None
    exact: PalRun | None
    pal_note: str
    relative_error: float | None = None

    def key(self):
        return self.instance.shape, self.instance.n, self.instance.degree

    def ratio(self, mode, measure, limit, reduce=lambda latte, pal: (latte, pal)):
        """The time of LattE divided by that of pal. The limit stands for the time of a program that timed out, so that
        the ratio is a lower bound if LattE did and an upper bound if pal did. None if both did, or if LattE was not
        tried."""
        pal = getattr(self, mode)
        if not (self.latte or pal and self.latte_note == "timeout"):
            return None
        latte_cost = measure(self.latte.cost) if self.latte else limit
        pal_cost = measure(pal.cost) if pal else limit
        above, below = reduce(latte_cost, pal_cost)
        return above / max(below, 1e-7)

    def ratio_wall(self, mode, limit):
        return self.ratio(mode, lambda cost: cost.wall, limit)

    def ratio_cpu(self, mode, limit):
        return self.ratio(mode, lambda cost: cost.cpu, limit)

    def ratio_net(self, mode, limit, startup):
        """The time of LattE without its start-up, divided by the seconds that pal reports for the integral alone."""
        pal = getattr(self, mode)

        def net(latte_cost, _):
            return max(latte_cost - startup, NOISE), pal.seconds if pal else limit

        return self.ratio(mode, lambda cost: cost.wall, limit, net)


def compare(instance, f64, exact, truth, complain):
    """Reports every disagreement and returns the relative error of the f64 value."""
    name = instance.name
    if exact is not None:
        if exact.exact is None:
            complain(f"{name}: pal --exact gave no fraction")
        elif truth is not None and exact.exact != truth:
            complain(f"{name}: pal --exact says {exact.exact}, LattE says {truth}")
        if truth is None:
            truth = exact.exact
    if f64 is None or truth is None:
        return None
    difference = abs(Fraction(f64.value) - truth)
    relative = float(difference / abs(truth)) if truth else float(difference)
    if relative > TOLERANCE:
        complain(f"{name}: pal f64 {f64.value!r} is off by {relative:.2e} from {float(truth)!r}")
    if f64.error_bound is not None and difference > Fraction(f64.error_bound):
        complain(f"{name}: f64 error {float(difference):.2e} exceeds its bound {f64.error_bound:.2e}")
    return relative


def measure(pal, latte, suite, limit, complain):
    outcomes, groups = [], defaultdict(list)
    for instance in suite:
        groups[instance.shape, instance.n, instance.degree].append(instance)
    hopeless = []  # (shape, n, degree) where LattE ran into the limit every time
    for (shape, n, degree), members in groups.items():
        easier = next((h for h in hopeless if h[0] == shape and h[1] <= n and h[2] <= degree), None)
        stopped = 0
        for instance in members:
            answer, note = None, ""
            if easier:
                note = f"not tried: timeout at n = {easier[1]}, degree {easier[2]}"
            else:
                try:
                    answer = latte.integrate(instance.latte_polytope(), instance.latte_monomials(), limit)
                except TimedOut:
                    note, stopped = "timeout", stopped + 1
                except Failed as bad:
                    note = "failed"
                    complain(f"{instance.name}: {bad}")
            runs, pal_notes = {}, []
            for mode in ("f64", "exact"):
                try:
                    runs[mode] = pal.integrate(instance, mode == "exact", limit)
                except TimedOut:
                    pal_notes.append(f"{mode}: timeout")
                except Failed as bad:
                    pal_notes.append(f"{mode}: failed")
                    complain(f"{instance.name} {mode}: {bad}")
            outcome = Outcome(instance, answer, note, runs.get("f64"), runs.get("exact"), ", ".join(pal_notes))
            outcome.relative_error = compare(
                instance, outcome.f64, outcome.exact, answer.value if answer else None, complain
            )
            outcomes.append(outcome)
        if stopped == len(members):
            hopeless.append((shape, n, degree))
        progress(shape, n, degree, outcomes[-len(members) :])
    return outcomes


def progress(shape, n, degree, group):
    def middle(values):
        values = [v for v in values if v is not None]
        return f"{statistics.median(values):.4f}" if values else "-"

    print(
        f"  {shape} n={n} degree={degree}: LattE {middle([o.latte and o.latte.cost.wall for o in group])} s"
        f" ({', '.join(sorted({o.latte.method if o.latte else o.latte_note for o in group}))}),"
        f" pal exact {middle([o.exact and o.exact.cost.wall for o in group])} s,"
        f" f64 {middle([o.f64 and o.f64.cost.wall for o in group])} s",
        file=sys.stderr,
    )
