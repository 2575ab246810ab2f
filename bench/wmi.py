"""`pal wmi` on published problems: time per group of problems, and agreement with independent reference answers."""

import json
import math
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from programs import Failed, TimedOut

# The fields that pal gets to see: the question without its answers.
QUESTION = ("name", "source", "domain", "support", "weight", "queries")


@dataclass
class Group:
    name: str
    problems: int
    f64: list
    exact: list
    reference: list  # seconds of the reference evaluator (Python), for orientation
    worst_error: float
    notes: list


def load(data, quick):
    path = Path(data) / "wmi" / "cases.jsonl"
    groups = defaultdict(list)
    with path.open() as lines:
        for line in lines:
            case = json.loads(line)
            groups[case["family"]].append(case)
    if quick:
        groups = {name: cases[:3] for name, cases in groups.items()}
    return groups


def agrees(got, want, scale):
    """Returns (ok, relative error) of one answer of pal, `{"value", "exact"}`, compared with one reference answer."""
    if want.get("expect", "value") != "value":
        status = str(got.get("status", "")) + str(got.get("error", ""))
        return got.get("value") is None or "unbounded" in status, 0.0
    if got.get("exact") is not None and want.get("value_exact"):
        return Fraction(got["exact"]) == Fraction(want["value_exact"]), 0.0
    if got.get("value") is None:
        return False, math.inf
    difference = abs(float(got["value"]) - want["value"])
    if want.get("method") == "mc":
        return difference <= 5 * want["stderr"], 0.0
    relative = difference / abs(want["value"]) if want["value"] else (0.0 if difference == 0 else math.inf)
    ok = relative <= 1e-9 or difference <= 1e-12 * max(1.0, abs(scale))
    return ok, relative if math.isfinite(relative) and difference > 1e-12 * max(1.0, abs(scale)) else 0.0


def measure(pal, data, quick, limit, complain):
    groups = []
    for name, cases in load(data, quick).items():
        text = "".join(json.dumps({k: c[k] for k in QUESTION if k in c}) + "\n" for c in cases)
        path = pal.file(f"wmi_{name}.jsonl", text)
        group = Group(name, len(cases), [], [], [c["time_s"] for c in cases if c.get("time_s")], 0.0, [])
        groups.append(group)
        for mode, times in ((None, group.f64), ("--exact", group.exact)):
            label = mode or "f64"
            try:
                records, _ = pal.call("wmi", path, *([mode] if mode else []), limit=limit)
            except (TimedOut, Failed) as bad:
                group.notes.append(f"{label}: {bad}")
                if isinstance(bad, Failed):
                    complain(f"wmi {name} {label}: {bad}")
                continue
            answers = {r.get("name"): r for r in records}
            for case in cases:
                got = answers.get(case["name"])
                if got is None:
                    complain(f"wmi {case['name']} {label}: no answer")
                    continue
                times.append(float(got.get("seconds") or 0.0))
                scale = case.get("value") or 0.0
                pairs = [("value", got, case)]
                queries = got.get("queries") or []
                wanted = case.get("query_answers") or []
                if case.get("expect", "value") == "value":
                    if len(queries) != len(wanted):
                        complain(f"wmi {case['name']} {label}: {len(queries)} query answers, expected {len(wanted)}")
                    pairs += [(f"query {i}", q, w) for i, (q, w) in enumerate(zip(queries, wanted))]
                for what, answer, want in pairs:
                    ok, error = agrees(answer, want, scale)
                    group.worst_error = max(group.worst_error, error)
                    if not ok:
                        complain(
                            f"wmi {case['name']} {label} {what}: pal {answer.get('exact') or answer.get('value')}, "
                            f"reference {want.get('value_dec') or want.get('value')} ({want.get('method')})"
                        )
        middle = statistics.median(group.f64) if group.f64 else math.nan
        print(f"  wmi {name}: {len(cases)} problems, median {middle:.2e} s", file=sys.stderr)
    return groups
