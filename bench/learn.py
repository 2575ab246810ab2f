#!/usr/bin/env python3
"""Trains PAL and baselines without guarantees on the same rows; prints means and standard deviations over seeds.

    python3 bench/learn.py stars                       the N-star problem of the paper, N = 3, 7, 11, 19
    python3 bench/learn.py scenes --data DIR           two drone scenes, without and with inputs
    python3 bench/learn.py scenes --data DIR --only scene12-fit --models pal,gmm

Needs `cargo build --release -p pal-cli`, and of Python only the standard library. Tables, models and one JSON line per
run go to the folder --work.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WINDOW = "x0,y0,x1,y1,x2,y2,x3,y3,x4,y4"

# These settings were chosen by validation on the first seed. They are the same for both scenes.
SHORT = ["--batch", "512", "--epochs", "60", "--patience", "6"]
FITS = {
    "pal": ["--knots", "28", "--components", "16", "--learning-rate", "0.03", *SHORT],
    "gmm50": ["--baseline", "gmm", "--components", "50", *SHORT],
    "gmm100": ["--baseline", "gmm", "--components", "100", *SHORT],
    "flow": ["--baseline", "flow", "--transforms", "3", "--learning-rate", "0.003", *SHORT],
    "dsp": ["--baseline", "dsp", "--optimiser", "adam", "--learning-rate", "0.001", *SHORT],
}
# The learning rates of mdn50 and flow are the better one in validation of 0.002 and 0.005.
NETWORK = ["--batch", "512", "--epochs", "60", "--patience", "8"]
TRAININGS = {
    "pal": ["--knots", "56", "--components", "8", "--hidden", "256,256", "--learning-rate", "0.005"],
    "mdn50": ["--baseline", "mdn", "--components", "50", "--hidden", "256,256", "--learning-rate", "0.005"],
    "flow": ["--baseline", "flow", "--transforms", "3", "--hidden", "128,128", "--learning-rate", "0.005"],
    "dsp": ["--baseline", "dsp", "--optimiser", "adam", "--hidden", "256,256", "--learning-rate", "0.002"],
}
STAR = ["--family", "sum-of-squares", "--degree", "7", "--components", "4", "--hidden", "256,256", "--batch", "2048"]
STAR += ["--learning-rate", "0.002", "--epochs", "6", "--patience", "2"]


def pal(*words):
    """Runs the program and returns the JSON object that it prints."""
    done = subprocess.run([ROOT / "target/release/pal", *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return json.loads(done.stdout)


def over_seeds(name, seeds, log, *words):
    """Trains with every seed, prints a line of means and standard deviations, and returns the summaries of all runs."""
    found = []
    for seed in range(1, seeds + 1):
        model = log.parent / f"{name}-{seed}.safetensors"
        summary = pal(*words, "--seed", seed, "--restart", "-o", model)
        summary["name"] = name
        with log.open("a") as out:
            out.write(json.dumps(summary) + "\n")
        found.append(summary)

    def spread(field):
        values = [summary[field] for summary in found]
        return f"{statistics.mean(values):9.4f} ± {statistics.stdev(values) if len(values) > 1 else 0:.4f}"

    outside = statistics.mean(summary["violation"] for summary in found)
    seconds = statistics.mean(summary["training_seconds"] for summary in found)
    likelihoods = f"{spread('val_ll')} {spread('test_ll')}"
    print(f"{name:<28} {found[0]['params']:>8} {likelihoods} {100 * outside:8.3f} % {seconds:7.1f} s", flush=True)
    return found


def stars(args, log):
    for n in args.n:
        constraint = args.work / f"nstar{n}.smt2"
        table = {part: args.work / f"nstar{n}-{part}.parquet" for part in ("train", "val", "test")}
        made = {}
        for seed, (part, points) in enumerate([("train", 560_000), ("val", 120_000), ("test", 120_000)], 1):
            options = ["--n", n, "--points", points, "--seed", seed, "--truth", "--write-constraint", constraint]
            made[part] = pal("data", "nstar", *options, "-o", table[part])
        data = ["--data", table["train"], "--val-data", table["val"], "--test-data", table["test"]]
        words = ["train", "--constraint", constraint, *data, "--inputs", "x1,x2", *STAR]
        found = over_seeds(f"star{n}", args.seeds, log, *words)
        gap = made["test"]["true_ll"] - statistics.mean(summary["test_ll"] for summary in found)
        print(f"{'':<28} true density on the same test points {made['test']['true_ll']:.4f}, gap {gap:.4f}", flush=True)


def scenes(args, log):
    for scene in (12, 2):
        tracks = args.data / f"scene{scene}_trajectories.csv"
        constraint = ["--constraint", args.data / f"scene{scene}_window_constraints.geojson"]
        windows = args.work / f"scene{scene}-windows.parquet"
        pal("data", "trajectories", "--data", tracks, "--step", 4, "--futures", 2, "--seed", 1, "-o", windows)
        for kind, models in (("fit", FITS), ("train", TRAININGS)):
            name = f"scene{scene}-{kind}"
            if args.only and name not in args.only:
                continue
            for model, options in models.items():
                if args.models and model not in args.models:
                    continue
                table = tracks if kind == "fit" else windows
                words = [kind, *constraint, "--data", table, "--group", "trajectory_id", "--split-seed", 0]
                if kind == "train":
                    words += ["--inputs", WINDOW, *NETWORK]
                over_seeds(f"{name}-{model}", args.seeds, log, *words, *options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stars", "scenes"])
    parser.add_argument("--data", type=pathlib.Path, help="folder with the drone scenes")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n", type=lambda text: [int(n) for n in text.split(",")], default=[3, 7, 11, 19])
    parser.add_argument("--only", type=lambda text: text.split(","), help="such as scene12-fit,scene2-train")
    parser.add_argument("--models", type=lambda text: text.split(","), help="such as pal,gmm50")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "target/learn")
    args = parser.parse_args()
    if args.what == "scenes" and not args.data:
        parser.error("scenes needs --data")
    args.work.mkdir(parents=True, exist_ok=True)
    print(f"{'run':<28} {'params':>8} {'validation':>18} {'test':>18} {'outside':>10} {'training':>9}")
    {"stars": stars, "scenes": scenes}[args.what](args, args.work / "runs.jsonl")


if __name__ == "__main__":
    main()
