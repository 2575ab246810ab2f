#!/usr/bin/env python3
"""Compares pal with LattE, SymPy and reference answers, and writes the tables into docs/benchmarks.md.

Needs only the standard library; the other programs are installed in bench/.venv and run as separate processes.
Exit codes: 0 if all answers agree, 1 if some answer differs, 2 if something needed is missing.
"""

import argparse
import datetime
import os
import shlex
import sys
import tempfile
from pathlib import Path

import dense
import growth
import report
import stars
import wmi
from environment import HERE, Peers, machine
from instances import suite
from programs import Latte, Pal

PARTS = ("dense", "stars", "wmi", "growth")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pal", default="target/release/pal", help="the pal binary (default: %(default)s)")
    p.add_argument("--quick", action="store_true", help="a small subset, under two minutes")
    p.add_argument("--only", default=",".join(PARTS), help="comma-separated parts (default: %(default)s)")
    p.add_argument("--limit", type=float, help="seconds per run of any program (default: 60, quick: 10)")
    p.add_argument("--repeats", type=int, help="instances per shape, n and degree (default: 3, quick: 1)")
    p.add_argument("--max-dimension", type=int, help="largest n of the dense polynomials (default: 8, quick: 4)")
    p.add_argument("--seed", type=int, default=1, help="seed of the generator (default: %(default)s)")
    data = os.environ.get("PAL_DATA")
    p.add_argument("--data", default=data, help="data folder with wmi/cases.jsonl (default: $PAL_DATA)")
    p.add_argument("--output", default=str(HERE.parent / "docs" / "benchmarks.md"), help="page to write")
    p.add_argument("--no-install", action="store_true", help="use bench/.venv as it is")
    args = p.parse_args()
    args.parts = args.only.split(",")
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        p.error(f"--only: unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    args.limit = args.limit or (10.0 if args.quick else 60.0)
    args.repeats = args.repeats or (1 if args.quick else 3)
    args.max_dimension = args.max_dimension or (4 if args.quick else 8)
    return args


def typed_options():
    """The options that were typed, without those that name paths on this machine."""
    out, skip = [], False
    for word in sys.argv[1:]:
        place = word.split("=")[0] in ("--pal", "--data", "--output")
        if not place and not skip:
            out.append(word)
        skip = place and "=" not in word
    return out


def main():
    args = arguments()
    if not Path(args.pal).is_file():
        print(f"no pal binary at {args.pal}; build it with `cargo build --release` or pass --pal", file=sys.stderr)
        return 2
    host = machine()
    if host["load"] > 0.5:
        print(f"load average is {host['load']:.1f}: other work disturbs wall times, compare CPU times", file=sys.stderr)
    peers = Peers.prepare(install=not args.no_install)
    complaints = []

    def complain(sentence):
        complaints.append(sentence)
        print(f"\n*** DISAGREEMENT *** {sentence}\n", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="pal-bench-") as scratch:
        latte = Latte(peers.latte_binary(), scratch)
        pal = Pal(args.pal, scratch)
        latte.self_check()
        latte.measure_startup()
        pal.measure_startup()
        print(f"start-up: LattE {latte.startup:.4f} s, pal {pal.startup:.4f} s", file=sys.stderr)
        own = pal.version().removeprefix("pal").strip()
        versions = {"pal": own, "LattE integrale": latte.version(), **peers.package_versions()}
        command = shlex.join(["python3", "bench/run.py", *typed_options()])
        head = report.environment_lines(host, versions, datetime.date.today().isoformat(), command)
        lines = []
        try:
            for part in measure(args, pal, latte, peers, complain):
                lines += part
                # The page is written after every part, so that an interrupted run keeps the parts that have ended.
                report.write(args.output, head + report.disagreement_lines(complaints) + lines)
        except KeyboardInterrupt:
            print("interrupted; the parts that ended are on the page", file=sys.stderr)
            return 130
    print(f"wrote {args.output}; {len(complaints)} disagreements", file=sys.stderr)
    return 1 if complaints else 0


def measure(args, pal, latte, peers, complain):
    """Yields the lines of each part when it ends."""
    if "dense" in args.parts:
        print("dense polynomials", file=sys.stderr)
        degrees = (4, 8) if args.quick else (4, 8, 12)
        items, skipped = suite(args.seed, args.repeats, range(2, args.max_dimension + 1), degrees)
        outcomes = dense.measure(pal, latte, items, args.limit, complain)
        latte.measure_startup()
        pal.measure_startup()
        yield report.dense_lines(outcomes, skipped, args.limit, latte.startup, pal.startup)
    if "stars" in args.parts:
        print("stars", file=sys.stderr)
        sizes = (3, 7) if args.quick else range(3, 18, 2)
        degrees = (0, 4) if args.quick else range(0, 13, 2)
        rows = stars.measure(pal, latte, peers, sizes, degrees, args.limit, complain)
        yield report.star_lines(rows, args.limit, latte.startup)
    if "wmi" in args.parts:
        if args.data and (Path(args.data) / "wmi" / "cases.jsonl").is_file():
            print("weighted model integration", file=sys.stderr)
            groups = wmi.measure(pal, args.data, args.quick, max(10 * args.limit, 60), complain)
            yield report.wmi_lines(groups)
        else:
            print("no WMI cases: set PAL_DATA or pass --data", file=sys.stderr)
            yield ["### Weighted model integration", "", "Not run: no `wmi/cases.jsonl` (set `PAL_DATA`).", ""]
    if "growth" in args.parts:
        print("growth", file=sys.stderr)
        curves = growth.measure(pal, args.seed, args.quick, args.limit)
        picture = Path(args.output).with_name("growth.svg")
        drawn = growth.draw(peers, curves, picture)
        yield report.growth_lines(curves, picture.name if drawn else None)


if __name__ == "__main__":
    sys.exit(main())
